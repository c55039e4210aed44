"""Faults in which one rank comes to a collective with another shape, type, operation, model or device than the others.

The odd rank shows by comparison; where a job has two ranks, or the message names a pair, both are right.
"""

from __future__ import annotations

import random

from triage.testing.composer.faults.c10d import by_version, collective_calls, torch_file, uncaught, version
from triage.testing.composer.faults.collectives import KNOWN, gloo_source, in_order
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.model import Exit, Line, Story, Truth, World, Writer
from triage.testing.composer.parts import record, start, steps

_CODES = {"ALLREDUCE": "work = group.allreduce([tensor], opts)", "BROADCAST": "work = group.broadcast([tensor], opts)"}
_FUNCTIONS = {"ALLREDUCE": "all_reduce", "BROADCAST": "broadcast"}


def odd_one(world: World, rank: int, *roots: str) -> Truth:
    """Return the truth of a rank that differs from all others; of two ranks, both are right."""
    ranks = frozenset({rank} if world.size > 2 else world.ranks)
    return Truth(KNOWN, frozenset(roots), ranks, frozenset(map(world.node, ranks)), by_comparison=True)


def first_other(world: World, rank: int, odd: int) -> int:
    """Return the first rank, by number, with which a rank disagrees; torch compares in this order."""
    return odd if rank != odd else int(odd == 0)


def detail_shape(world: World, rng: random.Random) -> Story:
    """With TORCH_DISTRIBUTED_DEBUG=DETAIL, one rank has another tensor shape."""
    usual, rows = rng.choice((1024, 4096, 768)), rng.choice((4, 8, 16))
    other = f"{rows - rng.randrange(1, 3)}, {usual}"
    return _detail(world, rng, ("ALLREDUCE", f"{rows}, {usual}", "Float"), ("ALLREDUCE", other, "Float"))


def detail_dtype(world: World, rng: random.Random) -> Story:
    """With TORCH_DISTRIBUTED_DEBUG=DETAIL, one rank has another element type."""
    shape, types = str(rng.choice((524288, 1024, 32000))), rng.sample(("Float", "BFloat16", "Half"), 2)
    return _detail(world, rng, ("ALLREDUCE", shape, types[0]), ("ALLREDUCE", shape, types[1]))


def detail_operation(world: World, rng: random.Random) -> Story:
    """With TORCH_DISTRIBUTED_DEBUG=DETAIL, one rank calls another collective."""
    shape, kinds = str(rng.choice((1, 1024, 32000))), rng.sample(("ALLREDUCE", "BROADCAST"), 2)
    return _detail(world, rng, (kinds[0], shape, "Float"), (kinds[1], shape, "Float"))


def model_differs(world: World, rng: random.Random) -> Story:
    """One rank builds a model with another number of parameters; DDP notices it on every rank."""
    odd, usual = rng.randrange(world.size), rng.randrange(40, 600)
    counts = dict.fromkeys(world.ranks, usual) | {odd: usual + rng.choice((-2, -1, 1, 2, 4))}
    number = int(by_version(world, (795, 797, 825, 880)))
    code = "_verify_param_shape_across_processes(self.process_group, parameters)"
    calls = [
        (world.script, 212, "<module>", "main()"),
        (world.script, 166, "main", "model = DistributedDataParallel(model, device_ids=device_ids)"),
        (torch_file(world, "nn/parallel/distributed.py"), number, "__init__", code),
        (torch_file(world, "distributed/utils.py"), int(by_version(world, (265, 288, 294, 285))),
         "_verify_param_shape_across_processes",
         "return dist._verify_params_across_processes(process_group, tensors, logger)"),
    ]  # fmt: skip
    late, exits = [], []
    for rank in world.ranks:
        at, other = 9 + rng.uniform(0, 0.4), first_other(world, rank, odd)
        error = (
            f"RuntimeError: DDP expects same model across all ranks, but Rank {rank} has {counts[rank]} params, while "
            f"rank {other} has inconsistent {counts[other]} params."
        )
        late.append(uncaught(world, rank, at, error, calls, is_cause=True))
        exits.append(Exit(rank, 1, at + 0.2))
    truth = odd_one(world, odd, "ddp.model-differs-across-ranks", "torch.model-differs-across-ranks")
    return Story((*start(world, rng), *late), truth, in_order(exits))


def gloo_message_size(world: World, rng: random.Random) -> Story:
    """One rank reduces a longer tensor; the rank that receives from it aborts, and the others lose that rank."""
    odd, usual, count = rng.randrange(world.size), rng.choice((1024, 4096, 98304)), rng.randrange(0, 6)
    longer, at = usual * rng.choice((2, 4)), 10.5 + count
    message = rng.choice(
        ("flattened gradients: {} elements", "bucket 0 holds {} elements", "packed batch of {} tokens")
    )
    sizes = [
        record(world, rank, at - 0.1, message.format(longer if rank == odd else usual)) for rank in world.ranks
    ]  # fmt: skip
    lines = (*start(world, rng), *steps(world, rng, 10, count), *sizes)
    late, exits = gloo_size_failure(world, rng, odd, at, longer, usual)
    truth = odd_one(world, odd, "torch.model-differs-across-ranks", "torch.collective-shape-mismatch")
    return Story((*lines, *late), truth, exits)


