"""Jobs that end because of a GPU, a link, memory or the scheduler.

The lines of the kernel and of Slurm stand next to those of the ranks.
"""

from __future__ import annotations

from incident import Incident

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 1.06 GiB is "
    "free. Including non-PyTorch memory, this process has 78.08 GiB memory in use."
)


def gpu_off_the_bus() -> Incident:
    """A GPU falls off the bus; the clock of its host is ahead."""
    job = Incident("gpu_off_the_bus_two_nodes", 8, hosts=2, layout="nodes", skew=(0.0, 412.0))
    job.log_nccl_init()
    job.log_steps(1, 9)
    job.log_xid(2, "4f", "79, pid=4106, name=python3, GPU has fallen off the bus.")
    job.log_kernel(2, "NVRM: GPU 0000:4f:00.0: GPU has fallen off the bus.")
    job.log_xid(2, "4f", "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)")
    job.log_kernel(2, "nvidia-nvswitch1: SXid (PCI:0000:c6:00.0): 20034, Fatal, Link 48 LTSSM Fault Up")
    job.advance_clock(1)
    job.log_traceback(6, "RuntimeError: CUDA error: unspecified launch failure")
    job.advance_clock(3)
    for rank in job.all_ranks(6):
        job.log_remote_error(rank)
    job.set_truth(
        "known",
        ["gpu.fallen-off-bus"],
        [6],
        "the GPU of rank 6 falls off the bus; the clock of node2 is seven minutes ahead",
    )
    return job


def double_bit_error() -> Incident:
    """A double-bit error in GPU memory, and its consequences."""
    job = Incident("gpu_double_bit_error", 4)
    job.log_nccl_init()
    job.log_steps(1, 9)
    job.log_xid(
        1,
        "3d",
        "48, pid='<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has been detected on GPU in the "
        "framebuffer at physAddr 0x18f31d80 partition 16, subpartition 3.",
    )
    job.log_xid(1, "3d", "94, pid=4101, name=python3, Contained: CE User Channel (0x9). RST: No, D-RST: No")
    job.log_xid(1, "3d", "45, pid=4101, name=python3, Ch 00000008")
    job.log_traceback(1, "RuntimeError: CUDA error: uncorrectable ECC error encountered")
    job.advance_clock(2)
    for rank in job.all_ranks(1):
        job.log_remote_error(rank)
    job.set_truth(
        "known", ["gpu.xid-48"], [1], "a double bit error in the memory of rank 1's GPU, and what follows from it"
    )
    return job


def first_of_a_burst() -> Incident:
    """The first of many Xids on one GPU is the cause."""
    job = Incident("gpu_first_of_a_burst", 4)
    job.log_nccl_init()
    job.log_steps(1, 6)
    job.log_xid(1, "4f", "109, pid=4102, name=python3, Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x3c046")
    job.advance_clock(4)
    job.log_xid(
        1,
        "4f",
        "31, pid=4102, name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ "
        "0x7f_a0000000. Fault is of type FAULT_PDE ACCESS_TYPE_READ",
    )
    job.log_xid(1, "4f", "43, pid=4102, name=python3, Ch 00000008")
    job.advance_clock(600)
    for rank in job.all_ranks():
        job.log_timeout(rank, seq=33)
        job.log_taken_down(rank)
    job.set_truth(
        "known",
        ["gpu.xid-109"],
        [2],
        "the first fault of the burst on rank 2's GPU is the context switch that timed out",
    )
    return job


def nonfatal_event() -> Incident:
    """A rank is killed; a nonfatal NVLink event on another one is no cause."""
    job = Incident("gpu_nonfatal_beside_a_kill", 4)
    job.log_nccl_init()
    job.log_xid(
        1,
        "3d",
        "145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x00000001 0x00000000 0x00100000 0x00000004)",
    )
    job.log_steps(1, 7)
    job.advance_clock(5)
    job.log_failure_table({2: -9})
    for rank in job.all_ranks(2):
        job.log_remote_error(rank)
    job.set_truth(
        "known",
        ["host.sigkill"],
        [2],
        "rank 2 is killed, nobody says by whom; the NVLink event of rank 1's GPU is no more than a warning",
    )
    return job


