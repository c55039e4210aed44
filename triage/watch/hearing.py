"""The steps in what was added to the files, a slice of time at once, so that five hundred files hold nothing up.

What grew is heard in rounds: a file that grows again is heard again in the next one. Only after a round all ranks were
asked alike, and may be
compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from triage.model.evidence import Origin
from triage.ranks.identity import JobMap
from triage.ranks.last import Word, words
from triage.watch.follow import Follower, Growing, Identity
from triage.watch.pace import Pace

_SLICE = 0.1  # seconds of hearing between two looks for growth
_TAIL, _TAILS = 1 << 12, 1 << 16  # bytes at the end of what was added that tell how far one writer is, and many


@dataclass
class Hearing:
    """Told what grew, it tells the pace of steps and last words."""

    follower: Follower
    pace: Pace
    clock: Callable[[], float]
    _job: JobMap = field(default_factory=JobMap)
    _round: dict[Identity, Growing] = field(default_factory=dict)
    _next: dict[Identity, Growing] = field(default_factory=dict)
    _began: float = 0.0

    def __post_init__(self) -> None:
        self._poll = self.pace.poll

    def grew(self, files: Iterable[Growing]) -> None:
        """These are to be heard."""
        self._next.update((file.identity, file) for file in files if file.identity not in self._round)

    def hear(self, now: float) -> bool:
        """Hear for a slice of time; was everything heard that there was when the round began?"""
        if not self._round:
            self._round, self._next, self._began = self._next, {}, now
        until = self.clock() + _SLICE
        while self._round:
            self._hear(now, self._round.pop(next(iter(self._round))))
            if self.clock() >= until:
                break
        if self._round:
            return False
        self.pace.poll = self._poll + 2 * (now - self._began)  # a rank that was heard first is so much older
        return True

    def hosts(self, ranks: Iterable[int]) -> tuple[str, ...]:
        """The hosts of these ranks, as far as their lines or the names of their files say."""
        return tuple(dict.fromkeys(host for rank in ranks for host in sorted(self._job.hosts.get(rank, ()))))

    def _hear(self, now: float, file: Growing) -> None:
        opening = self.follower.opening(file)
        if not file.heard:
            for origin in (Origin(), *(word.origin for word in opening.words)):
                self._job.learn(file.name, origin)
        added = file.place - file.heard if file.place >= file.heard else file.place
        data = self.follower.tail(file, min(added, _TAIL if file.writers <= 1 else _TAILS))
        one = file.writers <= 1 and self._job.complete(file.name, Origin()).rank is not None
        found: dict[int, list[Word]] = {}
        for word in words(data, file.place - len(data), 1970, opening.layout, whole=len(data) == added, one=one):
            self._job.learn(file.name, word.origin)
            rank = self._job.complete(file.name, word.origin).rank
            if rank is not None:
                found.setdefault(rank, []).append(word)
        for rank, said in found.items():
            newest = max((index for index, word in enumerate(said) if word.step is not None), default=0)
            for word in said[newest:]:  # the steps before were all read at once, they tell nothing of the pace
                self.pace.saw(now, rank, word.step, word.doing, finished=word.finished)
        file.heard, file.writers = file.place, max(file.writers, len(found))
