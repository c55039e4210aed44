"""Faults of jobs on Ascend NPUs, as torch_npu, HCCL and the CANN runtime report them."""

from __future__ import annotations

import random
from collections.abc import Iterable

from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.faults.npu_texts import (
    address,
    cann_head,
    error_line,
    init_call,
    link_timeout,
    operation_call,
    plog,
    raised,
    sync_call,
)
from triage.testing.composer.model import Exit, Line, Story, Truth, World, Writer
from triage.testing.composer.parts import echoes, record, start, steps, traceback

_KNOWN = frozenset({"known"})
_EITHER = frozenset({"known", "unknown"})
_ACL_FAILED = "ERR00100 PTA call acl api failed."


def out_of_memory(world: World, rng: random.Random) -> Story:
    """One rank runs out of NPU memory in a step."""
    rank, count = rng.randrange(world.size), rng.randrange(3, 12)
    at = 10.0 + count
    total, free = rng.choice((29.5, 60.97, 61.27)), rng.uniform(20, 900)
    kind = "RuntimeError" if world.torch.startswith("2.1.") else "torch.OutOfMemoryError"
    error = (
        f"{kind}: NPU out of memory. Tried to allocate {rng.randrange(1, 9)}.00 GiB (NPU {world.local(rank)}; "
        f"{total:.2f} GiB "
        f"total capacity; {total - 4:.2f} GiB already allocated; {total - 4:.2f} GiB current active; {free:.2f} MiB "
        f"free; "
        f"{total - 2:.2f} GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting "
        "max_split_size_mb to avoid fragmentation."
    )
    cause = traceback(world, rank, at, error, is_cause=True)
    return _one_rank(world, rng, rank, count, cause, "npu.out-of-memory")


def notify_timeout(world: World, rng: random.Random) -> Story:
    """One rank stops in a step without a line; all others wait for it until their notify wait times out."""
    stuck, count = rng.randrange(world.size), rng.randrange(4, 12)
    others = [rank for rank in world.ranks if rank != stuck]
    at = 10.0 + count + rng.choice((300, 600, 1836))
    lines = [*start(world, rng), *steps(world, rng, 10, count)]
    lines += steps(world, rng, 10.0 + count, 1, ranks=others, number=1 + count) if rng.random() < 0.5 else []
    tag = f"AllReduce_group_name_{rng.randrange(0, 40)}"
    waits = [_notify(world, rank, at + rng.uniform(0, 3), tag, "") for rank in others]
    exits = sorted((Exit(line.writer.number, 1, line.at + 0.5) for line in waits), key=lambda end: end.at)
    roots: frozenset[str | None] = frozenset(
        {"hccl.notify-timeout", "torch.lagging-rank", "torch.rank-never-joined", None}
    )
    truth = Truth(_EITHER, roots, frozenset({stuck}), frozenset({world.node(stuck)}), by_comparison=True)
    return Story((*lines, *waits), truth, tuple(exits))


def link_timeout_after_error(world: World, rng: random.Random) -> Story:
    """One rank fails at the start with its own error and does not end; the others wait for a link to it."""
    rank, at = rng.randrange(world.size), rng.uniform(4, 8)
    path = rng.choice(("/mnt/data/tokens/shard-00017.bin", "/data/cache/index.json", "/mnt/ckpt/base/config.json"))
    key = rng.choice(("vocab_file", "num_experts", "rope_theta"))
    error, root = rng.choice((
        (f"KeyError: '{key}'", None),
        (f"PermissionError: [Errno 13] Permission denied: '{path}'", "host.permission-denied"),
        (f"AssertionError: {key} differs from the checkpoint's configuration", None),
    ))  # fmt: skip
    cause = traceback(world, rank, at, error, is_cause=True)
    others = [other for other in world.ranks if other != rank]
    waits = [link_timeout(world, other, at + 120 + rng.uniform(0, 4)) for other in others]
    ended = sorted((Exit(line.writer.number, 1, line.at + 0.5) for line in waits), key=lambda end: end.at)
    verdicts = frozenset({"known" if root else "unknown"})
    truth = Truth(verdicts, frozenset({root}), frozenset({rank}), frozenset({world.node(rank)}))
    return Story((*start(world, rng), cause, *waits), truth, (*ended, Exit(rank, 1, at + 130)))


