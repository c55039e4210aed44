"""Jobs on NPUs: many ranks report HCCL errors, and the cause stands early in one rank's log."""

from __future__ import annotations

from incident import Incident


def _log_link_timeouts(job: Incident, ranks: list[int]) -> None:
    """Log EI0006 on the ranks: they waited for a connection."""
    for rank in ranks:
        job.log_cann(rank, "EI0006", "Communication_Error_Get_Socket", "Getting socket times out.")
        job.log_npu_error(
            rank,
            "createHCCLComm:torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:2211 HCCL function error: "
            "HcclCommInitRootInfoConfig, error code is 9",
        )


def port_down() -> Incident:
    """The network port of a rank's NPU is down."""
    job = Incident("hccl_port_down", 8)
    job.log_plog(
        3,
        "HCCP",
        "ra_hdc_rdma.c:1199",
        "tid:4103,ra_hdc_rdev_init(1199) : [init][ra_hdc_rdev]ra hdc message process failed ret(-67) phy_id(3)",
    )
    job.log_plog(
        3, "HCCL", "adapter_hccp.cc:647", "[Init][RaRdma]errNo[0x0000000005000013] rdma init fail. return: ret[328004]"
    )
    job.advance_clock(120)
    _log_link_timeouts(job, job.all_ranks(3))
    job.set_truth(
        "known",
        ["hccl.port-down"],
        [3],
        "the network port of rank 3's NPU is down; two minutes later all others time out",
    )
    return job


def no_port_conflict() -> Incident:
    """A port cannot be used because the device could not be set up."""
    job = Incident("hccl_no_port_conflict", 4)
    job.log_plog(
        1, "HCCL", "adapter_hccp.cc:647", "[Init][RaRdma]errNo[0x0000000005000013] rdma init fail. return: ret[328004]"
    )
    job.log_plog(
        1,
        "HCCL",
        "hccl_socket.cc:106",
        "[HcclSocket][Listen] socket type[0], listen on ip[192.2.2.195] and specific port[16666] fail.",
    )
    job.advance_clock(120)
    _log_link_timeouts(job, job.all_ranks(1))
    job.set_truth(
        "known",
        ["hccl.port-down"],
        [1],
        "that the port cannot be listened on follows from the device that could not be set up",
    )
    return job


def rank_silent() -> Incident:
    """All ranks but one report a missing notify."""
    job = Incident("hccl_notify_one_rank_silent", 8)
    job.log_steps(1, 9)
    job.advance_clock(1836)
    for rank in job.all_ranks(5):
        job.log_cann(
            rank,
            "EI0002",
            "Communication_Error_Timeout",
            "A timeout occurs. Waiting peer rank: 5; task information: [streamID:[1], tag[AllReduce_group_name_710]]",
        )
    job.set_truth("known", ["torch.rank-never-joined"], [5], "all but rank 5 report that the notify did not come")
    return job


def residual_process() -> Incident:
    """A process of the last run still holds an NPU."""
    job = Incident("hccl_residual_process", 4)
    job.add_rank_lines(
        2,
        f"[rank2]: EJ0001: {job.timestamp('%Y-%m-%d-%H:%M:%S.%L')}.645 Reason: Maybe the last training process is "
        "running.",
    )
    job.advance_clock(120)
    _log_link_timeouts(job, job.all_ranks(2))
    job.set_truth("known", ["hccl.residual-process"], [2], "on rank 2's NPU the process of the last run is still there")
    return job


def tls_mismatch() -> Incident:
    """TLS is off on one NPU and on for the others."""
    job = Incident("hccl_tls_mismatch", 4)
    job.log_plog(
        3,
        "HCCL",
        "topoinfo_exchange_agent.cc:831",
        '[InitGroupStage][RanktableCheck] Value Disable for config "tls" is invalid. Expected Value:"All ranks are '
        'consistent."',
    )
    job.advance_clock(120)
    _log_link_timeouts(job, job.all_ranks(3))
    job.set_truth("known", ["hccl.tls-mismatch"], [3], "TLS is off on rank 3's NPU and on for the others")
    return job


