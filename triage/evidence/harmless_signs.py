"""Signs around a line that states a failure that it ended nothing.

Behind it: steps of its writer, a recovery of what it names, a line that goes on, a job that runs. Before it: a command
that asks for an earlier boot, a heading of a document. They count only where no other line shows a failure
(triage.diagnose.survival).
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence

from triage.base.digit_masks import ask_masked_text
from triage.base.lazy_re import lazy_re
from triage.evidence.endings.failure_terms import goes_on
from triage.model import Evidence
from triage.ranks.prefix import ParsedLine
from triage.records.activity import shows_progress
from triage.records.completion import has_hint, read_completion
from triage.records.text import Line, Text

HARMLESS = "harmless"
"""Field of a fact that has such a sign: the sign, as a sentence."""
_KINDS = frozenset(("message", "kernel", "native", "scheduler", "ending", "exception"))
# What the host or the cluster says is of no writer: the ranks may make a step before they fail.
_OF_HOST = frozenset(("kernel", "scheduler"))
_FEWEST_STEPS, _WENT_ON = 2, 5.0
_MOST_FACTS, _NEAR_LINES, _NEXT_LINES, _LINES_BEFORE, _REACH = 40, 60, 2, 6, 1 << 14
_LONGEST, _LONGEST_GLANCE = 400, 1000
_RECOVERED = lazy_re(
    r"(?i)\b(?:ok|up|active|alive|restored|renewed|recovered|(?:re-?)?established|reconnected|connected|succeeded|"
    r"success(?:ful(?:ly)?)?|resumed|resolved|reachable|responding|healthy|ready|online|normal|cleared|complete|"
    r"attached|mounted|pulled|scheduled|started|done)\b"
)
_DENIED = lazy_re(r"(?i)\b(?:not|no|never|un\w+ful|waiting|until|fail\w*|errors?|cannot|if|when|will|lost)\b")
# A job in a table of jobs, a container or server that started, a job submitted only later, a session that goes on.
_RUNS = lazy_re(
    r"\bApplication startup complete\b|\bStarted container\b|\bSuccessfully assigned\b"
    r"|^(?:sbatch: )?Submitted batch job \d|^(?:>>>|In \[\d{1,6}\]:) \S"
    r"|\b\d{1,9}\b[^\n]{0,60} R(?:UNNING)? +(?:\d{1,3}-)?\d{1,3}:\d\d|\s(\d{1,3})/\1 +Running\b|\" 200 OK\b"
)
# What each form of it holds; a session, which begins a line, is told by that.
_RUN_HINTS = ("startup complete", "Started container", "Successfully assigned", "Submitted batch", " R", '" 111 OK')
# What each form of progress holds, in lower case.
_STEP_HINTS = ("step", "iter", "batch", "epoch", "it/s", "s/it", "loss")
_OF_SESSION = lazy_re(r">>> |In \[")
# Names of things have a digit and a letter, or are paths, addresses or quoted.
_NAME = lazy_re(
    r"(?<![\w.])(?=[\w./:@-]{0,40}[A-Za-z])[\w./@-][\w./:@-]{0,80}\d[\w./:@-]{0,80}|\b[\da-f]{4}:[\da-f]{2}:[\da-f]{2}\.\d|"
    r"(?<![\w.])/[\w.-]+/[\w./-]*\w|\b\d{1,3}(?:\.\d{1,3}){3}\b|\"[\w./:-]{3,80}\""
)
# `$ journalctl -b -1`, `[root@n1 ~]# zgrep Xid /var/log/messages.1`, `+ zcat syslog.2.gz`
_COMMAND = lazy_re(r"^(?:[\w@.:~/\[\] -]{0,60}[$#]|\+{1,3}) ?(?=[a-z./])(?P<command>[^\n]{1,300})")
_OF_THE_PAST = lazy_re(
    r"\bjournalctl\b[^\n]*? (?:(?:-\w{0,6}b|--boot)[ =]?-\d|--until\b|-U\b)|^(?:sudo )?z(?:cat|grep|less)\b|"
    r"(?:\.old|\.\d|[.-]20\d{6}|\.gz|/var/crash\S*)(?:\s|$)|\bpstore\b"
)
_HEADING = lazy_re(r"^#{2,6} \S|^```\w{0,10}$|^\.\. code-block::|^(?:Subject|From): ")


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
        dataclasses.replace(fact, fields={**fact.fields, HARMLESS: sign})
        if sign and (fact.text, fact.origin.rank) not in unmarked
        else fact
        for fact, sign in zip(facts, signs, strict=True)
    ]


def _may_be_harmless(fact: Evidence) -> bool:
    return fact.kind in _KINDS and fact.count <= 1


class _LinesBehind:
    """The lines behind the facts of a source, which are read once for facts that stand near each other."""

    def __init__(self, text: Text, offsets: Sequence[int]) -> None:
        self._text = text
        self._regions: list[tuple[int, int]] = []
        for offset in sorted(offsets):
            start = self._regions.pop()[0] if self._regions and offset < self._regions[-1][1] else offset
            self._regions.append((start, offset + _REACH))
        self._lines: dict[int, tuple[list[Line], list[int], list[int]]] = {}

    def near(self, fact: Evidence) -> list[ParsedLine]:
        """Return the next lines behind a fact, and of those further behind the ones that may be a sign."""
        if fact.end <= fact.offset:
            return []
        lines, offsets, signs = self._read(fact.offset)
        first = bisect.bisect_left(offsets, fact.end)
        stop = min(first + _NEAR_LINES, bisect.bisect_left(offsets, fact.offset + _REACH))
        second = min(first + _NEXT_LINES, stop)
        further = signs[bisect.bisect_left(signs, second) : bisect.bisect_left(signs, stop)]
        return [lines[number].parsed for number in (*range(first, second), *further)]

    def _read(self, offset: int) -> tuple[list[Line], list[int], list[int]]:
        """Return the lines of a region, their offsets, and the numbers of those that may be a sign."""
        number = bisect.bisect_right(self._regions, (offset, math.inf)) - 1
        if number not in self._lines:
            start, end = self._regions[number]
            lines = list(self._text.lines_from(start, end - start))
            signs = [index for index, line in enumerate(lines) if _may_be_sign(line.raw)]
            self._lines[number] = lines, [line.offset for line in lines], signs
        return self._lines[number]


def _find_sign(fact: Evidence, text: Text, lines: _LinesBehind) -> str:
    return _find_sign_behind(fact, lines.near(fact)) or _find_sign_before(fact, text)


def _find_sign_behind(fact: Evidence, behind: Sequence[ParsedLine]) -> str:
    if any(_shows_a_run(parsed.text[:_LONGEST]) for parsed in behind):
        return "A later line shows that a job or a program runs"
    if _recovers(fact, behind):
        return "A later line shows that what it names works again"
    if _makes_steps(fact, behind):
        return "Steps follow its line"
    if any(_is_same_writer(fact, parsed) and goes_on(parsed.text) for parsed in behind[:_NEXT_LINES]):
        return "The next lines say that the program goes on"
    return ""


def _may_be_sign(raw: str) -> bool:
    """Quick check of a line with its prefix: most lines behind a failure are no sign, and need not be parsed."""
    return len(raw) > _LONGEST_GLANCE or _has_hint_of_sign(raw)


@ask_masked_text
def _has_hint_of_sign(raw: str) -> bool:
    lower = raw.lower()
    return (
        any(hint in raw for hint in _RUN_HINTS)
        or any(hint in lower for hint in _STEP_HINTS)
        or _OF_SESSION.search(raw) is not None
        or _RECOVERED.search(raw) is not None
        or has_hint(raw.encode("utf-8", "surrogatepass"))
    )


def _shows_a_run(text: str) -> bool:
    return _may_show_a_run(text) and _RUNS.search(text) is not None


@ask_masked_text
def _may_show_a_run(text: str) -> bool:
    return any(hint in text for hint in _RUN_HINTS) or _OF_SESSION.match(text) is not None


def _is_same_writer(fact: Evidence, parsed: ParsedLine) -> bool:
    return fact.origin.rank is None or parsed.origin.rank in (None, fact.origin.rank)


def _makes_steps(fact: Evidence, behind: Iterable[ParsedLine]) -> bool:
    time = fact.origin.time
    steps = [parsed for parsed in behind if _is_same_writer(fact, parsed) and _is_progress(parsed.text[:_LONGEST])]
    is_of_nobody = fact.kind in _OF_HOST or (fact.kind == "exception" and fact.origin.rank is None)
    if not is_of_nobody or len(steps) >= _FEWEST_STEPS:
        return bool(steps)
    times = [step.origin.time for step in steps if step.origin.time is not None]
    return time is not None and any(later - time >= _WENT_ON for later in times)


def _is_progress(text: str) -> bool:
    scope, rank = read_completion(text)
    return shows_progress(text) or (scope != "" and rank is None)


def _recovers(fact: Evidence, behind: Iterable[ParsedLine]) -> bool:
    recoveries = [parsed.text[:_LONGEST] for parsed in behind if _states_recovery(parsed.text[:_LONGEST])]
    names = set(_NAME.findall(fact.text[:_LONGEST])) if recoveries else set()
    return any(not names.isdisjoint(_NAME.findall(text)) for text in recoveries)


@ask_masked_text
def _states_recovery(text: str) -> bool:
    return _RECOVERED.search(text) is not None and _DENIED.search(text) is None


def _find_sign_before(fact: Evidence, text: Text) -> str:
    lines = (line.raw for line in itertools.islice(text.lines_before(fact.offset, _REACH), _LINES_BEFORE))
    for line in lines:
        if (match := _COMMAND.match(line[:_LONGEST])) is not None:
            is_past = _OF_THE_PAST.search(match["command"]) is not None
            return "The command above it asks for an earlier boot or an old log" if is_past else ""
        if _HEADING.match(line[:_LONGEST]):
            return "It stands in a document or a mail"
    return ""
