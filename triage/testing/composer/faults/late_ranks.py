"""Faults of a rank that comes too late, or no more, to what the others wait in: its last words say why."""

from __future__ import annotations

import random
from dataclasses import replace

from triage.testing.composer.faults.c10d import version, watchdog_report
from triage.testing.composer.faults.collectives import KNOWN, in_order, wait_for
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.faults.npu_texts import (
    address,
    cann_head,
    cann_stamp,
    error_line,
    init_call,
    plog,
    raised,
)
from triage.testing.composer.faults.uncaught import format_traceback, training_calls
from triage.testing.composer.model import Exit, Line, Story, Truth, World, Writer
from triage.testing.composer.parts import record, start, steps

_EITHER = frozenset({"known", "unknown"})
_BEFORE_ENTRY = (
    "tokenizing shard {0} of {1}",
    "building dataset index, {0} of {1} files done",
    "reading weights: part {0} of {1}",
    "map: {0}/{1} examples",
)
_SKIPPED = ("step {0} failed, skipping batch", "skipping batch {0} after an exception", "bad batch {0}, continue")
_COMPILING = (
    "compiling kernels for shape ({0}, {1}, 4096)",
    "torch.compile: new shape ({0}, {1}), recompiling block {0}",
    "triton cache miss for flash_attn_{0}_{1}, building",
)
_EPOCHS = (
    "epoch {epoch} finished after {count} batches",
    "end of epoch {epoch}: {count} batches, starting validation",
    "train loader exhausted at batch {count} (epoch {epoch})",
)


def late_entry(world: World, rng: random.Random) -> Story:
    """One rank asks for the communicator later than the connect timeout; the others have given up by then."""
    late, timeout = rng.randrange(1, world.size), rng.choice((120, 120, 300, 600))
    first, delay = rng.uniform(6, 12), timeout + rng.uniform(4, 60)
    entries = {rank: first + rng.uniform(0, 3) for rank in world.ranks} | {late: first + delay}
    group, lines = rng.choice(("hccl_world_group", "group_name_0", f"{address(world, 0)}%eth0_60000_0")), []
    name = rng.choice(("HcclCommInitRootInfo", "HcclCommInitRootInfoInner", "HcclCommInitRootInfoConfigInner"))
    for rank, at in entries.items():
        lines.append(_entry(world, rank, at, name, group))
    if rng.random() < 0.6:
        done, of = rng.randrange(2, 50), rng.randrange(60, 900)
        text = rng.choice(_BEFORE_ENTRY)
        for rank in world.ranks:
            lines.append(record(world, rank, first - 2 + rng.uniform(0, 1), text.format(done, of)))
        lines.append(record(world, late, first + delay - rng.uniform(1, 9), text.format(of, of)))
    waits = [_negotiation(world, rank, entries[rank] + timeout + rng.uniform(0.1, 4), late, timeout, group)
             for rank in world.ranks if rank != late]  # fmt: skip
    if rng.random() < 0.5:
        waits.append(_unreachable(world, late, first + delay + timeout + rng.uniform(0.1, 2), timeout))
    ends = in_order(Exit(line.writer.number, 1, line.at + 0.5) for line in waits)
    truth = Truth(
        KNOWN, frozenset({"hccl.late-rank"}), frozenset({late}), frozenset({world.node(late)}), by_comparison=True
    )
    return Story((*start(world, rng), *lines, *waits), truth, ends)


def _entry(world: World, rank: int, at: float, name: str, group: str) -> Line:
    """Return HCCL's line about a call of its interface, as it stands in a console with its log of runs."""
    pid, where = world.pids[rank], ("op_base.cc:672", "op_base.cc:1139", "op_base.cc:1283")[len(name) % 3]
    text = (
        f"[INFO] HCCL({pid},python3):{cann_stamp(world, at)} [{where}] [{pid}]Entry-{name}:ranks[{world.size}], "
        f"rank[{rank}], rootinfo: host ip[{address(world, 0)}] port[60000] nicDeploy[1] identifier[{group}], "
        f"deviceLogicId[{world.local(rank)}]"
    )
    return Line(at, Writer("rank", rank), text, "stdout", is_cause=True, says_rank=True)


def _negotiation(world: World, rank: int, at: float, late: int, timeout: int, group: str) -> Line:
    """Return the end of a rank that waited for all ranks to join; rank 0 is the server and knows who came."""
    if rank == 0:
        stage = "[InitGroupStage][RanktableDetect]"
        connected = ",".join(f"[{other:016d}]" for other in world.ranks if other != late)
        shown = [
            plog(world, 0, at, "topoinfo_exchange_server.cc:314",
                 f"{stage}topo exchange server get socket timeout! timeout[{timeout} s]"),
            plog(world, 0, at + 2e-4, "topoinfo_exchange_server.cc:517",
                 f"[InitGroupStage][DisplayConnectionedRank]connected rankinfo[LINE 0]: {connected};"),
        ]  # fmt: skip
    else:
        fault = f'fault_type[1], fault_info["Failed to connect agent[{late},]"]'
        shown = [
            plog(world, rank, at, "topoinfo_exchange_base.cc:145",
                 f"[InitGroupStage][RanktableDetect]TopoDetect ERROR occur !!! {fault}"),
        ]  # fmt: skip
    return _given_up(world, rank, at, shown, f"identifier {group}: not all ranks joined within {timeout} s")


