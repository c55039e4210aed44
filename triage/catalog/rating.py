"""Rate a catalog on many jobs: known and unknown failures and, where the truth is on file, right and wrong answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triage.base.errors import InputError, OptionError
from triage.model.diagnosis import Diagnosis

TRUTH = "TRUTH.yaml"
JOB = "job"
MAX_BYTES = 1 << 16  # of a truth file
Ingest = Callable[[Path], Diagnosis]
ProgressReport = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class RatingCase:
    """One job: its name, its path, and the path of its truth file, if there is one."""

    name: str
    path: Path
    truth: Path | None = None


@dataclass(frozen=True, slots=True)
class RatedJob:
    """The result of one job. `verdict` is known, unknown, clean or unreadable (then `headline` says why).

    `agrees` is None without a truth file; `disagreement` says what the truth file expects instead.
    """

    name: str
    verdict: str
    root: str | None = None
    ranks: tuple[int, ...] = ()
    cluster: str | None = None
    headline: str = ""
    signatures: tuple[str, ...] = ()
    agrees: bool | None = None
    disagreement: str = ""


@dataclass(frozen=True, slots=True)
class Rating:
    """The results of all jobs.

    `feedback` is that of people on stored diagnoses: (signature or cluster, number of "right", number of "wrong").
    """

    jobs: tuple[RatedJob, ...]
    feedback: tuple[tuple[str, int, int], ...] = ()

    def count_verdicts(self) -> dict[str, int]:
        """Jobs by verdict."""
        counted = Counter(job.verdict for job in self.jobs)
        return {verdict: counted[verdict] for verdict in ("known", "unknown", "inconclusive", "clean", "unreadable")}

    def count_hits(self) -> list[tuple[str, int, int]]:
        """(signature, jobs in which it is the root cause, jobs in which it matched), the most frequent first."""
        roots = Counter(job.root for job in self.jobs if job.root)
        matched = Counter(signature for job in self.jobs for signature in job.signatures)
        rows = ((name, roots[name], count) for name, count in matched.items())
        return sorted(rows, key=lambda row: (-row[1], -row[2], row[0]))

    def count_agreements(self) -> tuple[int, int]:
        """The number of jobs that agree with their truth file, and the number of jobs that have one."""
        return sum(job.agrees is True for job in self.jobs), sum(job.agrees is not None for job in self.jobs)


def rate_jobs(directories: Sequence[Path], ingest: Ingest, progress: ProgressReport | None = None) -> Rating:
    """Ingest every job in the directories. OptionError when one cannot be read or is empty."""
    cases = [case for directory in directories for case in find_jobs(directory)]
    rated = []
    for number, case in enumerate(cases):
        if progress is not None:
            progress(number, len(cases))
        rated.append(_rate_job(case, ingest))
    return Rating(tuple(rated))


def find_jobs(directory: Path) -> list[RatingCase]:
    """The jobs of a directory: each entry is a job.

    An entry, or the directory itself, that has a `job` and a truth file stands for that job.
    """
    hint = "give a directory in which each sub-directory or file is a job"
    try:
        if _has_truth_file(directory):
            return [_make_case(directory)]
        entries = sorted(entry for entry in directory.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise OptionError(f"cannot read {directory}: {error.strerror}", hint=hint) from None
    if not entries:
        raise OptionError(f"{directory} is empty", hint=hint)
    return [_make_case(entry) for entry in entries]


def _has_truth_file(directory: Path) -> bool:
    return (directory / TRUTH).is_file() and (directory / JOB).exists()


def _make_case(entry: Path) -> RatingCase:
    if _has_truth_file(entry):
        return RatingCase(entry.name, entry / JOB, entry / TRUTH)
    return RatingCase(entry.name, entry)


def _rate_job(case: RatingCase, ingest: Ingest) -> RatedJob:
    try:
        diagnosis = ingest(case.path)
    except InputError as error:
        return RatedJob(case.name, "unreadable", headline=str(error), agrees=None if case.truth is None else False)
    root = diagnosis.root_cause
    agrees, disagreement = (None, "") if case.truth is None else _compare_with_truth(diagnosis, case.truth)
    return RatedJob(
        name=case.name,
        verdict=diagnosis.verdict,
        root=root.signature if root else None,
        ranks=root.ranks if root else (),
        cluster=root.cluster if root else None,
        headline=root.title if root else "",
        signatures=tuple(sorted({finding.signature for finding in diagnosis.findings if finding.signature})),
        agrees=agrees,
        disagreement=disagreement,
    )


def _compare_with_truth(diagnosis: Diagnosis, path: Path) -> tuple[bool, str]:
    """Whether the diagnosis is one that the truth file allows (see samples/README.md), and how it differs."""
    truth = _read_truth(path)
    if truth is None:
        return False, f"{path} is not a truth file: it needs verdict, root and root_ranks"
    differences = "; ".join(_list_differences(diagnosis, truth))
    return not differences, differences


def _list_differences(diagnosis: Diagnosis, truth: dict[str, Any]) -> Iterator[str]:
    root = diagnosis.root_cause
    if diagnosis.verdict not in truth["verdict"].split("|"):
        yield f"the verdict is {diagnosis.verdict}, not {truth['verdict']}"
    without_root = ("clean", "inconclusive")
    if diagnosis.verdict in without_root or truth["verdict"] in without_root:
        return
    signature = root.signature if root else None
    if signature not in truth["root"]:
        expected = " or ".join(str(name or "unknown") for name in truth["root"])
        yield f"the root is {signature or 'unknown'}, not {expected}"
    ranks = set(root.ranks) if root else set()
    if truth["root_ranks"] is not None and ranks != set(truth["root_ranks"]):
        yield f"the ranks are {sorted(ranks)}, not {sorted(truth['root_ranks'])}"


def _read_truth(path: Path) -> dict[str, Any] | None:
    """The truth if it has the form that samples/README.md describes, else None."""
    import yaml

    try:
        with path.open("rb") as file:
            value = yaml.safe_load(file.read(MAX_BYTES))
    except (OSError, yaml.YAMLError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    ranks = value.setdefault("root_ranks", None)
    valid = isinstance(value.get("verdict"), str) and isinstance(value.get("root"), list)
    valid = valid and isinstance(ranks, list | None) and all(isinstance(rank, int) for rank in ranks or ())
    return value if valid else None