def heartbeat_lost(world: World, rng: random.Random) -> Story:
    """One device is gone from the network without a line; the others name its host's address and its number."""
    rank, count = rng.randrange(world.size), rng.randrange(4, 12)
    lost = 10.0 + count
    others = [other for other in world.ranks if other != rank]
    addresses = [
        record(world, other, 2.5 + other / 1000, f"host ip {address(world, other)} device id {world.local(other)}")
        for other in world.ranks
    ]
    at, tag = lost + 60, f"AllReduce_{address(world, 0)}%eth0_60000_0_{int(world.start * 1000)}"
    arrival = world.stamp(lost + 32, "%a %b %d %H:%M:%S %Y")
    found_by = f"{address(world, others[0])}/{world.local(others[0])}"
    detail = (
        f"\nthere are(is) 1 abnormal device(s):\n    Cluster Exception Location[IP/ID]:[{address(world, rank)}/"
        f"{world.local(rank)}], Arrival Time:[{arrival}], Discoverer:[{found_by}], "
        "ExceptionType:[Heartbeat Lost Occurred], Possible Reason:1. Process has exited, 2. Network Disconnected\n"
    )
    waits = [_notify(world, other, at + rng.uniform(0, 3), tag, detail) for other in others]
    exits = sorted((Exit(line.writer.number, 1, line.at + 0.5) for line in waits), key=lambda end: end.at)
    truth = Truth(_KNOWN, frozenset({"hccl.heartbeat-lost"}), frozenset({rank}), frozenset({world.node(rank)}))
    return Story((*start(world, rng), *addresses, *steps(world, rng, 10, count), *waits), truth, tuple(exits))


def aicore_out_of_bounds(world: World, rng: random.Random) -> Story:
    """A kernel of one rank reads outside of its memory."""
    rank, count = rng.randrange(world.size), rng.randrange(3, 12)
    at = 10.0 + count
    chip, start_of_code = world.local(rank), 0x124080000000 + rng.randrange(1 << 20) * 16
    kernel = rng.choice(("GatherV2_fp16_high_performance_2", "EmbeddingDenseGradV2_21", "IndexPutV2_half_mode_3"))
    parts = [
        sync_call(507015),
        error_line(world, rank, at, _ACL_FAILED),
        "[Error]: The aicore execution is abnormal.",
        "        Rectify the fault based on the error information in the ascend log.",
        "EZ9999: Inner Error!",
        cann_head(world, rank, at, "EZ9999", f"The error from device(chipId:{chip}, dieId:0), serial number is "
        f"{rng.randrange(1, 90)}, there is an exception of aicore error, core id is {rng.randrange(24)}, error code = "
        f"0x800000, dump info: pc start: {start_of_code:#x}, current: {start_of_code + rng.randrange(64, 4096):#x}, "
        f"vec "
        "error info: 0, mte error info: 0x3000030, ifu error info: 0x212c200098b00, aic error mask: 0x6500020bd00028c."
        "[FUNC:PrintCoreInfo][FILE:device_error_core_proc.cc][LINE:645]"),
        "        TraceBack (most recent call last):",
        "       The extend info: errcode:(0x800000, 0, 0) errorStr: The DDR address of the MTE instruction is out of "
        "range. "
        "fixp_error0 info: 0x3000030, subErrType:4.[FUNC:PrintCoreInfo][FILE:device_error_core_proc.cc][LINE:658]",
        "       Kernel task happen error, retCode=0x26, [aicore exception].[FUNC:PreCheckTaskErr]"
        "[FILE:davinci_kernel_task.cc][LINE:1729]",
        f"       [AIC_INFO] after execute:args print end, fault kernel_name={kernel}[FUNC:GetError][FILE:stream.cc]",
    ]  # fmt: skip
    cause = raised(world, rank, at, parts, is_cause=True)
    return _one_rank(world, rng, rank, count, cause, "npu.aicore-out-of-bounds")