def _unreachable(world: World, rank: int, at: float, timeout: int) -> Line:
    """Return the end of the late rank, whose server is gone."""
    shown = [
        plog(world, rank, at, "topoinfo_exchange_agent.cc:190",
             f"[InitGroupStage][RanktableDetect]topo exchange agent get socket timeout! timeout[{timeout}]"),
        plog(world, rank, at + 2e-5, "topoinfo_exchange_agent.cc:41",
             f"[TopoInfoExchangeAgent][Setup]TopoExchangeAgent: connect server[{address(world, 0)} : 60000] failed"),
    ]  # fmt: skip
    return _given_up(world, rank, at, shown, f"no connection to the root within {timeout} s")


def _given_up(world: World, rank: int, at: float, shown: list[str], reason: str) -> Line:
    """Return HCCL's own lines and the exception of torch_npu."""
    parts = [
        init_call(world, 9),
        error_line(world, rank, at, "ERR02200 DIST call hccl api failed."),
        cann_head(world, rank, at, "EI0015", f"Root information negotiation failed. Reason: {reason}."),
    ]
    error = raised(world, rank, at, parts)
    return Line(at, error.writer, "\n".join([*shown, error.text]), says_rank=True)


def skipped_batches(world: World, rng: random.Random) -> Story:
    """One rank catches an exception, skips its batch and no longer comes to the collectives of the others."""
    rank, count, seconds = rng.randrange(world.size), rng.randrange(4, 14), rng.choice((300, 600, 1800))
    at, first = 10.5 + count, rng.choice((1, 1, 4000))
    source, error, root = _caught(world, rng)
    shown = format_traceback(world, training_calls(world, rng, source), error)
    message = f"{rng.choice(_SKIPPED).format(first + count)}\n{shown}"
    says_rank = world.log_style in ("ranked", "loguru")
    lines = [*start(world, rng), *steps(world, rng, 10, count, number=first)]
    lines.append(replace(record(world, rank, at, message, "ERROR", "stderr"), is_cause=True, says_rank=says_rank))
    if rng.random() < 0.5:
        lines.append(record(world, rank, at + 0.8, f"continuing with batch {first + count + 1}"))
    late, exits = wait_for(world, rng, [rank], at + 0.4, count * 12, seconds)
    roots = frozenset({"torch.one-rank-diverged", "torch.lagging-rank", root})
    nodes = frozenset({world.node(rank)})
    truth = Truth(KNOWN if root else _EITHER, roots, frozenset({rank}), nodes, by_comparison=True)
    return Story((*lines, *late), truth, exits)


def _caught(world: World, rng: random.Random) -> tuple[str, str, str | None]:
    """Return the source line, the error and the root of an exception that a program catches."""
    length = rng.randrange(4097, 9000)
    truncated = "OSError: image file is truncated (14 bytes not processed)"
    choices: list[tuple[str, str, str | None]] = [
        ("image = Image.open(path).convert('RGB')", truncated, "data.unreadable-sample"),
        ("sample = json.loads(line)", "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)", None),
        ("tokens = pad(batch)", f"ValueError: sequence of {length} tokens is longer than 4096", None),
    ]
    if world.backend == "nccl":
        name = "torch.OutOfMemoryError" if version(world) >= (2, 5) else "torch.cuda.OutOfMemoryError"
        text = f"{name}: CUDA out of memory. Tried to allocate {rng.randrange(1, 9)}.50 GiB."
        choices += [("loss = model(batch).loss", text, "cuda.out-of-memory")] * 2
    return rng.choice(choices)


def long_compilation(world: World, rng: random.Random) -> Story:
    """One rank compiles for longer than the timeout of the others, because it alone got a new shape."""
    rank, count, seconds = rng.randrange(world.size), rng.randrange(0, 8), rng.choice((300, 600))
    at = 10.5 + count
    form = rng.randrange(3)
    if form == 0:
        shapes = rng.choice((16, 32, 64)), rng.randrange(513, 4000)
        shown = [record(world, rank, at, rng.choice(_COMPILING).format(*shapes))]
    elif form == 1:
        shown = [_recompiles(world, rng, rank, at)]
    else:
        shown = [_autotune(rng, rank, at + number * rng.uniform(9, 30)) for number in range(rng.randrange(1, 5))]
    late, exits = wait_for(world, rng, [rank], at + 0.2, count * 12, seconds)
    roots: frozenset[str | None] = frozenset({"torch.compile-skew", "torch.lagging-rank"})
    truth = Truth(KNOWN, roots, frozenset({rank}), frozenset({world.node(rank)}), by_comparison=True)
    return Story((*start(world, rng), *steps(world, rng, 10, count), *shown, *late), truth, exits)


