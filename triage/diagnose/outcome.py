"""How the job ended: which ranks finished, and which failures were over before the end (handled, or of an attempt that was repeated)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triage.model import Evidence
from triage.ranks.identity import JobMap
from triage.ranks.last import Word


@dataclass(frozen=True, slots=True)
class Outcome:
    """`finished` are the ranks that said they were done, with the time if it has one; `ends` the place of such a word in each source;
    `attempt` the last one."""

    finished: Mapping[int, float | None]
    ends: Mapping[str, int]
    attempt: int
    attempts: Mapping[str, int]
    last_step: Mapping[int, int]
    last_time: Mapping[int, float]
    died: frozenset[int]

    def is_over(self, fact: Evidence) -> bool:
        """Was this failure over before the job ended, so that it did not end it?"""
        return bool(self.why_over(fact))

    def why_over(self, fact: Evidence) -> str:
        """Why a failure did not end the job; empty when it may have."""
        if fact.origin.attempt < self.attempt and self.ends:
            return "a later attempt finished"
        if fact.source in self.ends and fact.offset < self.ends[fact.source] and not self.died:
            return "the job says afterwards that it finished"
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
        """The exception is in stderr.log and the last word in stdout.log: only the stamps, if any, could say that it came later."""
        rank, when = fact.origin.rank, fact.origin.time
        if fact.kind not in ("exception", "message") or rank is None or rank not in self.finished or fact.source in self.ends:
            return False
        done = self.finished[rank]
        return done is None or when is None or when <= done

    def _ended_by(self, rank: int | None) -> bool:
        return bool(self.died) if rank is None else rank in self.died


def outcome(facts: Sequence[Evidence], words: Sequence[tuple[str, Word]], job: JobMap) -> Outcome:
    """Put the last words of all sources together. `words` are (source, word), origins not yet completed."""
    finished: dict[int, float | None] = {}
    ends: dict[str, int] = {}
    steps: dict[int, int] = {}
    times: dict[int, float] = {}
    for source, word in words:
        origin = job.on_one_clock(job.complete(source, word.origin))
        if word.finished:
            ends[source] = max(ends.get(source, 0), word.offset)
            if origin.rank is not None:
                finished[origin.rank] = max(finished.get(origin.rank) or 0.0, origin.time or 0.0) or None
        if origin.rank is not None:
            if word.step is not None:
                steps[origin.rank] = max(steps.get(origin.rank, 0), word.step)
            if origin.time is not None:
                times[origin.rank] = max(times.get(origin.rank, 0.0), origin.time)
    attempts = {source: named.attempt for source, named in job.sources.items() if named.attempt}
    last = max([fact.origin.attempt for fact in facts] + list(attempts.values()), default=0)
    return Outcome(finished, ends, last, attempts, steps, times, _died(facts, last, ends))


def _died(facts: Sequence[Evidence], last: int, ends: Mapping[str, int]) -> frozenset[int]:
    """Ranks of the last attempt whose process is known to have ended badly, and not because the launcher stopped it."""
    return frozenset(
        fact.origin.rank if fact.origin.rank is not None else -1
        for fact in facts
        if fact.kind == "exit"
        and fact.fields.get("exitcode", "0") not in ("0", "")
        and fact.fields.get("by") != "agent"
        and fact.origin.attempt == last
        and fact.offset > ends.get(fact.source, -1)
    )
