"""The composed jobs. Each answer was written before triage saw the job."""

from __future__ import annotations

from dataclasses import dataclass

from triage.testing.plogs import WORLD, PlogJob, PlogTask

ABSENT = ("torch.rank-never-joined",)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the files allow to be known.

    roots: the signatures of which one must be the root; empty: the verdict is `unknown`
    ranks: the suspects, exactly
    limits: least and most confidence; `mentions`: what the reasons or the title must contain
    """

    roots: tuple[str, ...]
    ranks: tuple[int, ...]
    limits: tuple[float, float] = (0.0, 1.0)
    mentions: tuple[str, ...] = ()


HANDLED = 0.8  # a suspect that is only absent, or that a wait chain ends at, is never surer


def one_silent() -> tuple[PlogJob, Answer]:
    """Seven of eight report a notify timeout without a peer; the eighth has only its `run` plog."""
    job = PlogJob(8)
    for rank in range(8):
        job.enter_group(rank)
    for rank in job.others(7):
        job.report_timeout(rank, at=1900 + rank * 0.2)
    return job, Answer(ABSENT, (7,), (0.3, HANDLED))


def notify_chain() -> tuple[PlogJob, Answer]:
    """Two ranks are silent; every wait leads to rank 5, and nobody waits for rank 6."""
    job = PlogJob(8)
    for rank in range(8):
        job.enter_group(rank)
    for rank, peer in {0: 3, 1: 0, 2: 1, 3: 5, 4: 5, 7: 4}.items():
        job.miss_notify(rank, PlogTask(peer=peer), at=1900 + rank * 0.2)
    return job, Answer(ABSENT, (5,), (0.3, HANDLED), ("rank 5",))


def notify_cycle() -> tuple[PlogJob, Answer]:
    """All report; ranks 0 and 1 wait for each other, the others for them."""
    job = PlogJob(4)
    for rank in range(4):
        job.enter_group(rank)
    for rank, peer in {0: 1, 1: 0, 2: 1, 3: 2}.items():
        job.miss_notify(rank, PlogTask(peer=peer), at=1900 + rank * 0.2)
    return job, Answer((), (0, 1), (0.0, 0.5), ("wait for each other",))


def link_chain() -> tuple[PlogJob, Answer]:
    """Sockets on two servers: the boxes lead to rank 13, which set up no link and logged no error."""
    job = PlogJob(16, servers=2, folders=("node-a", "node-b"))
    for rank in range(16):
        job.enter_group(rank)
    for rank in job.others(13):
        peer = {15: 14, 14: 13, 12: 13, 5: 13}.get(rank, 5 if rank < 8 else rank + 1)
        job.miss_link(rank, peer, at=130 + rank * 0.3)
    return job, Answer(ABSENT, (13,), (0.3, HANDLED), ("rank 13",))


def link_pair() -> tuple[PlogJob, Answer]:
    """All report links; ranks 2 and 9 on two servers name each other, all others lead to them."""
    job = PlogJob(16, servers=2, folders=("node-a", "node-b"))
    for rank in range(16):
        job.enter_group(rank)
    for rank in range(16):
        peer = {2: 9, 9: 2}.get(rank, 2 if rank < 8 else 9)
        job.miss_link(rank, peer, at=130 + rank * 0.3, role="client" if rank % 2 else "server")
    return job, Answer((), (2, 9), (0.0, 0.6), ("wait for each other",))


def heartbeat_in_run() -> tuple[PlogJob, Answer]:
    """Only the `run` plogs have the heartbeat's events: rank 11 on the second server was lost."""
    job = PlogJob(16, servers=2, folders=("10.0.0.1", "10.0.0.2"))
    for rank in range(16):
        job.enter_group(rank)
    for rank in job.others(11):
        event = (
            f"local rank [{job.server(rank)}/{job.device(rank)}]: crimer rank [10.0.0.2/3] status[LOST] by informer "
        )
        text = f"[TaskExecStage][HeartbeatAbnormal]{event}rank [10.0.0.2/2]"
        job.log(rank, "INFO", text, at=400 + rank * 0.1, place="heartbeat.cc:951")
        job.report_timeout(rank, at=2240 + rank * 0.1)
    return job, Answer(("hccl.heartbeat-lost",), (11,), (0.4, 0.95))


def heartbeat_stuck() -> tuple[PlogJob, Answer]:
    """All four report; the heartbeat says that device 2 is stuck."""
    job = PlogJob(4)
    for rank in range(4):
        job.enter_group(rank)
        job.miss_notify(rank, at=1900 + rank * 0.1)
        text = (
            "[TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[10.0.0.1/2], Arrival Time:"
            "[Wed Mar 18 10:21:19 2026], ExceptionType:[Stuck Occurred], Possible Reason:1.Host process is stuck, "
            "2.Device task is stuck"
        )
        job.log(rank, "ERROR", text, at=1900.2 + rank * 0.1, place="task_exception_handler.cc:610")
    return job, Answer(("hccl.heartbeat-stuck",), (2,), (0.4, 0.95))