def _recompiles(world: World, rng: random.Random, rank: int, at: float) -> Line:
    """Return what TORCH_LOGS=recompiles prints; newer versions have a glog prefix, also of the rank."""
    again, index, length = rng.randrange(1, 8), rng.randrange(1, 3), rng.randrange(513, 4000)
    mismatch = f"size mismatch at index {index}. expected 512, actual {length}"
    prefix = f"[rank{rank}]:" if version(world) >= (2, 2) else ""
    if version(world) >= (2, 4):
        place = f"torch/_dynamo/guards.py:{3006 if version(world) >= (2, 6) else 2813}]"
        prefix += f"V{world.stamp(at, '%m%d %H:%M:%S.%f')} {world.pids[rank]} {place} [0/{again}] [__recompiles]"
    else:
        prefix += f"[{world.stamp(at, '%Y-%m-%d %H:%M:%S,%L')}] [0/{again}] torch._dynamo.guards.__recompiles: [DEBUG]"
    text = "\n".join((
        f"{prefix} Recompiling function forward in {world.script.rpartition('/')[0]}/model.py:{rng.randrange(40, 400)}",
        f"{prefix}     triggered by the following guard failure(s):",
        f"{prefix}     - 0/{again - 1}: tensor 'L['input_ids']' {mismatch}",
    ))  # fmt: skip
    return Line(at, Writer("rank", rank), text, says_rank=version(world) >= (2, 2))


def _autotune(rng: random.Random, rank: int, at: float) -> Line:
    """Return Inductor's table of one operation."""
    rows, best = rng.randrange(513, 9000), rng.uniform(0.02, 0.4)
    text = [f"AUTOTUNE {rng.choice(('mm', 'addmm', 'bmm'))}({rows}x4096, 4096x{rng.choice((4096, 11008, 14336))})"]
    for number, share in enumerate(sorted((rng.uniform(0.5, 1) for _ in range(3)), reverse=True)):
        text.append(
            f"  triton_mm_{number + rng.randrange(4) * 5} {best / share:.4f} ms {share * 100:.1f}% "
            "ACC_TYPE='tl.float32', ALLOW_TF32=False, BLOCK_K=32, BLOCK_M=64, BLOCK_N=128, num_stages=4, num_warps=8"
        )
    text.append(
        f"SingleProcess AUTOTUNE benchmarking takes {rng.uniform(1, 40):.4f} seconds and {rng.uniform(1, 300):.4f} "
        "seconds precompiling for 20 choices"
    )
    return Line(at, Writer("rank", rank), "\n".join(text))


def shorter_epoch(world: World, rng: random.Random) -> Story:
    """One rank has fewer batches; it leaves the epoch while the others wait for it in one more gradient reduction."""
    rank, count, seconds = rng.randrange(world.size), rng.randrange(5, 14), rng.choice((300, 600, 1800))
    at, epoch, more = 10.5 + count, rng.randrange(0, 9), rng.randrange(1, 3)
    lines = start(world, rng)
    roots = {"data.uneven-inputs", "torch.lagging-rank"}
    if counts_shown := rng.random() < 0.5:
        form = rng.choice(("len(train_loader) = {}", "{} batches per epoch", "sampler: {} batches for this rank"))
        lines += [record(world, each, 9, form.format(count + more * (each != rank))) for each in world.ranks]
    lines += steps(world, rng, 10, count)
    lines.append(record(world, rank, at, rng.choice(_EPOCHS).format(epoch=epoch, count=count)))
    late, exits = wait_for(world, rng, [rank], at + 0.3, count * 12, seconds)
    if world.backend == "nccl" and rng.random() < 0.5:
        late = [line for line in late if line.writer.number != rank]
        moment = at + 0.2 + seconds + rng.uniform(0, 1)
        late.append(watchdog_report(world, rank, moment, count * 12 + 1, numel=1, seconds=seconds))
        exits = in_order((*exits, Exit(rank, -6, moment + 0.3)))
        roots.add("torch.collective-shape-mismatch")
    elif rank == 0 and not counts_shown:  # rank 0 may be the only one that prints ends of epochs
        roots.add("torch.rank-never-joined")
    truth = Truth(KNOWN, frozenset(roots), frozenset({rank}), frozenset({world.node(rank)}), by_comparison=True)
    return Story((*lines, *late), truth, exits)


FAULTS = (
    Fault("npu-late-entry", late_entry, backends=("hccl",)),
    Fault("batch-skipped-by-one", skipped_batches),
    Fault("compile-longer-than-timeout", long_compilation, backends=("nccl",)),
    Fault("epoch-of-one-shorter", shorter_epoch),
)
