"""Jobs that end well, some of them with lines that look like a failure."""

from __future__ import annotations

import random
from collections.abc import Iterable

from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.model import Backend, Line, Story, Stream, Truth, World, Writer
from triage.testing.composer.parts import finish, record, start, steps, tag, traceback

_ALL: tuple[Backend, ...] = ("nccl", "gloo", "hccl")


def plain_finish(world: World, rng: random.Random) -> Story:
    """All ranks train and finish."""
    return _healthy(world, rng, rng.randrange(10, 40))


def retried_exceptions(world: World, rng: random.Random) -> Story:
    """A read fails in the middle on some ranks; it is logged with its traceback and tried again."""
    count = rng.randrange(8, 15)
    error = rng.choice((
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "TimeoutError: The read operation timed out",
        "botocore.exceptions.ReadTimeoutError: Read timeout on endpoint URL: "
        "\"https://s3.local/tokens/shard-00031.tar\"",
    ))  # fmt: skip
    lines = []
    for rank in sorted(rng.sample(world.ranks, rng.randrange(1, min(world.size, 3) + 1))):
        at = 10 + rng.uniform(2, count)
        lines.append(
            record(world, rank, at, "reading shard 31 failed, attempt 1 of 5, retry in 2 s", "WARNING", "stderr")
        )
        frames = ((world.script, 96, "read_shard"), (f"/usr/local/lib/python{world.python}/socket.py", 718, "readinto"))
        lines.append(traceback(world, rank, at + 0.01, error, frames, tagged=False))
        lines.append(record(world, rank, at + 2.1, "reading shard 31 succeeded after 2 attempts"))
    return _healthy(world, rng, count + 40, lines)


def smaller_batch_after_out_of_memory(world: World, rng: random.Random) -> Story:
    """The first steps do not fit the GPU's memory; the program catches it and halves the batch on all ranks."""
    batch, at = rng.choice((16, 32, 64)), 9.0
    lines = []
    for rank in world.ranks:
        text = (
            f"CUDA out of memory. Tried to allocate {rng.randrange(1, 9)}.00 GiB. GPU {world.local(rank)} has a total "
            f"capacity of 79.10 GiB of which {rng.randrange(20, 900)}.12 MiB is free."
        )
        caught = f"caught OutOfMemoryError: {text} Batch size {batch} does not fit, trying {batch // 2}"
        lines.append(record(world, rank, at + rng.uniform(0, 0.4), caught, "WARNING"))
    lines.append(record(world, 0, at + 0.8, f"batch size is {batch // 2}, gradient accumulation is 2"))
    return _healthy(world, rng, rng.randrange(20, 50), lines)


def teardown_warnings(world: World, rng: random.Random) -> Story:
    """NCCL's INFO lines and the warnings of processes that leave without destroying their process group."""
    count = rng.randrange(10, 30)
    end = 12.0 + count
    lines = []
    for rank in world.ranks:
        lines += _transport(world, rank, 7 + rng.uniform(0, 1))
        at = end + rng.uniform(0.2, 1.5)
        lines += _left_group(world, rank, at)
        if tag(world, rank) and rank and rng.random() < 0.6:
            lines.append(_store_gone(world, rng, rank, at + 0.5))
        lines.append(_nccl(world, rank, at + 0.8, f"comm 0x55d0c8{rank:04x}e0 rank {rank} nranks {world.size} cudaDev "
                           f"{world.local(rank)} busId {world.bus(rank)[5:7]}000 - Abort COMPLETE"))  # fmt: skip
    return _healthy(world, rng, count, lines)


def uneven_finish(world: World, rng: random.Random) -> Story:
    """All ranks train the same steps, then some write their shard for long and end much later than others."""
    count, lines = rng.randrange(10, 30), []
    for rank in world.ranks:
        at = 11.0 + count + rng.choice((0.5, 3, 20, 95)) + rng.uniform(0, 1)
        lines.append(record(world, rank, at, f"shard {rank} of {world.size} written, {rng.randrange(1, 90)}.4 GB"))
        lines.append(record(world, rank, at + 0.3, "training finished, 0 errors"))
    body = (*start(world, rng), *steps(world, rng, 10, count), *lines)
    return Story(body, Truth(frozenset({"clean"})))