def memory_hardware(world: World, rng: random.Random) -> Story:
    """The memory or a link of one NPU fails."""
    rank, count = rng.randrange(world.size), rng.randrange(3, 12)
    at = 10.0 + count
    status, title, reason = rng.choice((
        (507053, "UCE ERROR", "device mem error"),
        (507054, "HBM MULTI BIT ECC ERROR", "hbm multi bit ecc error"),
        (507056, "HCCS LINK ERROR", "link error"),
    ))  # fmt: skip
    call = sync_call(status).replace("AclrtSynchronizeDeviceWithTimeout", title)
    parts = [
        call,
        error_line(world, rank, at, _ACL_FAILED),
        "EE9999: Inner Error!",
        cann_head(world, rank, at, "EE9999", f"rtDeviceSynchronizeWithTimeout execute failed, reason=[{reason}]"
        "[FUNC:FuncErrorReason][FILE:error_message_manage.cc][LINE:53]"),
        "        TraceBack (most recent call last):",
        f"        wait for compute device to finish failed, runtime result = {status}."
        "[FUNC:ReportCallError][FILE:log_inner.cpp][LINE:161]",
    ]  # fmt: skip
    cause = raised(world, rank, at, parts, is_cause=True)
    return _one_rank(world, rng, rank, count, cause, "npu.hardware-memory-or-link")


def interface_missing(world: World, rng: random.Random) -> Story:
    """HCCL_SOCKET_IFNAME names an interface that one node does not have."""
    node, name = rng.randrange(len(world.hosts)), rng.choice(("eth1", "enp189s0f0", "bond4", "ens2f0np0"))
    causes = []
    for rank in world.on_node(node):
        at = rng.uniform(4, 8)
        stage = "[InitGroupStage][EnvConfig]"
        text = (f"{stage}set ifname to [{name}] by HCCL_SOCKET_IFNAME, but not found in the environment, ifnames in "
                f"the "
                "environment is as follows")  # fmt: skip
        shown = [plog(world, rank, at, "sal.cc:501", text)]
        for other, ip in (("lo", "127.0.0.1"), ("eth0", address(world, rank))):
            text = f"{stage}get host ip fail by socket Ifname. name[{other}] ip[{ip}%{other}]"
            shown.append(plog(world, rank, at + len(shown) * 5e-6, "sal.cc:504", text))
        causes.append(Line(at, Writer("rank", rank), "\n".join(shown), "stdout", is_cause=True))
        parts = [
            init_call(world, 6),
            error_line(world, rank, at, "ERR02200 DIST call hccl api failed."),
            cann_head(world, rank, at, "EI0001", f"Environment variable [HCCL_SOCKET_IFNAME] is invalid. Reason: "
                                                 f"[{name}] "
                      "is not an interface of this host."),
        ]  # fmt: skip
        causes.append(raised(world, rank, at + 0.05, parts, is_cause=True))
    roots = frozenset({"hccl.interface-not-found", "hccl.env-invalid"})
    return _one_node(world, rng, node, causes, roots)


def residual_process(world: World, rng: random.Random) -> Story:
    """Processes of an earlier job still hold the NPUs of one node."""
    node = rng.randrange(len(world.hosts))
    causes = []
    for rank in world.on_node(node):
        at = rng.uniform(5, 9)
        parts = [
            init_call(world, 7),
            error_line(world, rank, at, "ERR02200 DIST call hccl api failed."),
            cann_head(world, rank, at, "EJ0001", "Failed to initialize the HCCP process. Reason: Maybe the last "
                                                 "training "
                      "process is running."),
            "        Solution: Wait for 10s after killing the last training process and try again.",
            "        TraceBack (most recent call last):",
            f"        tsd client wait response fail, hostpid:{world.pids[rank]}, device response code[1]. unknown "
            f"device "
            "error.[FUNC:WaitRsp][FILE:process_mode_manager.cpp][LINE:332]",
        ]  # fmt: skip
        causes.append(raised(world, rank, at, parts, is_cause=True))
    return _one_node(world, rng, node, causes, frozenset({"hccl.residual-process"}))


def argument_mismatch(world: World, rng: random.Random) -> Story:
    """One rank calls a collective with another count; it and its neighbours in the ring see it."""
    odd, count = rng.randrange(world.size), rng.randrange(1, 8)
    at, usual = 10.0 + count, rng.randrange(1, 90) * 8192
    other = usual + rng.choice((-4096, 4096, 768))
    near = {(odd - 1) % world.size, (odd + 1) % world.size} - {odd}
    causes = [_mismatch(world, odd, at + rng.uniform(0, 1), other, usual)]
    causes += [_mismatch(world, rank, at + rng.uniform(0, 1), usual, other) for rank in sorted(near)]
    away = [rank for rank in world.ranks if rank != odd and rank not in near]
    waits = [link_timeout(world, rank, at + 120 + rng.uniform(0, 3)) for rank in away]
    ends = [Exit(line.writer.number, 1, line.at + 0.5) for line in (*causes, *waits)]
    at_fault = {odd} if world.size > 2 else set(world.ranks)
    nodes = frozenset(world.node(rank) for rank in at_fault)
    truth = Truth(_KNOWN, frozenset({"hccl.argument-mismatch"}), frozenset(at_fault), nodes, by_comparison=True)
    lines = (*start(world, rng), *steps(world, rng, 10, count), *causes, *waits)
    return Story(lines, truth, tuple(sorted(ends, key=lambda end: end.at)))


