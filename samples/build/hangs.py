"""Jobs that hang in collectives: a rank is missing, behind, ahead or elsewhere, or no rank is at fault."""

from __future__ import annotations

from incident import PG, Incident


def _hung_job(name: str, ranks: int = 4, *, hosts: int = 1, layout: str = "perrank", steps: int = 12) -> Incident:
    """Return a job whose ranks trained some steps and then waited ten minutes."""
    job = Incident(name, ranks, hosts=hosts, layout=layout)
    job.log_steps(1, steps)
    job.advance_clock(600)
    return job


def rank_missing() -> Incident:
    """Rank 6 does not join the all-reduce in which all others time out."""
    job = _hung_job("nccl_rank_missing_two_nodes", 8, hosts=2, layout="nodes")
    for rank in job.all_ranks(6):
        job.log_timeout(rank, seq=4120)
        job.log_taken_down(rank)
    job.set_truth(
        "known", ["torch.rank-never-joined"], [6], "rank 6 does not come to the all-reduce in which all others time out"
    )
    return job


def rank_lagging() -> Incident:
    """Rank 2 enqueued two collectives fewer than the others."""
    job = _hung_job("nccl_rank_lagging", 4, layout="srun")
    for rank in job.all_ranks():
        job.log_timeout(rank, seq=812 if rank != 2 else 810)
        job.log_progress(rank, 812 if rank != 2 else 810, 810 if rank != 2 else 809)
        job.log_taken_down(rank)
    job.set_truth("known", ["torch.lagging-rank"], [2], "rank 2 had enqueued two collectives fewer than the others")
    return job


def rank_ahead() -> Incident:
    """Rank 0 issued one collective more than the others."""
    job = _hung_job("nccl_extra_collective", 4)
    for rank in job.all_ranks():
        job.log_timeout(rank, seq=813 if rank == 0 else 812, numel=1 if rank == 0 else 1_048_576)
        job.log_progress(rank, 813 if rank == 0 else 812, 811)
        job.log_taken_down(rank)
    job.set_truth(
        "known", ["torch.extra-collective"], [0], "rank 0 issued one collective more, so that all pair up wrongly"
    )
    return job


def hang_outside_collectives() -> Incident:
    """All ranks completed what they enqueued."""
    job = _hung_job("nccl_hang_outside_collectives", 4, layout="srun")
    for rank in job.all_ranks():
        job.log_c10(
            rank,
            "ProcessGroupNCCL.cpp:1743",
            f"[{PG} Rank {rank}] Received a dump signal due to a collective timeout from this local rank and we will "
            "try our best to dump "
            "the debug info. Last enqueued NCCL work: 1204, last completed NCCL work: 1204.",
        )
        job.log_progress(rank, 1204, 1204)
    job.set_truth(
        "known", ["torch.hang-outside-collectives"], None, "all had completed what they enqueued: the hang is elsewhere"
    )
    return job


def stuck_in_collective() -> Incident:
    """All ranks are in the same collective, which does not finish."""
    job = _hung_job("nccl_stuck_in_collective", 8, hosts=2, layout="nodes")
    for rank in job.all_ranks():
        job.log_timeout(rank, seq=512)
        job.log_progress(rank, 512, 511)
        job.log_taken_down(rank)
    job.set_truth("known", ["torch.stuck-in-collective"], None, "all ranks are in collective 512, and it does not move")
    return job


def other_operation() -> Incident:
    """Rank 3 broadcasts while the others reduce."""
    job = _hung_job("nccl_other_operation", 4)
    for rank in job.all_ranks():
        job.log_timeout(rank, seq=77, op="BROADCAST" if rank == 3 else "ALLREDUCE")
        job.log_taken_down(rank)
    job.set_truth(
        "known", ["torch.collective-order-mismatch"], [3], "at collective 77 rank 3 broadcasts while the others reduce"
    )
    return job


def other_size() -> Incident:
    """Rank 1 reduces half as many elements as the others."""
    job = _hung_job("nccl_other_size", 4, layout="nodes")
    for rank in job.all_ranks():
        job.log_timeout(rank, seq=91, numel=524_288 if rank == 1 else 1_048_576)
        job.log_taken_down(rank)
    job.set_truth(
        "known", ["torch.collective-shape-mismatch"], [1], "rank 1 reduces half as many elements as the others"
    )
    return job