def heartbeat_lost() -> Incident:
    """HCCL's heartbeat names the device of a killed rank."""
    job = Incident("hccl_heartbeat_names_the_lost", 4)
    job.log_steps(1, 9)
    job.advance_clock(60)
    job.log_failure_table({2: -9})
    job.advance_clock(60)
    for rank in job.all_ranks(2):
        job.log_plog(
            rank,
            "HCCL",
            "task_exception_handler.cc:610",
            "[TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[10.0.0.1/2], Arrival "
            f"Time:[{job.timestamp('%a %b %d %H:%M:%S %Y')}], Discoverer:[10.0.0.1/{rank}], ExceptionType:[Heartbeat "
            "Lost Occurred]",
        )
        job.log_cann(
            rank,
            "EI0002",
            "Communication_Error_Timeout",
            "A timeout occurs. Waiting peer rank: 2; task information: [streamID:[1], tag[AllReduce_group_name_710]]",
        )
    job.set_truth("known", ["host.sigkill"], [2], "rank 2 is killed; HCCL's heartbeat names its device as lost")
    return job


def heartbeat_of_other_host() -> Incident:
    """HCCL names a device of the second host, which is rank 6."""
    job = Incident("hccl_heartbeat_of_the_other_host", 8, hosts=2)
    for rank in job.all_ranks():
        job.log_plog(
            rank,
            "HCCL",
            "hccl_communicator.cc:311",
            f"[LocalRank Key Info]userRank[{rank}] hostIp[10.0.0.{rank // 4 + 1}] devicePhyId[{rank % 4}] nicStatus[1]",
            "INFO",
        )
    job.log_steps(1, 9)
    job.advance_clock(90)
    for rank in (0, 1, 3):
        job.log_plog(
            rank,
            "HCCL",
            "task_exception_handler.cc:610",
            "[TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[10.0.0.2/2], Arrival "
            f"Time:[{job.timestamp('%a %b %d %H:%M:%S %Y')}], Discoverer:[10.0.0.1/{rank}], ExceptionType:[Heartbeat "
            "Lost Occurred]",
        )
    job.set_truth(
        "known",
        ["hccl.heartbeat-lost"],
        [6],
        "device 2 of the second host went silent, which the lines of the start say is rank 6",
    )
    return job


def late_rank() -> Incident:
    """A rank asks for the group later than the first one waits."""
    job = Incident("hccl_late_rank", 4)
    for rank, wait in ((0, 0.0), (1, 1.0), (2, 1.0), (3, 203.0)):
        job.advance_clock(wait)
        job.log_plog(
            rank,
            "HCCL",
            "op_base.cc:511",
            f"Entry-HcclCommInitRootInfo:ranks[4], rank[{rank}], rootinfo: host ip[10.0.0.1] port[60000] nicDeploy[1] "
            f"identifier[hccl_world_group], deviceLogicId[{rank}]",
            "INFO",
        )
        if rank < 3:
            continue
        _log_link_timeouts(job, [0, 1, 2])
    job.set_truth(
        "known", ["hccl.late-rank"], [3], "rank 3 asks for the group 205 s after the first, which waits 120 s"
    )
    return job


def npu_out_of_memory() -> Incident:
    """A rank runs out of NPU memory; the others time out later."""
    job = Incident("npu_memory_one_rank", 8, hosts=2, layout="nodes")
    job.log_steps(1, 4)
    job.log_npu_error(
        6,
        "NPU out of memory. Tried to allocate 260.00 MiB (NPU 0; 28.50 GiB total capacity; 27.24 GiB already "
        "allocated; 27.24 GiB current active; 149.57 MiB free; 27.28 GiB reserved in total by PyTorch)",
        "ERR00006 PTA memory error",
    )
    job.advance_clock(1836)
    for rank in job.all_ranks(6):
        job.log_cann(
            rank,
            "EI0002",
            "Communication_Error_Timeout",
            "A timeout occurs. Waiting peer rank: 6; task information: [streamID:[1], tag[AllReduce_group_name_710]]",
        )
    job.set_truth(
        "known", ["npu.out-of-memory"], [6], "rank 6 finds no memory on its NPU; half an hour later the others time out"
    )
    return job


KINDS = (
    port_down,
    no_port_conflict,
    rank_silent,
    residual_process,
    tls_mismatch,
    heartbeat_lost,
    heartbeat_of_other_host,
    late_rank,
    npu_out_of_memory,
)
