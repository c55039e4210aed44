"""Jobs whose files hold only symptoms: no diagnosis may claim a cause."""

from __future__ import annotations

from incident import PG, Incident
from npus import _log_link_timeouts


def all_time_out() -> Incident:
    """All ranks wait in the same collective, without sequence numbers."""
    job = Incident("symptoms_all_ranks_time_out", 8, hosts=2, layout="nodes")
    job.log_steps(1, 9)
    job.advance_clock(600)
    for rank in job.all_ranks():
        job.log_timeout(rank, seq=211)
        job.log_taken_down(rank)
    job.set_truth(
        "unknown", [None], None, "all ranks wait in the same collective, and nothing says how far each had come"
    )
    return job


def all_lose_a_peer() -> Incident:
    """Every rank lost another one."""
    job = Incident("symptoms_all_ranks_lose_a_peer", 4)
    job.log_steps(1, 9)
    for rank in job.all_ranks():
        job.log_remote_error(rank)
    job.set_truth("unknown", [None], None, "every rank lost another one")
    return job


def store_host_silent() -> Incident:
    """The store in rank 0 went away; its log ends without an error."""
    job = Incident("symptoms_store_host_silent", 4)
    job.log_steps(1, 9)
    for rank in (1, 2, 3):
        job.log_store_lost(rank)
    job.set_truth("unknown", [None], [0], "the store, which is in rank 0, went away; its log just ends")
    return job


def one_log_stops() -> Incident:
    """One log stops eleven steps before the others."""
    job = Incident("symptoms_one_log_stops", 6)
    job.log_steps(1, 9)
    job.log_steps(10, 20, ranks=job.all_ranks(2))
    for rank in job.all_ranks(2, 4):
        job.log_store_lost(rank)
    job.set_truth(
        "unknown",
        [None],
        [2],
        "the log of rank 2 stops eleven steps before those of the others; rank 4 has only not complained",
    )
    return job


def dump_signals() -> Incident:
    """Every rank got a dump request; the sender left no log."""
    job = Incident("symptoms_dump_signals", 4, layout="srun")
    job.log_steps(1, 9)
    for rank in job.all_ranks():
        job.log_c10(
            rank,
            "ProcessGroupNCCL.cpp:1664",
            f"[{PG} Rank {rank}] Observed flight recorder dump signal from another rank via TCPStore.",
        )
        job.log_taken_down(rank)
    job.set_truth("unknown", [None], None, "every rank says that another one asked for a dump; whoever did left no log")
    return job


def links_everywhere() -> Incident:
    """All ranks report a link that was not set up."""
    job = Incident("symptoms_hccl_links_everywhere", 4)
    job.advance_clock(120)
    _log_link_timeouts(job, job.all_ranks())
    job.set_truth("unknown", [None], None, "all ranks report a connection that was not established, none says why")
    return job


def notify_everywhere() -> Incident:
    """All ranks wait for each other in the same collective."""
    job = Incident("symptoms_hccl_notify_everywhere", 4)
    job.log_steps(1, 9)
    job.advance_clock(1836)
    for rank in job.all_ranks():
        job.log_cann(
            rank,
            "EI0002",
            "Communication_Error_Timeout",
            "A timeout occurs. task information: [streamID:[1], tag[AllReduce_group_name_710]]",
        )
    job.set_truth("unknown", [None], None, "all ranks wait for each other in the same collective")
    return job


def agent_stopped_all() -> Incident:
    """The agent stopped its ranks because of another node."""
    job = Incident("symptoms_agent_stopped_everybody", 4)
    job.log_steps(1, 9)
    for rank in job.all_ranks():
        job.add_lines(
            "launcher.log",
            f"W{job.timestamp('%m%d %H:%M:%S')}.000000 900 torch/distributed/elastic/multiprocessing/api.py:897] "
            f"Sending process {4100 + rank} closing signal SIGTERM",
        )
    for rank in job.all_ranks():
        job.log_store_lost(rank)
    job.set_truth(
        "unknown", [None], None, "the agent of this node stopped its ranks; why, the agent of the other node knows"
    )
    return job


KINDS = (
    all_time_out,
    all_lose_a_peer,
    store_host_silent,
    one_log_stops,
    dump_signals,
    links_everywhere,
    notify_everywhere,
    agent_stopped_all,
)
