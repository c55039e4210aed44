"""Failures that a writer survives: a line that quotes one, or an error that is older than the steps of its rank."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import field

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.diagnose.candidates import Candidate
from triage.diagnose.other_programs import name_other_program
from triage.evidence.described_pods import ENDED_LATER
from triage.evidence.endings.classification import UNLIKE, classify
from triage.evidence.endings.failure_terms import warns
from triage.evidence.endings.logger_levels import read_level
from triage.evidence.harmless_signs import HARMLESS
from triage.evidence.provoked import PROVOKED
from triage.model import Evidence, ExceptionDetail, Origin
from triage.ranks.sole_ranks import name_process
from triage.records.activity import Activity

FEWEST_STEPS = 2
"""So many lines with a step must follow what a rank survives."""
WENT_ON = 5.0
"""Seconds by which timestamped steps of a rank must be later than its error in another file."""
# Logs without a time zone may be half hours apart; the last step may be as long before the error as a timeout.
_ZONE, _TIMEOUT, _TOLERANCE = 1800.0, 700.0, 60.0
_LONGEST = 2000
_QUOTED = lazy_re(
    r"(?<!\w)'[^'\n]{8,800}'(?!\w)|\"[^\"\n]{8,800}\"|`[^`\n]{8,800}`|“[^”\n]{8,800}”|«[^»\n]{8,800}»|"
    r"^(?:> |\| )[^\n]{8,800}"
)
# An announcement: `on "Fatal Python error: …" a traceback is written`.
_CONDITION = lazy_re(r"(?i)\b(?:on|upon|if|when|whenever) (?:an? |the )?[\"'`“]")
# What a program says that goes on after a failure, or only speaks of one; and what it says where it does not go on.
_GOES_ON = lazy_re(
    r"(?i)\b(?:retrying|(?:will|going to) (?:retry|try again)|retry needed|trying again|skipp(?:ed|ing)|"
    r"(?:ignor|lower|disabl)ing|ignored|config(?:uration)? (?:dropped|left out)|"
    r"attempt \d{1,3} ?(?:/|of) ?\d{1,3}|falling back|fell back|continuing|entering retry loop|(?:is|as) expected)\b|"
    r"\bexpected[,)]|\bif you (?:see|get|hit|encounter)\b|"
    r"\b(?:previous|earlier|last|yesterday's|last (?:night|week|month)'s) (?:attempt|run|job|try)\b.{0,40}"
    r"\b(?:ended|failed|died|exited|crashed)\b"
)
# What a warning says of how the program goes on without what failed.
_WITHOUT = lazy_re(
    r"(?i)\b(?:will (?:now |only |just )?(?:operate|run|proceed|continue|use|be (?:disabled|ignored|skipped|used))|"
    r"(?:switch|revert|default|degrad|resort)(?:s|ing|ed)? to)\b|\binstead[.!]?$"
)
# A person asks; a program asks too (`did you forget …?`), but not these.
_QUESTION = lazy_re(
    r"(?i)\b(?:is (?:that|this|it) (?:something|a|the|normal|expected|known)|"
    r"(?:has|does|did|can|could) (?:any|some)(?:one|body)|anyone (?:seen|else|know\w*)|what does|"
    r"why (?:do|does|did|is|are|am)|should (?:i|we)|how (?:often|do i|can i|can we))\b[^?\n]{0,200}\?\s*$"
)
_OBJECTS = ("{", "[{", "[[", '["', "['")  # of JSON and Python; `[launcher] ` is a tag
_GIVES_UP = lazy_re(
    r"(?i)\b(?:giv(?:e|es|ing|en) up|not retrying|no more|exhausted|last attempt|aborting|"
    r"retr(?:y|ies)\b[^\n]{0,30}exceeded)\b"
)
# Facts that quote lines of a log; others come from statuses, dumps or reasoning.
_STATED = frozenset(("message", "kernel", "native", "exception", "ending", "scheduler"))
_LINES = frozenset(("message", "kernel", "native", "scheduler"))
_WITH_TIME = frozenset(("exception", "ending"))


@dataclass(frozen=True, slots=True)
class Progress:
    """The last steps of each writer: offsets by source and rank, and (time, source) by rank or process."""

    offsets: Mapping[tuple[str, int | None], tuple[int, ...]] = field(default_factory=dict)
    times: Mapping[Hashable, tuple[tuple[float, str], ...]] = field(default_factory=dict)

    def list_times(self) -> dict[int, list[float]]:
        """Return the times of the last steps of each rank."""
        return {rank: [time for time, _ in of] for rank, of in self.times.items() if isinstance(rank, int)}


def find_progress(activities: Iterable[tuple[str, Activity]]) -> Progress:
    """Return the steps in the last lines of all writers."""
    offsets: dict[tuple[str, int | None], list[int]] = {}
    times: dict[Hashable, list[tuple[float, str]]] = {}
    for source, activity in activities:
        rank, time = activity.origin.rank, activity.origin.time
        if activity.step is None:
            continue
        offsets.setdefault((source, rank), []).append(activity.offset)
        if (writer := _name_writer(source, activity.origin)) is not None and time is not None:
            times.setdefault(writer, []).append((time, source))
    return Progress(
        {key: tuple(values) for key, values in offsets.items()}, {key: tuple(values) for key, values in times.items()}
    )


def _name_writer(source: str, origin: Origin) -> Hashable:
    """Return the rank, or else the process that the names of its files show; None if the file may be of several."""
    if origin.rank is not None:
        return origin.rank
    return None if origin.local_rank is None else (name_process(source), origin.local_rank)


def why_survived(fact: Evidence, progress: Progress) -> str:
    """Return how its writer survived a failure, empty if nothing shows that it did."""
    if fact.kind not in _STATED:
        return ""
    later = progress.offsets.get((fact.source, fact.origin.rank), ())
    if sum(offset > fact.offset for offset in later) >= FEWEST_STEPS and is_quoted(fact.text):
        return "its line only quotes it, and the steps of its writer follow"
    return "later steps of its rank stand in another file" if _is_older(fact, progress) else ""


def _is_older(fact: Evidence, progress: Progress) -> bool:
    """Whether the timestamps of its rank's steps in other files are later than a timestamped error."""
    writer, time = _name_writer(fact.source, fact.origin), fact.origin.time
    if fact.kind not in _WITH_TIME or writer is None or time is None or fact.inherits_time:
        return False
    later = [when for when, source in progress.times.get(writer, ()) if source != fact.source and when > time]
    return len(later) >= FEWEST_STEPS and max(later) - time >= WENT_ON and not may_be_time_zone(max(later) - time)


