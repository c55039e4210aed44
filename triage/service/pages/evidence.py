"""The evidence on the page of an incident: numbered for permalinks, with the stored lines around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triage.model import Diagnosis, Evidence, Finding
from triage.render import phrases
from triage.render.sanitize import clip

MAX_ROOT_FACTS, MAX_FINDING_FACTS, MAX_FACTS = 12, 3, 60
MAX_LINES, MAX_LINE = 80, 2000
LINES_AROUND, MAX_LINES_AROUND = 12, 30  # shown at first, and stored
CRASH_KINDS = ("core", "fatal-python", "terminate", "native", "backtrace", "crash", "stack")
Excerpts = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a log with its number in the file. `own`: it belongs to the evidence itself."""

    number: int
    text: str
    own: bool


@dataclass(frozen=True, slots=True)
class Fact:
    """One piece of evidence: `anchor` is its permalink, `part` its finding's role, `around` the lines around it."""

    anchor: str
    finding: str
    part: str
    place: str
    kind: str
    rank: int | None
    host: str
    time: float | None
    count: int
    text: str
    around: tuple[Row, ...]


def list_facts(diagnosis: Diagnosis, excerpts: Excerpts, around: int = LINES_AROUND) -> tuple[Fact, ...]:
    """Return a few facts of each finding, the root cause's first. `excerpts` are the stored lines by source name."""
    chosen = [
        (part, finding, fact)
        for part, finding in list_findings(diagnosis)
        for fact in finding.evidence[: MAX_ROOT_FACTS if part == "root" else MAX_FINDING_FACTS]
    ]
    return tuple(
        Fact(
            anchor=f"e{number}",
            finding=finding.signature or finding.cluster or finding.title,
            part=part,
            place=phrases.format_place(fact, diagnosis),
            kind=fact.kind,
            rank=fact.origin.rank,
            host=fact.origin.host or "",
            time=fact.origin.time,
            count=fact.count,
            text=shorten(fact.excerpt if len(fact.excerpt) > len(fact.text) else fact.text),
            around=_lines_around(fact, excerpts.get(fact.source, ()), around),
        )
        for number, (part, finding, fact) in enumerate(chosen[:MAX_FACTS], 1)
    )


def list_findings(diagnosis: Diagnosis) -> Iterable[tuple[str, Finding]]:
    """Yield each finding with its part: root, caused, confirmed, considered, unknown, noise."""
    if diagnosis.root_cause is not None:
        yield "root", diagnosis.root_cause
    groups = phrases.group_findings(diagnosis)
    for part, findings in (
        ("caused", groups.caused),
        ("confirmed", groups.confirmed),
        ("considered", [*groups.considered, *groups.aftermath]),
        ("unknown", phrases.other_unknowns(diagnosis)),
        ("noise", groups.noise),
    ):
        yield from ((part, finding) for finding in findings)


def find_crash(facts: Sequence[Fact]) -> Fact | None:
    """Return the fact that shows where a process crashed, the root cause's first; exceptions do not count."""
    crashes = [fact for fact in facts if fact.kind in CRASH_KINDS and "\n" in fact.text]
    return next(iter([*[fact for fact in crashes if fact.part == "root"], *crashes]), None)


def shorten(text: str) -> str:
    """Return a text without control characters; many lines and long lines lose their middle."""
    return "\n".join(clip(line, MAX_LINE) for line in phrases.shorten_lines(text, MAX_LINES))


def _lines_around(fact: Evidence, excerpts: Sequence[Mapping[str, Any]], around: int) -> tuple[Row, ...]:
    """Return the stored lines before, in and after the fact."""
    first = fact.line or 0
    last = max(first, fact.end_line or first)
    for excerpt in excerpts:
        start, lines = excerpt["line"], excerpt["lines"]
        if start <= first < start + len(lines):
            numbers = range(max(start, first - around), min(start + len(lines), last + around + 1))
            return tuple(
                Row(number, clip(lines[number - start], MAX_LINE), first <= number <= last) for number in numbers
            )
    return ()
