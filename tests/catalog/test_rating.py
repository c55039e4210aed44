from __future__ import annotations

from pathlib import Path

import pytest

from triage.base.errors import InputError, OptionError
from triage.catalog import rating
from triage.model.diagnosis import Diagnosis, Finding, Job


def finding(signature: str | None, cluster: str | None = None, ranks: tuple[int, ...] = (1,)) -> Finding:
    return Finding(signature, "what was said", "x", "cause", "fatal", 0.9, ranks=ranks, cluster=cluster)


def diagnosis(verdict: str, root: Finding | None = None, *findings: Finding) -> Diagnosis:
    return Diagnosis("0", "0", Job("i", "n", "p"), verdict, root, findings)  # type: ignore[arg-type]


KNOWN = finding("cuda.out-of-memory")
ANSWERS = {
    "a": diagnosis("known", KNOWN, KNOWN, finding("torch.collective-timeout")),
    "b": diagnosis("known", KNOWN, KNOWN),
    "c.log": diagnosis("unknown", finding(None, "u-123456")),
    "d": diagnosis("clean", None, finding("torch.collective-timeout")),
}


def ingest(path: Path) -> Diagnosis:
    if path.name not in ANSWERS:
        raise InputError("nothing to read", hint="none")
    return ANSWERS[path.name]


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """Directories, a file, something unreadable, and a hidden file that is no job."""
    for name in ("a", "b", "d", "e"):
        (tmp_path / name).mkdir()
    (tmp_path / "c.log").touch()
    (tmp_path / ".hidden").touch()
    return tmp_path


def judged(tmp_path: Path, result: Diagnosis, truth: str) -> rating.RatedJob:
    """What a job with this answer and this truth is rated."""
    (tmp_path / "one" / "job").mkdir(parents=True)
    (tmp_path / "one" / "TRUTH.yaml").write_text(truth, encoding="utf-8")
    (job,) = rating.rate_jobs([tmp_path], lambda path: result).jobs
    assert job.name == "one"
    return job


def test_every_entry_is_a_job(jobs: Path) -> None:
    """Directories and files are jobs in order; an unreadable one is counted."""
    rated = rating.rate_jobs([jobs], ingest)
    assert [(job.name, job.verdict) for job in rated.jobs] == [
        ("a", "known"),
        ("b", "known"),
        ("c.log", "unknown"),
        ("d", "clean"),
        ("e", "unreadable"),
    ]
    assert rated.count_verdicts() == {"known": 2, "unknown": 1, "inconclusive": 0, "clean": 1, "unreadable": 1}
    assert rated.count_agreements() == (0, 0)


def test_hits_count_jobs(jobs: Path) -> None:
    """A signature counts jobs in which it is the root cause, and jobs in which it matches."""
    assert rating.rate_jobs([jobs], ingest).count_hits() == [
        ("cuda.out-of-memory", 2, 2),
        ("torch.collective-timeout", 0, 2),
    ]


def test_unknown_jobs_have_cluster_and_headline(jobs: Path) -> None:
    """A curator needs both to write a signature."""
    (job,) = [job for job in rating.rate_jobs([jobs], ingest).jobs if job.verdict == "unknown"]
    assert (job.cluster, job.headline) == ("u-123456", "what was said")


@pytest.mark.parametrize(
    ("truth", "wrong"),
    [
        ("verdict: known\nroot: [cuda.out-of-memory]\nroot_ranks: [1]\n", ""),
        ("verdict: unknown|known\nroot: [null, cuda.out-of-memory]\nroot_ranks: null\n", ""),
        ("verdict: known\nroot: [host.sigkill]\n", "the root is cuda.out-of-memory, not host.sigkill"),
        ("verdict: known\nroot: [cuda.out-of-memory]\nroot_ranks: [0]\n", "the ranks are [1], not [0]"),
        ("verdict: clean\nroot: []\n", "the verdict is known, not clean"),
        ("verdict: [\n", "is not a truth file"),
        ("- verdict\n", "is not a truth file"),
        ("verdict: known\nroot: host.sigkill\n", "is not a truth file"),
        ("", "is not a truth file"),
    ],
)
def test_a_job_is_compared_with_its_truth_file(tmp_path: Path, truth: str, wrong: str) -> None:
    """Verdict, root and ranks are compared; an invalid truth file is a disagreement, not a crash."""
    job = judged(tmp_path, ANSWERS["a"], truth)
    assert job.agrees is (wrong == "")
    assert wrong in job.disagreement


def test_a_clean_job_agrees_without_a_root(tmp_path: Path) -> None:
    """Root and ranks of a clean job are not compared."""
    assert judged(tmp_path, ANSWERS["d"], "verdict: clean\nroot: []\nroot_ranks: null\n").agrees


def test_a_directory_with_a_truth_file_is_one_job(tmp_path: Path) -> None:
    """`rate samples/jobs/one` rates one job."""
    judged(tmp_path, ANSWERS["a"], "verdict: known\nroot: [cuda.out-of-memory]\n")
    assert [case.path for case in rating.find_jobs(tmp_path / "one")] == [tmp_path / "one" / "job"]


def test_a_directory_without_jobs_is_an_error(tmp_path: Path) -> None:
    """A missing directory, a file, or an empty directory is an error with a hint."""
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    for name in ("missing", "file", "empty"):
        with pytest.raises(OptionError) as caught:
            rating.find_jobs(tmp_path / name)
        assert caught.value.hint


def test_progress_is_reported_before_each_job(jobs: Path) -> None:
    """The callback gets the number of finished jobs and the total."""
    calls: list[tuple[int, int]] = []
    rating.rate_jobs([jobs], ingest, lambda done, total: calls.append((done, total)))
    assert calls == [(number, 5) for number in range(5)]