def is_outlived(fact: Evidence, others: Iterable[Evidence], progress: Progress) -> bool:
    """Whether steps of its rank follow an error, and then another of these errors of the same rank.

    The rank may have ended by the other error, then. Steps in another file count by their timestamps. `others` are
    errors behind which there is no progress.
    """
    rank, time = fact.origin.rank, fact.origin.time
    later = [other for other in others if other.origin.rank == rank and _stands_behind(other, fact)]
    if fact.kind != "exception" or rank is None or not later:
        return False
    last = max((other.offset for other in later if other.source == fact.source), default=0)
    if last and isinstance(fact.detail, ExceptionDetail) and fact.detail.continued:
        return True
    if sum(fact.offset < offset < last for offset in progress.offsets.get((fact.source, rank), ())) >= FEWEST_STEPS:
        return True
    if time is None or fact.inherits_time:
        return False
    latest = max((own for other in later if (own := _own_time(other)) is not None), default=math.inf)
    steps = [when for when, source in progress.times.get(rank, ()) if source != fact.source]
    return sum(time < when <= latest for when in steps) >= FEWEST_STEPS


def _own_time(fact: Evidence) -> float | None:
    return None if fact.inherits_time else fact.origin.time


def _stands_behind(other: Evidence, fact: Evidence) -> bool:
    if other.source == fact.source:
        return other.offset > fact.offset
    return other.origin.time is not None and fact.origin.time is not None and other.origin.time > fact.origin.time


def may_be_time_zone(seconds: float) -> bool:
    """Whether two logs may be so far apart because they are in different time zones, at about the same moment."""
    return seconds + _TIMEOUT >= _ZONE and (seconds + _TIMEOUT) % _ZONE <= _TIMEOUT + _TOLERANCE


def why_uncertain(fact: Evidence) -> str:
    """Return why a line that states a failure may not concern the job, empty if nothing says so."""
    if PROVOKED in fact.fields:
        return "The lines around it say that a test provoked it"
    if is_cut(fact):
        return "Its traceback is cut before the exception: what failed is not shown, and its rank may only have waited"
    if ENDED_LATER in fact.fields:
        return "Another container of its pod had failed before this one ended"
    if program := name_other_program(fact):
        return f"Its line is about {program}, which is no part of the job"
    return "Its line only speaks of this, or says that the program goes on" if is_uncertain(fact) else ""


def is_cut(fact: Evidence) -> bool:
    """Whether a fact is a traceback without its exception: it says less than any line that a signature knows."""
    return isinstance(fact.detail, ExceptionDetail) and fact.detail.truncated and not fact.detail.type


def why_harmless(candidates: Iterable[Candidate]) -> str:
    """Return the sign that nothing failed, where all lines that state a failure have one; else empty.

    A stop from outside is an end of the job, whatever its ranks write before they leave.
    """
    stated = [one for one in candidates if one.role != "noise"]
    signs = [fact.fields.get(HARMLESS, "") for one in stated for fact in one.facts]
    if not all(signs) or any(one.indicates == "outside" for one in stated):
        return ""
    return f"{signs[0]}, and no other line shows a failure"


def is_uncertain(fact: Evidence) -> bool:
    """Whether a line only speaks of a failure, or says that its program goes on, or its container ended after another
    one of the pod had failed: it may not have ended anything.
    """
    if ENDED_LATER in fact.fields:
        return True
    line = fact.text.split("\n", 1)[0][:_LONGEST]
    if fact.kind not in _LINES:
        return False
    if is_quoted(fact.text) or _QUESTION.search(line) is not None:
        return True
    is_warning = warns(line) or "Warning: " in line
    says_so = _GOES_ON.search(line) is not None or (is_warning and _WITHOUT.search(line) is not None)
    return says_so and _GIVES_UP.search(line) is None


def is_quoted(text: str) -> bool:
    """Whether a failure stands only within the quotation marks of a line, or behind the mark of a quoted line."""
    line = text.split("\n", 1)[0][:_LONGEST]
    if line.startswith(_OBJECTS):
        return False
    spans = [match.group().strip("'\"`“”«»>| ") for match in _QUOTED.finditer(line)]
    rest = _QUOTED.sub(" ", line) if spans else ""
    if not spans or classify(rest, read_level(rest)) is not UNLIKE:
        return False
    if _CONDITION.search(line):
        return True
    is_mostly_quoted = sum(map(str.isalpha, "".join(spans))) > sum(map(str.isalpha, rest))
    return is_mostly_quoted or any(classify(span) is not UNLIKE for span in spans)
