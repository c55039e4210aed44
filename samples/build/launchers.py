"""Healthy jobs by the way they were launched."""

from __future__ import annotations

from job import Job

RUN = "torch/distributed/run.py:874"
AGENT = "torch/distributed/elastic/agent/server/api.py"


def _add_agent_start(job: Job, world: int, nodes: int = 1, to: str = "job.log") -> None:
    """Add what torchrun logs before the workers start."""
    job.add_lines(
        job.glog_prefix("W", RUN) + "",
        job.glog_prefix("W", RUN) + "*****************************************",
        job.glog_prefix("W", RUN) + "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, "
            "to avoid your system being"
        " overloaded, please further tune the variable for optimal performance in your application as needed. ",
        job.glog_prefix("W", RUN) + "*****************************************",
        job.glog_prefix("I", "torch/distributed/launcher/api.py:203") + "Starting elastic_operator with launch "
            "configs:\n  entrypoint       : train.py\n"
        f"  min_nodes        : {nodes}\n  max_nodes        : {nodes}\n  nproc_per_node   : {world // nodes}\n  run_id  "
        "         : 4711\n"
        "  rdzv_backend     : c10d\n  rdzv_endpoint    : node1:29500\n  rdzv_configs     : {'timeout': 900}\n  "
        "max_restarts     : 3\n"
        "  monitor_interval : 0.1\n  log_dir          : /tmp/torchelastic_x/4711\n  metrics_cfg      : {}",
        job.glog_prefix("I", f"{AGENT}:879") + "[default] starting workers for entrypoint: python3",
        job.glog_prefix("I", f"{AGENT}:685") + "[default] Rendezvous'ing worker group",
        job.glog_prefix("I", f"{AGENT}:525") + "[default] Rendezvous complete for workers. Result:\n  "
            "restart_count=0\n  master_addr=node1\n"
        f"  master_port=29500\n  group_rank=0\n  group_world_size={nodes}\n  local_ranks={list(range(world // nodes))}",
        to=to,
    )  # fmt: skip


def _add_agent_end(job: Job, to: str = "job.log") -> None:
    """Add what torchrun logs after its workers finished."""
    job.add_lines(
        job.glog_prefix("I", f"{AGENT}:879")
        + "[default] worker group successfully finished. Waiting 300 seconds for other agents to finish.",
        job.glog_prefix("I", f"{AGENT}:932")
        + "Local worker group finished (WorkerState.SUCCEEDED). Waiting 300 seconds for other agents to finish",
        job.glog_prefix("I", f"{AGENT}:946") + "Done waiting for other agents. Elapsed: 0.0021 seconds",
        to=to,
    )


def _c10d_start_lines(job: Job, rank: int, world: int) -> list[str]:
    """Return the lines of c10d and ProcessGroupNCCL while a rank starts."""
    return [
        f"[W{job.timestamp('%m%d %H:%M:%S')}.{job.rng.randrange(10**9):09d} socket.cpp:752] [c10d] The client socket "
        "cannot be initialized to"
        " connect to [node1]:29500 (errno: 97 - Address family not supported by protocol).",
        job.c10_prefix(rank, "ProcessGroupNCCL.cpp:984") + f"[PG ID 0 PG GUID 0 Rank {rank}] ProcessGroupNCCL "
            f"initialization options: size: {world},"
        f" global rank: {rank}, TIMEOUT(ms): 1800000, USE_HIGH_PRIORITY_STREAM: 0, SPLIT_FROM: 0, SPLIT_COLOR: 0, PG "
        "Name: 0",
        job.c10_prefix(rank, "ProcessGroupNCCL.cpp:993") + f"[PG ID 0 PG GUID 0 Rank {rank}] ProcessGroupNCCL "
            "environments: NCCL version: 2.27.3,"
        " TORCH_NCCL_ASYNC_ERROR_HANDLING: 3, TORCH_NCCL_ENABLE_TIMING: 0, TORCH_NCCL_BLOCKING_WAIT: 0, "
        "TORCH_NCCL_DUMP_ON_TIMEOUT: 1,"
        " TORCH_NCCL_DESYNC_DEBUG: 0, TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC: 480, TORCH_NCCL_NAN_CHECK: 0",
        job.c10_prefix(rank, "ProcessGroupNCCL.cpp:5023", "W") + f"[PG ID 0 PG GUID 0 Rank {rank}]  using GPU "
            f"{rank % 8} as device used by this process is"
        " currently unknown. This can potentially cause a hang if this rank to GPU mapping is incorrect. You can "
        "specify device_id in"
        " init_process_group() to force use of a particular device.",
    ]  # fmt: skip


