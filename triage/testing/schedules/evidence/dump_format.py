"""The content of a Flight Recorder dump of one rank (torch/csrc/distributed/c10d/FlightRecorder.hpp).

Versions 2.0 to 2.10. Rules that are easily missed: `started` is known only with TORCH_NCCL_ENABLE_TIMING; the members
of a batch of sends and receives stay `scheduled` for ever, only the entry `coalesced` after them has a state; the
status of a group has the number of its last enqueued work, of whichever kind that was; the identity of a group on this
rank (`pg_id`) counts the groups of this rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triage.testing.schedules.evidence.stack_frames import call_frames
from triage.testing.schedules.model import Call, Group, RankView, Record

_OUTPUT_FACTORS = ("_all_gather_base", "all_gather")


@dataclass(frozen=True, slots=True)
class DumpStyle:
    """How torch was configured: `minor` of the version 2.x, `capacity` of the ring, and what is written."""

    minor: int = 5
    capacity: int = 2000
    has_timing: bool = False
    is_active_only: bool = False
    has_frames: bool = True
    is_json: bool = False
    script: str = "/workspace/train.py"


def dump_content(
    view: RankView, groups: Sequence[Group], style: DumpStyle, start: float, timeout: float
) -> tuple[dict[str, Any], frozenset[int]]:
    """Return the dump and the indexes of the calls that are in it."""
    local = {index: place for place, index in enumerate(own_groups(groups, view.rank))}
    rows = [
        (index, row)
        for index, record in enumerate(view.records)
        for row in _rows(record, groups[record.call.group], style)
    ]
    first = max(len(rows) - style.capacity, 0)
    entries, shown = [], set()
    for number, (index, row) in list(enumerate(rows))[first:]:
        record = view.records[index]
        if style.is_active_only and row["state"] == "completed":
            continue
        shown.add(index)
        entries.append(_entry(number, row, record, groups[record.call.group], local, style, start, timeout))
    content: dict[str, Any] = {"version": f"2.{style.minor}"}
    if style.minor >= 6:
        content["comm_lib_version" if style.minor >= 10 else "nccl_version"] = "2.26.2"
    content["pg_config"] = {
        groups[index].name: {
            "name": groups[index].name,
            "desc": groups[index].description,
            "ranks": "[" + ", ".join(map(str, groups[index].ranks)) + "]",
        }
        for index in local
    }
    if style.minor >= 3:
        content["pg_status"] = _statuses(view, local, style)
    if entries or not style.is_json:
        content["entries"] = entries
    return content, frozenset(shown)


def own_groups(groups: Sequence[Group], rank: int) -> list[int]:
    """Return the indexes of the groups of a rank in the order in which it created them."""
    return [index for index, group in enumerate(groups) if rank in group.ranks]


def state_of(record: Record, has_timing: bool) -> str:
    """Return the state that a dump shows of a call."""
    if record.completed is not None:
        return "completed"
    return "started" if has_timing and record.started is not None else "scheduled"


def _rows(record: Record, group: Group, style: DumpStyle) -> Iterator[dict[str, Any]]:
    """Yield the parts of the entries of one call that depend on its kind."""
    call = record.call
    state = state_of(record, style.has_timing)
    if call.operation != "coalesced":
        own, peer = _local_pair(record, group)
        name = _profiling_name(call, own, peer, style)
        yield {"name": name, "state": state, "input": call.numel, "output": _output(call, group), "op": 0}
        return
    for offset, transfer in enumerate(call.transfers):
        own, peer = group.ranks.index(record.rank), group.ranks.index(transfer.peer)
        name = f"send {own}->{peer}" if transfer.is_send else f"recv {own}<-{peer}"
        behind = len(call.transfers) - 1 - offset
        yield {"name": name, "state": "scheduled", "input": transfer.numel, "output": transfer.numel, "op": -behind}
    yield {"name": "coalesced", "state": state, "input": None, "output": None, "op": 0}


def _local_pair(record: Record, group: Group) -> tuple[int, int]:
    transfers = record.call.transfers
    return (group.ranks.index(record.rank), group.ranks.index(transfers[0].peer)) if transfers else (0, 0)


def _profiling_name(call: Call, own: int, peer: int, style: DumpStyle) -> str:
    if call.operation == "send":
        return f"send {own}->{peer}"
    if call.operation == "recv":
        return f"recv {own}<-{peer}"
    if call.operation == "all_reduce_barrier" and style.minor < 5:
        return "all_reduce"
    return call.operation


def _output(call: Call, group: Group) -> int:
    if call.operation in _OUTPUT_FACTORS:
        return call.numel * len(group.ranks)
    if call.operation == "_reduce_scatter_base":
        return call.numel // len(group.ranks)
    return call.numel


def _entry(
    number: int, row: Mapping[str, Any], record: Record, group: Group, local: Mapping[int, int], style: DumpStyle,
    start: float, timeout: float,
) -> dict[str, Any]:  # fmt: skip
    call = record.call
    is_done = row["state"] == "completed"
    pair = (group.name, group.description)
    entry: dict[str, Any] = {
        "record_id": number,
        "pg_id": local[call.group],
        "process_group": list(pair) if style.is_json else pair,
        "collective_seq_id": record.collective,
        "p2p_seq_id": record.p2p,
        "op_id": record.operation_id + row["op"],
        "profiling_name": f"nccl:{row['name']}",
        "time_created_ns": _nanoseconds(start, record.enqueued),
        "input_sizes": [] if row["input"] is None else [[row["input"]]],
        "output_sizes": [] if row["output"] is None else [[row["output"]]],
        "state": row["state"],
        "time_discovered_started_ns": _discovered(record.started, row, style, start, style.has_timing),
        "time_discovered_completed_ns": _discovered(record.completed, row, style, start, is_done),
        "retired": is_done,
        "timeout_ms": int(timeout * 1000),
        "is_p2p": call.is_p2p,
    }
    if style.minor >= 3:
        types = [] if row["input"] is None else [call.dtype]
        entry["input_dtypes"], entry["output_dtypes"] = types, list(types)
    if style.minor >= 9:
        entry["thread_id"], entry["thread_name"] = "139873519863616", "pt_main_thread"
    if style.has_timing and is_done and record.started is not None and record.completed is not None:
        entry["duration_ms"] = (record.completed - record.started) * 1000
    if style.has_frames and not style.is_json:
        entry = {"frames": call_frames(call, style.script), **entry}
    return entry


def _discovered(
    time: float | None, row: Mapping[str, Any], style: DumpStyle, start: float, is_known: bool
) -> int | None:
    if time is None or not is_known or row["state"] == "scheduled":
        return 0 if style.is_json else None
    return _nanoseconds(start, time + 0.05)


def _nanoseconds(start: float, time: float) -> int:
    return int(start) * 10**9 + int((start % 1 + time) * 10**9)


def _statuses(view: RankView, local: Mapping[int, int], style: DumpStyle) -> dict[str, dict[str, Any]]:
    """Return the numbers of the groups that the rank has used."""
    statuses: dict[str, dict[str, Any]] = {}
    for index, place in local.items():
        records = [record for record in view.records if record.call.group == index]
        if not records:
            continue
        started = [one.sequence for one in records if one.started is not None]
        completed = [one.sequence for one in records if one.completed is not None]
        numbers = {
            "last_enqueued_collective": records[-1].sequence,
            "last_started_collective": started[-1] if started and style.has_timing else -1,
            "last_completed_collective": completed[-1] if completed else -1,
        }
        statuses[str(place)] = {key: str(value) if style.is_json else value for key, value in numbers.items()}
    return statuses
