"""One look after the other at a job that runs: read what was added, diagnose when it asks for it, say what has to be said."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from triage import pipeline
from triage.errors import InputError
from triage.model import Diagnosis, News, Origin
from triage.ranks.identity import JobMap
from triage.ranks.last import PROGRESS, words
from triage.ranks.layouts import PLAIN, Layout, layout_of
from triage.watch.follow import Follower, Growing, Identity
from triage.watch.pace import Pace
from triage.watch.policy import Policy, alone

_FIND = 2.0  # seconds between looks for new files
_AGAIN = 10.0  # seconds until lines of failure of a kind that was seen before are thought about
_SHARE = 0.25  # of the time may go into diagnosing
_TAIL, _TAILS = 1 << 12, 1 << 16  # bytes at the end of what was added that tell how far one writer is, and many
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
    _find_at: float = 0.0
    _look_at: float = 0.0
    _hit: float | None = None  # when the last line of failure came
    _grown: float = 0.0
    _open: bool = False  # lines of failure came that no diagnosis has seen
    _opened: float = 0.0  # since when
    _urgent: bool = False
    _whole: bool = False
    _job: JobMap = field(default_factory=JobMap)
    _layouts: dict[Identity, Layout] = field(default_factory=dict)
    _heard: dict[Identity, tuple[int, int]] = field(default_factory=dict)  # place up to which words were heard, writers seen

    def __post_init__(self) -> None:
        self._grown = self.clock()

    def step(self) -> list[News]:
        """Read what came, and say what has to be said now."""
        now = self.clock()
        if now >= self._find_at:
            self.follower.find(now)
            self._find_at = self.clock() + max(_FIND, 10 * (self.clock() - now))
        growth = self.follower.grow(now)
        if growth.grown:
            self._grown, self._whole = now, False
        if growth.hits:
            if self._hit is None or not self._open:
                self._opened = now
                self._look_at = max(self._look_at, now + self.policy.manners.settle)  # the line that decides may be the next
            self._hit, self._open = now, True
            self._urgent |= growth.kinds > 0
        events = self._failures(now, grown=bool(growth.grown))
        for file in growth.grown:
            self._hear(now, file)
        remarks = self.pace.remarks(now)
        if not (self.policy.failed or self.policy.pending):
            events += [News(remark.kind, self.wall(), remark.text, remark.ranks) for remark in remarks]
        return events

    def end(self) -> list[News]:
        """The last look, at everything that is there."""
        now = self.clock()
        self.follower.find(now)
        while self.follower.grow(now).behind:
            pass
        return self._finally(now) if self._hit is not None else []

    @property
    def idle(self) -> float:
        """Seconds since any file grew."""
        return self.clock() - self._grown

    def _failures(self, now: float, *, grown: bool) -> list[News]:
        if self._hit is None:
            return []
        if self.policy.failed and not self._whole and now - self._grown >= _OVER:
            return self._finally(now)
        waiting = self.policy.pending or (self.policy.failed and grown)
        if now < self._look_at or not (self._urgent or waiting or (self._open and now - self._hit >= _AGAIN)):
            return []
        opened, self._open, self._urgent = self._opened, False, False
        diagnosis = pipeline.look(self.follower.paths, self.follower.seen(), self.follower.options)
        took = self.clock() - now
        self._look_at = self.clock() + took * (1 / _SHARE - 1)
        busy = alone(diagnosis) and self._went_on(diagnosis)
        event = self.policy.judge(self.clock(), self.wall(), diagnosis, now - self._hit, since=opened, idle=now - self._grown, busy=busy)
        return [event] if event else []

    def _went_on(self, diagnosis: Diagnosis) -> bool:
        """Did steps follow what the diagnosis blames, in the same file?"""
        fact = diagnosis.root_cause.evidence[0] if diagnosis.root_cause and diagnosis.root_cause.evidence else None
        file = next((file for file in self.follower.files.values() if fact is not None and file.name == fact.source), None)
        if fact is None or file is None:
            return False
        data = self.follower.tail(file, min(_TAILS, max(0, file.place - fact.end)))
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

    def _hear(self, now: float, file: Growing) -> None:
        """The steps in what was added at the end of a file."""
        heard, writers = self._heard.get(file.identity, (0, 1))
        if file.identity not in self._heard:
            self._job.learn(file.name, Origin())
        added = file.place - heard if file.place >= heard else file.place
        data = self.follower.tail(file, min(added, _TAIL if writers <= 1 else _TAILS))
        layout = self._layouts.get(file.identity, PLAIN)
        if file.identity not in self._layouts and file.place >= _TAIL:
            layout = self._layouts[file.identity] = layout_of(data)
        seen = set()
        for word in words(data, file.place - len(data), 1970, layout, whole=len(data) == added):
            self._job.learn(file.name, word.origin)
            rank = self._job.complete(file.name, word.origin).rank
            if rank is not None:
                seen.add(rank)
                self.pace.saw(now, rank, word.step, word.doing, finished=word.finished)
        self._heard[file.identity] = file.place, max(writers, len(seen))