def _leak_warning(job: Job, rank: int) -> str:
    """Return c10d's warning about a process group that was not destroyed."""
    return (
        job.c10_prefix(rank, "ProcessGroupNCCL.cpp:1538", "W")
        + "Warning: WARNING: destroy_process_group() was not called before program exit, which"
        " can leak resources. For more info, please see https://pytorch.org/docs/stable/distributed.html#shutdown "
        "(function operator())"
    )


def _store_lost_lines(job: Job, rank: int) -> list[str]:
    """Return the lines of a rank that lost the store because rank 0 finished first."""
    where = (
        f"recvValue failed on SocketImpl(fd={60 + rank}, addr=[node1]:4{rank}112, remote=[node1]:29500): failed "
        "to recv, got 0 bytes"
    )
    return [
        job.c10_prefix(rank, "TCPStore.cpp:125", "W") + f"[c10d] {where}",
        "Exception raised from recvBytes at /pytorch/torch/csrc/distributed/c10d/Utils.hpp:678 (most recent call "
        "first):",
        "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x98 (0x7f1 in "
        "/opt/venv/lib/python3.11/site-packages/torch/lib/libc10.so)",
        "",
        job.c10_prefix(rank, "ProcessGroupNCCL.cpp:1662", "W") + f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}] Failed "
            "to check the \"should dump\" flag on"
        " TCPStore, (maybe TCPStore server has shut down too early), with error: failed to recv, got 0 bytes",
    ]  # fmt: skip


def _format_record(job: Job, rank: int, text: str) -> str:
    """Return a line with the logger's prefix; a leading NUL means a line of a traceback, without prefix."""
    return (
        text[1:]
        if text.startswith("\0")
        else f"{job.timestamp('%Y-%m-%d %H:%M:%S,%L')} [rank {rank}] INFO trainer: {text}"
    )


def torchrun_plain(job: Job) -> None:
    """All ranks and the agent in one file."""
    world = 2 + 2 * job.variant
    _add_agent_start(job, world)
    for rank in range(world):
        job.add_lines(*_c10d_start_lines(job, rank, world))
    job.add_training(lambda rank, text: job.add_lines(_format_record(job, rank, text)), world, 36)
    if job.variant % 2:
        job.add_lines(_format_record(job, 0, "Training finished after 36 steps, 0 failures"))
    job.add_lines(*(_leak_warning(job, rank) for rank in range(world)), *job.ignored_exception())
    _add_agent_end(job)


def torchrun_tee(job: Job) -> None:
    """`--tee 3`: the local rank before every line."""
    world = 4
    role = "trainer" if job.variant else "default"
    _add_agent_start(job, world)

    def write_line(rank: int, text: str) -> None:
        job.add_lines(f"[{role}{rank}]:{_format_record(job, rank, text)}")

    for rank in range(world):
        job.add_lines(*(f"[{role}{rank}]:{line}" for line in _c10d_start_lines(job, rank, world)))
    job.add_training(write_line, world, 25)
    for rank in range(world):
        job.add_lines(*(f"[{role}{rank}]:{line}" for line in [*job.ignored_exception(), _leak_warning(job, rank)]))
    _add_agent_end(job)


def store_teardown(job: Job) -> None:
    """`--tee 3` without the agent's own lines: all ranks finish, and rank 0 with the store first."""

    def write_line(rank: int, text: str) -> None:
        job.add_lines(f"[default{rank}]:{_format_record(job, rank, text)}")

    job.add_training(write_line, 4, 20)
    for rank in range(4):
        write_line(rank, "training finished")
    for rank in (2, 3)[job.variant :]:
        job.add_lines(*(f"[default{rank}]:{line}" for line in _store_lost_lines(job, rank)))


def torchrun_redirects(job: Job) -> None:
    """`--redirects 3`: a directory a rank, stdout and stderr apart."""
    world, base = 4, "logs/4711_x/attempt_0"
    _add_agent_start(job, world, to="launcher.log")

    def write_line(rank: int, text: str) -> None:
        stream = "stderr" if text.startswith(("\0", "WARNING")) else "stdout"
        job.add_lines(_format_record(job, rank, text), to=f"{base}/{rank}/{stream}.log")

    for rank in range(world):
        job.add_lines(*_c10d_start_lines(job, rank, world), to=f"{base}/{rank}/stderr.log")
    job.add_training(write_line, world, 14)
    for rank in range(world):
        job.add_lines(_format_record(job, rank, "training complete"), to=f"{base}/{rank}/stdout.log")
        job.add_lines(_leak_warning(job, rank), *job.ignored_exception(), to=f"{base}/{rank}/stderr.log")
    _add_agent_end(job, to="launcher.log")