def cqe_same_remote() -> tuple[PlogJob, Answer]:
    """Two ranks get error completions from one NPU of the other server, whose rank is silent."""
    job = PlogJob(16, servers=2, folders=("node-a", "node-b"))
    for rank in range(16):
        job.enter_group(rank)
    for rank in (1, 4):
        _fail_completion(job, rank, 12)
    for rank in job.others(12):
        job.report_timeout(rank, at=1900 + rank * 0.1)
    return job, Answer(("hccl.roce-cqe",), (12,), (0.3, 0.95), ("rank 12",))


def cqe_pair() -> tuple[PlogJob, Answer]:
    """One rank gets error completions from one other, which is alive and times out as all do: the link between them."""
    job = PlogJob(16, servers=2, folders=("node-a", "node-b"))
    for rank in range(16):
        job.enter_group(rank)
    _fail_completion(job, 1, 12)
    for rank in range(16):
        job.report_timeout(rank, at=1900 + rank * 0.1)
    return job, Answer(("hccl.roce-cqe",), (1, 12), (0.3, 0.95), ("rank 12",))


def _fail_completion(job: PlogJob, rank: int, peer: int) -> None:
    text = (
        "[TaskExecStage][HeartbeatAbnormal][ROCE CQE ERROR]cqe error status[12], time:[2026-03-18 10:06:40.776654],"
        f"localInfo{{server[{job.server(rank)}],deviceId[{job.device(rank)}],deviceIp[{job.device_ip(rank)}]}}, "
        f"remoteIP{{server[{job.server(peer)}],deviceId[{job.device(peer)}],deviceIp[{job.device_ip(peer)}]}}"
    )
    job.log(rank, "ERROR", text, at=400, place="heartbeat.cc:1229")


def other_operation() -> tuple[PlogJob, Answer]:
    """All four time out at the same index: three in an all-reduce, rank 2 in an all-gather."""
    job = PlogJob(4)
    for rank in range(4):
        job.enter_group(rank)
        name = "AllGather" if rank == 2 else "AllReduce"
        job.miss_notify(rank, PlogTask(tag=f"{name}_{WORLD}"), at=1900 + rank * 0.1)
    roots = ("torch.collective-order-mismatch", "torch.rank-conditional-collective", "torch.extra-collective")
    return job, Answer((*roots, "hccl.argument-mismatch"), (2,), (0.4, 0.95), ("AllGather",))


def other_count() -> tuple[PlogJob, Answer]:
    """A consistency check fails: rank 2 brings another count than ranks 0, 1 and 3."""
    job = PlogJob(4)
    for rank in range(4):
        job.enter_group(rank)
    job.differ(1, 2, "count", "16512", "8320")
    job.differ(2, 3, "count", "8320", "16512")
    job.differ(3, 2, "count", "16512", "8320", at=30.2)
    job.differ(0, 2, "count", "16512", "8320", at=30.3)
    return job, Answer(("hccl.argument-mismatch",), (2,), (0.5, 1.0))


def two_counts() -> tuple[PlogJob, Answer]:
    """Two ranks bring different counts: nothing says which of them is right."""
    job = PlogJob(2)
    for rank in range(2):
        job.enter_group(rank)
    job.differ(0, 1, "count", "16512", "8320")
    job.differ(1, 0, "count", "8320", "16512", at=30.1)
    return job, Answer(("hccl.argument-mismatch",), (0, 1), (0.4, 1.0))


def smallest_index() -> tuple[PlogJob, Answer]:
    """All eight time out: seven in call 21 of the group, rank 5 in call 20."""
    job = PlogJob(8)
    for rank in range(8):
        job.enter_group(rank)
        job.miss_notify(rank, PlogTask(index=20 if rank == 5 else 21), at=1900 + rank * 0.1)
    roots = (*ABSENT, "torch.lagging-rank", "torch.extra-collective", "torch.rank-conditional-collective")
    return job, Answer((*roots, "torch.collective-order-mismatch"), (5,), (0.3, 0.9), ("#20",))


def half_silent() -> tuple[PlogJob, Answer]:
    """Four of eight time out and name no peer, the other four are silent: too many to accuse one."""
    job = PlogJob(8)
    for rank in range(8):
        job.enter_group(rank)
    for rank in (0, 2, 4, 6):
        job.report_timeout(rank, at=1900 + rank * 0.2)
    return job, Answer(ABSENT, (1, 3, 5, 7), (0.0, 0.6))


def same_pids() -> tuple[PlogJob, Answer]:
    """Two containers use the same pids; the debug plogs name no rank, and a kernel of rank 9 left its memory."""
    job = PlogJob(16, servers=2, folders=("worker-0", "worker-1"), are_pids_shared=True)
    for rank in range(16):
        job.set_up_agent(rank)
    text = (
        "ProcessStarsCoreErrorInfo: The error from device(chipId:1, dieId:0), serial number is 3, there is an "
        "exception of aicore error, core id is 5, error code = 0x800000, dump info: pc start: 0x12c0c0100000, MTE "
        "instruction is out of range"
    )
    job.log(9, "ERROR", text, at=300, module="RUNTIME", place="device_error_proc.cc:1398")
    text = "rtStreamSynchronize execute failed, reason=[aicore exception], runtime result = 507015"
    job.log(9, "ERROR", text, at=300.1, module="RUNTIME", place="error_message_manage.cc:53")
    for rank in job.others(9):
        job.report_timeout(rank, at=2100 + rank * 0.1)
    return job, Answer(("npu.aicore-out-of-bounds",), (9,), (0.6, 1.0))


