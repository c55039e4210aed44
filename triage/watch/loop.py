"""Watch a running job: read new lines, diagnose when they ask for it, and return the events to report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from triage import pipeline
from triage.base.errors import InputError
from triage.model import Audit, Diagnosis, Episode, WatchEvent
from triage.records.activity import PROGRESS
from triage.watch import episodes
from triage.watch.follow import Follower, NewLines
from triage.watch.pace import PaceMonitor
from triage.watch.policy import Policy, is_isolated
from triage.watch.progress_reader import ProgressReader
from triage.watch.state_file import WatchState

_FIND_INTERVAL = 2.0  # seconds between looks for new files
_REPEAT_INTERVAL = 10.0  # seconds between diagnoses for failure lines of kinds that are not new
_MAX_SHARE, _MIN_INTERVAL = 0.25, 2.0  # share of the time that diagnosing may take, seconds between two diagnoses
_ADVANCE = 10.0  # seconds of that share that new kinds of failure lines may use in advance
_FILE_SECONDS = 0.003  # seconds that diagnosing one file takes, until it was measured
_STEPS_AFTER = 1 << 16  # bytes after a failure in which steps are looked for
_END_WAIT = 20.0  # seconds without growth after a failure, until the whole job is diagnosed
IDLE = 900.0
"""Seconds without growth of any file, until the end of a job that reported no failure is diagnosed.

