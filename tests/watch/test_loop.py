"""Jobs that fail while they are watched."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import triage
from tests.watch.replay import replay
from triage.watch.policy import cause_key

ROOT = Path(__file__).resolve().parents[2]
JOBS = ROOT / "samples" / "jobs"
CLEAN = ROOT / "samples" / "clean"
# Kinds of failure and layouts that differ; all of them together take too long for every run.
CHOSEN = (
    "exception_one_rank_tee",
    "memory_limit_redirects",
    "monitored_barrier_perrank",
    "nan_one_rank_perrank",
    "gpu_memory_one_rank",
    "ib_peer_was_killed",
    "gpu_off_the_bus_two_nodes",
)


@pytest.mark.parametrize("name", CHOSEN)
def test_a_failure_is_reported_once_and_revised_at_most_twice(tmp_path: Path, name: str) -> None:
    """The last revision equals the diagnosis of `triage ingest`."""
    job = JOBS / name / "job"
    _, timed_events, _ = replay(job, tmp_path / "job")
    failures = [event for _, event in timed_events if event.diagnosis is not None]
    assert [event.kind for event in failures[:1]] == ["failure"]
    assert all(event.kind == "revised" for event in failures[1:])
    assert len(failures) <= 3
    last = failures[-1].diagnosis
    assert last is not None
    assert cause_key(last) == cause_key(triage.ingest(job))


def test_a_failure_is_reported_within_two_seconds_of_its_decisive_line(tmp_path: Path) -> None:
    """The event names rank 2 at most 2 s after its exception."""
    _, timed_events, lines = replay(JOBS / "exception_one_rank_tee" / "job", tmp_path / "job")
    decisive = next(time for time, line in lines if b"ValueError: record" in line)
    at, failure = next(pair for pair in timed_events if pair[1].kind == "failure")
    assert failure.ranks == (2,)
    assert at - decisive <= 2.0


def test_a_failure_report_of_a_healthy_job_is_withdrawn(tmp_path: Path) -> None:
    """A handled exception may look like a failure at first; when the job continues, the report is withdrawn."""
    wrong_reports = {}
    for number, job in enumerate(CLEAN / name for name in ("data_loading-1.log", "kubernetes-0.log", "node_hiccup-1")):
        source = job
        if not job.is_dir():
            source = tmp_path / f"one-{number}"
            source.mkdir()
            (source / job.name).write_bytes(job.read_bytes())
        watch, timed_events, _ = replay(source, tmp_path / str(number), after=12.0)
        if watch.policy.has_failed:
            wrong_reports[job.name] = [(round(at), event.kind, event.text) for at, event in timed_events]
    assert wrong_reports == {}


def test_the_first_report_names_the_right_rank(tmp_path: Path) -> None:
    """The first event about a GPU memory failure names the rank of TRUTH.yaml."""
    name = "gpu_memory_one_rank"
    truth = yaml.safe_load((JOBS / name / "TRUTH.yaml").read_text(encoding="utf-8"))
    _, timed_events, _ = replay(JOBS / name / "job", tmp_path / "job")
    failures = [event for _, event in timed_events if event.diagnosis is not None]
    assert list(failures[0].ranks) == truth["root_ranks"]
