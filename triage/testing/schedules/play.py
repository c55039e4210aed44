"""Play a schedule: which calls start and complete, and where each host stands when the watchdog ends the job.

The rules are those of ProcessGroupNCCL. Enqueuing returns at once. Collectives and batches of a group run in order on
the stream of the group; a single send or receive runs on a stream of its pair. A call starts when its stream is free
and what held the device before it is done. A collective completes when all members have started calls of the same
number that match; a transfer when sender and receiver have started the transfer of the same number of their direction.
Each rank's result depends only on what it waits for, so the order of evaluation does not matter.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence

from triage.testing.schedules.model import (
    BYTES,
    FOREVER,
    Activity,
    Call,
    HostTrack,
    Kernel,
    Leave,
    Local,
    Outcome,
    Program,
    Record,
    Schedule,
    Sync,
)

_ENQUEUE = 2e-5  # seconds that a host needs for one call
_LAUNCH = 3e-5
_BANDWIDTH = 1.5e11
_Key = tuple[int, ...]


def play(schedule: Schedule) -> Outcome:
    """Return how far each rank comes. The outcome is final: nothing more would happen, however long one waits."""
    players = [_Player(schedule, rank, program) for rank, program in enumerate(schedule.programs)]
    board = _Board(schedule)
    waiting = deque(players)
    while waiting:
        for player in iter(lambda: waiting.popleft() if waiting else None, None):
            board.add(player.advance())
        moved = board.settle()
        waiting.extend(players[rank] for rank in sorted(moved) if not players[rank].is_done)
    records = tuple(tuple(player.records) for player in players)
    hosts = tuple(HostTrack(tuple(one.spans), one.clock, one.activity, one.has_left) for one in players)
    return Outcome(schedule, records, hosts, _first_timeout(records, schedule.timeout))


def _first_timeout(records: Sequence[Sequence[Record]], timeout: float) -> float | None:
    lasting = [
        one.enqueued + timeout
        for calls in records
        for one in calls
        if one.completed is None or one.completed - one.enqueued > timeout
    ]
    return min(lasting, default=None)


class _Player:
    """The host of one rank and what it has enqueued."""

    def __init__(self, schedule: Schedule, rank: int, program: Program) -> None:
        self.rank = rank
        self.records: list[Record] = []
        self.activity: Activity = "exit"
        self.clock = 0.0
        self.has_left = False
        self.is_done = False
        self._depth = schedule.depth
        self._program = program
        self._place = 0
        self.spans: list[tuple[float, float, Activity]] = []
        self._synced = 0  # the calls before this one are complete
        self._before: list[Record] = []  # the calls that hold the device
        self._kernel = 0.0  # when the device is free of kernels, apart from calls
        self._streams: dict[_Key, Record] = {}
        self._counters: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])

    def advance(self) -> list[Record]:
        """Go on until the host blocks; return what it has enqueued since."""
        start = len(self.records)
        while not self.is_done and self._place < len(self._program):
            step = self._program[self._place]
            if isinstance(step, Call):
                if not self._has_room():
                    self.activity = "queue"
                    break
                self._enqueue(step)
            elif not self._run(step):
                break
            self._place += 1
        if self._place == len(self._program):
            self.activity, self.is_done = "exit", True
        return self.records[start:]

    def _run(self, step: Local | Kernel | Sync | Leave) -> bool:
        """Do a step that is no call; return False if the host blocks in it."""
        if isinstance(step, Local):
            if step.seconds == FOREVER:
                self.activity, self.is_done = step.activity, True
                return False
            self._pass(self.clock + step.seconds, step.activity)
        elif isinstance(step, Kernel):
            self._kernel = max(self._kernel, self.clock) + step.seconds
        elif isinstance(step, Sync):
            ends = [one.completed for one in self.records[self._synced :]]
            if None in ends or self._kernel == FOREVER:
                self.activity = step.activity
                return False
            self._pass(max([self.clock, self._kernel, *(end for end in ends if end is not None)]), step.activity)
            self._synced = len(self.records)
        else:
            self.activity, self.is_done, self.has_left = "exit", True, True
            return False
        return True

    def _pass(self, until: float, activity: Activity) -> None:
        self.spans.append((self.clock, until, activity))
        self.clock = until

    def _has_room(self) -> bool:
        """Whether the host may enqueue: all calls but the last `depth` are complete."""
        if len(self.records) < self._depth:
            return True
        oldest = self.records[-self._depth].completed
        if oldest is None:
            return False
        if oldest > self.clock:
            self._pass(oldest, "queue")
        return True

    def _enqueue(self, call: Call) -> None:
        counters = self._counters[call.group]
        counters[1 if call.is_p2p else 0] += 1
        counters[2] += max(len(call.transfers), 1)
        self.clock += _ENQUEUE
        record = Record(self.rank, call, counters[0], counters[1], counters[2], self.clock)
        stream = (call.group, call.transfers[0].peer) if call.operation in ("send", "recv") else (call.group,)
        earlier = self._before
        before = self._streams.get(stream)
        if before is not None and before not in earlier:
            earlier = [*earlier, before]
        record.ready = max(self.clock, self._kernel)
        for one in earlier:
            if one.completed is None:
                one.followers.append(record)
                record.pending += 1
            elif one.completed > record.ready:
                record.ready = one.completed
        self._streams[stream] = record
        if call.holds_device:
            self._before = [one for one in self._before if one.completed is None] + [record]
        self.records.append(record)


class _Board:
    """All calls of all ranks by what they must match, and those that may start."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._slots: dict[_Key, list[Record]] = defaultdict(list)
        self._counts: dict[_Key, int] = defaultdict(int)
        self._keys: dict[int, tuple[_Key, ...]] = {}
        self._startable: deque[Record] = deque()

    def add(self, records: Iterable[Record]) -> None:
        """Take calls that were just enqueued."""
        for record in records:
            self._keys[id(record)] = tuple(self._number(record))
            if not record.pending:
                self._startable.append(record)

    def _number(self, record: Record) -> Iterable[_Key]:
        call = record.call
        if not call.is_p2p:
            yield call.group, record.collective
        for transfer in call.transfers:
            ends = (record.rank, transfer.peer) if transfer.is_send else (transfer.peer, record.rank)
            counter = (call.group, *ends, int(transfer.is_send))
            self._counts[counter] += 1
            yield call.group, *ends, self._counts[counter]

    def settle(self) -> set[int]:
        """Start and complete what can be; return the ranks of which a call completed."""
        moved: set[int] = set()
        while self._startable:
            record = self._startable.popleft()
            if record.ready == FOREVER:
                continue
            record.started = record.ready + _LAUNCH
            for key in self._keys[id(record)]:
                self._slots[key].append(record)
            for done in self._completed_by(record):
                moved.add(done.rank)
                for follower in done.followers:
                    follower.pending -= 1
                    follower.ready = max(follower.ready, done.completed or 0.0)
                    if not follower.pending:
                        self._startable.append(follower)
        return moved

    def _completed_by(self, record: Record) -> list[Record]:
        """Return the calls that complete because this one started."""
        keys = self._keys[id(record)]
        if not record.call.is_p2p:
            members = self._slots[keys[0]]
            if len(members) < len(self._schedule.groups[record.call.group].ranks) or not self._matches(keys[0]):
                return []
            return self._complete(members, max(one.started or 0.0 for one in members))
        partners = {id(one): one for key in keys for one in self._slots[key]}
        done = [one for one in partners.values() if all(map(self._matches, self._keys[id(one)]))]
        return [
            finished
            for one in done
            for finished in self._complete([one], max(self._partner_start(one), one.started or 0.0))
        ]

    def _partner_start(self, record: Record) -> float:
        return max(one.started or 0.0 for key in self._keys[id(record)] for one in self._slots[key])

    def _complete(self, records: Sequence[Record], start: float) -> list[Record]:
        for one in records:
            one.completed = start + 1e-5 + one.call.numel * BYTES[one.call.dtype] / _BANDWIDTH
        return list(records)

    def _matches(self, key: _Key) -> bool:
        """Whether all that must start for this collective or transfer has, and moves the same bytes."""
        records = self._slots[key]
        if key in self._schedule.broken:
            return False
        if len(key) == 4:
            return len(records) == 2 and _transfer_bytes(records[0], key) == _transfer_bytes(records[1], key)
        return len({match_key(one.call) for one in records}) == 1


def match_key(call: Call) -> tuple[str, int]:
    """Return what members must agree on, that a collective completes. NCCL compares bytes, not types."""
    operation = "all_reduce" if call.operation == "all_reduce_barrier" else call.operation
    return operation, 0 if operation == "all_to_all" else call.numel * BYTES[call.dtype]


def _transfer_bytes(record: Record, key: _Key) -> int:
    is_sender = record.rank == key[1]
    peer = key[2] if is_sender else key[1]
    for transfer in record.call.transfers:
        if transfer.is_send == is_sender and transfer.peer == peer:
            return transfer.numel * BYTES[record.call.dtype]
    return 0
