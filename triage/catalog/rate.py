"""How a catalog does on many jobs: what is known, what stays unknown, and where the truth is written down, who is
right.
"""

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
MAX_BYTES = 1 << 16  # of a truth
Ingest = Callable[[Path], Diagnosis]
Report = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Case:
    """One job: its name, its path, and where its truth is written, if it is."""

    name: str
    path: Path
    truth: Path | None = None


@dataclass(frozen=True, slots=True)
class Rated:
    """What came of one job. `verdict` is known, unknown, clean or unreadable (then `headline` says why).

    `agrees` is None without a truth; `disagreement` says what the truth wants instead.
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
    """All jobs; how often each signature was the root cause and in how many jobs it was seen.

    `said` is what people said about stored diagnoses: (signature or cluster, how many agreed, how many said that it is
    wrong).
    """

    jobs: tuple[Rated, ...]
    said: tuple[tuple[str, int, int], ...] = ()

    def verdicts(self) -> dict[str, int]:
        counted = Counter(job.verdict for job in self.jobs)
        return {verdict: counted[verdict] for verdict in ("known", "unknown", "clean", "unreadable")}

    def hits(self) -> list[tuple[str, int, int]]:
        """(signature, jobs in which it is the root, jobs in which it matched), the most frequent first."""
        roots = Counter(job.root for job in self.jobs if job.root)
        seen = Counter(signature for job in self.jobs for signature in job.signatures)
        return sorted(
            ((name, roots[name], count) for name, count in seen.items()), key=lambda row: (-row[1], -row[2], row[0])
        )

    def judged(self) -> tuple[int, int]:
        """How many jobs agree with their truth, and how many have one."""
        return sum(job.agrees is True for job in self.jobs), sum(job.agrees is not None for job in self.jobs)


def rate(directories: Sequence[Path], ingest: Ingest, progress: Report | None = None) -> Rating:
    """Ingest every job under the directories. Raises OptionError when a directory is none or holds no job."""
    cases = [case for directory in directories for case in find(directory)]
    rated = []
    for number, case in enumerate(cases):
        if progress is not None:
            progress(number, len(cases))
        rated.append(_rated(case, ingest))
    return Rating(tuple(rated))


def find(directory: Path) -> list[Case]:
    """The jobs in a directory: each entry is one; an entry (or the directory itself) with a `job` and a truth beside it
    is that job.
    """
    hint = "give a directory in which each sub-directory or file is a job"
    try:
        if _has_truth(directory):
            return [_case(directory)]
        entries = sorted(entry for entry in directory.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise OptionError(f"cannot read {directory}: {error.strerror}", hint=hint) from None
    if not entries:
        raise OptionError(f"{directory} is empty", hint=hint)
    return [_case(entry) for entry in entries]


def _has_truth(directory: Path) -> bool:
    return (directory / TRUTH).is_file() and (directory / JOB).exists()


def _case(entry: Path) -> Case:
    return Case(entry.name, entry / JOB, entry / TRUTH) if _has_truth(entry) else Case(entry.name, entry)


def _rated(case: Case, ingest: Ingest) -> Rated:
    try:
        diagnosis = ingest(case.path)
    except InputError as error:
        return Rated(case.name, "unreadable", headline=str(error), agrees=None if case.truth is None else False)
    root = diagnosis.root_cause
    agrees, disagreement = (None, "") if case.truth is None else _judge(diagnosis, case.truth)
    return Rated(
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


def _judge(diagnosis: Diagnosis, path: Path) -> tuple[bool, str]:
    """By samples/README.md: the verdict is one of those joined by `|`, the root one of `root`, the ranks those of
    `root_ranks`.
    """
    truth = _truth(path)
    if truth is None:
        return False, f"{path} cannot be read as a truth: verdict, root and root_ranks are needed"
    return (False, "; ".join(wrong)) if (wrong := list(_differences(diagnosis, truth))) else (True, "")


def _differences(diagnosis: Diagnosis, truth: dict[str, Any]) -> Iterator[str]:
    root = diagnosis.root_cause
    if diagnosis.verdict not in truth["verdict"].split("|"):
        yield f"the verdict is {diagnosis.verdict}, not {truth['verdict']}"
    if diagnosis.verdict == "clean" or truth["verdict"] == "clean":
        return
    found = root.signature if root else None
    if found not in truth["root"]:
        yield f"the root is {found or 'unknown'}, not {' or '.join(str(name or 'unknown') for name in truth['root'])}"
    ranks = set(root.ranks) if root else set()
    if truth["root_ranks"] is not None and ranks != set(truth["root_ranks"]):
        yield f"the ranks are {sorted(ranks)}, not {sorted(truth['root_ranks'])}"


def _truth(path: Path) -> dict[str, Any] | None:
    """The truth if it has the shape that samples/README.md tells, else None."""
    import yaml

    try:
        with path.open("rb") as file:
            value = yaml.safe_load(file.read(MAX_BYTES))
    except (OSError, yaml.YAMLError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    ranks = value.setdefault("root_ranks", None)
    fits = (
        isinstance(value.get("verdict"), str) and isinstance(value.get("root"), list) and isinstance(ranks, list | None)
    )
    return value if fits and all(isinstance(rank, int) for rank in ranks or ()) else None
