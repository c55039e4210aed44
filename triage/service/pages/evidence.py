"""The facts of an incident as a page shows them: numbered for permalinks, with the lines around where they were stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triage.model import Diagnosis, Evidence, Finding
from triage.render import words
from triage.render.safe import clip, safe

OF_ROOT, OF_ONE, IN_ALL = 12, 3, 60
LINES, CHARACTERS = 80, 2000
CRASHES = ("core", "fatal-python", "terminate", "native", "backtrace", "crash", "stack")


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a log. `number` is its place in the file, None where that is not known; `own`: it is the fact itself, not around it."""

    number: int | None
    text: str
    own: bool


@dataclass(frozen=True, slots=True)
class Fact:
    """One piece of evidence. `anchor` is its permalink; `text` is what the readers made of it, `around` its place in the file."""

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


def facts(diagnosis: Diagnosis, contexts: Mapping[tuple[str, int], Mapping[str, Any]]) -> tuple[Fact, ...]:
    """Those of the root cause first, then of what it explains, then the others; few of each."""
    found: list[Fact] = []
    for part, finding in parts(diagnosis):
        for fact in finding.evidence[: OF_ROOT if part == "root" else OF_ONE]:
            if len(found) < IN_ALL:
                found.append(_fact(f"e{len(found) + 1}", part, finding, fact, diagnosis, contexts))
    return tuple(found)


def parts(diagnosis: Diagnosis) -> Iterable[tuple[str, Finding]]:
    """Every finding with its part in the story: root, caused, confirmed, considered, unknown, noise."""
    if diagnosis.root_cause is not None:
        yield "root", diagnosis.root_cause
    groups = words.groups(diagnosis)
    for part, members in (("caused", groups.caused), ("confirmed", groups.confirmed), ("considered", groups.considered)):
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
    anchor: str, part: str, finding: Finding, fact: Evidence, diagnosis: Diagnosis, contexts: Mapping[tuple[str, int], Mapping[str, Any]]
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
        around=_around(fact, contexts.get((fact.source, fact.offset))),
    )


def shown(text: str) -> str:
    """Many lines and long lines give up their middle."""
    rows = safe(text).strip("\n").split("\n")
    if len(rows) > LINES:
        rows = [*rows[: LINES // 3], f"… {words.plural(len(rows) - LINES, 'more line')} …", *rows[LINES // 3 - LINES :]]
    return "\n".join(clip(row, CHARACTERS) for row in rows)


def _around(fact: Evidence, context: Mapping[str, Any] | None) -> tuple[Row, ...]:
    """The lines before, the fact, the lines after, with their numbers in the file."""
    if context is None or fact.line is None:
        return ()
    before, after = context["before"], context["after"]
    last = fact.end_line if fact.end_line is not None and fact.end_line >= fact.line else fact.line
    own = fact.text.split("\n")
    numbers: list[int | None] = [fact.line, *[None] * (len(own) - 1)]
    if len(own) == last - fact.line + 1:
        numbers = list(range(fact.line, last + 1))
    return (
        *(Row(fact.line - len(before) + place, text, False) for place, text in enumerate(before)),
        *(Row(number, clip(text, CHARACTERS), True) for number, text in zip(numbers[:LINES], own[:LINES], strict=True)),
        *(Row(last + 1 + place, text, False) for place, text in enumerate(after)),
    )
