"""Read steps and other activity of the ranks from the lines that were added, in short time slices.

Files that grew are read in rounds; a file that grows again waits for the next round. Ranks can be compared after each
round, because all files were then read equally far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from triage.model.evidence import Origin
from triage.ranks.identity import JobMap
from triage.records.activity import Activity, read_activity
from triage.watch.follow import FollowedFile, Follower, Identity
from triage.watch.pace import PaceMonitor

_SLICE = 0.1  # seconds of reading between two looks for new lines
_TAIL, _SHARED_TAIL = 1 << 12, 1 << 16  # bytes read at the end of the new lines, for one writer and for several


@dataclass
class ProgressReader:
    """Reads grown files and records the activity of each rank in the pace monitor."""

    follower: Follower
    pace: PaceMonitor
    clock: Callable[[], float]
    _job: JobMap = field(default_factory=JobMap)
    _round: dict[Identity, FollowedFile] = field(default_factory=dict)
    _next: dict[Identity, FollowedFile] = field(default_factory=dict)
    _round_start: float = 0.0

    def __post_init__(self) -> None:
        self._poll = self.pace.poll

    def add(self, files: Iterable[FollowedFile]) -> None:
        """Queue files that grew."""
        self._next.update((file.identity, file) for file in files if file.identity not in self._round)

    def read(self, now: float) -> bool:
        """Read queued files for one time slice. Return whether the round is complete."""
        if not self._round:
            self._round, self._next, self._round_start = self._next, {}, now
        until = self.clock() + _SLICE
        while self._round:
            self._read_file(now, self._round.pop(next(iter(self._round))))
            if self.clock() >= until:
                break
        if self._round:
            return False
        # The activity of a rank that was read first is as old as the round.
        self.pace.poll = self._poll + 2 * (now - self._round_start)
        return True

    def hosts(self, ranks: Iterable[int]) -> tuple[str, ...]:
        """Return the known hosts of these ranks."""
        return tuple(dict.fromkeys(host for rank in ranks for host in sorted(self._job.hosts.get(rank, ()))))

    def _read_file(self, now: float, file: FollowedFile) -> None:
        head = self.follower.source_head(file)
        if not file.progress_position:
            for origin in (Origin(), *(activity.origin for activity in head.head_activity)):
                self._job.learn(file.name, origin)
        added = file.position - file.progress_position
        added = added if added >= 0 else file.position
        data = self.follower.tail(file, min(added, _TAIL if file.writer_count <= 1 else _SHARED_TAIL))
        one = file.writer_count <= 1 and self._job.complete(file.name, Origin()).rank is not None
        by_rank: dict[int, list[Activity]] = {}
        for activity in read_activity(
            data, file.position - len(data), 1970, head.layout, whole=len(data) == added, one=one
        ):
            self._job.learn(file.name, activity.origin)
            rank = self._job.complete(file.name, activity.origin).rank
            if rank is not None:
                by_rank.setdefault(rank, []).append(activity)
        for rank, activities in by_rank.items():
            # Earlier steps were read at the same moment, so they say nothing about the pace.
            newest = max((index for index, activity in enumerate(activities) if activity.step is not None), default=0)
            for activity in activities[newest:]:
                self.pace.record(now, rank, activity.step, activity.action, finished=activity.finished)
        file.progress_position, file.writer_count = file.position, max(file.writer_count, len(by_rank))
