"""One look after the other at a job that runs: read what was added, diagnose when it asks for it, say what has to be
said.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from triage import pipeline
from triage.base.errors import InputError
from triage.model.diagnosis import Diagnosis
from triage.model.watch import Episode, News
from triage.ranks.last import PROGRESS
from triage.watch import episodes
from triage.watch.follow import Follower, Growth
from triage.watch.hearing import Hearing
from triage.watch.memory import Memory
from triage.watch.pace import Pace
from triage.watch.policy import Policy, alone

_FIND = 2.0  # seconds between looks for new files
_AGAIN = 10.0  # seconds between looks for lines of failure of kinds that were seen before
_SHARE, _LEAST = 0.25, 2.0  # of the time may go into diagnosing, and so many seconds lie between two looks
_AHEAD = 10.0  # but what is new may take so many seconds of it in advance
_A_FILE = 0.003  # seconds that a file takes to diagnose, before that was measured
_BEHIND = 1 << 16  # bytes behind a failure in which steps are looked for
_OVER = 20.0  # seconds without growth after a failure, when the job is looked at as a whole


@dataclass
class Watch:
    """Call `step` again and again; it gives what has to be said. `clock` is monotonic, `wall` the time of day."""

    follower: Follower
    pace: Pace = field(default_factory=Pace)
    policy: Policy = field(default_factory=Policy)
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    last: Diagnosis | None = None  # the newest whole diagnosis of a job that failed
    episode: Episode | None = None  # what is out of step, or was the last time
    _find_at: float = 0.0
    _hit: float | None = None  # when the last line of failure came
    _grown: float = 0.0
    _open: bool = False  # lines of failure came that no diagnosis has seen
    _opened: float = 0.0  # since when
    _urgent: bool = False
    _settled: float = 0.0  # when the next diagnosis may begin, for the line that decides may follow the first
    _paid: float = 0.0  # when the share of time that diagnosing took will have gone by
    _looked: float = float("-inf")
    _took: float | None = None  # seconds of the last diagnosis
    _whole: bool = False
    _held: list[News] = field(default_factory=list)  # of the pace, while it is not known whether the job failed

    def __post_init__(self) -> None:
        self._grown = self.clock()
        self._hearing = Hearing(self.follower, self.pace, self.clock)

    def recall(self, kept: Memory) -> None:
        """Go on where an earlier watch of the same files was."""
        self.policy.recall(kept.said, kept.unsure)
        self.episode = kept.episode
        self.pace.recall(self.clock(), kept.episode.wrong if kept.episode else (), kept.base)

    def memory(self, unsure: Iterable[int] = ()) -> Memory:
        """What a later watch needs for that; `unsure`: attempts that are told in this moment."""
        return Memory(dict(self.policy.said), frozenset(unsure), self.episode, self.pace.base)

    def step(self) -> list[News]:
        """Read what came, and say what has to be said now."""
        now = self.clock()
        if now >= self._find_at:
            self.follower.find(now)
            self._find_at = self.clock() + max(_FIND, 10 * (self.clock() - now))
        growth = self.follower.grow(now)
        self._hearing.grew(growth.grown)
        if growth.grown:
            self._grown, self._whole = now, False
        if growth.hits:
            self._was_hit(now, growth)
        events = self._failures(now, grown=bool(growth.grown))
        if not (
            self._urgent and now - self._opened < 2 * self.policy.manners.settle
        ):  # else it is told in a moment; the pace can wait
            events += self._paces(now)
        for event in events:
            self.episode = episodes.after(self.episode, event)
        return events

    def _paces(self, now: float) -> list[News]:
        """What is to be said of the pace: nothing of a job that failed."""
        if self._hearing.hear(now):
            self._held += [
                News(remark.kind, self.wall(), remark.text, remark.ranks, hosts=self._hearing.hosts(remark.ranks))
                for remark in self.pace.remarks(now)
            ]
        if self.policy.pending:
            return []
        said, self._held = self._held, []
        return [] if self.policy.failed else said

    def _was_hit(self, now: float, growth: Growth) -> None:
        if self._hit is None or not self._open:
            settle = self.policy.manners.settle
            took = _A_FILE * len(self.follower.files) if self._took is None else self._took
            self._opened, self._settled = now, now + max(settle - took, settle / 4)
        self._hit, self._open = now, True
        self._urgent |= growth.kinds > 0 or now - self._looked >= _AGAIN

    def end(self) -> list[News]:
        """The last look, at everything that is there."""
        now = self.clock()
        self.follower.find(now)
        while self.follower.grow(now).behind:
            pass
        events = self._finally(now) if self._hit is not None else []
        for event in events:
            self.episode = episodes.after(self.episode, event)
        return events

    @property
    def idle(self) -> float:
        """Seconds since any file grew."""
        return self.clock() - self._grown

    def _failures(self, now: float, *, grown: bool) -> list[News]:
        if self._hit is None:
            return []
        if self.policy.failed and not self._whole and now - self._grown >= _OVER:
            return self._finally(now)
        waiting = self.policy.pending or self._open or (self.policy.failed and grown)
        if now < self._settled or not (now >= self._paid - _AHEAD if self._urgent else waiting and now >= self._paid):
            return []
        return self._look(now, now - self._hit)

    def _look(self, now: float, calm: float) -> list[News]:
        opened, self._open, self._urgent = self._opened, False, False
        diagnosis = pipeline.look(self.follower.paths, self.follower.seen(), self.follower.options)
        self._looked = self.clock()
        self._took = self._looked - now
        self._paid = max(self._paid, self._looked) + max(_LEAST, self._took * (1 / _SHARE - 1))
        busy = alone(diagnosis) and self._went_on(diagnosis)
        settled = max(self._looked, opened + self.policy.manners.settle)  # the diagnosis takes a part of that time
        event = self.policy.judge(
            settled, self.wall(), diagnosis, calm, since=opened, idle=now - self._grown, busy=busy
        )
        return [event] if event else []

    def _went_on(self, diagnosis: Diagnosis) -> bool:
        """Did steps follow what the diagnosis blames, in the same file?"""
        fact = diagnosis.root_cause.evidence[0] if diagnosis.root_cause and diagnosis.root_cause.evidence else None
        file = next(
            (file for file in self.follower.files.values() if fact is not None and file.name == fact.source), None
        )
        if fact is None or file is None:
            return False
        data = self.follower.tail(file, min(_BEHIND, max(0, file.place - fact.end)))
        return PROGRESS.search(data.decode("utf-8", "replace")) is not None

    def _finally(self, now: float) -> list[News]:
        """Nothing comes any more: now cores, dumps and archives count too."""
        self._whole = True
        try:
            self.last = pipeline.ingest(self.follower.paths, self.follower.options)
        except InputError:  # everything was removed
            return []
        event = self.policy.judge(now, self.wall(), self.last, _OVER, final=True)
        return [event] if event else []