def gloo_size_failure(
    world: World, rng: random.Random, odd: int, at: float, longer: int, usual: int
) -> tuple[list[Line], tuple[Exit, ...]]:
    """Return what ranks print when one sends more elements of 4 bytes than the others expect, and their ends.

    Gloo's ring sends to the lower neighbour, in segments of 1 / (2 * ranks) of the tensor.
    """
    victim = (odd - 1) % world.size
    received, expected = (4 * -(-count // (2 * world.size)) for count in (longer, usual))
    advice = " Received data size doesn't match expected size. Is there a distributed collective mismatch in your code?"
    text = (
        "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  [enforce fail at "
        f"{gloo_source(world, 'length')}] op.preamble.length <= op.nbytes. {received} vs {expected}"
    ) + ("." + advice if version(world) >= (2, 9) else "")
    lines = [Line(at, Writer("rank", victim), text, is_cause=True)]
    exits = [Exit(victim, -6, at + 0.2)]
    node = world.node(victim)
    source = gloo_source(world, "closed").replace(":553", ":537").replace(":534", ":525")
    for rank in [rank for rank in world.ranks if rank != victim]:
        moment = at + rng.uniform(0.3, 0.9)
        peer = f"[10.0.{node}.{10 + node}]:{rng.randrange(2000, 60000)}"
        error = f"RuntimeError: [{source}] Read error {peer}: Connection reset by peer"
        lines.append(uncaught(world, rank, moment, error, collective_calls(world, "all_reduce", "work.wait()")))
        exits.append(Exit(rank, 1, moment + 0.3))
    return lines, in_order(exits)


def nccl_message_truncated(world: World, rng: random.Random) -> Story:
    """A pipeline stage receives more bytes from the stage before than it asked for, over the network: a pair."""
    boundary, count = rng.randrange(1, len(world.hosts)), rng.randrange(0, 6)
    receiver = boundary * world.per_node
    sender, at = receiver - 1, 10.6 + count
    expected = rng.choice((2, 1048576, 524288))
    node = world.node(sender)
    peer = f"10.0.{node}.{10 + node}<{rng.randrange(30000, 60000)}>"
    text = (
        f"NET/Socket : peer {peer} message truncated : receiving {2 * expected} bytes instead of {expected}. If you "
        "believe your socket network is in healthy state,           there may be a mismatch in collective sizes or "
        "environment settings (e.g. NCCL_PROTO, NCCL_ALGO) between ranks"
    )
    warning = f"\n{nccl_prefix(world, receiver, at, 'transport/net_socket.cc:488')}{text}"
    stage = record(world, receiver, at - 0.1, f"stage {receiver}: recv activations from rank {sender}")
    calls = collective_calls(
        world, "batch_isend_irecv", "with _coalescing_manager(group, device, async_ops=True) as cm:"
    )
    error = nccl_error("invalid usage (run with NCCL_DEBUG=WARN for details)", "ncclInvalidUsage", text, world)
    late = [
        Line(at, Writer("rank", receiver), warning, "stdout", is_cause=True),
        uncaught(world, receiver, at + 0.3, error, calls, is_cause=True),
    ]
    roots = frozenset({"nccl.message-truncated", "torch.collective-shape-mismatch"})
    truth = Truth(KNOWN, roots, frozenset({sender, receiver}), frozenset({node, boundary}))
    lines = (*start(world, rng), *steps(world, rng, 10, count), stage, *late)
    return Story(lines, truth, (Exit(receiver, 1, at + 0.6),))


def duplicate_gpu(world: World, rng: random.Random) -> Story:
    """Two ranks of one node use the same GPU; each of the two names both."""
    node = rng.randrange(len(world.hosts))
    pair = sorted(rng.sample(list(world.on_node(node)), 2))
    bus = f"{int(world.bus(pair[0]).split(':')[1], 16) << 12:x}"
    late, exits = [], []
    for rank, other in (pair, pair[::-1]):
        at = 9 + rng.uniform(0, 0.3)
        text = f"Duplicate GPU detected : rank {rank} and rank {other} both on CUDA device {bus}"
        where = by_version(world, ("init.cc:1358", "init.cc:891", "init.cc:943", "init.cc:1013"))
        warning = f"\n{nccl_prefix(world, rank, at, where)}{text}"
        calls = collective_calls(world, "barrier", "work = group.barrier(opts=opts)", "setup")
        error = nccl_error("invalid usage (run with NCCL_DEBUG=WARN for details)", "ncclInvalidUsage", text, world)
        if rng.random() < 0.5:
            late.append(Line(at, Writer("rank", rank), warning, "stdout", is_cause=True, says_rank=True))
        shown = uncaught(world, rank, at + 0.2, error, calls, is_cause=True)
        late.append(Line(shown.at, shown.writer, shown.text, is_cause=True, says_rank=True))
        exits.append(Exit(rank, 1, at + 0.4))
    truth = Truth(KNOWN, frozenset({"nccl.duplicate-gpu"}), frozenset(pair), frozenset({node}))
    return Story((*start_without_init(world, rng), *late), truth, in_order(exits))


def start_without_init(world: World, rng: random.Random) -> list[Line]:
    """Return what ranks print before NCCL makes its first communicator."""
    return [line for line in start(world, rng) if "Init COMPLETE" not in line.text]


def nccl_prefix(world: World, rank: int, at: float, where: str) -> str:
    """Return the prefix of NCCL's warnings; from 2.26.2 on it begins with the time."""
    stamp = world.stamp(at, "[%Y-%m-%d %H:%M:%S] ") if tuple(map(int, world.nccl.split("."))) >= (2, 26, 2) else ""
    pid, host = world.pids[rank], world.host(rank).split(".")[0]
    return f"{stamp}{host}:{pid}:{pid + 311} [{world.local(rank)}] {where} NCCL WARN "


def nccl_error(summary: str, kind: str, last: str, world: World) -> str:
    """Return torch's exception for a failed call of NCCL, with NCCL's last warning."""
    explained = {
        "ncclInvalidUsage": "This usually reflects invalid usage of NCCL library.",
        "ncclInternalError": "Internal check failed.",
        "ncclRemoteError": "A call failed possibly due to a network error or a remote process exiting prematurely.",
    }[kind]
    numbers, root = (1333, 1970, 2251, 3690), by_version(world, ("..", "..", "/pytorch", "/pytorch"))
    source = f"{root}/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:{by_version(world, numbers)}"
    return (
        f"torch.distributed.DistBackendError: NCCL error in: {source}, {summary}, NCCL version {world.nccl}\n"
        f"{kind}: {explained}\nLast error:\n{last}"
    )


def _detail(world: World, rng: random.Random, usual: tuple[str, str, str], different: tuple[str, str, str]) -> Story:
    odd, count = rng.randrange(world.size), rng.randrange(2, 10)
    sequence, at = count * rng.randrange(3, 9), 10.6 + count
    late, exits = [], []
    for rank in world.ranks:
        other, moment = first_other(world, rank, odd), at + rng.uniform(0, 0.2)
        own, other_ranks = (different if each == odd else usual for each in (rank, other))
        texts = [_fingerprint(world, sequence, which) for which in (own, other_ranks)]
        error = (
            f"RuntimeError: Detected mismatch between collectives on ranks. Rank {rank} is running collective: "
            f"{texts[0]}, but Rank {other} is running collective: {texts[1]}.Collectives differ in the following "
            f"aspects: {_difference(own, other_ranks)}"
        )
        calls = collective_calls(world, _FUNCTIONS[own[0]], _CODES[own[0]])
        late.append(uncaught(world, rank, moment, error, calls, is_cause=True))
        exits.append(Exit(rank, 1, moment + 0.3))
    kind = ["order", "shape", "dtype"][
        [left != right for left, right in zip(usual, different, strict=True)].index(True)
    ]
    truth = odd_one(world, odd, f"torch.collective-{kind}-mismatch")
    return Story((*start(world, rng), *steps(world, rng, 10, count), *late), truth, in_order(exits))


def _fingerprint(world: World, sequence: int, which: tuple[str, str, str]) -> str:
    operation, shape, dtype = which
    device = "cuda" if world.backend == "nccl" else "cpu"
    options = (
        f"TensorOptions(dtype=float (default), device={device}, layout=Strided (default), requires_grad=false "
        "(default), pinned_memory=false (default), memory_format=(nullopt))"
    )
    return (
        f"CollectiveFingerPrint(SequenceNumber={sequence}, OpType={operation}, TensorShape=[{shape}], "
        f"TensorDtypes={dtype}, TensorDeviceTypes={options})"
    )


def _difference(own: tuple[str, str, str], other_ranks: tuple[str, str, str]) -> str:
    """Return the aspects that differ, with the blanks that are missing in the source of torch."""
    difference = ""
    for name, left, right in zip(
        ("Op type", "Tensor Tensor shapes", "Tensor Tensor dtypes"), own, other_ranks, strict=True
    ):
        if left != right:
            difference += f"  {name}: {left.replace(', ', ' ')}vs {right.replace(', ', ' ')}"
    return difference


FAULTS = (
    Fault("detail-shape-mismatch", detail_shape),
    Fault("detail-dtype-mismatch", detail_dtype),
    Fault("detail-operation-mismatch", detail_operation),
    Fault("ddp-model-differs", model_differs),
    Fault("gloo-message-size", gloo_message_size, backends=("gloo",), least_per_node=3),
    Fault("nccl-message-truncated", nccl_message_truncated, backends=("nccl",), least_nodes=2),
    Fault("duplicate-gpu", duplicate_gpu, backends=("nccl",), least_per_node=2),
)
