"""The pace of a healthy job, and who falls out of it: a rank that stops while others go on, steps that slow down, no
step at all.

Steps are seen when they are read, by this machine's clock; what the stamps in the lines say plays no part. All times
are seconds of one
monotonic clock. Nothing here reads anything: it is told of steps and asked for remarks.
"""

from __future__ import annotations

import bisect
import statistics
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["silent", "back", "slow", "usual", "stalled", "resumed"]

_WORDS = 5  # words of a rank that names no steps, before silence means anything
_LEARNED = 3  # steps of a rank before anything is expected of it
_LATE = 2.0  # usual steps without a word, after which a rank that most others left behind is silent
_MOST = 0.75  # of the others are "most"
_RECENT, _BASE = 8, 24  # steps that say how long one takes now, and how long one took at first
_SLOWER, _USUAL = 2.0, 1.3
_LONG, _ONCE = 4.0, 2  # so much longer than usual is a pause, unless it comes more often than so many times in a row
_GRACE = 10.0  # a rank that said it saves, evaluates or compiles may take so many times longer
_PAUSE = 2.0  # so much longer than the longest pause so far may the next one be
_NAMED = 0.2  # of the looks at a slow job a rank must have been behind, and far oftener than others, to be named


@dataclass(frozen=True, slots=True)
class Limits:
    """`steps`: usual steps without any progress that make a stall, but never fewer than `least` seconds."""

    steps: float = 30.0
    least: float = 180.0


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about the pace. `ranks` are those it is about (none: all of them)."""

    kind: Kind
    ranks: tuple[int, ...]
    text: str


@dataclass(slots=True)
class _Rank:
    step: int
    at: float  # when this step was first seen
    spoke: float
    steps: int = 0
    doing: str = ""
    finished: bool = False
    words: int = 0
    gap: float = 0.0  # the longest between two words
    lateness: float = 0.0  # the longest it was behind most others and came back
    silent: bool = False
    passed: float | None = None  # since when most others are further


@dataclass
class Pace:
    """Told by `saw`, asked by `remarks`; both in the order of time."""

    limits: Limits = Limits()
    poll: float = 0.5
    _ranks: dict[int, _Rank] = field(default_factory=dict)
    _base: list[float] = field(default_factory=list)
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    front: int = -1  # the furthest step of any rank
    _strides: deque[int] = field(default_factory=lambda: deque(maxlen=_BASE))
    _moved: float = 0.0
    _pause: float = 0.0
    _long: list[float] = field(default_factory=list)
    _slow: bool = False
    _stalled: bool = False
    _went: bool = False  # a step was seen to be made
    _last: dict[int, int] = field(default_factory=dict)
    _looks: int = 0

    def saw(self, now: float, rank: int, step: int | None, doing: str = "", *, finished: bool = False) -> None:
        """A line of `rank` was read; `step` is the last that it named."""
        state = self._ranks.setdefault(rank, _Rank(-1, now, now))
        state.gap = max(state.gap, now - state.spoke)
        state.spoke, state.words = now, state.words + 1
        state.doing = doing or state.doing
        state.finished = finished
        if step is None or step == state.step:
            return
        if step < state.step:  # an epoch's counter starts again, or the job does
            state.step, state.at, state.passed = step, now, None
            self.front = max(other.step for other in self._ranks.values())
            self._moved = now
            return
        state.steps += 1 if state.step >= 0 else 0
        state.step, state.at, state.doing = step, now, doing
        if step > self.front:
            self._advance(now, step)

    def remarks(self, now: float) -> list[Remark]:
        """What has to be said now that was not said before."""
        active = {rank: state for rank, state in self._ranks.items() if not state.finished}
        usual = self.usual
        if usual is None:
            return []
        if not active:
            return self._done()
        return [*self._silences(now, active, usual), *self._stall(now, active, usual), *self._slowness(active)]

    def recall(self, now: float, wrong: Iterable[str], base: Iterable[float]) -> None:
        """Go on after a restart: what an `Episode` said is wrong, and how long steps took at first. Nothing of it is
        said again.
        """
        self._moved = now
        self._base = list(base)[:_BASE]
        for name in wrong:
            kind, _, rank = name.partition(" ")
            if kind == "silent":
                self._ranks[int(rank)] = _Rank(-1, now, now, silent=True)
            self._slow |= kind == "slow"
            self._stalled |= kind == "stalled"

    @property
    def base(self) -> tuple[float, ...]:
        """How long steps took at first."""
        return tuple(self._base)

    def _done(self) -> list[Remark]:
        """All ranks finished: none is silent, and no step is owed."""
        back = [rank for rank, state in self._ranks.items() if state.silent]
        for rank in back:
            self._ranks[rank].silent = False
        was, self._stalled = self._stalled, False
        return [*_returned(back), *([Remark("resumed", (), "all ranks finished")] if was else [])]

    @property
    def usual(self) -> float | None:
        """The usual seconds from one print of steps to the next, once some were seen."""
        durations = [*self._base, *self._recent]
        return statistics.median(durations) if len(durations) >= _LEARNED else None

    @property
    def stride(self) -> int:
        """How many steps there are from one print to the next (some programs print every tenth; fast ones make several
        between two looks).
        """
        return max(1, round(statistics.median(self._strides))) if self._strides else 1

    def _advance(self, now: float, step: int) -> None:
        if self.front >= 0 and now > self._moved:
            self._went = True
            took = now - self._moved
            self._strides.append(step - self.front)
            usual = self.usual
            if usual is not None and took > _LONG * usual and len(self._long) < _ONCE:
                self._pause = max(self._pause, took)  # a checkpoint, an evaluation: no step
                self._long.append(took)
            else:
                self._base += [took] * (len(self._base) < _BASE)
                self._recent.extend((*self._long, took) if len(self._long) == _ONCE else (took,))
                self._long.clear()
        self.front, self._moved = step, now

    def _silences(self, now: float, active: dict[int, _Rank], usual: float) -> list[Remark]:
        if len(active) < 3:
            return []
        stride, steps = self.stride, sorted(state.step for state in active.values())
        silent: list[int] = []
        back: list[int] = []
        for rank, state in active.items():
            ahead = len(steps) - bisect.bisect_right(
                steps, state.step + stride
            )  # one step may be a wait for this very rank
            if ahead < _MOST * (len(active) - 1) and not self._alone(now, state, active, usual):
                if state.silent:
                    back.append(rank)
                if state.passed is not None:
                    state.lateness = max(state.lateness, now - state.at)
                state.passed, state.silent = None, False
                continue
            state.passed = now if state.passed is None else state.passed
            patience = max(_LATE * usual, 1.5 * state.lateness) + self.poll
            if state.doing:
                patience = max(_GRACE * patience, self.limits.least)
            known = state.steps >= _LEARNED or state.step < 0
            if not state.silent and known and now - state.spoke >= patience and now > state.passed:
                state.silent = True
                silent.append(rank)
        return [*self._gone(now, silent, active, usual), *_returned(back)]

    def _alone(self, now: float, state: _Rank, active: dict[int, _Rank], usual: float) -> bool:
        """Did a rank that names no steps stop its words, while most others speak?"""
        patience = max(_LATE * usual, 3 * state.gap)
        if state.step >= 0 or state.words < _WORDS or now - state.spoke <= patience:
            return False
        return sum(now - other.spoke <= patience / 2 for other in active.values()) >= _MOST * (len(active) - 1)

    def _gone(self, now: float, silent: Sequence[int], active: dict[int, _Rank], usual: float) -> list[Remark]:
        if not silent:
            return []
        first = min(silent, key=lambda rank: (active[rank].spoke, rank))
        after = f" after step {active[first].step}" if active[first].step >= 0 else ""
        words = f"{_said(silent)} said nothing for {_time(now - active[first].spoke)}{after}"
        return [
            Remark(
                "silent",
                tuple(sorted(silent)),
                f"{words}; the others are at step {self.front}, a step takes {_time(usual / self.stride)}",
            )
        ]

    def _stall(self, now: float, active: dict[int, _Rank], usual: float) -> list[Remark]:
        still = now - self._moved
        if still <= self.poll and self._went:
            was, self._stalled = self._stalled, False
            return [Remark("resumed", (), f"the job goes on, at step {self.front}")] if was else []
        patience = max(self.limits.steps * usual, self.limits.least, _PAUSE * self._pause)
        busy = sorted({state.doing for state in active.values() if state.doing})
        if self._stalled or still < patience * (_GRACE if busy else 1.0):
            return []
        self._stalled = True
        behind = sorted(rank for rank, state in active.items() if state.step < self.front)
        odd = tuple(behind) if 0 < len(behind) <= len(active) // 4 else ()
        who = f"; {_said(odd)} did not reach it" if odd else ""
        return [
            Remark(
                "stalled",
                odd,
                f"no rank made a step for {_time(still)}, the last was step {self.front}{who}; usual are {_time(usual / self.stride)}",
            )
        ]

    def _slowness(self, active: dict[int, _Rank]) -> list[Remark]:
        if len(self._base) < _BASE or len(self._recent) < _RECENT:
            return []
        base, recent = statistics.median(self._base), statistics.median(self._recent)
        if recent <= _USUAL * base:
            self._last.clear()
            self._looks = 0
            was, self._slow = self._slow, False
            return [Remark("usual", (), f"a step takes {_time(recent / self.stride)} again")] if was else []
        self._looks += 1
        for rank, state in active.items():
            if state.step < self.front:
                self._last[rank] = self._last.get(rank, 0) + 1
        if self._slow or recent <= _SLOWER * base or recent - base <= self.poll:
            return []
        self._slow = True
        others = statistics.median([self._last.get(rank, 0) for rank in active])
        late = [
            rank for rank, times in sorted(self._last.items()) if times >= max(_NAMED * self._looks, 3 * others + 1)
        ]
        named = tuple(late) if 0 < len(late) <= max(1, len(active) // 8) else ()
        who = f"; {_said(named)} comes last" if named else ""
        return [
            Remark(
                "slow",
                named,
                f"a step takes {_time(recent / self.stride)}, it took {_time(base / self.stride)} at first{who}",
            )
        ]


def _returned(back: Sequence[int]) -> list[Remark]:
    return (
        [Remark("back", tuple(sorted(back)), f"{_said(back)} {'go' if len(back) > 1 else 'goes'} on")] if back else []
    )


def _said(ranks: Sequence[int]) -> str:
    shown = sorted(ranks)
    if len(shown) == 1:
        return f"rank {shown[0]}"
    return "ranks " + ", ".join(map(str, shown[:8])) + (f" and {len(shown) - 8} more" if len(shown) > 8 else "")


def _time(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
