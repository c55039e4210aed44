"""The evidence on the page of an incident: numbered for permalinks, with the stored lines around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from triage.base.lazy_re import lazy_re
from triage.model import Diagnosis, Evidence, Finding
from triage.render import phrases
from triage.render.sanitize import clip

MAX_ROOT_FACTS, MAX_FINDING_FACTS, MAX_FACTS = 12, 3, 60
MAX_LINES, MAX_LINE = 80, 2000
LINES_AROUND, MAX_LINES_AROUND = 12, 30  # shown at first, and stored
CRASH_KINDS = ("core", "fatal-python", "terminate", "native", "backtrace", "crash", "stack")
MAX_QUOTED = 8  # lines at the top of the page
# Undecodable bytes together, or NUL before another control character: a log of text may have single ones.
_NOT_TEXT = lazy_re("\ufffd\ufffd|[\x00-\x08\x0e-\x1a\x1c-\x1f]{2}")
Excerpts = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a log with its number in the file. `own`: it belongs to the evidence itself."""

    number: int
    text: str
    own: bool


@dataclass(frozen=True, slots=True)
class Fact:
    """One piece of evidence: `anchor` is its permalink, `part` its finding's role, `around` the lines around it.

    `quote` is its text for the top of the page. `inferred`: no line states it, and `place` only shows what it rests on.
    `in_context`: the lines around it contain the whole text. `above` is the anchor of an earlier fact that shows its
    lines; `is_repeated`: also as its text.
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
    quote: str
    inferred: bool
    in_context: bool
    around: tuple[Row, ...]
    above: str = ""
    is_repeated: bool = False


def list_facts(diagnosis: Diagnosis, excerpts: Excerpts, around: int = LINES_AROUND) -> tuple[Fact, ...]:
    """Return a few facts of each finding, the root cause's first. `excerpts` are the stored lines by source name."""
    chosen = [
        (part, finding, fact)
        for part, finding in list_findings(diagnosis)
        for fact in phrases.distinct_evidence(finding)[: MAX_ROOT_FACTS if part == "root" else MAX_FINDING_FACTS]
    ]
    facts: list[Fact] = []
    for number, (part, finding, fact) in enumerate(chosen[:MAX_FACTS], 1):
        made = _make_fact(f"e{number}", part, finding, fact, diagnosis, _lines_around(fact, excerpts, around))
        earlier = [other for other, (_, _, source) in zip(facts, chosen, strict=False) if source.source == fact.source]
        facts.append(_refer_to_earlier(made, earlier))
    return tuple(facts)


def _refer_to_earlier(fact: Fact, earlier: Sequence[Fact]) -> Fact:
    """Return the fact without its lines if an earlier one of its file shows them."""
    for other in earlier:
        if (other.place, other.text) == (fact.place, fact.text):
            return replace(fact, around=(), above=other.anchor, is_repeated=True)
    own = {row.number for row in fact.around if row.own}
    for other in earlier:
        if own and own <= {row.number for row in other.around}:
            return replace(fact, around=(), above=other.anchor)
    return fact


def _make_fact(
    anchor: str, part: str, finding: Finding, fact: Evidence, diagnosis: Diagnosis, around: tuple[Row, ...]
) -> Fact:
    text, inferred = _whole_text(fact), fact.kind == "inference"
    marked = _mark_lines(around, text.split("\n"))
    return Fact(
        anchor=anchor,
        finding=finding.signature or finding.cluster or finding.title,
        part=part,
        place=phrases.format_place(fact, diagnosis),
        kind=fact.kind,
        rank=phrases.writer_rank(fact),
        host="" if inferred else fact.origin.host or "",
        time=fact.origin.time,
        count=fact.count,
        text=shorten(text),
        quote=shorten(fact.text) if inferred else "\n".join(phrases.shorten_lines(text, MAX_QUOTED, 1)),
        inferred=inferred,
        in_context=marked is not None,
        around=around if marked is None else marked,
    )


def _whole_text(fact: Evidence) -> str:
    """Return the lines of a fact. An inference shows its sentence, or what it compares in a dump."""
    lines = fact.excerpt.count("\n") + 1
    if fact.kind == "inference" and not 1 < lines <= MAX_LINES:
        return fact.text
    return fact.excerpt if len(fact.excerpt) > len(fact.text) else fact.text


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


def _lines_around(fact: Evidence, excerpts: Excerpts, around: int) -> tuple[Row, ...]:
    """Return the stored lines before, in and after the fact; none of a dump or of a document that is one fact."""
    first = fact.line or 0
    last = max(first, fact.end_line or first)
    if last - first >= MAX_LINES:
        return ()
    before = max(around, _whole_text(fact).count("\n"))  # its line may be the last one of a traceback
    for excerpt in excerpts.get(fact.source, ()):
        start, lines = excerpt["line"], excerpt["lines"]
        if any(_NOT_TEXT.search(line) for line in lines):
            return ()
        if start <= first < start + len(lines):
            numbers = range(max(start, first - before), min(start + len(lines), last + around + 1))
            return tuple(
                Row(number, clip(lines[number - start], MAX_LINE), first <= number <= last) for number in numbers
            )
    return ()


def _mark_lines(rows: Sequence[Row], lines: Sequence[str]) -> tuple[Row, ...] | None:
    """Return the rows with those of these lines as own, None if they are not all there with the same prefix."""
    last = max((place for place, row in enumerate(rows) if row.own), default=None)
    if last is None or not rows[last].text.endswith(lines[-1]):
        return None
    prefix = rows[last].text.removesuffix(lines[-1])
    own, place = {last}, last
    for line in lines[-2::-1]:
        place = next((before for before in range(place - 1, -1, -1) if rows[before].text == prefix + line), -1)
        if place < 0:
            return None
        own.add(place)
    return tuple(replace(row, own=row.own or place in own) for place, row in enumerate(rows))
