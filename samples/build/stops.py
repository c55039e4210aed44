"""Jobs that were stopped, restarted or requeued, each attempt with its own story."""

from __future__ import annotations

from incident import Incident
from machines import OOM


def time_limit() -> Incident:
    job = Incident("slurm_time_limit", 4, layout="srun")
    job.steps(1, 25)
    job.cancelled(" DUE TO TIME LIMIT")
    job.wait(4)
    for rank in job.everyone():
        job.store_lost(rank)
    job.is_("known", ["slurm.time-limit"], None, "the job's time was over")
    return job


def node_failure() -> Incident:
    job = Incident("slurm_node_failure", 8, hosts=2, layout="srun")
    job.steps(1, 25)
    job.slurm("srun: error: Node failure on node2")
    job.cancelled(" DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS")
    for rank in (0, 1, 2, 3):
        job.store_lost(rank)
    job.is_("known", ["slurm.node-failure"], None, "node2 failed under the job")
    return job


def stopped() -> Incident:
    job = Incident("stopped_from_outside_then_errors", 4, layout="srun")
    job.steps(1, 25)
    job.cancelled(" DUE to SIGNAL Terminated")
    job.wait(12)
    for rank in job.everyone():
        job.say(rank, f"{job.stamp('%Y-%m-%d %H:%M:%S,%L')} [rank{rank}] ERROR trainer: shutting down")
        job.c10(
            rank,
            "ProcessGroupNCCL.cpp:1895",
            f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}] Process group watchdog thread terminated with exception: CUDA error: driver shutting down",
        )
    job.is_(
        "known",
        ["slurm.cancelled"],
        None,
        "somebody cancelled the step; what the ranks say twelve seconds later follows from that",
    )
    return job


def _requeued(name: str) -> Incident:
    job = Incident(name, 4, layout="srun")
    job.steps(1, 12)
    job.cancelled(" DUE TO PREEMPTION")
    job.wait(600)
    job.steps(10, 16)
    return job


def requeued_finished() -> Incident:
    job = _requeued("slurm_requeued_then_finished")
    for rank in job.everyone():
        job.log(rank, "training finished after 16 steps")
    job.is_("clean", [], None, "the job was preempted, requeued and finished")
    return job


def requeued_failed() -> Incident:
    job = _requeued("slurm_requeued_then_out_of_memory")
    job.traceback(1, OOM)
    job.wait(1)
    for rank in job.everyone(1):
        job.store_lost(rank)
    job.is_(
        "known",
        ["cuda.out-of-memory"],
        [1],
        "preempted and requeued; the second attempt ends because rank 1 has no GPU memory",
    )
    return job


def restarted_other_cause() -> Incident:
    job = Incident("restarted_another_cause", 4)
    job.steps(1, 5)
    job.table({3: -9})
    job.to(
        "launcher.log",
        f"I{job.stamp('%m%d %H:%M:%S')}.000000 900 torch/distributed/elastic/agent/server/api.py:952] [default] Worker group FAILED. 2/3 attempts left; will restart worker group",
    )
    job.wait(60)
    job.steps(4, 8)
    job.to(
        "launcher.log",
        f"E{job.stamp('%m%d %H:%M:%S')}.000000 900 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -11) local_rank: 1 (pid: 5101) of binary: /usr/bin/python3",
    )
    job.table({1: -11})
    job.is_(
        "known",
        ["crash.segfault"],
        [1],
        "attempt 0 ended with a kill of rank 3, attempt 1 with a segmentation fault of rank 1",
    )
    return job


KINDS = (time_limit, node_failure, stopped, requeued_finished, requeued_failed, restarted_other_cause)
