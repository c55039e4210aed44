"""A job that fails while it is watched."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import triage
from tests.watch.replaying import replay
from triage.watch.policy import key_of

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
def test_a_job_is_said_once_and_revised_at_most_twice(tmp_path: Path, name: str) -> None:
    """The first news of a failure, at most two revisions, and in the end the answer of `triage ingest`."""
    job = JOBS / name / "job"
    _, said, _ = replay(job, tmp_path / "job")
    about = [news for _, news in said if news.diagnosis is not None]
    assert [news.kind for news in about[:1]] == ["failure"]
    assert all(news.kind == "revised" for news in about[1:])
    assert len(about) <= 3
    last = about[-1].diagnosis
    assert last is not None
    assert key_of(last) == key_of(triage.ingest(job))


def test_it_is_said_within_two_seconds_of_the_line_that_decides(tmp_path: Path) -> None:
    """The exception of rank 2 stands in the log at 3.9 s; the news names rank 2 not later than 2 s after it."""
    _, said, written = replay(JOBS / "exception_one_rank_tee" / "job", tmp_path / "job")
    decided = next(time for time, line in written if b"ValueError: record" in line)
    at, news = next(pair for pair in said if pair[1].kind == "failure")
    assert news.ranks == (2,)
    assert at - decided <= 2.0


def test_what_is_said_of_a_healthy_job_is_taken_back(tmp_path: Path) -> None:
    """An exception that a program then gets over cannot be told from the last one at once; when it goes on, that is
    said, and nothing is left.
    """
    told = {}
    for number, job in enumerate(CLEAN / name for name in ("data_loading-1.log", "kubernetes-0.log", "node_hiccup-1")):
        source = job
        if not job.is_dir():
            source = tmp_path / f"one-{number}"
            source.mkdir()
            (source / job.name).write_bytes(job.read_bytes())
        watch, said, _ = replay(source, tmp_path / str(number), after=12.0)
        told[job.name] = [(round(at), news.kind, news.text) for at, news in said] if watch.policy.failed else []
    assert {name for name, failed in told.items() if failed} == set()


def test_truth_is_named_while_the_job_runs(tmp_path: Path) -> None:
    """What is said first of a memory limit names the rank of the truth."""
    name = "gpu_memory_one_rank"
    truth = yaml.safe_load((JOBS / name / "TRUTH.yaml").read_text(encoding="utf-8"))
    _, said, _ = replay(JOBS / name / "job", tmp_path / "job")
    news = [news for _, news in said if news.diagnosis is not None]
    assert list(news[0].ranks) == truth["root_ranks"]
