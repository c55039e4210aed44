"""Monitor the pace of a healthy job: find ranks that fall silent, steps that slow down, and stalls.

A step counts from when its line was read, by the clock of this machine; timestamps in the lines are not used. All times
are seconds of one monotonic clock. The monitor reads no files: `record` takes activity, `check` returns events.
"""

from __future__ import annotations

import bisect
import statistics
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from triage.base.rank_ranges import format_ranks

Kind = Literal["silent", "back", "slow", "usual", "stalled", "resumed"]

_MIN_LINES = 5  # lines of a rank that prints no steps, before its silence means anything
_MIN_STEPS = 3  # steps of a rank before anything is expected of it
_SILENT_STEPS = 2.0  # usual steps without a line, after which a rank that most others left behind is silent
_MOST = 0.75  # share of the other ranks that counts as "most"
_RECENT, _FIRST = 8, 24  # steps that tell how long one takes now, and how long one took at first
_SLOW_FACTOR, _USUAL_FACTOR = 2.0, 1.3
_PAUSE_FACTOR, _MAX_PAUSES = 4.0, 2  # a step so much longer than usual is a pause, unless so many come in a row
_BUSY_FACTOR = 10.0  # a rank that announced saving, evaluating or compiling may take so much longer
_IDLE_STEPS = 3.0  # usual steps without any line, after which a job is over
_PAUSE_MARGIN = 2.0  # the next pause may be so much longer than the longest one so far
_SLOW_RANK_SHARE = 0.2  # share of the looks in which a rank must be behind to be named for a slow job


@dataclass(frozen=True, slots=True)
class Limits:
    """A stall is `steps` usual steps without progress, but at least `least` seconds."""

    steps: float = 30.0
    least: float = 180.0


@dataclass(frozen=True, slots=True)
class PaceEvent:
    """A change of pace. `ranks` lists the ranks concerned, none for all of them."""

    kind: Kind
    ranks: tuple[int, ...]
    text: str


@dataclass(slots=True)
class _RankPace:
    step: int
    step_at: float
    last_line_at: float
    step_count: int = 0
    doing: str = ""
    is_finished: bool = False
    line_count: int = 0
    longest_gap: float = 0.0  # between two lines
    longest_lag: float = 0.0  # behind most others, before it caught up
    is_silent: bool = False
    behind_since: float | None = None  # since when most others are further


_Ranks = dict[int, _RankPace]