def frightening_words(world: World, rng: random.Random) -> Story:
    """Lines with words of failures, which say that there are none."""
    texts = (
        "health check: error=0 failed=0 timeouts=0 ecc_errors=0",
        "no NaN found in 312 gradients, no inf found",
        "loaded /opt/app/error_handler.py, abort_on_failure=False, kill_switch=off",
        "dataset: 0 corrupt records, 0 read errors, 1042 files, dropped out of memory cache: 0",
        "FutureWarning: `torch.cuda.amp.GradScaler(args...)` is deprecated. Please use `torch.amp.GradScaler` instead.",
        "checkpoint verified: 0 missing keys, 0 unexpected keys, crash recovery not needed",
        "exception rate 0.0%, last failure: never, segfault handler installed",
        "skipping test fatal_timeout (not selected)",
    )
    count = rng.randrange(12, 40)
    lines = [
        record(world, rank, rng.uniform(9, 10 + count), text, rng.choice(("INFO", "INFO", "WARNING")))
        for text in rng.sample(texts, 5)
        for rank in (world.ranks if rng.random() < 0.4 else (0,))
    ]
    return _healthy(world, rng, count, lines)


def metrics_of_empty_class(world: World, rng: random.Random) -> Story:
    """The validation has no example of one class, so its metrics are NaN."""
    count, empty = rng.randrange(10, 30), rng.choice(("train", "tram", "other vehicle"))
    rows = ["class           | images | precision | recall |   mAP"]
    for name in ("person", "car", empty, "bicycle"):
        scores = ["nan"] * 3 if name == empty else [f"{rng.uniform(0.4, 0.9):.3f}" for _ in range(3)]
        shown = 0 if name == empty else rng.randrange(20, 900)
        rows.append(f"{name:<15} | {shown:>6} | {scores[0]:>9} | {scores[1]:>6} | {scores[2]:>5}")
    at = 11.0 + count
    table = Line(at, Writer("rank", 0), "\n".join(rows), "stdout")
    warning = (
        f"/usr/local/lib/python{world.python}/site-packages/sklearn/metrics/_classification.py:1531: "
        f"UndefinedMetricWarning: "
        "Recall is ill-defined and being set to nan in labels with no true samples.\n  _warn_prf(average, modifier, "
        "msg_start)"
    )
    lines = [
        Line(at - 0.1, Writer("rank", 0), warning),
        table,
        record(world, 0, at + 0.2, f"val/mAP {rng.uniform(0.4, 0.7):.4f} val/mAP_{empty.replace(' ', '_')} nan"),
    ]
    return _healthy(world, rng, count, lines)


def loader_restarts(world: World, rng: random.Random) -> Story:
    """The program starts the workers of its data loader anew, each epoch or after a read that stalled."""
    count = rng.randrange(15, 40)
    lines = [
        record(
            world, rank, 9, f"DataLoader: 4 worker processes, pids {_worker(world, rank)}-{_worker(world, rank) + 3}"
        )
        for rank in world.ranks
    ]
    for rank in sorted(rng.sample(world.ranks, min(2, world.size))):
        at, pid = rng.uniform(12, 8 + count), _worker(world, rank) + rng.randrange(4)
        lines.append(
            record(world, rank, at, f"DataLoader worker (pid {pid}) stalled for 30 s, restarting it", "WARNING")
        )
        lines.append(record(world, rank, at + 0.8, f"DataLoader worker restarted, new pid {pid + 900}"))
    half = 10 + count // 2
    lines += [
        record(world, rank, half + 0.5, "epoch 0 done, shutting down 4 workers, starting 4 new ones")
        for rank in world.ranks
    ]
    return _healthy(world, rng, count, lines)


def tracker_retries(world: World, rng: random.Random) -> Story:
    """The experiment tracker loses its server for some time and tries again."""
    count = rng.randrange(15, 40)
    at = rng.uniform(12, 5 + count)
    texts = (
        "wandb: Network error (ReadTimeout), entering retry loop.",
        "wandb: ERROR Error while calling W&B API: context deadline exceeded (<Response [504]>)",
        "wandb: Network error (ConnectionError), entering retry loop.",
        "wandb: 429 encountered (Filestream rate limit exceeded, retrying in 2.4 seconds.), retrying request",
        "wandb: Network error resolved after 0:00:21.204514, resuming normal operation.",
    )
    lines = [Line(at + index * 4, Writer("rank", 0), text) for index, text in enumerate(texts)]
    summary = (
        "wandb: \nwandb: Run history:\nwandb: loss █▆▅▄▃▃▂▂▁▁\nwandb: \n"
        "wandb: Synced 5 W&B file(s), 0 media file(s), 0 artifact file(s) and 1 other file(s)"
    )
    lines.append(Line(11.5 + count + 25, Writer("rank", 0), summary))
    return _healthy(world, rng, count, lines, pause=25)


