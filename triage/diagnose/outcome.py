"""How the job ended: which ranks finished, and which failures were over before the end.

Such failures were handled, or belong to an attempt that was repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.diagnose.attempts import is_before_restart
from triage.diagnose.attribution import is_final_exception
from triage.diagnose.completion import Completion, find_completion
from triage.diagnose.other_jobs import find_own_jobs, is_of_daemon, name_other_job
from triage.diagnose.other_programs import name_other_program
from triage.diagnose.survival import Progress, find_progress, is_outlived, why_survived
from triage.evidence.inference import LASTING
from triage.model import EndingDetail, Evidence, ExceptionDetail, ExitDetail, Origin
from triage.ranks.identity import JobMap
from triage.ranks.sole_ranks import name_process
from triage.records.activity import Activity
from triage.records.memberships import remove_own_tags

# Seconds: logs without a time zone may be so far apart, and a node may log about the job so late.
_TIME_ZONES = 15 * 3600.0
# Signals that end a process otherwise than an exception does.
_NO_EXCEPTION = frozenset(("SIGKILL", "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGTERM"))
# What stands in other files than those of ranks, and does not matter once all ranks finished.
_OF_ENVIRONMENT = frozenset(("kernel", "scheduler", "message", "ending"))
# What a rank prints when its peers, which finished too, are gone.
_LOST_CONNECTION = lazy_re(
    r"(?i)\bconnection (?:was )?(?:reset|refused|closed|lost)|"
    r"broken pipe|\bsocket|\bpeer\b|end of file|\bEOF\b|\b(?:recv|send)\b|\bshut down"
)
# What the threads that watch the store print when the process that holds it is gone.
_WATCHED_STORE = lazy_re(
    r"\[c10d\] (?:recv|send)\w{1,40} failed on SocketImpl|\bflag on TCPStore|^TCPStore server has shut down"
)
_LONGEST_MESSAGE = 1000
_NO_DETAIL = ExceptionDetail()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the job ended.

    finished: ranks that said they were done, with the time if the line has one; `everyone`: all ranks did
    finish_offsets: source to the offset of its last such line
    attempt: the last attempt; `died`: ranks of it whose processes failed by themselves (-1: of no known rank)
    last_step, last_time, doing: of the last line of each rank; `doing` is a name of `records.activity`
    unplaced: the same of lines that name no rank, with their number since the last step in their file
    spans: host (None: any) to the first and last time of what ranks wrote there
    writes: path to the ranks whose last lines say that they write it; `writers`: to who says so, as
      `list_writers` has them
    has_unlogged_exception: a process ended as by an exception, and no exception in the files can be its last
    completion: what says that the job ended well
    progress: the last steps of each writer
    final_errors: rank to what may have ended its process in the last attempt: exceptions and crashes
    own_jobs: the scheduler's numbers of this job
    progressing: the sources whose ranks report steps
    """

    finished: Mapping[int, float | None]
    finish_offsets: Mapping[str, int]
    attempt: int
    last_step: Mapping[int, int]
    last_time: Mapping[int, float]
    died: frozenset[int]
    everyone: bool = False
    doing: Mapping[int, str] = field(default_factory=dict)
    unplaced: Mapping[str, int] = field(default_factory=dict)
    spans: Mapping[str | None, tuple[float, float]] = field(default_factory=dict)
    writes: Mapping[str, frozenset[int]] = field(default_factory=dict)
    writers: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    has_unlogged_exception: bool = False
    completion: Completion = field(default_factory=Completion)
    progress: Progress = field(default_factory=Progress)
    final_errors: Mapping[int, Sequence[Evidence]] = field(default_factory=dict)
    own_jobs: frozenset[str] = frozenset()
    progressing: frozenset[str] = frozenset()

    @property
    def is_success(self) -> bool:
        """Whether it is proved that the job ended well."""
        return self.completion.is_proved and not self.died

    def why_over(self, fact: Evidence) -> str:
        """Return why a failure did not end the job; empty when it may have."""
        if other := name_other_job(fact, self.own_jobs):
            return f"it is about job {other}"
        if is_of_daemon(fact.source) and self._is_of_other_time(fact):
            return "the scheduler logged it long before or after this job"
        if is_before_restart(fact.source, self.progressing):
            return "its container was started again, and made progress"
        ends = self.finish_offsets
        detail = fact.detail if isinstance(fact.detail, ExceptionDetail) else _NO_DETAIL
        is_weak = isinstance(fact.detail, EndingDetail) and fact.detail.strength != "strong"
        if is_weak and self.is_success and (not self.follows_end(fact) or name_other_program(fact)):
            return "the job ended well, as other lines show"
        may_have_ended = self._ended_by_exception(fact.origin.rank)
        if fact.origin.attempt == self.attempt:
            errors = self.final_errors.get(fact.origin.rank, ()) if fact.origin.rank is not None else ()
            if is_outlived(fact, errors, self.progress):
                return "its rank made progress afterwards, and met another error"
            survived = "" if may_have_ended else why_survived(fact, self.progress)
            if survived:
                return survived
        if not ends and fact.kind != "kernel" and not detail.continued and not detail.nonfatal:
            return ""
        if fact.origin.attempt < self.attempt and ends:
            return "a later attempt finished"
        if LASTING in fact.fields:
            return ""
        if not self.died:
            if fact.offset < ends.get(fact.source, 0) and not self._ended_its_own_writer(fact):
                return "the job finished afterwards"
            is_of_environment = fact.kind in _OF_ENVIRONMENT and fact.component != "app"
            if (
                self.everyone
                and is_of_environment
                and (_LOST_CONNECTION.search(fact.text) or not self.follows_end(fact))
            ):
                return "every rank finished"
            if self._lost_store_of_finished(fact):
                return "rank 0, which holds the store, had finished"
        if fact.kind == "kernel" and self._is_of_other_time(fact):
            return "the kernel logged it long before or after this job"
        if not self.died and self._finished_elsewhere(fact):
            return "its rank finished, as another file shows"
        if detail.nonfatal == "ignored":
            return "Python ignored it"
        if detail.nonfatal == "thread" and ends and not self.died:
            return "it ended only a thread, and the job finished"
        if detail.continued and (detail.caught or not may_have_ended):
            return "its rank made progress afterwards"
        return ""

    def _lost_store_of_finished(self, fact: Evidence) -> bool:
        """Whether a thread saw that the store was gone after rank 0 had finished, and its own rank had no step left."""
        if fact.kind != "message" or not _WATCHED_STORE.search(fact.text[:_LONGEST_MESSAGE]):
            return False
        steps = {step for rank, step in self.last_step.items() if rank in (0, fact.origin.rank)}
        if len(steps) > 1:
            return False
        return any(
            end.finished and end.origin.rank in (0, None) and _ended_before(source, end, fact)
            for source, end in self.completion.lines
        )

    def _ended_its_own_writer(self, fact: Evidence) -> bool:
        """Whether it may have ended a process that none of the lines behind it says to have finished."""
        behind = [end for source, end in self.completion.lines if source == fact.source and end.offset > fact.offset]
        return _may_end_process(fact) and all(
            end.completion != "job" and _is_of_other_writer(end.origin, fact) for end in behind
        )

    def follows_end(self, fact: Evidence) -> bool:
        """Whether it stands behind the last line by which its source finished, and no launcher reports success."""
        if any(activity.completion == "job" for _, activity in self.completion.lines):
            return False
        return fact.offset > self.finish_offsets.get(fact.source, fact.offset)

    def _finished_elsewhere(self, fact: Evidence) -> bool:
        """Whether its rank finished by another file: only the times, if any, can show that the failure came later."""
        rank, when = fact.origin.rank, fact.origin.time
        if fact.kind not in ("exception", "message", "ending") or rank is None or rank not in self.finished:
            return False
        if fact.source in self.finish_offsets:
            return False
        done = self.finished[rank]
        return done is None or when is None or when <= done

    def _is_of_other_time(self, fact: Evidence) -> bool:
        """Whether it is farther from all that ranks of its host wrote than time zones can explain."""
        span, when = self.spans.get(fact.origin.host) or self.spans.get(None), fact.origin.time
        return span is not None and when is not None and not span[0] - _TIME_ZONES <= when <= span[1] + _TIME_ZONES

    def _ended_by_exception(self, rank: int | None) -> bool:
        return self.has_unlogged_exception if rank is None else rank in self.died