def kernel_oom() -> Incident:
    """The kernel kills a rank for memory; the clock of its host is behind."""
    job = Incident("host_memory_kernel_two_nodes", 8, hosts=2, layout="nodes", skew=(0.0, -433.0))
    job.log_nccl_init()
    job.log_steps(1, 20)
    job.log_kernel(2, "python3 invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0")
    job.log_kernel(
        2,
        "Memory cgroup out of memory: Killed process 4105 (pt_main_thread) total-vm:212837464kB, anon-rss:98230144kB, "
        "file-rss:71232kB, shmem-rss:0kB, UID:1003 pgtables:201232kB oom_score_adj:0",
    )
    job.advance_clock(2)
    job.log_failure_table({5: -9, 4: -15, 6: -15, 7: -15}, host=2, to="node2.log")
    for rank in (0, 1, 2, 3):
        job.log_remote_error(rank)
    job.log_failure_table({0: 1, 1: 1, 2: 1, 3: 1}, host=1, to="node1.log")
    job.set_truth(
        "known",
        ["host.oom-killer"],
        [5],
        "the kernel of node2 kills rank 5 for memory; its clock is seven minutes behind",
    )
    return job


def slurm_oom() -> Incident:
    """The cgroup of a Slurm step kills a task for memory."""
    job = Incident("host_memory_slurm", 8, hosts=2, layout="srun")
    job.log_steps(1, 15)
    job.log_slurm(
        "slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0. Some of the step tasks have been OOM Killed."
    )
    job.log_slurm("srun: error: node2: task 5: Out Of Memory")
    job.advance_clock(1)
    for rank in job.all_ranks(5):
        job.log_store_lost(rank)
    job.log_cancelled("")
    job.set_truth("known", ["slurm.oom-kill"], [5], "the cgroup of the step kills task 5 for memory")
    return job


def full_state_dict() -> Incident:
    """Rank 0 runs out of host memory while it gathers the full model."""
    job = Incident("host_memory_full_state_dict", 4)
    job.log_steps(1, 10)
    job.log_record(0, "gathering the full model state for the checkpoint")
    job.advance_clock(20)
    job.log_kernel(
        1,
        "Memory cgroup out of memory: Killed process 4100 (pt_main_thread) total-vm:912837464kB, anon-rss:898230144kB, "
        "file-rss:71232kB, shmem-rss:0kB, UID:1003 pgtables:201232kB oom_score_adj:0",
    )
    job.advance_clock(1)
    job.log_failure_table({0: -9, 1: -15, 2: -15, 3: -15})
    job.set_truth(
        "known",
        ["checkpoint.full-state-dict-oom"],
        [0],
        "rank 0 gathers the whole model for a checkpoint, and its host has not the memory",
    )
    return job


def gpu_memory() -> Incident:
    """Rank 3 runs out of GPU memory."""
    job = Incident("gpu_memory_one_rank", 8, hosts=2, layout="nodes")
    job.log_nccl_init()
    job.log_steps(1, 5)
    job.log_traceback(3, OOM)
    job.advance_clock(1)
    for rank in job.all_ranks(3):
        job.log_remote_error(rank)
    job.set_truth("known", ["cuda.out-of-memory"], [3], "rank 3 runs out of GPU memory, all others lose it")
    return job


def shared_gpu() -> Incident:
    """Two ranks use the same GPU."""
    job = Incident("gpu_shared_by_two_ranks", 4)
    job.log_nccl_init(("1b", "1b", "4f", "5e"))
    job.log_steps(1, 2)
    job.log_traceback(1, OOM)
    job.advance_clock(1)
    for rank in job.all_ranks(1):
        job.log_remote_error(rank)
    job.set_truth(
        "known",
        ["launch.local-rank-misuse"],
        [0, 1],
        "ranks 0 and 1 use the same GPU, and rank 1 finds no memory on it",
    )
    return job


def late_device_assert() -> Incident:
    """A device-side assert that the other ranks report half a minute later."""
    job = Incident("cuda_assert_surfaces_late", 4, layout="nodes")
    job.log_nccl_init()
    job.log_steps(1, 5)
    text = (
        "RuntimeError: CUDA error: device-side assert triggered\nCompile with `TORCH_USE_CUDA_DSA` to enable "
        "device-side assertions."
    )
    for rank, wait in ((2, 0.0), (0, 30.0), (1, 0.0), (3, 0.0)):
        job.advance_clock(wait)
        job.log_c10(
            rank,
            "ProcessGroupNCCL.cpp:1895",
            f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}] Process group watchdog thread terminated with exception: "
            "CUDA error: device-side assert triggered",
        )
        if rank == 2:
            job.log_traceback(rank, text)
    job.set_truth(
        "known",
        ["cuda.device-side-assert"],
        [2],
        "an index out of range on rank 2; the others report the same error half a minute later",
    )
    return job


