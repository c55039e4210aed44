"""Write the plogs of an HCCL job: `run` and `debug` folders of each process, as CANN names and fills them.

Sources of the formats: hicann/hccl docs/zh/user_guide/fault_diagnosis, hicann/hcomm src/legacy.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from triage.testing.job_files import write_files

START = datetime.datetime(2026, 3, 18, 10, 0, 0)
WORLD = "10.0.0.1%eth0_60000_0_1773828000000000"
Handler = Literal["stage", "callback", "ffts"]
"""How HCCL describes failed tasks: since CANN 8.5, before it, and before it of fused tasks (FFTS+, Atlas A2)."""
HANDLERS: tuple[Handler, ...] = ("stage", "callback", "ffts")
_HEADS = {
    "stage": "[TaskExecStage][Timeout][HOST]Task run failed, ",
    "callback": "[TaskExceptionHandler][Callback]Task run failed, ",
    "ffts": "[TaskExceptionHandler][Callback]FFTS+ run failed, ",
}
_BOX = "   _________________________LINK_ERROR_INFO___________________________"
_COLUMNS = "   |  dest_ip(user_rank)  |   dest_port   |  src_ip(user_rank)   |   src_port   |   MyRole   |   Status   |"


@dataclass(frozen=True, slots=True)
class PlogTask:
    """A task of a collective that waits for a notify, as the handler of task exceptions describes it.

    peer: number of the member whose signal did not come; None: the lines do not name it
    member, size: the rank's number in the group and the group's size; None: of the group of all ranks
    index, count, data_type: of the call; index -1: the lines do not state the call
    dispatched: when the host made the call, in seconds since the start of the job
    """

    tag: str = f"AllReduce_{WORLD}"
    peer: int | None = None
    group: str = WORLD
    member: int | None = None
    size: int | None = None
    index: int = 21
    count: int = 256
    data_type: str = "float32"
    dispatched: float = 60.0


@dataclass(slots=True)
class PlogJob:
    """A job of `servers` x `devices` processes, one for each rank, in the order of the ranks.

    folders: one for each server, below which `log/run` and `log/debug` lie
    are_pids_shared: the processes of all servers have the same pids
    start: the moment from which all times count, in seconds
    """

    size: int
    servers: int = 1
    folders: tuple[str, ...] = ()
    are_pids_shared: bool = False
    start: datetime.datetime = START
    first_pid: int = 40100
    files: dict[str, list[str]] = field(default_factory=dict)

    def server(self, rank: int) -> str:
        """Return the address of the rank's server."""
        return f"10.0.0.{1 + rank // self.per_server}"

    def device(self, rank: int) -> int:
        """Return the rank's device on its server."""
        return rank % self.per_server

    @property
    def per_server(self) -> int:
        """Number of devices of a server."""
        return self.size // self.servers

    def pid(self, rank: int) -> int:
        """Return the process id of a rank."""
        number = self.device(rank) if self.are_pids_shared else rank
        return self.first_pid + 7 * number

    def device_ip(self, rank: int) -> str:
        """Return the address of the rank's NPU."""
        return f"192.168.{10 + rank // self.per_server}.{100 + self.device(rank)}"

    def log(self, rank: int, level: str, text: str, *, at: float, module: str = "HCCL", place: str = "x.cc:1") -> None:
        """Add a line to the rank's plog: INFO to `run`, ERROR to `debug`."""
        pid = self.pid(rank)
        line = f"[{level}] {module}({pid},python3):{self.stamp(at)} [{place}] [{pid + 1}]{text}"
        self.files.setdefault(self.file_of(rank, "run" if level == "INFO" else "debug"), []).append(line)

    def stamp(self, at: float) -> str:
        """Return a time as CANN writes it."""
        moment = (self.start + datetime.timedelta(seconds=at)).strftime("%Y-%m-%d-%H:%M:%S.%f")
        return f"{moment[:-3]}.{moment[-3:]}"

    def file_of(self, rank: int, kind: str) -> str:
        """Return the path of the rank's plog; `kind` is "run" or "debug"."""
        host = f"{self.folders[rank // self.per_server]}/" if self.folders else ""
        begin = (self.start + datetime.timedelta(seconds=rank % 3)).strftime("%Y%m%d%H%M%S") + "117"
        return f"{host}log/{kind}/plog/plog-{self.pid(rank)}_{begin}.log"

    def contents(self) -> dict[str, bytes]:
        """Return the files by relative path."""
        return {name: ("\n".join(lines) + "\n").encode() for name, lines in self.files.items()}

    def write(self, root: Path) -> None:
        """Write all files below a folder."""
        write_files(self.contents(), root)

    def others(self, *ranks: int) -> list[int]:
        """Return all ranks but these."""
        return [rank for rank in range(self.size) if rank not in ranks]

    # What `run` says at the start.

    def enter_group(self, rank: int, group: str = WORLD, member: int | None = None, size: int | None = None) -> None:
        """Log the entry of a communicator, and what HCCL says about the local rank."""
        number, count = rank if member is None else member, size or self.size
        self.log(
            rank,
            "INFO",
            f"Entry-HcclCommInitRootInfoConfigInner:ranks[{count}], rank[{number}], rootinfo: host ip[10.0.0.1] "
            f"port[60000] nicDeploy[1] identifier[{group}], deviceLogicId[{self.device(rank)}]",
            at=1 + rank * 0.01,
            place="op_base.cc:1292",
        )
        self.log(
            rank,
            "INFO",
            f"[LocalRank Key Info]userRank[{number}] hostIp[{self.server(rank)}] devicePhyId[{self.device(rank)}] "
            f"server[{self.server(rank)}] deviceIp[{self.device_ip(rank)}] superPodId[0] useSuperPodMode[0]",
            at=1.1 + rank * 0.01,
            place="hccl_communicator_attrs.cc:330",
        )

    def set_up_agent(self, rank: int) -> None:
        """Log the older line about the local rank."""
        self.log(
            rank,
            "INFO",
            f"[HCCL_TRACE]SetupAgent rankNum[{self.size}], rank[{rank}], rootInfo identifier[{WORLD}], "
            f"server[{self.server(rank)}%eth0], logicDevId[{self.device(rank)}], phydevId[{self.device(rank)}], "
            f"deviceIp[{self.device_ip(rank)}]",
            at=1 + rank * 0.01,
            place="topoinfo_detect.cc:208",
        )

    # What `debug` says at the end.

    def miss_notify(
        self, rank: int, task: PlogTask | None = None, *, at: float = 1900.0, handler: Handler = "stage"
    ) -> None:
        """Log a notify that did not come, as the handler of task exceptions does; older ones report EI0002 too."""
        task = task or PlogTask()
        head = _HEADS[handler]
        for offset, (part, text) in enumerate(self._describe_task(rank, task, handler)):
            place = f"task_exception_handler.cc:{704 + 67 * offset}"
            self.log(rank, "ERROR", f"{head}{part} information is {text}.", at=at + 0.001 * offset, place=place)
        if handler != "stage":
            peer = "unknown" if task.peer is None else str(task.peer)
            self.report_timeout(rank, at=at + 0.01, peer=peer, tag=task.tag)

    def _describe_task(self, rank: int, task: PlogTask, handler: Handler) -> list[tuple[str, str]]:
        """Return (part of the description, text)."""
        number, count = rank if task.member is None else task.member, task.size or self.size
        is_fused, has_peer = handler == "ffts", task.peer is not None
        kind = "taskType[Notify Wait]"
        stated = f"{kind}, " if not is_fused and (has_peer or handler == "callback") else ""
        base = f"streamID:[2], taskID[21], {stated}tag[{task.tag}], AlgType(level 0-1-2):[fullmesh-ring-NHR]"
        wait = f"notify id:[0x0000000100000{rank:03x}], stage:[ffffffff], remote rank:[{task.peer}]"
        parts = [("base", base)]
        if has_peer and is_fused:
            parts = [("op", base), ("context base", kind), ("context para", f"{wait}, tag[{task.tag}]")]
        elif has_peer:
            parts.append(("para", wait))
        group = f"group:[{task.group}], user define information[], rankSize[{count}], rankId[{number}]"
        parts.append(("groupRank", group))
        return [*parts, ("opData", self._describe_call(rank, task))] if task.index >= 0 else parts

    def _describe_call(self, rank: int, task: PlogTask) -> str:
        return (
            f"timeStamp:[{self.stamp(task.dispatched)}], deviceId[{self.device(rank)}], index[{task.index}], "
            f"count[{task.count}], reduceType[sum], src[0x12c0c0013000], dst[0x12c0c0014000], "
            f"dataType[{task.data_type}]"
        )

    def report_timeout(
        self, rank: int, *, at: float = 1900.0, peer: str = "unknown", tag: str = f"AllReduce_{WORLD}"
    ) -> None:
        """Log the message EI0002 alone."""
        self.log(
            rank,
            "ERROR",
            "[TaskExec]report error code: EI0002: "
            f"[PID: {self.pid(rank)}] {self.stamp(at)} The wait execution of the Notify register times "
            f"out. Reason: The Notify register has not received the Notify record from remote rank [{peer}].base "
            f"information: [streamID:[2282987520], taskID[5], tag[{tag}], AlgType(level 0-1-2):"
            "[fullmesh-ring-ring].] task information: []",
            at=at,
            place="error_manager.cc:301",
        )

    def miss_link(self, rank: int, peer: int, *, at: float = 130.0, role: str = "client") -> None:
        """Log a socket that was not connected: the box, and the parameters of the link."""
        place = "hccl_socket_manager.cc:592"
        tag = f"AllReduce_{WORLD}"
        first = f"wait socket establish timeout, role[{int(role == 'client')}] rank[{rank}] timeout[120]"
        first = f"[Wait][LinkEstablish]{first}"
        self.log(rank, "ERROR", first, at=at, place="hccl_socket_manager.cc:778")
        ends = f"{self.device_ip(peer)}({peer})   |  16666  |   {self.device_ip(rank)}({rank})   |  0"
        rows = (
            _BOX,
            f"   |  comm error, device[{self.device(rank)}] ",
            _COLUMNS,
            "   |--------------------|--------------------|----------|------------|----------------|",
            f"   |  {ends}  |  {role}  | time out |",
            "   ___________________________________________________________________  ",
        )
        for number, row in enumerate(rows):
            self.log(rank, "ERROR", row, at=at + 0.001 * (1 + number), place=place)
        self.log(
            rank,
            "ERROR",
            f"[InitChannelStage][Timeout]Transport init error! createLink para:rank[{rank}]-localUserrank[{rank}]-"
            f"localIpAddr[{self.server(rank)}/{self.device(rank)}], remoteRank[{peer}]-remoteUserrank[{peer}]-"
            f"remoteIpAddr[{self.server(peer)}/{self.device(peer)}], machineType[0], linkMode[1], isUsedRdma[1], "
            f"tag[{tag}]",
            at=at + 0.02,
            place="transport_manager.cc:886",
        )

    def differ(self, rank: int, peer: int, parameter: str, local: str, remote: str, *, at: float = 30.0) -> None:
        """Log a parameter of a call that differs between the two ends of a link."""
        self.log(
            rank,
            "ERROR",
            f"[InitChannelStage][ParameterConflict]CMD information {parameter} check fail. local[{local}], "
            f"remote[{remote}]",
            at=at,
            place="rank_consistentcy_checker.cc:429",
        )
        self.log(
            rank,
            "ERROR",
            f"[InitChannelStage][ParameterConflict]Transport init error! createLink para:rank[{rank}]-localUserrank"
            f"[{rank}]-localIpAddr[{self.server(rank)}/{self.device(rank)}], remoteRank[{peer}]-remoteUserrank[{peer}]-"
            f"remoteIpAddr[{self.server(peer)}/{self.device(peer)}], machineType[0], linkMode[1], isUsedRdma[0], "
            f"tag[AllReduce_{WORLD}]",
            at=at + 0.01,
            place="transport_manager.cc:886",
        )
