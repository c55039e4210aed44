"""Jobs that were stopped, restarted or requeued, each attempt with its own outcome."""

from __future__ import annotations

from incident import Incident
from machines import OOM


def time_limit() -> Incident:
    """The job reaches its time limit."""
    job = Incident("slurm_time_limit", 4, layout="srun")
    job.log_steps(1, 25)
    job.log_cancelled(" DUE TO TIME LIMIT")
    job.advance_clock(4)
    for rank in job.all_ranks():
        job.log_store_lost(rank)
    job.set_truth("known", ["slurm.time-limit"], None, "the job's time was over")
    return job


def node_failure() -> Incident:
    """A node fails under the job."""
    job = Incident("slurm_node_failure", 8, hosts=2, layout="srun")
    job.log_steps(1, 25)
    job.log_slurm("srun: error: Node failure on node2")
    job.log_cancelled(" DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS")
    for rank in (0, 1, 2, 3):
        job.log_store_lost(rank)
    job.set_truth("known", ["slurm.node-failure"], None, "node2 failed under the job")
    return job


def stopped_from_outside() -> Incident:
    """The step is cancelled; errors of the ranks follow."""
    job = Incident("stopped_from_outside_then_errors", 4, layout="srun")
    job.log_steps(1, 25)
    job.log_cancelled(" DUE to SIGNAL Terminated")
    job.advance_clock(12)
    for rank in job.all_ranks():
        job.add_rank_lines(rank, f"{job.timestamp('%Y-%m-%d %H:%M:%S,%L')} [rank{rank}] ERROR trainer: shutting down")
        job.log_c10(
            rank,
            "ProcessGroupNCCL.cpp:1895",
            f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}] Process group watchdog thread terminated with exception: "
            "CUDA error: driver shutting down",
        )
    job.set_truth(
        "known",
        ["slurm.cancelled"],
        None,
        "somebody cancelled the step; what the ranks say twelve seconds later follows from that",
    )
    return job


def _requeued_job(name: str) -> Incident:
    """Return a job that was preempted and started again."""
    job = Incident(name, 4, layout="srun")
    job.log_steps(1, 12)
    job.log_cancelled(" DUE TO PREEMPTION")
    job.advance_clock(600)
    job.log_steps(10, 16)
    return job


def requeued_finished() -> Incident:
    """A requeued job finishes."""
    job = _requeued_job("slurm_requeued_then_finished")
    for rank in job.all_ranks():
        job.log_record(rank, "training finished after 16 steps")
    job.set_truth("clean", [], None, "the job was preempted, requeued and finished")
    return job


def requeued_failed() -> Incident:
    """A requeued job runs out of GPU memory in its second attempt."""
    job = _requeued_job("slurm_requeued_then_out_of_memory")
    job.log_traceback(1, OOM)
    job.advance_clock(1)
    for rank in job.all_ranks(1):
        job.log_store_lost(rank)
    job.set_truth(
        "known",
        ["cuda.out-of-memory"],
        [1],
        "preempted and requeued; the second attempt ends because rank 1 has no GPU memory",
    )
    return job


def restarted_with_another_cause() -> Incident:
    """Two attempts fail for different reasons."""
    job = Incident("restarted_another_cause", 4)
    job.log_steps(1, 5)
    job.log_failure_table({3: -9})
    job.add_lines(
        "launcher.log",
        f"I{job.timestamp('%m%d %H:%M:%S')}.000000 900 torch/distributed/elastic/agent/server/api.py:952] [default] "
        "Worker group FAILED. 2/3 attempts left; will restart worker group",
    )
    job.advance_clock(60)
    job.log_steps(4, 8)
    job.add_lines(
        "launcher.log",
        f"E{job.timestamp('%m%d %H:%M:%S')}.000000 900 torch/distributed/elastic/multiprocessing/api.py:1002] failed "
        "(exitcode: -11) local_rank: 1 (pid: 5101) of binary: /usr/bin/python3",
    )
    job.log_failure_table({1: -11})
    job.set_truth(
        "known",
        ["crash.segfault"],
        [1],
        "attempt 0 ended with a kill of rank 3, attempt 1 with a segmentation fault of rank 1",
    )
    return job


KINDS = (
    time_limit,
    node_failure,
    stopped_from_outside,
    requeued_finished,
    requeued_failed,
    restarted_with_another_cause,
)