def evaluation_by_shard(world: World, rng: random.Random) -> Story:
    """Each rank evaluates its own shard and prints its own loss, which differs between ranks by design."""
    count = rng.randrange(10, 30)
    at, lines, mean = 11.0 + count, [], rng.uniform(1.5, 3)
    losses = [mean + rng.uniform(-0.4, 0.4) for _ in world.ranks]
    metric = rng.choice(("eval loss", "val_loss", "validation loss"))
    for rank in world.ranks:
        samples = rng.randrange(900, 1100)
        lines.append(
            record(
                world,
                rank,
                at + rng.uniform(0, 0.9),
                f"local {metric} {losses[rank]:.4f} ({samples} samples of shard {rank})",
            )
        )
        lines.append(
            record(world, rank, at + 1.1, f"{metric} {sum(losses) / world.size:.4f} (mean of {world.size} ranks)")
        )
    return _healthy(world, rng, count, lines, pause=2)


def _healthy(world: World, rng: random.Random, count: int, lines: Iterable[Line] = (), pause: float = 0) -> Story:
    """Return a job that starts, trains this many steps, and finishes `pause` seconds after them."""
    body = (*start(world, rng), *steps(world, rng, 10, count), *lines, *finish(world, 11.5 + count + pause))
    return Story(body, Truth(frozenset({"clean"})))


def _nccl(world: World, rank: int, at: float, text: str, stream: Stream = "stdout") -> Line:
    pid = world.pids[rank]
    prefix = f"{world.host(rank)}:{pid}:{pid + 211} [{world.local(rank)}] NCCL INFO "
    return Line(at, Writer("rank", rank), prefix + text, stream)


def _worker(world: World, rank: int) -> int:
    """Return the pid of the first worker of a rank's data loader."""
    return world.pids[rank] + 40 + 10 * world.local(rank)


def _transport(world: World, rank: int, at: float) -> list[Line]:
    after = (rank + 1) % world.size
    texts = (
        "NCCL_SOCKET_IFNAME set by environment to eth0",
        "NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
        "NET/IB : No device found.",
        f"Channel 00/0 : {rank}[{world.local(rank)}] -> {after}[{world.local(after)}] via P2P/CUMEM",
        "Connected all rings",
        "TUNER/Plugin: Failed to find ncclTunerPlugin_v3 symbol.",
    )
    return [_nccl(world, rank, at + index / 100, text) for index, text in enumerate(texts)]


def _left_group(world: World, rank: int, at: float) -> list[Line]:
    """Return the warning of ProcessGroupNCCL's destructor, which torch has since 2.4."""
    stamp = world.stamp(at, "%m%d %H:%M:%S.%f")
    if world.torch.startswith("2.1."):
        return []
    if world.torch.startswith("2.4."):
        text = (
            f"[W{stamp} ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed before we "
            f"destruct "
            "ProcessGroupNCCL. On normal program exit, the application should call destroy_process_group to ensure "
            "that any "
            "pending NCCL operations have finished in this process. (function operator())"
        )
    else:
        text = (
            f"[W{stamp} ProcessGroupNCCL.cpp:1496] Warning: WARNING: destroy_process_group() was not called before "
            f"program "
            "exit, which can leak resources. For more info, please see https://pytorch.org/docs/stable/distributed.html"
            "#shutdown (function operator())"
        )
    return [Line(at, Writer("rank", rank), f"{tag(world, rank).strip()}{text}")]


def _store_gone(world: World, rng: random.Random, rank: int, at: float) -> Line:
    """Return the warning of a rank that ends after rank 0, which has the store."""
    head = f"{tag(world, rank).strip()}[W{world.stamp(at, '%m%d %H:%M:%S.%f').removeprefix('0')}"
    socket = f"fd={rng.randrange(40, 90)}, addr=[{world.host(rank)}]:{rng.randrange(30000, 60000)}"
    text = (
        f"{head} TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl({socket}, remote=[{world.hosts[0]}]:29500): "
        f"failed to recv, got 0 bytes\n{head} ProcessGroupNCCL.cpp:1662] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] "
        'Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with '
        "error: failed to recv, got 0 bytes"
    )
    return Line(at, Writer("rank", rank), text)


FAULTS = (
    Fault("healthy-plain", plain_finish, backends=_ALL),
    Fault("healthy-retried-exceptions", retried_exceptions, backends=_ALL),
    Fault("healthy-smaller-batch", smaller_batch_after_out_of_memory, backends=("nccl",)),
    Fault("healthy-teardown-warnings", teardown_warnings, backends=("nccl",)),
    Fault("healthy-uneven-finish", uneven_finish, backends=_ALL),
    Fault("healthy-frightening-words", frightening_words, backends=_ALL),
    Fault("healthy-empty-class", metrics_of_empty_class, backends=_ALL),
    Fault("healthy-loader-restarts", loader_restarts, backends=_ALL),
    Fault("healthy-tracker-retries", tracker_retries, backends=_ALL),
    Fault("healthy-evaluation-by-shard", evaluation_by_shard, backends=_ALL),
)