Longer than NCCL's timeout of ten minutes, after which a hanging job says itself why it dies.
"""


@dataclass
class Watch:
    """Call `step` repeatedly; it returns the events to report. `clock` is monotonic, `wall` is the time of day."""

    follower: Follower
    pace: PaceMonitor = field(default_factory=PaceMonitor)
    policy: Policy = field(default_factory=Policy)
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    idle_after: float = IDLE
    last: Diagnosis | None = None  # the newest diagnosis of the whole job
    last_audit: Audit | None = None  # its settings
    episode: Episode | None = None  # the current pace problems, or the last ones
    _find_at: float = 0.0
    _hit_at: float | None = None  # when the last failure line came
    _grown_at: float = 0.0
    _has_new_hits: bool = False  # failure lines came after the last diagnosis
    _new_hits_since: float = 0.0
    _is_urgent: bool = False
    _settled_at: float = 0.0  # when the next diagnosis may begin: the decisive line may follow the first one
    _paid_at: float = 0.0  # when the share of time for the last diagnosis has passed
    _diagnosed_at: float = float("-inf")
    _duration: float | None = None  # seconds that the last diagnosis took
    _is_whole: bool = False
    _pace_events: list[WatchEvent] = field(default_factory=list)  # held back while a failure may be reported

    def __post_init__(self) -> None:
        self._grown_at = self.clock()
        self._progress = ProgressReader(self.follower, self.pace, self.clock)

    def restore(self, state: WatchState) -> None:
        """Continue where an earlier watch of the same files ended."""
        self.policy.restore(state.announced, state.unconfirmed)
        self.episode = state.episode
        self.pace.restore(self.clock(), state.episode.problems if state.episode else (), state.first_durations)

    def state(self, unconfirmed: Iterable[int] = ()) -> WatchState:
        """Return what `restore` needs; `unconfirmed` are the attempts that are being reported now."""
        return WatchState(dict(self.policy.announced), frozenset(unconfirmed), self.episode, self.pace.first_durations)

    def step(self) -> list[WatchEvent]:
        """Read new lines and return the events to report now."""
        now = self.clock()
        if now >= self._find_at:
            self.follower.find_files(now)
            self._find_at = self.clock() + max(_FIND_INTERVAL, 10 * (self.clock() - now))
        new_lines = self.follower.read_new_lines(now)
        self._progress.add(new_lines.files)
        if new_lines.files:
            self._grown_at, self._is_whole = now, False
        if new_lines.hits:
            self._note_hits(now, new_lines)
        events = self._failure_events(now, has_grown=bool(new_lines.files))
        # A failure that is about to be reported comes first; the pace can wait.
        if not (self._is_urgent and now - self._new_hits_since < 2 * self.policy.timing.settle):
            events += self._new_pace_events(now)
        return self._add_to_episode(events)

    def end(self) -> list[WatchEvent]:
        """Read everything that is left and return the last events."""
        now = self.clock()
        self.follower.find_files(now)
        is_behind = True
        while is_behind:
            new_lines = self.follower.read_new_lines(now)
            if new_lines.hits:
                self._note_hits(now, new_lines)
            is_behind = new_lines.is_behind
        return self._add_to_episode(self._diagnose_whole(now) if self._hit_at is not None or self._has_stopped else [])

    @property
    def idle(self) -> float:
        """Seconds since any file grew."""
        return self.clock() - self._grown_at

    @property
    def _has_stopped(self) -> bool:
        """Whether no file grew for so long that the job is over: longer than its steps and pauses take."""
        has_text = any(file.position for file in self.follower.files.values())
        return has_text and self.idle >= max(self.idle_after, self.pace.longest_wait)

    def _add_to_episode(self, events: list[WatchEvent]) -> list[WatchEvent]:
        for event in events:
            self.episode = episodes.extend(self.episode, event)
        return events

    def _new_pace_events(self, now: float) -> list[WatchEvent]:
        """Return the pace events; none for a job that failed."""
        if self._progress.read(now):
            self._pace_events += [
                WatchEvent(event.kind, self.wall(), event.text, event.ranks, hosts=self._progress.hosts(event.ranks))
                for event in self.pace.check(now)
            ]
        if self.policy.is_pending:
            return []
        events, self._pace_events = self._pace_events, []
        return [] if self.policy.has_failed else events

    def _note_hits(self, now: float, new_lines: NewLines) -> None:
        if self._hit_at is None or not self._has_new_hits:
            settle = self.policy.timing.settle
            duration = _FILE_SECONDS * len(self.follower.files) if self._duration is None else self._duration
            self._new_hits_since, self._settled_at = now, now + max(settle - duration, settle / 4)
        self._hit_at, self._has_new_hits = now, True
        self._is_urgent |= new_lines.new_kinds > 0 or now - self._diagnosed_at >= _REPEAT_INTERVAL

    def _failure_events(self, now: float, *, has_grown: bool) -> list[WatchEvent]:
        if self._has_stopped and not self._is_whole:
            return self._diagnose_whole(now)
        if self._hit_at is None:
            return []
        if self.policy.has_failed and not self._is_whole and now - self._grown_at >= _END_WAIT:
            return self._diagnose_whole(now)
        is_waiting = self.policy.is_pending or self._has_new_hits or (self.policy.has_failed and has_grown)
        is_affordable = now >= self._paid_at - _ADVANCE if self._is_urgent else is_waiting and now >= self._paid_at
        return self._diagnose(now, now - self._hit_at) if now >= self._settled_at and is_affordable else []

    def _diagnose(self, now: float, calm: float) -> list[WatchEvent]:
        since, self._has_new_hits, self._is_urgent = self._new_hits_since, False, False
        diagnosis = pipeline.ingest_growing(self.follower.paths, self.follower.scan_results(), self.follower.options)
        self._diagnosed_at = self.clock()
        self._duration = self._diagnosed_at - now
        self._paid_at = max(self._paid_at, self._diagnosed_at)
        self._paid_at += max(_MIN_INTERVAL, self._duration * (1 / _MAX_SHARE - 1))
        busy = is_isolated(diagnosis) and self._steps_followed(diagnosis)
        settled = max(self._diagnosed_at, since + self.policy.timing.settle)  # diagnosing takes a part of that time
        idle = now - self._grown_at
        event = self.policy.decide(settled, self.wall(), diagnosis, calm, since=since, idle=idle, busy=busy)
        return [event] if event else []

    def _steps_followed(self, diagnosis: Diagnosis) -> bool:
        """Return whether steps follow the blamed line in the same file."""
        fact = diagnosis.root_cause.evidence[0] if diagnosis.root_cause and diagnosis.root_cause.evidence else None
        if fact is None:
            return False
        file = next((file for file in self.follower.files.values() if file.name == fact.source), None)
        if file is None:
            return False
        data = self.follower.tail(file, min(_STEPS_AFTER, max(0, file.position - fact.end)))
        return PROGRESS.search(data.decode("utf-8", "replace")) is not None

    def _diagnose_whole(self, now: float) -> list[WatchEvent]:
        """Diagnose the job with its cores, dumps and archives: no more lines come."""
        self._is_whole = True
        try:
            self.last, self.last_audit = pipeline.ingest_with_audit(self.follower.paths, self.follower.options)
        except InputError:  # everything was removed
            return []
        event = self.policy.decide(now, self.wall(), self.last, _END_WAIT, final=True, stopped=self._has_stopped)
        return [event] if event else []