@dataclass
class PaceMonitor:
    """Takes the activity of the ranks and returns pace events. Call `record` and `check` in the order of time."""

    limits: Limits = Limits()
    poll: float = 0.5
    front: int = -1  # the furthest step of any rank
    _ranks: _Ranks = field(default_factory=dict)
    _first: list[float] = field(default_factory=list)
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    _strides: deque[int] = field(default_factory=lambda: deque(maxlen=_FIRST))
    _moved_at: float = 0.0
    _longest_pause: float = 0.0
    _pauses: list[float] = field(default_factory=list)
    _is_slow: bool = False
    _is_stalled: bool = False
    _has_moved: bool = False
    _times_behind: dict[int, int] = field(default_factory=dict)
    _look_count: int = 0

    def record(self, now: float, rank: int, step: int | None, doing: str = "", *, finished: bool = False) -> None:
        """Record that a line of `rank` was read; `step` is the last step it names."""
        state = self._ranks.setdefault(rank, _RankPace(-1, now, now))
        state.longest_gap = max(state.longest_gap, now - state.last_line_at)
        state.last_line_at, state.line_count = now, state.line_count + 1
        state.doing = doing or state.doing
        state.is_finished = finished
        if step is None or step == state.step:
            return
        if step < state.step:  # the step counter of an epoch starts again, or the job does
            state.step, state.step_at, state.behind_since = step, now, None
            self.front = max(other.step for other in self._ranks.values())
            self._moved_at = now
            return
        state.step_count += 1 if state.step >= 0 else 0
        state.step, state.step_at, state.doing = step, now, doing
        if step > self.front:
            self._advance(now, step)

    def check(self, now: float) -> list[PaceEvent]:
        """Return the events that are new since the last check."""
        active = {rank: state for rank, state in self._ranks.items() if not state.is_finished}
        usual = self.usual
        if usual is None:
            return []
        if not active:
            return self._finish()
        return [
            *self._check_silence(now, active, usual),
            *self._check_stall(now, active, usual),
            *self._check_speed(active),
        ]

    def restore(self, now: float, problems: Iterable[str], first_durations: Iterable[float]) -> None:
        """Continue after a restart, with the problems of the last `Episode`. They are not reported again."""
        self._moved_at = now
        self._first = list(first_durations)[:_FIRST]
        for name in problems:
            kind, _, rank = name.partition(" ")
            if kind == "silent":
                self._ranks[int(rank)] = _RankPace(-1, now, now, is_silent=True)
            self._is_slow |= kind == "slow"
            self._is_stalled |= kind == "stalled"

    @property
    def first_durations(self) -> tuple[float, ...]:
        """Seconds that the first steps took."""
        return tuple(self._first)

    @property
    def usual(self) -> float | None:
        """Usual seconds from one printed step to the next; None until enough steps were read."""
        durations = [*self._first, *self._recent]
        return statistics.median(durations) if len(durations) >= _MIN_STEPS else None

    @property
    def longest_wait(self) -> float:
        """Seconds without a line after which the job should have written one: a few steps, or a longer pause."""
        return max(_IDLE_STEPS * (self.usual or 0.0), _PAUSE_MARGIN * self._longest_pause)

    @property
    def stride(self) -> int:
        """Usual number of steps from one printed step to the next (some programs print every tenth step)."""
        return max(1, round(statistics.median(self._strides))) if self._strides else 1

    def _finish(self) -> list[PaceEvent]:
        """All ranks finished, so none is silent and no step is missing."""
        back = [rank for rank, state in self._ranks.items() if state.is_silent]
        for rank in back:
            self._ranks[rank].is_silent = False
        was_stalled, self._is_stalled = self._is_stalled, False
        return [*_back_events(back), *([PaceEvent("resumed", (), "all ranks finished")] if was_stalled else [])]

    def _advance(self, now: float, step: int) -> None:
        if self.front >= 0 and now > self._moved_at:
            self._has_moved = True
            duration = now - self._moved_at
            self._strides.append(step - self.front)
            usual = self.usual
            if usual is not None and duration > _PAUSE_FACTOR * usual and len(self._pauses) < _MAX_PAUSES:
                self._longest_pause = max(self._longest_pause, duration)  # a checkpoint or an evaluation, not a step
                self._pauses.append(duration)
            else:
                self._first += [duration] * (len(self._first) < _FIRST)
                self._recent.extend((*self._pauses, duration) if len(self._pauses) == _MAX_PAUSES else (duration,))
                self._pauses.clear()
        self.front, self._moved_at = step, now

    def _check_silence(self, now: float, active: _Ranks, usual: float) -> list[PaceEvent]:
        if len(active) < 3:
            return []
        steps = sorted(state.step for state in active.values())
        silent: list[int] = []
        back: list[int] = []
        for rank, state in active.items():
            # A rank that is one stride behind may be the one that the others wait for.
            ahead = len(steps) - bisect.bisect_right(steps, state.step + self.stride)
            if ahead < _MOST * (len(active) - 1) and not self._stopped_alone(now, state, active, usual):
                if state.is_silent:
                    back.append(rank)
                if state.behind_since is not None:
                    state.longest_lag = max(state.longest_lag, now - state.step_at)
                state.behind_since, state.is_silent = None, False
                continue
            state.behind_since = now if state.behind_since is None else state.behind_since
            if not state.is_silent and self._is_overdue(now, state, usual):
                state.is_silent = True
                silent.append(rank)
        return [*self._silent_events(now, silent, active, usual), *_back_events(back)]

    def _is_overdue(self, now: float, state: _RankPace, usual: float) -> bool:
        """Return whether a rank that most others left behind should have written a line by now."""
        patience = max(_SILENT_STEPS * usual, 1.5 * state.longest_lag) + self.poll
        if state.doing:
            patience = max(_BUSY_FACTOR * patience, self.limits.least)
        is_known = state.step_count >= _MIN_STEPS or state.step < 0
        return is_known and now - state.last_line_at >= patience and now > (state.behind_since or 0.0)

    def _stopped_alone(self, now: float, state: _RankPace, active: _Ranks, usual: float) -> bool:
        """Return whether a rank that prints no steps stopped writing while most others write."""
        patience = max(_SILENT_STEPS * usual, 3 * state.longest_gap)
        if state.step >= 0 or state.line_count < _MIN_LINES or now - state.last_line_at <= patience:
            return False
        return sum(now - other.last_line_at <= patience / 2 for other in active.values()) >= _MOST * (len(active) - 1)

    def _silent_events(self, now: float, silent: Sequence[int], active: _Ranks, usual: float) -> list[PaceEvent]:
        if not silent:
            return []
        first = active[min(silent, key=lambda rank: (active[rank].last_line_at, rank))]
        after = f" after step {first.step}" if first.step >= 0 else ""
        text = (
            f"{format_ranks(silent)} wrote nothing for {_format_time(now - first.last_line_at)}{after}; "
            f"the others are at step {self.front}, a step takes {_format_time(usual / self.stride)}"
        )
        return [PaceEvent("silent", tuple(sorted(silent)), text)]

    def _check_stall(self, now: float, active: _Ranks, usual: float) -> list[PaceEvent]:
        still = now - self._moved_at
        if still <= self.poll and self._has_moved:
            was_stalled, self._is_stalled = self._is_stalled, False
            return [PaceEvent("resumed", (), f"the job continues at step {self.front}")] if was_stalled else []
        patience = max(self.limits.steps * usual, self.limits.least, _PAUSE_MARGIN * self._longest_pause)
        is_busy = any(state.doing for state in active.values())
        if self._is_stalled or still < patience * (_BUSY_FACTOR if is_busy else 1.0):
            return []
        self._is_stalled = True
        behind = sorted(rank for rank, state in active.items() if state.step < self.front)
        named = tuple(behind) if 0 < len(behind) <= len(active) // 4 else ()
        text = (
            f"no rank finished a step for {_format_time(still)} after step {self.front}"
            + (f"; {format_ranks(named)} did not reach it" if named else "")
            + f"; a step usually takes {_format_time(usual / self.stride)}"
        )
        return [PaceEvent("stalled", named, text)]

    def _check_speed(self, active: _Ranks) -> list[PaceEvent]:
        if len(self._first) < _FIRST or len(self._recent) < _RECENT:
            return []
        first, recent = statistics.median(self._first), statistics.median(self._recent)
        duration = _format_time(recent / self.stride)
        if recent <= _USUAL_FACTOR * first:
            self._times_behind.clear()
            self._look_count = 0
            was_slow, self._is_slow = self._is_slow, False
            return [PaceEvent("usual", (), f"a step takes {duration} again")] if was_slow else []
        self._look_count += 1
        for rank, state in active.items():
            if state.step < self.front:
                self._times_behind[rank] = self._times_behind.get(rank, 0) + 1
        if self._is_slow or recent <= _SLOW_FACTOR * first or recent - first <= self.poll:
            return []
        self._is_slow = True
        named = self._slowest_ranks(active)
        who = f"; {format_ranks(named)} {'finishes' if len(named) == 1 else 'finish'} last" if named else ""
        text = f"a step takes {duration}, at first it took {_format_time(first / self.stride)}{who}"
        return [PaceEvent("slow", named, text)]

    def _slowest_ranks(self, active: _Ranks) -> tuple[int, ...]:
        """Return the few ranks that are behind far more often than the others."""
        others = statistics.median([self._times_behind.get(rank, 0) for rank in active])
        least = max(_SLOW_RANK_SHARE * self._look_count, 3 * others + 1)
        slowest = tuple(rank for rank, times in sorted(self._times_behind.items()) if times >= least)
        return slowest if len(slowest) <= max(1, len(active) // 8) else ()


def _back_events(ranks: Sequence[int]) -> list[PaceEvent]:
    verb = "continues" if len(ranks) == 1 else "continue"
    return [PaceEvent("back", tuple(sorted(ranks)), f"{format_ranks(ranks)} {verb}")] if ranks else []


def _format_time(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
