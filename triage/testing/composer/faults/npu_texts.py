"""How torch_npu and CANN print an error: the failed call, the ERR line, and CANN's block, by version."""

from __future__ import annotations

from collections.abc import Sequence

from triage.testing.composer.model import Line, World
from triage.testing.composer.parts import Frame, traceback

_BUILD = "build/CMakeFiles/torch_npu.dir/compiler_depend.ts"
_TITLES = {"EI0005": "Invalid_Argument", "EI0006": "Communication_Error_Get_Socket"}


def address(world: World, rank: int) -> str:
    """Return the IP address of the host of a rank."""
    return f"10.0.{world.node(rank)}.{10 + world.node(rank)}"


def cann_stamp(world: World, at: float) -> str:
    """Return a time as CANN writes it, with milliseconds and microseconds."""
    stamp = world.stamp(at, "%Y-%m-%d-%H:%M:%S.%f")
    return f"{stamp[:-3]}.{stamp[-3:]}"


def error_line(world: World, rank: int, at: float, meaning: str) -> str:
    """Return torch_npu's line with pid, device and rank; `meaning` is like `ERR02200 DIST call hccl api failed.`"""
    stamp = world.stamp(at, "%Y-%m-%d-%H:%M:%S")
    return f"[ERROR] {stamp} (PID:{world.pids[rank]}, Device:{world.local(rank)}, RankID:{rank}) {meaning}"


def cann_head(world: World, rank: int, at: float, code: str, text: str) -> str:
    """Return the first line of CANN's block in the form of its version."""
    stamp, pid = cann_stamp(world, at), world.pids[rank]
    if world.torch.startswith("2.1."):
        return f"{code}: {stamp} {text}"
    if world.torch.startswith("2.9.") and code in _TITLES:
        return f"[PID: {pid}] {stamp} {_TITLES[code]}({code}): {text}"
    return f"{code}: [PID: {pid}] {stamp} {text}"


def plog(world: World, rank: int, at: float, where: str, text: str) -> str:
    """Return a line of HCCL's own log, as it stands in a console with ASCEND_SLOG_PRINT_TO_STDOUT=1."""
    pid = world.pids[rank]
    return f"[ERROR] HCCL({pid},python3):{cann_stamp(world, at)} [{where}] [{pid}]{text}"


def init_call(world: World, status: int) -> str:
    """Return the failed creation of a communicator, without the class of the exception."""
    if world.torch.startswith("2.1."):
        return "[ERROR] HCCL error in: torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:64"
    expression = "hcclCommInitRootInfoConfig(numRanks, &rootInfo, rank, config, &(comm->hcclComm_))"
    return f"create_config:{_BUILD}:102 HCCL function error: {expression}, error code is {status}"


def operation_call(operation: str, status: int) -> str:
    """Return the failed launch of a collective operation."""
    return f"InnerRunOpApi:{_BUILD}:281 OPS function error: {operation}, error code is {status}"


def sync_call(status: int) -> str:
    """Return the failed wait for the device."""
    expression = "AclrtSynchronizeDeviceWithTimeout"
    return f"npuSynchronizeDevice:{_BUILD}:479 NPU function error: {expression}, error code is {status}"


def raised(world: World, rank: int, at: float, parts: Sequence[str], *, is_cause: bool = False) -> Line:
    """Return an uncaught RuntimeError of torch_npu of these lines; its ERR line names the rank in all versions."""
    line = traceback(world, rank, at, "RuntimeError: " + "\n".join(parts), _frames(world), is_cause=is_cause)
    return Line(line.at, line.writer, line.text, line.stream, is_cause, says_rank=True)


def link_timeout(world: World, rank: int, at: float, *, is_cause: bool = False) -> Line:
    """Return a link that could not be established: the rank waited for a peer that never came."""
    text = (
        "Getting socket times out. Reason: Remote Rank did not send the data in time. Please check the reason for the "
        "rank being stuck"
    )
    if world.torch.startswith("2.9."):
        text = "Getting socket times out. The possible cause is that the remote rank did not send the data in time."
    parts = [
        operation_call("HcclAllreduce", 6),
        error_line(world, rank, at, "ERR01100 OPS call acl api failed."),
        cann_head(world, rank, at, "EI0006", text),
        "        Solution: 1. Check the rank service processes with other errors or no errors in the cluster.",
        "        TraceBack (most recent call last):",
        "        Transport init error. Reason: [Create][DestLink]Create Dest error! createLink para:"
        f"rank[{rank}]-localUserrank[{rank}]-localIpAddr[{address(world, rank)}], dst_rank[{(rank + 1) % world.size}]",
    ]
    return raised(world, rank, at, parts, is_cause=is_cause)


def _frames(world: World) -> tuple[Frame, ...]:
    library = f"/usr/local/lib/python{world.python}/site-packages/torch/distributed"
    return (
        (world.script, 212, "<module>"),
        (world.script, 187, "main"),
        (f"{library}/c10d_logger.py", 83, "wrapper"),
        (f"{library}/distributed_c10d.py", 2501, "all_reduce"),
    )
