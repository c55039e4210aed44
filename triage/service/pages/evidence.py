"""The facts of an incident as a page shows them: numbered for permalinks, with the lines around where they were stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triage.model.diagnosis import Diagnosis, Finding
from triage.model.evidence import Evidence
from triage.render import words
from triage.render.safe import clip, safe

OF_ROOT, OF_ONE, IN_ALL = 12, 3, 60
LINES, CHARACTERS = 80, 2000
AROUND, FAR = 12, 30  # lines before and after a fact: as shown, and as many as are kept
CRASHES = ("core", "fatal-python", "terminate", "native", "backtrace", "crash", "stack")


Kept = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a log with its number in the file; `own`: it is the fact itself, not around it."""

    number: int
    text: str
    own: bool


@dataclass(frozen=True, slots=True)
class Fact:
    """One piece of evidence. `anchor` is its permalink; `text` is what the readers made of it, `around` its place in
    the file.
    """

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


def facts(diagnosis: Diagnosis, kept: Kept, around: int = AROUND) -> tuple[Fact, ...]:
    """Those of the root cause first, then of what it explains, then the others; few of each. `kept` are parts of the
    files by their names.
    """
    found: list[Fact] = []
    for part, finding in parts(diagnosis):
        for fact in finding.evidence[: OF_ROOT if part == "root" else OF_ONE]:
            if len(found) < IN_ALL:
                found.append(
                    _fact(
                        f"e{len(found) + 1}",
                        part,
                        finding,
                        fact,
                        diagnosis,
                        _around(fact, kept.get(fact.source, ()), around),
                    )
                )
    return tuple(found)


def parts(diagnosis: Diagnosis) -> Iterable[tuple[str, Finding]]:
    """Every finding with its part in the story: root, caused, confirmed, considered, unknown, noise."""
    if diagnosis.root_cause is not None:
        yield "root", diagnosis.root_cause
    groups = words.groups(diagnosis)
    for part, members in (
        ("caused", groups.caused),
        ("confirmed", groups.confirmed),
        ("considered", groups.considered),
    ):
        yield from ((part, finding) for finding in members)
    yield from (("unknown", finding) for finding in words.others(diagnosis))
    yield from (("noise", finding) for finding in groups.noise)


def called(finding: Finding) -> str:
    """What a finding is called in links and pictures."""
    return finding.signature or finding.cluster or finding.title


def crash(found: Sequence[Fact]) -> Fact | None:
    """The fact that shows where a process crashed, the root cause's before others'; an exception is not one."""
    native = [fact for fact in found if fact.kind in CRASHES and "\n" in fact.text]
    return next(iter([*[fact for fact in native if fact.part == "root"], *native]), None)


def _fact(
    anchor: str, part: str, finding: Finding, fact: Evidence, diagnosis: Diagnosis, around: tuple[Row, ...]
) -> Fact:
    return Fact(
        anchor=anchor,
        finding=called(finding),
        part=part,
        place=words.place(fact, diagnosis),
        kind=fact.kind,
        rank=fact.origin.rank,
        host=fact.origin.host or "",
        time=fact.origin.time,
        count=fact.count,
        text=shown(fact.excerpt if len(fact.excerpt) > len(fact.text) else fact.text),
        around=around,
    )


def shown(text: str) -> str:
    """Many lines and long lines give up their middle."""
    rows = safe(text).strip("\n").split("\n")
    if len(rows) > LINES:
        rows = [*rows[: LINES // 3], f"… {words.plural(len(rows) - LINES, 'more line')} …", *rows[LINES // 3 - LINES :]]
    return "\n".join(clip(row, CHARACTERS) for row in rows)


def _around(fact: Evidence, parts: Sequence[Mapping[str, Any]], around: int) -> tuple[Row, ...]:
    """The lines of the file before, in and after the fact, as far as they were kept."""
    first = fact.line or 0
    last = max(first, fact.end_line or first)
    for part in parts:
        begin, rows = part["line"], part["lines"]
        if begin <= first <= begin + len(rows) - 1:
            near = range(max(begin, first - around), min(begin + len(rows), last + around + 1))
            return tuple(
                Row(number, clip(rows[number - begin], CHARACTERS), first <= number <= last) for number in near
            )
    return ()