def _ended_before(source: str, end: Activity, fact: Evidence) -> bool:
    """Whether a line of a finished program comes before a fact: by its place, else as no time denies."""
    if source == fact.source:
        return end.offset < fact.offset
    ended, when = end.origin.time, fact.origin.time
    return end.origin.rank is not None and (ended is None or when is None or ended <= when)


def find_outcome(
    facts: Sequence[Evidence], activities: Sequence[tuple[str, Activity]], job: JobMap, last_attempt: int = 0
) -> Outcome:
    """Return how the job ended, from its facts and the (source, activity) of its ranks, origins completed."""
    completion = find_completion(activities, job)
    finished = completion.finished
    ends: dict[str, int] = {}
    for source, activity in completion.lines:
        if activity.finished:
            ends[source] = max(ends.get(source, 0), activity.offset)
    steps: dict[int, int] = {}
    times: dict[int, float] = {}
    doing: dict[tuple[str, int], str] = {}
    for source, activity in activities:
        rank, time = activity.origin.rank, activity.origin.time
        if rank is None:
            continue
        if not activity.is_of_runtime:
            doing[(source, rank)] = activity.action
        if activity.step is not None:
            steps[rank] = max(steps.get(rank, 0), activity.step)
        if time is not None:
            times[rank] = max(times.get(rank, 0.0), time)
    named = [origin.attempt for origin in job.sources.values()]
    last = max([fact.origin.attempt for fact in facts] + named + [last_attempt], default=0)
    exits = [
        fact
        for fact in facts
        if isinstance(fact.detail, ExitDetail) and fact.detail.is_own_failure and fact.origin.attempt == last
    ]
    return Outcome(
        finished=finished,
        finish_offsets=ends,
        attempt=last,
        last_step=steps,
        last_time=times,
        died=_died(exits, ends),
        everyone=bool(ends) and (job.ranks <= finished.keys() or completion.has_end_of_each),
        doing={rank: name for (_, rank), name in sorted(doing.items()) if name},
        unplaced=_count_unplaced_actions(activities),
        spans=_time_spans(facts, activities),
        writes=_written_paths(activities),
        writers=list_writers(activities),
        has_unlogged_exception=bool(exits) and _has_unlogged_exception(facts, exits),
        completion=completion,
        progress=find_progress(activities),
        progressing=frozenset(source for source, activity in activities if activity.step is not None),
        final_errors=_final_errors(facts, last),
        own_jobs=find_own_jobs(facts, job.sources),
    )


