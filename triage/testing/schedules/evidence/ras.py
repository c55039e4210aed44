"""Reports of NCCL's RAS subsystem, asked once or twice while the job hangs, also beside the watchdogs' lines."""

from __future__ import annotations

import hashlib
import random
import time
from collections import Counter

from triage.testing.schedules.evidence.interface import Form, Scene, Shown, WrittenEvidence, merge
from triage.testing.schedules.evidence.ras_report import (
    OPERATIONS,
    PER_NODE,
    Communicator,
    Manner,
    write_json,
    write_text,
)
from triage.testing.schedules.evidence.watchdog import write_logs
from triage.testing.schedules.model import RankView, view

_NCCL_NAMES = {
    "all_reduce": "AllReduce", "all_reduce_barrier": "AllReduce", "broadcast": "Broadcast", "reduce": "Reduce",
    "all_gather": "AllGather", "_all_gather_base": "AllGather", "_reduce_scatter_base": "ReduceScatter",
}  # fmt: skip
_VERSIONS = (24, 25, 26, 27, 28, 29)
_NAMES = ("ras.txt", "ncclras.txt", "ncclras-{}.log", "hang/ras_status.out")
_PAUSE = 3.0  # seconds between two reports
_WATCHDOGS = ((2, 6), (2, 8), (2, 9), (2, 13))


def name_operation(operation: str) -> str:
    """Return NCCL's name of an operation; empty for one that NCCL does not count."""
    return _NCCL_NAMES.get(operation, "")


def count_operations(one: RankView, group: int) -> tuple[int, ...]:
    """Return how many of each of OPERATIONS a rank launched in a group."""
    names = Counter(name_operation(record.call.operation) for record in one.records if record.call.group == group)
    return tuple(names[name] for name in OPERATIONS)


def _communicators(scene: Scene, moment: float) -> list[tuple[int, Communicator]]:
    """Return the communicators that all members have joined, each with the index of its group."""
    views = [view(scene.outcome, rank, moment) for rank in range(scene.outcome.schedule.size)]
    communicators = []
    for index, group in enumerate(scene.outcome.schedule.groups):
        has_joined = all(any(one.call.group == index for one in views[rank].records) for rank in group.ranks)
        if len(group.ranks) > 1 and has_joined:
            number = int.from_bytes(hashlib.sha256(f"{scene.start}{group.name}".encode()).digest()[:8], "big")
            living = {rank: count_operations(views[rank], index) for rank in group.ranks if not views[rank].has_left}
            communicators.append((index, Communicator(number, group.ranks, living)))
    return [(index, one) for index, one in communicators if one.counts]


def _shown(scene: Scene, manner: Manner, is_json: bool) -> dict[int, Shown]:
    """Return what the last report shows: it names a rank where its place in the communicator of all is known."""
    views, communicators = scene.views(), _communicators(scene, scene.moment)
    size = len(views)
    world = next((one for _, one in communicators if len(one.ranks) == size), None)
    named = _list_ranks(world, manner) if world is not None else set()
    if is_json or size <= PER_NODE:
        named = set(range(size)) if world is not None or size <= PER_NODE else set()
    differing = {index for index, one in communicators if one.splits(manner.version)}
    shown = {}
    for one in views:
        groups = {
            index
            for index, each in communicators
            if one.rank in each.ranks and _is_shown(each, one.rank, manner, named, size)
        }
        records = frozenset(
            number
            for number, record in enumerate(one.records)
            if record.call.group in differing and name_operation(record.call.operation)
        )
        counted = frozenset(groups) if manner.version >= (2, 26) else frozenset[int]()
        is_named = world is not None or (not is_json and one.rank in named)
        shown[one.rank] = Shown(
            one, has_numbers=frozenset(groups & differing), has_types=False, has_members=False, counted=records,
            op_counts=counted, has_left=one.has_left and is_named,
        )  # fmt: skip
    return shown


def _is_shown(one: Communicator, rank: int, manner: Manner, named: set[int], size: int) -> bool:
    """Whether the counts of a rank follow from what is listed: it is, or it is of the one part that is not."""
    listed, is_of_all = _list_ranks(one, manner), len(one.ranks) == size
    if rank in listed:
        return is_of_all or rank in named
    splits = [parts for _, parts in one.splits(manner.version)]
    return is_of_all and all(sum(not listed.issuperset(same) for same in parts.values()) < 2 for parts in splits)


def _list_ranks(one: Communicator, manner: Manner) -> set[int]:
    """Return the ranks of a communicator that its text lists."""
    splits = [parts for _, parts in one.splits(manner.version)]
    listed = {
        rank
        for parts in splits
        for same in parts.values()
        for rank in same
        if manner.is_listed(len(same), len(one.ranks))
    }
    return listed | set(one.missing)


def _write_report(scene: Scene, moment: float, manner: Manner, is_json: bool) -> str:
    communicators = [one for _, one in _communicators(scene, moment)]
    size = scene.outcome.schedule.size
    dead = [rank for rank in range(size) if view(scene.outcome, rank, moment).has_left]
    if is_json:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(scene.start + moment))
        return write_json(communicators, dead, stamp)
    return write_text(size, communicators, dead, manner, 0.002 + moment % 0.05)


def _write(is_json: bool, count: int, scene: Scene, rng: random.Random) -> WrittenEvidence:
    manner = Manner((2, 28 if is_json else rng.choice(_VERSIONS)), rng.random() < 0.5, lists_all=is_json)
    moments = [scene.moment - _PAUSE * step for step in reversed(range(count))]
    texts = [_write_report(scene, moment, manner, is_json) for moment in moments]
    name = "ras.json" if is_json else rng.choice(_NAMES).format("node0")
    files = {name: "".join(texts).encode()}
    if count > 1 and rng.random() < 0.5:
        files = {f"{number}-{name.replace('/', '-')}": text.encode() for number, text in enumerate(texts)}
    return WrittenEvidence(files, _shown(scene, manner, is_json))


def _write_once(scene: Scene, rng: random.Random) -> WrittenEvidence:
    return _write(False, 1, scene, rng)


def _write_json(scene: Scene, rng: random.Random) -> WrittenEvidence:
    return _write(True, 1, scene, rng)


def _write_twice(scene: Scene, rng: random.Random) -> WrittenEvidence:
    return _write(rng.random() < 0.3, 2, scene, rng)


def _write_with_logs(scene: Scene, rng: random.Random) -> WrittenEvidence:
    return merge(write_logs(scene, rng, _WATCHDOGS), _write(rng.random() < 0.3, 1, scene, rng))


FORMS = (
    Form("ras", _write_once),
    Form("ras-json", _write_json),
    Form("ras-twice", _write_twice),
    Form("ras+watchdog", _write_with_logs),
)
