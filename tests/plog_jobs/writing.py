"""Write the plogs of a composed HCCL job: `run` and `debug` folders of each process, as CANN names and fills them.

Sources of the formats: hicann/hccl docs/zh/user_guide/fault_diagnosis, hicann/hcomm src/legacy.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from pathlib import Path

START = datetime.datetime(2026, 3, 18, 10, 0, 0)
WORLD = "10.0.0.1%eth0_60000_0_1773828000000000"
_BOX = "   _________________________LINK_ERROR_INFO___________________________"
_COLUMNS = "   |  dest_ip(user_rank)  |   dest_port   |  src_ip(user_rank)   |   src_port   |   MyRole   |   Status   |"


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


@dataclass(slots=True)
class PlogJob:
    """A job of `servers` x `devices` processes, one for each rank, in the order of the ranks.

    folders: one for each server, below which `log/run` and `log/debug` lie
    are_pids_shared: the processes of all servers have the same pids
    """

    size: int
    servers: int = 1
    folders: tuple[str, ...] = ()
    are_pids_shared: bool = False
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
        return 40100 + 7 * number

    def device_ip(self, rank: int) -> str:
        """Return the address of the rank's NPU."""
        return f"192.168.{10 + rank // self.per_server}.{100 + self.device(rank)}"

    def log(self, rank: int, level: str, text: str, *, at: float, module: str = "HCCL", place: str = "x.cc:1") -> None:
        """Add a line to the rank's plog: INFO to `run`, ERROR to `debug`."""
        kind = "run" if level == "INFO" else "debug"
        host = f"{self.folders[rank // self.per_server]}/" if self.folders else ""
        pid, begin = self.pid(rank), (START + datetime.timedelta(seconds=rank % 3)).strftime("%Y%m%d%H%M%S") + "117"
        moment = (START + datetime.timedelta(seconds=at)).strftime("%Y-%m-%d-%H:%M:%S.%f")
        stamp = f"{moment[:-3]}.{moment[-3:]}"
        line = f"[{level}] {module}({pid},python3):{stamp} [{place}] [{pid + 1}]{text}"
        self.files.setdefault(f"{host}log/{kind}/plog/plog-{pid}_{begin}.log", []).append(line)

    def write(self, root: Path) -> None:
        """Write all files below a folder."""
        for name, lines in self.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")

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
        self,
        rank: int,
        *,
        at: float = 1900.0,
        tag: str = f"AllReduce_{WORLD}",
        peer: int | None = None,
        index: int = 21,
        group: str = WORLD,
        member: int | None = None,
        size: int | None = None,
    ) -> None:
        """Log a notify that did not come, as the handler of task exceptions does."""
        number, count = rank if member is None else member, size or self.size
        head, place = "[TaskExecStage][Timeout][HOST]Task run failed, ", "task_exception_handler.cc:908"
        kind = "taskType[Notify Wait], " if peer is not None else ""
        base = f"streamID:[2], taskID[21], {kind}tag[{tag}], AlgType(level 0-1-2):[fullmesh-ring-NHR]."
        self.log(rank, "ERROR", f"{head}base information is {base}", at=at, place=place)
        if peer is not None:
            wait = f"notify id:[0x0000000100000{rank:03x}], stage:[ffffffff], remote rank:[{peer}]."
            self.log(rank, "ERROR", f"{head}para information is {wait}", at=at + 0.001, place=place)
        place = "task_exception_handler.cc:771"
        whole = f"group:[{group}], user define information[], rankSize[{count}], rankId[{number}]."
        self.log(rank, "ERROR", f"{head}groupRank information is {whole}", at=at + 0.002, place=place)
        data = f"timeStamp:[2026-03-18-10:01:{rank % 60:02d}.490.253], deviceId[{self.device(rank)}], index[{index}], "
        data += "count[256], reduceType[sum], src[0x12c0c0013000], dst[0x12c0c0014000], dataType[float32]."
        self.log(
            rank, "ERROR", f"{head}opData information is {data}", at=at + 0.003, place="task_exception_handler.cc:704"
        )

    def report_timeout(self, rank: int, *, at: float = 1900.0, peer: str = "unknown") -> None:
        """Log the message EI0002 alone."""
        self.log(
            rank,
            "ERROR",
            "[TaskExec]report error code: EI0002: "
            f"[PID: {self.pid(rank)}] 2026-03-18-10:31:40.645.648 The wait execution of the Notify register times "
            f"out. Reason: The Notify register has not received the Notify record from remote rank [{peer}].base "
            f"information: [streamID:[2282987520], taskID[5], tag[AllReduce_{WORLD}], AlgType(level 0-1-2):"
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