def wrong_group() -> Incident:
    """Rank 3 waits in another process group."""
    job = _hung_job("nccl_wrong_group", 8)
    for rank in job.all_ranks():
        if rank == 3:
            job.log_timeout(rank, seq=15, pg="PG ID 2 PG GUID 5(tp0)", local=3)
        else:
            job.log_timeout(rank, seq=64)
        job.log_taken_down(rank)
    job.set_truth(
        "known", ["torch.wrong-process-group"], [3], "rank 3 waits in the group tp0, all others in the default group"
    )
    return job


def group_order() -> Incident:
    """Rank 2 uses two process groups in another order."""
    job = _hung_job("nccl_group_order", 4, layout="srun")
    for rank in job.all_ranks():
        group, other = (
            ("PG ID 2 PG GUID 9(gb)", "PG ID 1 PG GUID 8(ga)")
            if rank == 2
            else ("PG ID 1 PG GUID 8(ga)", "PG ID 2 PG GUID 9(gb)")
        )
        job.log_timeout(rank, seq=31, pg=group)
        job.log_progress(rank, 31, 30, pg=group)
        job.log_progress(rank, 30, 30, pg=other)
        job.log_taken_down(rank)
    job.set_truth(
        "known", ["torch.group-order-deadlock"], [2], "rank 2 uses the groups ga and gb in another order than the rest"
    )
    return job


def uninitialised_numbers() -> Incident:
    """The sequence numbers of torch 2.3 are not initialised."""
    job = _hung_job("torch23_absurd_numbers", 4)
    for rank in job.all_ranks(1):
        of = f"[PG 0 Rank {rank}]"
        work = "WorkNCCL(SeqNum=410, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=600000)"
        job.add_rank_lines(
            rank,
            f"[rank{rank}]:[E ProcessGroupNCCL.cpp:563] [Rank {rank}] Watchdog caught collective operation timeout: "
            f"{work} ran for 600312 "
            "milliseconds before timing out.",
            f"[rank{rank}]:[E ProcessGroupNCCL.cpp:1537] {of} Timeout at NCCL work: 410, last enqueued NCCL work: "
            f"{410 + rank}, "
            "last completed NCCL work: 76280750235782912.",
        )
    job.set_truth(
        "known",
        ["torch.rank-never-joined"],
        [1],
        "the numbers of torch 2.3 are not initialised; rank 1 is the one that is missing",
    )
    return job


def watchdog_starved() -> Incident:
    """The host of rank 1 was stopped for minutes."""
    job = _hung_job("nccl_watchdog_starved", 4, layout="srun")
    for rank in job.all_ranks():
        job.log_timeout(rank, seq=300, ran=823_590 if rank == 1 else 600_044)
        job.log_taken_down(rank)
    job.set_truth(
        "known",
        ["torch.watchdog-starved"],
        [1],
        "the host of rank 1 stood still for minutes: its watchdog noticed late",
    )
    return job


def rank_compiling() -> Incident:
    """Rank 2 compiles while the others wait."""
    job = Incident("nccl_compile_skew", 4)
    job.log_steps(1, 3)
    job.log_record(2, "compiling the decoder for shape (8, 4096) with torch._inductor")
    job.advance_clock(600)
    for rank in job.all_ranks(2):
        job.log_timeout(rank, seq=19)
        job.log_taken_down(rank)
    job.set_truth("known", ["torch.compile-skew"], [2], "rank 2 compiles while the others wait in an all-reduce")
    return job


def caught_error() -> Incident:
    """Rank 2 catches its own error and skips the step."""
    job = Incident("nccl_caught_and_diverged", 4)
    job.log_steps(1, 8)
    job.log_traceback(2, "ValueError: batch 8 of shard-0017 has no tokens", tagged=False)
    for step in range(9, 40):
        job.advance_clock(1)
        job.log_record(2, f"step {step} skipped, waiting for a good batch")
    job.advance_clock(600)
    for rank in job.all_ranks(2):
        job.log_timeout(rank, seq=52)
        job.log_taken_down(rank)
    job.set_truth(
        "known",
        ["torch.one-rank-diverged"],
        [2],
        "rank 2 catches its own error and skips the step, the others wait for it",
    )
    return job


