"""Signs around a line that states a failure that it ended nothing.

Behind it: steps of its writer, a recovery of what it names, a line that goes on, a job that runs. Before it: a command
that asks for an earlier boot, a heading of a document. They count only where no other line shows a failure
(triage.diagnose.survival).
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter

from triage.base.digit_masks import ask_masked_text
from triage.base.lazy_dataclass import dataclass, replace
from triage.base.lazy_re import lazy_re
from triage.base.masked_re import masked_re
from triage.evidence.endings.failure_terms import goes_on
from triage.evidence.learn_job import is_identity_line
from triage.model import Evidence
from triage.ranks.grammar import Table
from triage.ranks.prefix import ParsedLine
from triage.records.activity import shows_progress
from triage.records.completion import has_hint_in_text, read_completion
from triage.records.text import Line, Text

HARMLESS = "harmless"
"""Field of a fact that has such a sign: the sign, as a sentence."""
_KINDS = frozenset(("message", "kernel", "native", "scheduler", "ending", "exception"))
# What the host or the cluster says is of no writer: the ranks may make a step before they fail.
_OF_HOST = frozenset(("kernel", "scheduler"))
_FEWEST_STEPS, _WENT_ON = 2, 5.0
_MOST_FACTS, _NEAR_LINES, _NEXT_LINES, _LINES_BEFORE, _REACH = 40, 60, 2, 6, 1 << 14
_LONGEST, _LONGEST_KEPT = 400, 1 << 11
_RECOVERED = lazy_re(
    r"(?i)\b(?:ok|up|active|alive|restored|renewed|recovered|(?:re-?)?established|reconnected|connected|succeeded|"
    r"success(?:ful(?:ly)?)?|resumed|resolved|reachable|responding|healthy|ready|online|normal|cleared|complete|"
    r"attached|mounted|pulled|scheduled|started|done)\b"
)
_DENIED = lazy_re(r"(?i)\b(?:not|no|never|un\w+ful|waiting|until|fail\w*|errors?|cannot|if|when|will|lost)\b")
# A job in a table of jobs, a container or server that started, a job submitted only later, a session that goes on.
_RUNS = masked_re(
    r"\bApplication startup complete\b|\bStarted container\b|\bSuccessfully assigned\b"
    r"|^(?:sbatch: )?Submitted batch job \d|^(?:>>>|In \[\d{1,6}\]:) \S"
    r"|\b\d{1,9}\b[^\n]{0,60} R(?:UNNING)? +(?:\d{1,3}-)?\d{1,3}:\d\d|\s(\d{1,3})/\1 +Running\b|\" 200 OK\b"
)
# Names of things have a digit and a letter, or are paths, addresses or quoted.
_NAME = lazy_re(
    r"(?<![\w.])(?=[\w./:@-]{0,40}[A-Za-z])[\w./@-][\w./:@-]{0,80}\d[\w./:@-]{0,80}|\b[\da-f]{4}:[\da-f]{2}:[\da-f]{2}\.\d|"
    r"(?<![\w.])/[\w.-]+/[\w./-]*\w|\b\d{1,3}(?:\.\d{1,3}){3}\b|\"[\w./:-]{3,80}\""
)
# `$ journalctl -b -1`, `[root@n1 ~]# zgrep Xid /var/log/messages.1`, `+ zcat syslog.2.gz`
_COMMAND = masked_re(r"^(?:[\w@.:~/\[\] -]{0,60}[$#]|\+{1,3}) ?(?=[a-z./])(?P<command>[^\n]{1,300})")
_OF_THE_PAST = lazy_re(
    r"\bjournalctl\b[^\n]*? (?:(?:-\w{0,6}b|--boot)[ =]?-\d|--until\b|-U\b)|^(?:sudo )?z(?:cat|grep|less)\b|"
    r"(?:\.old|\.\d|[.-]20\d{6}|\.gz|/var/crash\S*)(?:\s|$)|\bpstore\b"
)
_HEADING = masked_re(r"^#{2,6} \S|^```\w{0,10}$|^\.\. code-block::|^(?:Subject|From): ")


def mark_harmless(facts: Sequence[Evidence], text: Text) -> list[Evidence]:
    """Return the facts of a source; single lines with a sign that they ended nothing have the field.

    A text that occurs again, without a sign, has none. Of many failures some end the job, so none is marked.
    """
    if len(facts) > _MOST_FACTS:
        return list(facts)
    lines = _LinesBehind(text, [fact.offset for fact in facts if _may_be_harmless(fact)])
    signs = [_find_sign(fact, text, lines) if _may_be_harmless(fact) else "" for fact in facts]
    unmarked = {(fact.text, fact.origin.rank) for fact, sign in zip(facts, signs, strict=True) if not sign}
    return [
        replace(fact, fields={**fact.fields, HARMLESS: sign})
        if sign and (fact.text, fact.origin.rank) not in unmarked
        else fact
        for fact, sign in zip(facts, signs, strict=True)
    ]


def _may_be_harmless(fact: Evidence) -> bool:
    return fact.kind in _KINDS and fact.count <= 1 and not is_identity_line(fact)


@dataclass(frozen=True, slots=True)
class _Glance:
    """What a line may show, by all but its digits: that a job runs, that something recovered, or a step."""

    may_show_a_run: bool
    states_recovery: bool
    may_be_progress: bool

    @property
    def may_be_sign(self) -> bool:
        """May it show any of these?"""
        return self.may_show_a_run or self.states_recovery or self.may_be_progress


@dataclass(frozen=True, slots=True)
class _Region:
    """The lines behind facts that stand near each other, their offsets, and those that may be signs, by their index."""

    line_at: Callable[[int], Line]
    offsets: Sequence[int]
    signs: Sequence[tuple[int, _Glance]]


def _no_line(number: int) -> Line:
    raise IndexError(number)


@dataclass(frozen=True, slots=True)
class _Behind:
    """The lines right behind a fact, and those near behind it that may be signs, by their index in a region."""

    next_lines: Sequence[Line]
    signs: Sequence[tuple[int, _Glance]]
    line_at: Callable[[int], Line]

    def lines_that(self, may_be: Callable[[_Glance], bool]) -> Iterator[Line]:
        """Yield the lines near behind that may be signs of a kind; the others need not be parsed."""
        return (self.line_at(number) for number, glance in self.signs if may_be(glance))


class _LinesBehind:
    """The lines behind the facts of a source, which are read once for facts that stand near each other."""

    def __init__(self, text: Text, offsets: Sequence[int]) -> None:
        self._text = text
        self._borders: list[tuple[int, int]] = []
        for offset in sorted(offsets):
            start = self._borders.pop()[0] if self._borders and offset < self._borders[-1][1] else offset
            self._borders.append((start, offset + _REACH))
        self._regions: dict[int, _Region] = {}

    def near(self, fact: Evidence) -> _Behind:
        """Return the lines right behind a fact, and those near behind it that may be signs."""
        if fact.end <= fact.offset:
            return _Behind((), (), _no_line)
        region = self._read(fact.offset)
        first = bisect.bisect_left(region.offsets, fact.end)
        stop = min(first + _NEAR_LINES, bisect.bisect_left(region.offsets, fact.offset + _REACH))
        near = region.signs[_bisect_signs(region.signs, first) : _bisect_signs(region.signs, stop)]
        next_lines = [region.line_at(number) for number in range(first, min(first + _NEXT_LINES, stop))]
        return _Behind(next_lines, near, region.line_at)

    def _read(self, offset: int) -> _Region:
        """Return the region in which a fact stands."""
        number = bisect.bisect_right(self._borders, (offset, math.inf)) - 1
        if number not in self._regions:
            start, end = self._borders[number]
            self._regions[number] = _read_region(self._text, start, end - start)
        return self._regions[number]


def _read_region(text: Text, start: int, reach: int) -> _Region:
    places = text.places_from(start, reach)
    if places is None:
        lines = list(text.lines_from(start, reach))
        return _Region(lines.__getitem__, [line.offset for line in lines], _list_signs(map(_glance_at, lines)))
    glances = {mask: _glance_of(mask, text.layout.table) for mask in {place[1] for place in places}}
    signs = _list_signs(glances[place[1]] for place in places)
    return _Region(lambda index: text.line_at(places[index]), [place[0] for place in places], signs)


def _list_signs(glances: Iterable[_Glance]) -> list[tuple[int, _Glance]]:
    return [(index, glance) for index, glance in enumerate(glances) if glance.may_be_sign]


def _bisect_signs(signs: Sequence[tuple[int, _Glance]], index: int) -> int:
    return bisect.bisect_left(signs, index, key=lambda sign: sign[0])


def _find_sign(fact: Evidence, text: Text, lines: _LinesBehind) -> str:
    return _find_sign_behind(fact, lines.near(fact)) or _find_sign_before(fact, text)


def _find_sign_behind(fact: Evidence, behind: _Behind) -> str:
    if any(_RUNS.search(_text_of(line)) for line in behind.lines_that(attrgetter("may_show_a_run"))):
        return "A later line shows that a job or a program runs"
    if _recovers(fact, [_text_of(line) for line in behind.lines_that(attrgetter("states_recovery"))]):
        return "A later line shows that what it names works again"
    if _makes_steps(fact, (line.parsed for line in behind.lines_that(attrgetter("may_be_progress")))):
        return "Steps follow its line"
    if any(_is_same_writer(fact, line.parsed) and goes_on(line.parsed.text) for line in behind.next_lines):
        return "The next lines say that the program goes on"
    return ""


def _text_of(line: Line) -> str:
    return line.parsed.text[:_LONGEST]


def _glance_at(line: Line) -> _Glance:
    """Return what a line may show: most lines behind a failure are no sign, and need not be parsed."""
    if line.outer is not None:
        return _glance_at_text(line.parsed.text)
    return _glance_of(line.mask, line.table)


def _glance_of(mask: bytes, table: Table) -> _Glance:
    ask = _glance_at_mask if len(mask) <= _LONGEST_KEPT else _glance_at_mask.__wrapped__
    return ask(mask, table)


@functools.lru_cache(1 << 12)
def _glance_at_mask(mask: bytes, table: Table) -> _Glance:
    return _glance_at_text(Line(0, mask, 1970, table).parsed.text)


def _glance_at_text(text: str) -> _Glance:
    text = text[:_LONGEST]
    return _Glance(_RUNS.may_match(text), _states_recovery(text), shows_progress(text) or has_hint_in_text(text))


def _is_same_writer(fact: Evidence, parsed: ParsedLine) -> bool:
    return fact.origin.rank is None or parsed.origin.rank in (None, fact.origin.rank)


def _makes_steps(fact: Evidence, behind: Iterable[ParsedLine]) -> bool:
    """Does the writer make steps behind the fact? `behind` are the lines that may be some."""
    time = fact.origin.time
    steps = (parsed for parsed in behind if _is_same_writer(fact, parsed) and _is_progress(parsed.text[:_LONGEST]))
    if fact.kind not in _OF_HOST and not (fact.kind == "exception" and fact.origin.rank is None):
        return next(steps, None) is not None
    for number, step in enumerate(steps, 1):
        later = step.origin.time
        if number >= _FEWEST_STEPS or (time is not None and later is not None and later - time >= _WENT_ON):
            return True
    return False


def _is_progress(text: str) -> bool:
    scope, rank = read_completion(text)
    return shows_progress(text) or (scope != "" and rank is None)


def _recovers(fact: Evidence, recoveries: Sequence[str]) -> bool:
    """Does a line that states a recovery name what the fact names?"""
    names = set(_NAME.findall(fact.text[:_LONGEST])) if recoveries else set()
    return any(not names.isdisjoint(_NAME.findall(text)) for text in recoveries)


@ask_masked_text
def _states_recovery(text: str) -> bool:
    return _RECOVERED.search(text) is not None and _DENIED.search(text) is None


def _find_sign_before(fact: Evidence, text: Text) -> str:
    lines = (line.raw for line in itertools.islice(text.lines_before(fact.offset, _REACH), _LINES_BEFORE))
    for line in lines:
        if not _may_be_sign_before(line[:_LONGEST]):
            continue
        if (match := _COMMAND.search(line[:_LONGEST])) is not None:
            is_past = _OF_THE_PAST.search(match["command"]) is not None
            return "The command above it asks for an earlier boot or an old log" if is_past else ""
        if _HEADING.search(line[:_LONGEST]):
            return "It stands in a document or a mail"
    return ""


@ask_masked_text
def _may_be_sign_before(text: str) -> bool:
    return _COMMAND.may_match(text) or _HEADING.may_match(text)