def two_groups() -> tuple[PlogJob, Answer]:
    """Waits cross groups: the world waits for rank 4, which waits for member 1 of its own group, rank 5."""
    job = PlogJob(8)
    group = "tp_group_2"
    for rank in range(8):
        job.enter_group(rank)
    for rank in (4, 5):
        job.enter_group(rank, group, rank - 4, 2)
    for rank in (0, 1, 2, 3, 7):
        job.miss_notify(rank, PlogTask(peer=4), at=1900 + rank * 0.1)
    job.miss_notify(6, PlogTask(peer=7), at=1900.5)
    job.miss_notify(4, PlogTask(peer=1, tag=f"AllGather_{group}", group=group, member=0, size=2), at=1901)
    return job, Answer(ABSENT, (5,), (0.3, HANDLED), ("rank 5",))


def nothing_decides() -> tuple[PlogJob, Answer]:
    """All time out alike within a second, and CANN's inner error says nothing else."""
    job = PlogJob(4)
    for rank in range(4):
        job.enter_group(rank)
        job.miss_notify(rank, at=1900 + rank * 0.1)
        text = (
            "E19999: Inner Error!\nE19999: [PID: 1] 2026-03-18-10:31:40.646.100 The Inner error is reported as above."
        )
        job.log(rank, "ERROR", text, at=1900.2 + rank * 0.1, module="GE", place="error_manager.cc:302")
    return job, Answer((), (), (0.0, 0.4), ("timed out",))


def late_report() -> tuple[PlogJob, Answer]:
    """All time out; rank 3 does so 340 s after the others, who wait only 300 s."""
    job = PlogJob(4)
    for rank in range(4):
        job.enter_group(rank)
        text = "[HCCL_ENV] HCCL_EXEC_TIMEOUT set by environment to [300]s"
        job.log(rank, "INFO", text, at=0.5, place="externalinput.cc:558")
        job.miss_notify(rank, at=1000 + rank * 0.1 + 340 * (rank == 3))
    return job, Answer(("hccl.late-rank", *ABSENT, "torch.lagging-rank"), (3,), (0.3, 0.9), ("340",))


def detected_link() -> tuple[PlogJob, Answer]:
    """After link timeouts on seven ranks, HCCL's own probe names device 0 of the second server: rank 4."""
    job = PlogJob(8, servers=2, folders=("node-a", "node-b"))
    for rank in range(8):
        job.set_up_agent(rank)
    for rank in job.others(4):
        job.miss_link(rank, 4 if rank in (0, 5) else 0 if rank < 4 else 5, at=130 + rank * 0.1)
        name = f"(server {job.server(0)}, device ID 0)"
        text = (
            f"This node (server {job.server(rank)}, device ID {job.device(rank)}) detects that srcRank {name} fails to "
            "connect to dstRank (server 10.0.0.2, device ID 0). Continue to analyze the fault based on the logs of "
            "srcRank and dstRank."
        )
        job.log(rank, "ERROR", text, at=180 + rank * 0.1, place="detect_connect_anomalies.cc:132")
    return job, Answer((*ABSENT,), (4,), (0.3, HANDLED), ("rank 4",))


def root_misses_agent() -> tuple[PlogJob, Answer]:
    """The root of a group waits in vain for rank 3, and the others for the root."""
    job = PlogJob(8)
    for rank in job.others(3):
        job.set_up_agent(rank)
    text = "[Get][Connection]topo exchange server get socket timeout! timeout[120 s]"
    job.log(0, "ERROR", text, at=125, place="topoinfo_exchange_server.cc:188")
    text = "[InitGroupStage][RanktableDetect]Failed to connect agent[3],"
    job.log(0, "ERROR", text, at=125.1, place="topoinfo_exchange_server.cc:230")
    for rank in job.others(0, 3):
        text = "receive msg length from fdhandle failed, ret[9]"
        job.log(rank, "ERROR", text, at=125.2 + rank * 0.01, place="topoinfo_exchange_base.cc:97")
    return job, Answer(("hccl.rootinfo-server", *ABSENT), (3,), (0.3, 0.9))


OPEN = (
    one_silent, notify_cycle, link_pair, heartbeat_stuck, cqe_pair, other_count, smallest_index, same_pids,
    nothing_decides, detected_link,
)  # fmt: skip
# Nobody looked at these until the rules were done.
SET_ASIDE = (
    notify_chain, link_chain, heartbeat_in_run, cqe_same_remote, other_operation, two_counts, half_silent, two_groups,
    late_report, root_misses_agent,
)  # fmt: skip