def rank_zero_only() -> Incident:
    """A barrier is inside `if rank == 0`."""
    job = _hung_job("gloo_rank_zero_only", 4)
    for rank in job.all_ranks():
        call = "dist.barrier()" if rank == 0 else "dist.all_reduce(grad)"
        job.add_rank_lines(
            rank,
            *(
                f"[rank{rank}]: {text}"
                for text in [
                    "Traceback (most recent call last):",
                    f'  File "/workspace/{"evaluate" if rank == 0 else "train"}.py", line {41 if rank == 0 else 88}, '
                    f"in {'evaluate' if rank == 0 else 'train'}",
                    f"    {call}",
                    '  File "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line '
                    + ("4706, in barrier" if rank == 0 else "2810, in all_reduce"),
                    "    work.wait()",
                    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out "
                    "waiting 1800000ms for recv operation to complete",
                ]
            ),
        )
    job.set_truth(
        "known",
        ["torch.rank-conditional-collective", "torch.collective-order-mismatch"],
        [0],
        "a barrier stands inside `if rank == 0`",
    )
    return job


def split_rendezvous() -> Incident:
    """Both nodes use localhost as MASTER_ADDR."""
    job = Incident("split_rendezvous_two_nodes", 4, hosts=1, layout="perrank")
    for host in (1, 2):
        for rank in range(4):
            file = f"node{host}/rank{rank}.log"
            job.add_lines(
                file, f"{job.timestamp('%Y-%m-%d %H:%M:%S,%L')} [rank{rank}] INFO trainer: world_size=4 rank={rank}"
            )
            stamp = job.timestamp("%m%d %H:%M:%S")
            job.add_lines(
                file,
                f"[rank{rank}]:[W{stamp}.104112007 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=66, "
                f"addr=[localhost]:{37000 + rank}, "
                "remote=[localhost]:29500): Connection reset by peer",
            )
    job.set_truth(
        "known",
        ["launch.split-rendezvous"],
        None,
        "both nodes use localhost as MASTER_ADDR, so that each has a world of its own",
    )
    return job


def barrier_without_rank_zero_log() -> Incident:
    """Rank 3 misses a monitored barrier; the log of rank 0 is lost."""
    job = Incident("barrier_without_the_log_of_rank_zero", 5)
    job.log_steps(1, 7)
    job.advance_clock(30)
    files = job.files
    for rank in job.all_ranks(0, 3):
        text = (
            f"Rank {rank} successfully reached monitoredBarrier, but received errors while waiting for send/recv from "
            "rank 0. "
            "Please check rank 0 logs for faulty rank."
        )
        job.log_c10(rank, "ProcessGroupGloo.cpp:67", text)
        job.log_traceback(rank, f"RuntimeError: {text}")
    files.pop("out/rank0.log")
    job.set_truth(
        "known",
        ["torch.monitored-barrier-timeout"],
        [3],
        "rank 3 did not reach the monitored barrier; the log of rank 0 is lost",
    )
    return job


def single_process_per_node() -> Incident:
    """srun started three tasks without WORLD_SIZE."""
    job = Incident("single_process_on_each_node", 1)
    for host in (1, 2, 3):
        file = f"node{host}/rank0.log"
        job.add_lines(
            file, f"{job.timestamp('%Y-%m-%d %H:%M:%S,%L')} [rank0] INFO trainer: world_size=1 rank=0 host=node{host}"
        )
        stamp = job.timestamp("%m%d %H:%M:%S")
        job.add_lines(
            file,
            f"[rank0]:[W{stamp}.104112007 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=66, "
            "addr=[localhost]:37000, "
            "remote=[localhost]:29500): Connection reset by peer",
        )
    job.set_truth(
        "known",
        ["launch.split-rendezvous"],
        None,
        "srun started three tasks without WORLD_SIZE: each is a world of its own",
    )
    return job


KINDS = (
    barrier_without_rank_zero_log,
    single_process_per_node,
    rank_missing,
    rank_lagging,
    rank_ahead,
    hang_outside_collectives,
    stuck_in_collective,
    other_operation,
    other_size,
    wrong_group,
    group_order,
    uninitialised_numbers,
    watchdog_starved,
    rank_compiling,
    caught_error,
    rank_zero_only,
    split_rendezvous,
)