def _mismatch(world: World, rank: int, at: float, local: int, remote: int) -> Line:
    text = (
        "The arguments for collective communication are inconsistent between ranks: tag "
        "[HcomAllReduce_6629421139219749105_0],"
        f" parameter [count], local [{local}], remote [{remote}]"
    )
    if world.torch.startswith("2.9."):
        text = (
            "The arguments for collective communication are inconsistent between ranks, ccl_op HcomAllReduce, group "
            f"group_name_1, parameter count, local end {local}, remote end {remote}."
        )
    parts = [
        operation_call("HcclAllreduce", 1),
        error_line(world, rank, at, "ERR01100 OPS call acl api failed."),
        cann_head(world, rank, at, "EI0005", text),
        "        Solution: Check whether the training script and ranktable of each NPU are consistent.",
    ]
    return raised(world, rank, at, parts, is_cause=True)


def _notify(world: World, rank: int, at: float, tag: str, detail: str) -> Line:
    """Return a wait for a peer's notify that timed out; it is a symptom, and the cause only shows in comparison."""
    text = (
        "The wait execution of the Notify register times out. Reason: The Notify register has not received the Notify "
        f"record from remote rank [unknown].base information: [streamID:[{rank + 3}], taskID[{8318 + rank}], "
        f"tag[{tag}], "
        f"AlgType(level 0-1-2):[fullmesh-ring-ring].] task information: [{detail}]"
    )
    parts = [
        sync_call(507048),
        error_line(world, rank, at, _ACL_FAILED),
        "[Error]: The execution of the internal task times out.",
        "        Rectify the fault based on the error information in the ascend log.",
        cann_head(world, rank, at, "EI0002", text),
        "        Possible Cause: 1. An exception occurs during the execution on some NPUs in the cluster.",
    ]
    return raised(world, rank, at, parts, is_cause=True)


def _one_rank(world: World, rng: random.Random, rank: int, count: int, cause: Line, root: str) -> Story:
    others, exits = echoes(world, rng, [rank], cause.at)
    lines = (*start(world, rng), *steps(world, rng, 10, count), cause, *others)
    truth = Truth(_KNOWN, frozenset({root}), frozenset({rank}), frozenset({world.node(rank)}))
    return Story(lines, truth, (Exit(rank, 1, cause.at + 0.2), *exits))


def _one_node(
    world: World, rng: random.Random, node: int, causes: Iterable[Line], roots: frozenset[str | None]
) -> Story:
    causes, ranks = list(causes), frozenset(world.on_node(node))
    first = {rank: max(line.at for line in causes if line.writer.number == rank) for rank in sorted(ranks)}
    waits = [link_timeout(world, rank, 125 + rng.uniform(0, 5)) for rank in world.ranks if rank not in ranks]
    ends = [Exit(rank, 1, at + 0.5) for rank, at in first.items()]
    ends += [Exit(line.writer.number, 1, line.at + 0.5) for line in waits]
    truth = Truth(_KNOWN, roots, ranks, frozenset({node}))
    return Story((*start(world, rng), *causes, *waits), truth, tuple(sorted(ends, key=lambda end: end.at)))


FAULTS = (
    Fault("npu-out-of-memory", out_of_memory, backends=("hccl",)),
    Fault("npu-notify-timeout", notify_timeout, backends=("hccl",)),
    Fault("npu-link-timeout-after-error", link_timeout_after_error, backends=("hccl",)),
    Fault("npu-heartbeat-lost", heartbeat_lost, backends=("hccl",)),
    Fault("npu-aicore-out-of-bounds", aicore_out_of_bounds, backends=("hccl",)),
    Fault("npu-memory-hardware", memory_hardware, backends=("hccl",)),
    Fault("npu-interface-missing", interface_missing, backends=("hccl",), least_nodes=2),
    Fault("npu-residual-process", residual_process, backends=("hccl",), least_nodes=2),
    Fault("npu-argument-mismatch", argument_mismatch, backends=("hccl",)),
)
