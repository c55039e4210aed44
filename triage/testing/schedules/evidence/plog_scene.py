"""What the writers of plogs share: the job at its moment, and how HCCL names and counts calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from triage.testing.plogs import Handler, PlogJob
from triage.testing.schedules.evidence.interface import Scene
from triage.testing.schedules.model import Call, RankView, Record
from triage.testing.schedules.observe import Situation

SETUP = 60.0  # seconds from the start of the processes to the first step
OPERATIONS = {
    "all_reduce": "AllReduce", "all_reduce_barrier": "AllReduce", "broadcast": "Broadcast", "reduce": "Reduce",
    "all_gather": "AllGather", "_all_gather_base": "AllGather", "_reduce_scatter_base": "ReduceScatter",
    "all_to_all": "ALLTOALLV", "coalesced": "worldBatchSendRecv",
}  # fmt: skip
DATA_TYPES = {"Float": "float32", "BFloat16": "bfloat16", "Half": "float16", "Long": "int64", "Int": "int32",
               "Byte": "uint8", "Double": "float64"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Manner:
    """What HCCL writes of a timeout: the waited rank, the call, or neither; `has_check`: the heartbeat compares calls.

    `is_complete`: each process lives until it has timed out itself.
    """

    has_peer: bool
    has_call: bool
    has_check: bool
    is_complete: bool
    handler: Handler


@dataclass(frozen=True, slots=True)
class PlogScene:
    """A job at its moment, with the plogs that are being written. `names` are those of the communicators."""

    scene: Scene
    views: Sequence[RankView]
    situation: Situation
    job: PlogJob
    names: Sequence[str]
    manner: Manner

    def members(self, group: int) -> Sequence[int]:
        """Return the global ranks of a group."""
        return self.scene.outcome.schedule.groups[group].ranks


def make_tag(record: Record, members: Sequence[int], name: str) -> str:
    """Return the tag of a call in the communicator `name`; that of a transfer names both ends."""
    call = record.call
    if call.operation not in ("send", "recv"):
        return f"{OPERATIONS[call.operation]}_{name}"
    ends = (record.rank, call.transfers[0].peer)
    source, target = ends if call.transfers[0].is_send else ends[::-1]
    return f"worldCommSendRecv_{members.index(source)}_{members.index(target)}_{name}"


def count_elements(call: Call, size: int) -> int:
    """Return the number of elements as HCCL counts them."""
    if call.operation in ("all_to_all", "coalesced"):
        return 0
    return call.numel // size if call.operation == "_reduce_scatter_base" else call.numel


def number_calls(records: Sequence[Record]) -> list[int]:
    """Return for each call of a rank its number within its communicator, from 0."""
    counts: dict[int, int] = defaultdict(int)
    numbers = []
    for record in records:
        numbers.append(counts[record.call.group])
        counts[record.call.group] += 1
    return numbers