def torchrun_two_nodes(job: Job) -> None:
    """Two agents, a file each; node2 looks for the rendezvous before node1 has it."""
    job.add_lines(
        f"[W{job.timestamp('%m%d %H:%M:%S')}.812345678 socket.cpp:755] [c10d] The client socket has failed to connect "
        "to [node1]:29500 (errno: 111 -"
        " Connection refused). Will retry.",
        to="node2.log",
    )
    for node in ("node1", "node2"):
        _add_agent_start(job, 8, nodes=2, to=f"{node}.log")
    job.add_training(
        lambda rank, text: job.add_lines(_format_record(job, rank, text), to=f"node{1 + rank // 4}.log"), 8, 18
    )
    job.add_lines(
        job.glog_prefix("W", "torch/distributed/elastic/rendezvous/dynamic_rendezvous.py:121"
            "8") + "The node 'node2_4100_0' has failed to shutdown the"
        " rendezvous '4711' due to an error of type RendezvousConnectionError.",
        to="node2.log",
    )  # fmt: skip
    for node in ("node1", "node2"):
        job.add_lines(*job.ignored_exception(), to=f"{node}.log")
        _add_agent_end(job, to=f"{node}.log")


def per_rank_files(job: Job) -> None:
    """No agent, one file a rank."""

    def write_line(rank: int, text: str) -> None:
        job.add_lines(text[1:] if text[0] == "\0" else f"{job.timestamp()} {text}", to=f"out/rank{rank}.log")

    for rank in range(4):
        write_line(rank, f"RANK={rank} WORLD_SIZE=4 MASTER_ADDR=node1 MASTER_PORT=29500 NCCL_ASYNC_ERROR_HANDLING=1")
    job.add_training(write_line, 4, 40)
    for rank in range(4):
        write_line(rank, "done" if job.variant else "training done, exit status 0, errors: 0")


def srun_label(job: Job) -> None:
    """`srun --label`, with Slurm's prologue and epilogue around it."""
    world = 8
    job.add_lines(
        "bash: line 1: /etc/profile.d/zz-site.sh: Permission denied",
        "srun: job 4711 queued and waiting for resources",
        "srun: job 4711 has been allocated resources",
        "srun: Step created for StepId=4711.0",
        "slurmstepd: task/cgroup: _memcg_initialize: job: alloc=1031168MB mem.limit=1031168MB memsw.limit=1031168MB "
        "job_swappiness=1844",
        "srun: warning: can't honor --ntasks-per-node set to 8 which doesn't match the requested tasks 16 with the "
        "number of nodes 2",
    )

    def write_line(rank: int, text: str) -> None:
        job.add_lines(f"{rank}: " + (text[1:] if text[0] == "\0" else f"[{job.timestamp()}] {text}"))

    job.add_training(write_line, world, 25)
    job.add_lines(
        "srun: Job step 4711.0 completed, exit code 0",
        "sacct: JobID 4711.0 State COMPLETED ExitCode 0:0 Elapsed 01:12:44 MaxRSS 118331M",
        "/var/spool/slurmd/job4711/slurm_script: line 31:  4471 Killed                  nvidia-smi dmon -s pucvmet > "
        "gpu.csv",
        "epilog: node1: unmounted /scratch/4711, killed 0 stray processes, oom_kill 0, GPU reset not needed",
        "epilog: node2: unmounted /scratch/4711, killed 0 stray processes, oom_kill 0, GPU reset not needed",
        "slurmstepd: debug: task 3 (4471) exited with exit code 0.",
    )


def mpirun_tagged(job: Job) -> None:
    """Open MPI with --tag-output."""
    job.add_lines(
        "--------------------------------------------------------------------------",
        "By default, for Open MPI 4.0 and later, infiniband ports on a device",
        "are not used by default.  The intent is to use UCX for these devices.",
        "  Local host:              node1",
        "  Local adapter:           mlx5_0",
        "  Local port:              1",
        "--------------------------------------------------------------------------",
        "--------------------------------------------------------------------------",
        "WARNING: There was an error initializing an OpenFabrics device.",
        "  Local host:   node1",
        "  Local device: mlx5_0",
        "--------------------------------------------------------------------------",
        "[node1:04100] 7 more processes have sent help message help-mpi-btl-openib.txt / ib port not selected",
        '[node1:04100] Set MCA parameter "orte_base_help_aggregate" to 0 to see all help / error messages',
    )

    def write_line(rank: int, text: str) -> None:
        stream = "stderr" if job.variant or text.startswith(("\0", "WARNING")) else "stdout"
        job.add_lines(f"[1,{rank}]<{stream}>:{text.removeprefix(chr(0))}")

    job.add_training(write_line, 4, 30)
    job.add_lines("mpirun: all 4 processes exited with status 0")