def link_down() -> Incident:
    """A link fails between two ranks that are both alive."""
    job = Incident("ib_link_between_living_ends", 8, hosts=2, layout="nodes")
    job.log_nccl_init()
    job.log_steps(1, 30)
    job.advance_clock(20)
    job.log_retry_exceeded(3, 7)
    job.log_retry_exceeded(7, 3)
    job.advance_clock(2)
    for rank in job.all_ranks():
        job.log_taken_down(rank)
    job.set_truth(
        "known",
        ["fabric.ib-retry-exceeded"],
        [3, 7],
        "the link between ranks 3 and 7 does not carry, and both are alive",
    )
    return job


def killed_peer() -> Incident:
    """A rank was killed; InfiniBand errors of the others follow."""
    job = Incident("ib_peer_was_killed", 8, hosts=2, layout="nodes", skew=(0.0, 251.0))
    job.log_nccl_init()
    job.log_steps(1, 30)
    job.log_failure_table({6: -9}, host=2, to="node2.log")
    job.advance_clock(20)
    for rank in (2, 3):
        job.log_retry_exceeded(rank, 6)
    job.advance_clock(2)
    for rank in (0, 1):
        job.log_remote_error(rank)
    job.set_truth(
        "known", ["host.sigkill"], [6], "rank 6 was killed; that InfiniBand gets no answer from it only follows"
    )
    return job


def port_error() -> Incident:
    """The port of an adapter goes down."""
    job = Incident("ib_port_error", 8, hosts=2, layout="nodes")
    job.log_nccl_init()
    job.log_steps(1, 30)
    job.log_nccl(5, "transport/net_ib.cc:93 NCCL WARN NET/IB : mlx5_1:1 Got async event : port error")
    job.advance_clock(20)
    job.log_retry_exceeded(1, 5, "mlx5_1")
    job.log_retry_exceeded(5, 1, "mlx5_1")
    for rank in job.all_ranks():
        job.log_taken_down(rank)
    job.set_truth(
        "known",
        ["fabric.ib-port-error"],
        [5],
        "the port of rank 5's adapter goes down, and transfers in both directions give up",
    )
    return job


def segfault_far_from_rank_zero() -> Incident:
    """Rank 13 crashes; the ranks of the other node lose it."""
    job = Incident("segfault_far_from_rank_zero", 16, hosts=2, layout="nodes")
    job.log_steps(1, 4)
    job.log_failure_table({13: -11, **dict.fromkeys((8, 9, 10, 11, 12, 14, 15), -15)}, host=2, to="node2.log")
    for rank in range(8):
        job.log_remote_error(rank)
    job.log_failure_table(dict.fromkeys(range(8), 1), host=1, to="node1.log")
    job.set_truth(
        "known", ["crash.segfault"], [13], "rank 13 ends with a segmentation fault; on node1 all ranks lose it"
    )
    return job


def deepspeed_process_killed() -> Incident:
    """One process is killed. DeepSpeed's launcher shows the command that it started last, whichever process failed."""
    job = Incident("deepspeed_killed", 4, layout="perrank")
    job.log_steps(1, 11)
    for rank in range(4):
        job.add_lines(
            "launch.log",
            f"[{job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] [INFO] [launch.py:319:sigkill_handler] Killing subprocess "
            f"{4100 + rank}",
        )
    job.add_lines(
        "launch.log",
        f"[{job.timestamp('%Y-%m-%d %H:%M:%S,%L')}] [ERROR] [launch.py:325:sigkill_handler] ['/opt/venv/bin/python', "
        "'-u', 'train.py', '--local_rank=3', '--deepspeed', 'ds.json'] exits with return code = -9",
    )
    job.set_truth(
        "known",
        ["host.sigkill", "launch.deepspeed-return-code"],
        None,
        "DeepSpeed's launcher does not say which process was killed: it shows the command that it started last",
    )
    return job


KINDS = (
    gpu_off_the_bus,
    double_bit_error,
    first_of_a_burst,
    nonfatal_event,
    kernel_oom,
    slurm_oom,
    full_state_dict,
    gpu_memory,
    shared_gpu,
    late_device_assert,
    link_down,
    killed_peer,
    port_error,
    segfault_far_from_rank_zero,
    deepspeed_process_killed,
)
