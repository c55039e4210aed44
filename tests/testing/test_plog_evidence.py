"""Plogs of hung jobs: who times out, for whom each rank waits, and what the truth says of it."""

from __future__ import annotations

import random
import re

import pytest

from triage.testing.plogs import HANDLERS, Handler, PlogJob, PlogTask
from triage.testing.schedules import draw_job
from triage.testing.schedules.evidence.plog_waits import Algorithm, Timeout, find_peer
from triage.testing.schedules.jobs import DrawnJob
from triage.testing.schedules.model import Call, Record
from triage.testing.schedules.observe import OpenSlot


def peers_of(algorithm: Algorithm, size: int, missing: set[int]) -> dict[int, int]:
    """Return for whom each rank waits in a call of all ranks that some have not started."""
    members = range(size)
    records = {rank: Record(rank, Call("all_reduce", 0, 4), 1, 0, 1, 0.0) for rank in members if rank not in missing}
    slot = OpenSlot((0, 1), frozenset(members), records, frozenset(records))
    timeouts = {rank: Timeout(600.0, 0, record, (0, 1)) for rank, record in records.items()}
    return {rank: find_peer(algorithm, members, one, slot, random.Random(0)) for rank, one in timeouts.items()}


@pytest.mark.parametrize("algorithm", ["mesh", "ring", "doubling"])
@pytest.mark.parametrize("missing", [0, 5])
def test_all_waits_lead_to_the_missing_rank(algorithm: Algorithm, missing: int) -> None:
    """At once in a mesh, over other ranks in a ring and in recursive doubling."""
    peers = peers_of(algorithm, 8, {missing})
    for start in peers:
        rank, steps = start, 0
        while rank != missing:
            rank, steps = peers[rank], steps + 1
        assert steps <= {"mesh": 1, "ring": 7, "doubling": 3}[algorithm]


def test_ends_of_a_transfer_wait_for_each_other() -> None:
    """Whatever the algorithm of collectives is."""
    record = Record(2, Call("send", 0, 4), 0, 1, 1, 0.0)
    assert find_peer("ring", range(4), Timeout(600.0, 0, record, (0, 2, 3, 1)), None, random.Random(0)) == 3


def reports(job: DrawnJob) -> dict[str, str]:
    """Return path to the error plogs of processes that report a timeout."""
    return {path: content.decode() for path, content in job.files.items() if "/debug/" in f"/{path}"}


@pytest.mark.parametrize("form", ["plog-timeout", "plog-peers", "plog-calls", "plog-checked"])
def test_the_rank_that_did_not_come_reports_nothing(form: str) -> None:
    """Never more processes report than wait."""
    for seed in range(4):
        job = draw_job("stuck-data", form, seed, 8)
        assert 0 < len(reports(job)) <= len(job.truth.waiting)


def test_what_the_forms_state() -> None:
    """A form with peers names the waited rank, one with calls the number of the call, the plain one neither."""
    texts = {name: "".join(reports(draw_job("stuck-io", name, 1, 8)).values()) for name in ("plog-peers", "plog-calls")}
    assert "remote rank:[" in texts["plog-peers"]
    assert "index[" not in texts["plog-peers"]
    assert "index[" in texts["plog-calls"]
    assert "remote rank:[" not in texts["plog-calls"]


def test_the_heartbeat_compares_calls_of_neighbours() -> None:
    """Of ranks that dispatch other calls of one number; where all call the same it writes nothing."""
    lines = "".join(reports(draw_job("other-dtype", "plog-checked", 0, 4)).values())
    assert re.search(r"check opinfo inconsistent\. identifier\[\S+\] index\[\d+\], local\(node\[10", lines)
    assert "inconsistent" not in "".join(reports(draw_job("stuck-io", "plog-checked", 0, 4)).values())


def test_a_healthy_job_reports_nothing() -> None:
    """Only what `run` says of the start is there."""
    assert reports(draw_job("healthy", "plog-timeout", 0, 4)) == {}


def test_without_numbers_only_a_silent_rank_can_be_told() -> None:
    """EI0002 says neither sizes nor data types."""
    assert draw_job("stuck-data", "plog-timeout", 0, 4).truth.is_tellable
    assert not any(draw_job("other-dtype", "plog-timeout", seed, 4).truth.is_tellable for seed in range(4))
    assert any(draw_job("other-dtype", "plog-checked", seed, 4).truth.is_tellable for seed in range(4))


@pytest.mark.parametrize("handler", HANDLERS)
def test_how_releases_describe_a_task(handler: Handler) -> None:
    """Older ones write EI0002 as well; the task is the same in all."""
    job = PlogJob(2)
    job.miss_notify(0, PlogTask(peer=1), handler=handler)
    (text,) = (content.decode() for content in job.contents().values())
    assert ("EI0002" in text) == (handler != "stage")
    assert "remote rank:[1]" in text
    assert "index[21], count[256]" in text
    assert ("FFTS+ run failed" in text) == (handler == "ffts")