def nccl_tests(job: Job) -> None:
    """all_reduce_perf with its table of zero errors."""
    job.add_lines(
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 "
        "validation: 1 graph: 0",
        "#",
        "# Using devices",
        *(f"#  Rank {rank:2d} Group  0 Pid {4100 + rank} on node{1 + rank // 8} device {rank % 8:2d} "
            f"[0x{0x1b + rank % 8:02x}] NVIDIA H100 80GB HBM3" for rank in range(16)),
        "#",
        "#                                                              out-of-place                       in-place    "
        "      ",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
        "#wrong",
    )  # fmt: skip
    for power in range(3, 34):
        us = 20 + 2**power / 400_000
        job.add_lines(
            f"{2**power:12d} {2**power // 4:13d}     float     sum      -1 {us:8.1f} {2**power / us / 1e3:7.2f} "
            f"{2**power / us / 5e2:7.2f}      0 {us:8.1f} {2**power / us / 1e3:7.2f} {2**power / us / 5e2:7.2f}      0"
        )
    job.add_lines(
        "# Out of bounds values : 0 OK",
        "# Avg bus bandwidth    : 188.223 ",
        "#",
        "# Collective test concluded: all_reduce_perf",
    )


def detail_debug(job: Job) -> None:
    """TORCH_DISTRIBUTED_DEBUG=DETAIL and TORCH_CPP_LOG_LEVEL=INFO: many settings named after errors, and no error."""
    for rank in range(4):
        pg = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
        job.add_lines(
            job.c10_prefix(rank, "socket.cpp:927") + "[c10d - trace] The client socket will attempt to connect to an "
                "IPv4 address of (node1, 29500).",
            job.c10_prefix(rank, "socket.cpp:752", "W") + "[c10d] The IPv6 network addresses of (node1, 29500) cannot "
                "be retrieved (gai error: -2 - Name or service not known).",
            job.c10_prefix(rank, "socket.cpp:445", "I") + "[c10d - debug] The server socket on [node1]:29500 is not "
                "yet listening (errno: 111 - Connection refused), will retry.",
            job.c10_prefix(rank, "ProcessGroupGloo.cpp:757", "W") + "Warning: Unable to resolve hostname to a (local) "
                "address. Using the loopback address as fallback. Manually set the network interface to bind to with "
                "GLOO_SOCKET_IFNAME. (function operator())",
            job.c10_prefix(rank, "TCPStore.cpp:291") + "[c10d - debug] TCP client connected to host node1:29500",
            f"INFO:torch.distributed.distributed_c10d:Added key: store_based_barrier_key:1 to store for rank: {rank}",
            f"INFO:torch.distributed.distributed_c10d:Rank {rank}: Completed store-based barrier for "
            "key:store_based_barrier_key:1 with 4 nodes.",
            *_c10d_start_lines(job, rank, 4),
            job.c10_prefix(rank, "ProcessGroupWrapper.cpp:591") + f"[Rank {rank}] Running collective: "
                "CollectiveFingerPrint(SequenceNumber=1, OpType=BARRIER)",
            job.c10_prefix(rank, "ProcessGroupNCCL.cpp:2315") + f"{pg} NCCL_DEBUG: INFO",
            job.c10_prefix(rank, "logger.cpp:331") + f"[Rank {rank}]: DDP Initialized with: \nworld_size: 4, "
                f"module_name: Net, device_ids: {rank},"
            " output_device: 0, broadcast_buffers: 1, bucket_cap_bytes: 26214400, find_unused_parameters: 0, "
            "gradient_as_bucket_view: 0",
        )  # fmt: skip
    job.add_lines(
        "[W304 05:11:12.000000001 reducer.cpp:1457] Warning: find_unused_parameters=True was specified in DDP "
        "constructor, but did not find any"
        " unused parameters in the forward pass. This flag results in an extra traversal of the autograd graph every "
        "iteration."
    )
    job.add_training(lambda rank, text: job.add_lines(_format_record(job, rank, text)), 4, 30)
    for rank in range(4):
        pg = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
        job.add_lines(
            job.c10_prefix(rank, "ProcessGroupNCCL.cpp:1335")
            + f"{pg} Starting to destroy process group, flushing operations.",
            job.c10_prefix(rank, "ProcessGroupNCCL.cpp:1338") + f"{pg} Operations flushed, joining watchdog thread.",
            job.c10_prefix(rank, "ProcessGroupNCCL.cpp:2008") + f"{pg} NCCL watchdog thread terminated normally",
            job.c10_prefix(rank, "ProcessGroupNCCL.cpp:1345")
            + f"{pg} ProcessGroupNCCL destroy takes 12 ms, no timeouts, no errors",
        )


KINDS = (
    torchrun_plain,
    torchrun_tee,
    store_teardown,
    torchrun_redirects,
    torchrun_two_nodes,
    per_rank_files,
    srun_label,
    mpirun_tagged,
    nccl_tests,
    detail_debug,
)