def _final_errors(facts: Sequence[Evidence], attempt: int) -> dict[int, list[Evidence]]:
    """Return by rank what may have ended its process in this attempt."""
    errors: dict[int, list[Evidence]] = {}
    for fact in facts:
        if fact.origin.attempt == attempt and fact.origin.rank is not None and _may_end_process(fact):
            errors.setdefault(fact.origin.rank, []).append(fact)
    return errors


def _count_unplaced_actions(activities: Sequence[tuple[str, Activity]]) -> dict[str, int]:
    """Return the actions in the last lines of each source that name no rank, with their numbers."""
    last: dict[str, Counter[str]] = {}
    for source, activity in activities:
        if activity.step is not None and not activity.action:
            last[source] = Counter()
        elif activity.origin.rank is None and activity.action and not activity.is_of_runtime:
            last.setdefault(source, Counter())[activity.action] += 1
    return dict(sum(last.values(), Counter()))


def _may_end_process(fact: Evidence) -> bool:
    """Whether a process may have ended by this error, and did not go on after it."""
    if isinstance(fact.detail, ExceptionDetail):
        return is_final_exception(fact) and not fact.detail.continued and not fact.detail.nonfatal
    return fact.kind in ("terminate", "fatal-python", "crash")


def _is_of_other_writer(end: Origin, fact: Evidence) -> bool:
    """Whether a line behind an error is of another rank, or else of another host, or else none of its writer's is."""
    origin = fact.origin
    if end.rank is not None and origin.rank is not None:
        return end.rank != origin.rank
    if end.host and origin.host and end.host != origin.host:
        return True
    return isinstance(fact.detail, ExceptionDetail) and fact.detail.ends_writer


def _has_unlogged_exception(facts: Sequence[Evidence], exits: Sequence[Evidence]) -> bool:
    ended = [fact for fact in exits if isinstance(fact.detail, ExitDetail) and fact.detail.signal not in _NO_EXCEPTION]
    final = [fact for fact in facts if is_final_exception(fact)]
    unplaced = sum(
        fact.count
        for fact in final
        if fact.origin.rank is None and isinstance(fact.detail, ExceptionDetail) and not fact.detail.continued
    )
    ranks = {fact.origin.rank if fact.origin.rank is not None else -1 for fact in ended}
    return len(ranks - {fact.origin.rank for fact in final}) > unplaced


def _written_paths(activities: Sequence[tuple[str, Activity]]) -> dict[str, frozenset[int]]:
    writers: dict[str, set[int]] = {}
    for _, activity in activities:
        if activity.path and activity.origin.rank is not None:
            writers.setdefault(activity.path, set()).add(activity.origin.rank)
    return {path: frozenset(ranks) for path, ranks in writers.items()}


def list_writers(activities: Sequence[tuple[str, Activity]]) -> dict[str, list[tuple[str, str]]]:
    """Return path to (source, launcher's prefix) of each last line that says that it is written."""
    writers: dict[str, list[tuple[str, str]]] = {}
    for source, activity in activities:
        if activity.path:
            writers.setdefault(activity.path, []).append((name_process(source), remove_own_tags(activity.writer)))
    return writers


def _time_spans(
    facts: Sequence[Evidence], activities: Sequence[tuple[str, Activity]]
) -> dict[str | None, tuple[float, float]]:
    """Return the spans of all that ranks wrote; facts count only where lines of the machine are to be compared."""
    origins: list[Origin] = [activity.origin for source, activity in activities if not is_of_daemon(source)]
    of_machine = [fact.kind == "kernel" or is_of_daemon(fact.source) for fact in facts]
    if any(of_machine):
        others = (fact for fact, is_machine in zip(facts, of_machine, strict=True) if not is_machine)
        origins += [fact.origin for fact in others if fact.kind != "inference"]
    spans: dict[str | None, tuple[float, float]] = {}
    for origin in origins:
        if origin.time is not None:
            for host in {origin.host, None}:
                first, last = spans.get(host, (origin.time, origin.time))
                spans[host] = (min(first, origin.time), max(last, origin.time))
    return spans


def _died(exits: Sequence[Evidence], ends: Mapping[str, int]) -> frozenset[int]:
    """Return the ranks of these failed exits, without those whose log says afterwards that the job finished."""
    return frozenset(
        fact.origin.rank if fact.origin.rank is not None else -1
        for fact in exits
        if fact.offset > ends.get(fact.source, -1)
    )
