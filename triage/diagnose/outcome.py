"""How the job ended: which ranks finished, and which failures were over before the end (handled, or of an attempt that
was repeated).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from triage.diagnose.facts import is_echo
from triage.model.evidence import Evidence, Origin
from triage.ranks.identity import JobMap
from triage.ranks.last import Word

# Logs without a zone may be so far apart in seconds, and a node may say something of the job that late.
_ZONES = 15 * 3600.0
# What ends a process otherwise than by an exception.
_NO_EXCEPTION = frozenset(("SIGKILL", "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGTERM"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """`finished` are the ranks that said they were done, with the time if it has one; `ends` the place of such a word
    in each source;
    `attempt` the last one. `everyone`: every rank that left a trace said so. `doing` is what a rank was about in its
    last line, `spans`
    host (None: any) to the first and last time of what ranks wrote there, `writes` path to the ranks whose last lines
    say that they write it. `unsaid`: a
    process ended as an exception ends one, and no exception is there that may have been its last.
    """

    finished: Mapping[int, float | None]
    ends: Mapping[str, int]
    attempt: int
    attempts: Mapping[str, int]
    last_step: Mapping[int, int]
    last_time: Mapping[int, float]
    died: frozenset[int]
    everyone: bool = False
    doing: Mapping[int, str] = field(default_factory=dict)
    spans: Mapping[str | None, tuple[float, float]] = field(default_factory=dict)
    writes: Mapping[str, frozenset[int]] = field(default_factory=dict)
    unsaid: bool = False

    def is_over(self, fact: Evidence) -> bool:
        """Was this failure over before the job ended, so that it did not end it?"""
        return bool(self.why_over(fact))

    def why_over(self, fact: Evidence) -> str:
        """Why a failure did not end the job; empty when it may have."""
        if not self.ends and fact.kind != "kernel" and "goes_on" not in fact.fields and "aside" not in fact.fields:
            return ""
        if fact.origin.attempt < self.attempt and self.ends:
            return "a later attempt finished"
        if fact.source in self.ends and fact.offset < self.ends[fact.source] and not self.died:
            return "the job says afterwards that it finished"
        if (
            self.everyone
            and not self.died
            and fact.kind in ("kernel", "scheduler", "message")
            and fact.component != "app"
        ):
            return "every rank finished"
        if fact.kind == "kernel" and self._another_day(fact):
            return "the kernel said it long before or after this job"
        if self._done_elsewhere(fact) and not self.died:
            return "its rank says in another file that it finished"
        if fact.fields.get("aside") == "ignored":
            return "Python ignored it and went on"
        if fact.fields.get("aside") == "thread" and self.ends and not self.died:
            return "it ended a thread only, and the job finished"
        if fact.fields.get("goes_on") == "yes" and fact.kind == "exception" and not self._ended_by(fact.origin.rank):
            return "its rank went on making progress"
        return ""

    def _done_elsewhere(self, fact: Evidence) -> bool:
        """The exception is in stderr.log and the last word in stdout.log: only the stamps, if any, could say that it
        came later.
        """
        rank, when = fact.origin.rank, fact.origin.time
        if (
            fact.kind not in ("exception", "message")
            or rank is None
            or rank not in self.finished
            or fact.source in self.ends
        ):
            return False
        done = self.finished[rank]
        return done is None or when is None or when <= done

    def _another_day(self, fact: Evidence) -> bool:
        """Farther from all that the ranks of that host wrote than zones of clocks can be apart."""
        span, when = self.spans.get(fact.origin.host) or self.spans.get(None), fact.origin.time
        return span is not None and when is not None and not span[0] - _ZONES <= when <= span[1] + _ZONES

    def _ended_by(self, rank: int | None) -> bool:
        return self.unsaid if rank is None else rank in self.died


def outcome(
    facts: Sequence[Evidence], words: Sequence[tuple[str, Word]], job: JobMap, last: int | None = None
) -> Outcome:
    """Put the last words of all sources together. `words` are (source, word), origins completed; `last` is the last
    attempt if it is known.
    """
    finished: dict[int, float | None] = {}
    ends: dict[str, int] = {}
    steps: dict[int, int] = {}
    times: dict[int, float] = {}
    doing: dict[tuple[str, int], str] = {}
    spans: dict[str | None, tuple[float, float]] = {}
    for source, word in words:
        origin = word.origin
        if word.finished:
            ends[source] = max(ends.get(source, 0), word.offset)
            if origin.rank is not None:
                finished[origin.rank] = max(finished.get(origin.rank) or 0.0, origin.time or 0.0) or None
        if origin.rank is not None:
            doing[(source, origin.rank)] = word.doing
            if word.step is not None:
                steps[origin.rank] = max(steps.get(origin.rank, 0), word.step)
            if origin.time is not None:
                times[origin.rank] = max(times.get(origin.rank, 0.0), origin.time)
        _widen(spans, origin)
    if any(fact.kind == "kernel" for fact in facts):
        for fact in facts:
            if fact.kind not in ("kernel", "inference"):
                _widen(spans, fact.origin)
    attempts = {source: named.attempt for source, named in job.sources.items() if named.attempt}
    last = max([fact.origin.attempt for fact in facts] + list(attempts.values()) + [last or 0], default=0)
    everyone = bool(ends) and job.ranks <= finished.keys() if job.ranks else bool(ends)
    about = {rank: said for (_, rank), said in sorted(doing.items()) if said}
    exits = [fact for fact in facts if fact.kind == "exit" and _badly(fact, last)]
    died, unsaid = _died(exits, ends), bool(exits) and _unsaid(facts, exits)
    return Outcome(finished, ends, last, attempts, steps, times, died, everyone, about, spans, _writes(words), unsaid)


def _unsaid(facts: Sequence[Evidence], exits: Sequence[Evidence]) -> bool:
    ended = [fact for fact in exits if fact.fields.get("signal", "") not in _NO_EXCEPTION]
    final = [
        fact for fact in facts if fact.kind == "exception" and fact.fields.get("chain") == "final" and not is_echo(fact)
    ]
    own = {fact.origin.rank for fact in final}
    loose = sum(fact.count for fact in final if fact.origin.rank is None and "goes_on" not in fact.fields)
    return len({fact.origin.rank if fact.origin.rank is not None else -1 for fact in ended} - own) > loose


def _writes(words: Sequence[tuple[str, Word]]) -> dict[str, frozenset[int]]:
    writers: dict[str, set[int]] = {}
    for _, word in words:
        if word.path and word.origin.rank is not None:
            writers.setdefault(word.path, set()).add(word.origin.rank)
    return {path: frozenset(ranks) for path, ranks in writers.items()}


def _widen(spans: dict[str | None, tuple[float, float]], origin: Origin) -> None:
    if origin.time is not None:
        for host in {origin.host, None}:
            first, final = spans.get(host, (origin.time, origin.time))
            spans[host] = (min(first, origin.time), max(final, origin.time))


def _died(exits: Sequence[Evidence], ends: Mapping[str, int]) -> frozenset[int]:
    """Ranks of the last attempt whose process is known to have ended badly, and not because the launcher stopped it."""
    return frozenset(
        fact.origin.rank if fact.origin.rank is not None else -1
        for fact in exits
        if fact.offset > ends.get(fact.source, -1)
    )


def _badly(fact: Evidence, last: int) -> bool:
    return (
        fact.fields.get("exitcode", "0") not in ("0", "")
        and fact.fields.get("by") != "agent"
        and fact.origin.attempt == last
    )
