"""Jobs whose files hold only what follows from a failure: no cause may be claimed."""

from __future__ import annotations

from incident import PG, Incident
from npus import _links


def all_time_out() -> Incident:
    job = Incident("symptoms_all_ranks_time_out", 8, hosts=2, layout="nodes")
    job.steps(1, 9)
    job.wait(600)
    for rank in job.everyone():
        job.timeout(rank, seq=211)
        job.taken_down(rank)
    job.is_("unknown", [None], None, "all ranks wait in the same collective, and nothing says how far each had come")
    return job


def all_lose_a_peer() -> Incident:
    job = Incident("symptoms_all_ranks_lose_a_peer", 4)
    job.steps(1, 9)
    for rank in job.everyone():
        job.remote_error(rank)
    job.is_("unknown", [None], None, "every rank lost another one")
    return job


def store_host_silent() -> Incident:
    job = Incident("symptoms_store_host_silent", 4)
    job.steps(1, 9)
    for rank in (1, 2, 3):
        job.store_lost(rank)
    job.is_("unknown", [None], [0], "the store, which is in rank 0, went away; its log just ends")
    return job


def log_stops() -> Incident:
    job = Incident("symptoms_one_log_stops", 6)
    job.steps(1, 9)
    job.steps(10, 20, ranks=job.everyone(2))
    for rank in job.everyone(2, 4):
        job.store_lost(rank)
    job.is_(
        "unknown",
        [None],
        [2],
        "the log of rank 2 stops eleven steps before those of the others; rank 4 has only not complained",
    )
    return job


def dump_signals() -> Incident:
    job = Incident("symptoms_dump_signals", 4, layout="srun")
    job.steps(1, 9)
    for rank in job.everyone():
        job.c10(
            rank,
            "ProcessGroupNCCL.cpp:1664",
            f"[{PG} Rank {rank}] Observed flight recorder dump signal from another rank via TCPStore.",
        )
        job.taken_down(rank)
    job.is_("unknown", [None], None, "every rank says that another one asked for a dump; whoever did left no log")
    return job


def links_everywhere() -> Incident:
    job = Incident("symptoms_hccl_links_everywhere", 4)
    job.wait(120)
    _links(job, job.everyone())
    job.is_("unknown", [None], None, "all ranks report a connection that was not established, none says why")
    return job


def notify_everywhere() -> Incident:
    job = Incident("symptoms_hccl_notify_everywhere", 4)
    job.steps(1, 9)
    job.wait(1836)
    for rank in job.everyone():
        job.cann(
            rank,
            "EI0002",
            "Communication_Error_Timeout",
            "A timeout occurs. task information: [streamID:[1], tag[AllReduce_group_name_710]]",
        )
    job.is_("unknown", [None], None, "all ranks wait for each other in the same collective")
    return job


def agent_only() -> Incident:
    job = Incident("symptoms_agent_stopped_everybody", 4)
    job.steps(1, 9)
    for rank in job.everyone():
        job.to(
            "launcher.log",
            f"W{job.stamp('%m%d %H:%M:%S')}.000000 900 torch/distributed/elastic/multiprocessing/api.py:897] Sending process {4100 + rank} closing signal SIGTERM",
        )
    for rank in job.everyone():
        job.store_lost(rank)
    job.is_("unknown", [None], None, "the agent of this node stopped its ranks; why, the agent of the other node knows")
    return job


KINDS = (
    all_time_out,
    all_lose_a_peer,
    store_host_silent,
    log_stops,
    dump_signals,
    links_everywhere,
    notify_everywhere,
    agent_only,
)
