"""The heartbeat's comparison of calls: neighbours of a group tell each other what they have dispatched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from triage.testing.schedules.evidence.plog_scene import (
    DATA_TYPES,
    OPERATIONS,
    SETUP,
    PlogScene,
    count_elements,
    number_calls,
)

_COMPARED_TYPES = {"AllGather": "allgather", "ReduceScatter": "reduce_scatter"}  # as the heartbeat names them
_MOST_COMPARED = 2  # lines of a pair of neighbours that the writer keeps


def write_checks(plogs: PlogScene) -> dict[int, frozenset[int]]:
    """Write the calls in which neighbours of a group differ; return for each rank the indexes of its calls there.

    The heartbeat compares calls when they are dispatched, whether or not they have started.
    """
    compared: dict[int, set[int]] = defaultdict(set)
    for group, name in enumerate(plogs.names):
        members = plogs.members(group)
        for rank, other in {(one, two) for pair in _neighbours(members) for one, two in (pair, pair[::-1])}:
            for number, (own, theirs) in _differences(plogs, group, rank, other):
                compared[rank].add(own)
                compared[other].add(theirs)
                _write_difference(plogs, f"identifier[{name}] index[{number}]", (rank, own), (other, theirs))
    return {rank: frozenset(indexes) for rank, indexes in sorted(compared.items())}


def _neighbours(members: Sequence[int]) -> Iterator[tuple[int, int]]:
    return zip(members, [*members[1:], members[0]], strict=True)


def _differences(
    plogs: PlogScene, group: int, rank: int, other: int
) -> list[tuple[int, tuple[int, int]]]:  # fmt: skip
    """Return (number, (index of the rank's call, index of the other's)) of the first calls that differ."""
    own, theirs = ({
        number: index
        for index, (record, number) in enumerate(zip(records, number_calls(records), strict=True))
        if record.call.group == group and not record.call.is_p2p
    } for records in (plogs.views[rank].records, plogs.views[other].records))  # fmt: skip
    different = [
        (number, (own[number], theirs[number]))
        for number in sorted(own.keys() & theirs.keys())
        if _describe(plogs, rank, own[number]) != _describe(plogs, other, theirs[number])
    ]
    return different[:_MOST_COMPARED]


def _describe(plogs: PlogScene, rank: int, index: int) -> str:
    call = plogs.views[rank].records[index].call
    name = OPERATIONS[call.operation]
    kind = _COMPARED_TYPES.get(name, name.lower())
    count = count_elements(call, len(plogs.members(call.group)))
    return f"optype[{kind}] dataType[{DATA_TYPES[call.dtype]}] reduceOp[sum] count[{count}] root[0]"


def _write_difference(plogs: PlogScene, call: str, own: tuple[int, int], other: tuple[int, int]) -> None:
    job = plogs.job
    nodes = [f"{job.server(rank)}/{job.device(rank)}" for rank, _ in (own, other)]
    local, remote = (f"node[{node}] {_describe(plogs, *one)}" for node, one in zip(nodes, (own, other), strict=True))
    at = SETUP + 1.5 + max(plogs.views[rank].records[index].enqueued for rank, index in (own, other))
    text = f"[Heartbeat]check opinfo inconsistent. {call}, local({local}); remote({remote})"
    job.log(own[0], "ERROR", text, at=at, place="heartbeat.cc:811")
    event = f"local rank [{nodes[0]}]: crimer rank [{nodes[0]}] status[INCONSISTENT] by informer rank [{nodes[0]}]"
    text = f"[TaskExecStage][HeartbeatAbnormal]{event}"
    job.log(own[0], "INFO", text, at=at, place="heartbeat.cc:951")
