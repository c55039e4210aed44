"""What NCCL's RAS subsystem answers to `ncclras`, as text and as JSON.

Format: src/ras/client_support.cc of NCCL 2.24 to 2.29. A part of a communicator that few ranks belong to is listed
rank by rank; of the others only the number of ranks stands there.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

OPERATIONS = ("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce")
"""Collectives that NCCL counts, in its order; sends and receives are not counted."""
PER_NODE = 8
_MOST_LISTED = 10
_TABLE = (
    "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
    "    #  in group  per comm  per node  per comm  in group\n"
)
Counts = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Manner:
    """The version of NCCL (2.25 counts all collectives together), whether `-v` was given, and whether it is JSON."""

    version: tuple[int, int]
    is_verbose: bool = False
    lists_all: bool = False

    def is_listed(self, count: int, total: int) -> bool:
        """Whether the ranks of a part of `count` of `total` ranks are listed."""
        if count == 1 or self.lists_all:
            return True
        return count < total * 0.5 if self.is_verbose else count <= min(_MOST_LISTED, total * 0.25)


@dataclass(frozen=True, slots=True)
class Communicator:
    """A communicator: its hash, its global ranks in their order, and by living rank its counts of OPERATIONS."""

    hash: int
    ranks: tuple[int, ...]
    counts: Mapping[int, Counts]

    def splits(self, version: tuple[int, int]) -> list[tuple[str, dict[int, list[int]]]]:
        """Return (operation, count to global ranks) of each operation of which the ranks have different counts."""
        if version < (2, 26):
            named = [("collective", {rank: sum(counts) for rank, counts in self.counts.items()})]
        else:
            named = [
                (name, {rank: counts[index] for rank, counts in self.counts.items()})
                for index, name in enumerate(OPERATIONS)
            ]
        parts = []
        for name, values in named:
            ranks: dict[int, list[int]] = defaultdict(list)
            for rank in sorted(values):
                ranks[values[rank]].append(rank)
            if len(ranks) > 1:
                parts.append((name, dict(ranks)))
        return parts

    @property
    def missing(self) -> list[int]:
        """The global ranks whose processes do not answer."""
        return [rank for rank in self.ranks if rank not in self.counts]


def process_of(rank: int) -> tuple[str, int, int]:
    """Return the node, the process id and the GPU of a global rank."""
    return f"10.24.3.{11 + rank // PER_NODE}", 2310400 + 7 * rank, rank % PER_NODE


def write_text(
    size: int, communicators: Sequence[Communicator], dead: Sequence[int], manner: Manner, elapsed: float
) -> str:
    """Return the answer to `status` or `verbose status`, gathered in `elapsed` seconds."""
    minor = manner.version[1]
    nodes = -(-size // PER_NODE)
    parts = [
        f"NCCL version 2.{minor}.3+cuda12.8 compiled with CUDA 12.8\n"
        "CUDA runtime version 12080, driver version 12080\n",
        "Job summary\n===========\n",
        "  Nodes  Processes         GPUs  Processes     GPUs\n(total)   per node  per process    (total)  (total)\n"
        f"{nodes:7d}  {min(size, PER_NODE):9d}  {1:11d}  {size:9d}  {size:7d}\n",
        f"Communicators... ({elapsed:.{2 if minor < 26 else 3}f}s)\n=============\n",
    ]
    groups = _group(communicators, manner)
    table = "".join(_row(number, group, manner) for number, group in enumerate(groups))
    parts += [_TABLE + table if groups else "No communicator data collected!\n", "Errors\n======\n"]
    if dead:
        are = "es are" if len(dead) > 1 else " is"
        lines = [f"DEAD\n  {len(dead)} job process{are} considered dead (unreachable via the RAS network)\n"]
        if manner.is_verbose or len(dead) <= _MOST_LISTED:
            lines += [
                f"  Process {pid} on node {node} managing GPU {gpu}\n" for node, pid, gpu in map(process_of, dead)
            ]
        parts.append("".join(lines))
    named = [(f"#{x}-{y} ({one.hash:016x})", one) for x, group in enumerate(groups) for y, one in enumerate(group)]
    parts += [_incomplete(name, one, manner) for name, one in named if one.missing]
    parts.append("Warnings\n========\n")
    parts += [_mismatch(name, one, manner) for name, one in named if one.splits(manner.version)]
    return "\n".join(parts) + ("" if parts[-1].endswith("\n\n") else "\n")


def _group(communicators: Sequence[Communicator], manner: Manner) -> list[list[Communicator]]:
    def key(one: Communicator) -> tuple[int, int, int]:
        errors = 4 * bool(one.missing) + bool(one.splits(manner.version))
        return -len(one.ranks), -len(_per_node(one)), -errors

    ordered = sorted(communicators, key=lambda one: (*key(one), len(one.counts)))
    return [list(same) for _, same in groupby(ordered, key)]


def _per_node(one: Communicator) -> list[int]:
    nodes: dict[int, int] = defaultdict(int)
    for rank in one.counts:
        nodes[rank // PER_NODE] += 1
    return sorted(nodes.values())


def _row(number: int, group: Sequence[Communicator], manner: Manner) -> str:
    first = group[0]
    per_node = [count for one in group for count in _per_node(one)]
    spread = str(min(per_node)) if min(per_node) == max(per_node) else f"{min(per_node)}-{max(per_node)}"
    ranks = len({rank for one in group for rank in one.counts})
    errors = ",".join(
        [*(["INCOMPLETE"] if first.missing else []), *(["MISMATCH"] if first.splits(manner.version) else [])]
    )
    return (
        f"{number:5d}  {len(group):8d}  {len(_per_node(first)):8d}  {spread:>8}  {len(first.ranks):8d}  {ranks:8d}  "
        f"{'RUNNING':>8}  {errors or 'OK':>6}\n"
    )


def _incomplete(name: str, one: Communicator, manner: Manner) -> str:
    count = len(one.missing)
    text = f"{name} INCOMPLETE\n  Missing communicator data from {count} rank{'s' if count > 1 else ''}\n"
    if manner.version < (2, 26):
        local = ", ".join(str(one.ranks.index(rank)) for rank in one.missing)
        return text + f"  The missing rank{'s' if count > 1 else ''}: {local}\n"
    return text + "".join(_listed(one, rank) for rank in one.missing)


def _listed(one: Communicator, rank: int, launched: str = "") -> str:
    node, pid, gpu = process_of(rank)
    return f"  Rank {one.ranks.index(rank)}{launched} -- GPU {gpu} managed by process {pid} on node {node}\n"


def _mismatch(name: str, one: Communicator, manner: Manner) -> str:
    text = f"{name} MISMATCH\n"
    for operation, parts in one.splits(manner.version):
        text += f"  Communicator ranks have different {operation} operation counts\n"
        for count, ranks in sorted(parts.items(), key=lambda item: (-len(item[1]), -item[0])):
            has_none = not count and manner.version >= (2, 26)
            launched = "have not launched any operations" if has_none else f"have launched up to operation {count}"
            if len(ranks) == 1:
                text += _listed(one, ranks[0], f" {launched.replace('have', 'has', 1)}")
                continue
            text += f"  {len(ranks)} ranks {launched}\n"
            if manner.is_listed(len(ranks), len(one.ranks)):
                text += "".join(_listed(one, rank) for rank in ranks)
        text += "\n"
    return text


def write_json(communicators: Sequence[Communicator], dead: Sequence[int], time: str) -> str:
    """Return the answer to `status` after `set format json`; NCCL indents it in the same way."""
    report = {
        "nccl_version": "2.28.9+cuda12.9",
        "cuda_runtime_version": 12090,
        "cuda_driver_version": 13000,
        "timestamp": time,
        "communicators_count": len(communicators),
        "communicators": [_to_json(one, dead) for one in communicators],
        "ras": {"collection_time_sec": 0.004, "timeouts_count": 0},
    }
    return json.dumps(report, indent=2) + "\n"


def _to_json(one: Communicator, dead: Sequence[int]) -> dict[str, Any]:
    status = {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False}
    ranks = [
        {**_process(one, rank), "status": status, "collective_counts": dict(zip(OPERATIONS, counts, strict=True))}
        for rank, counts in sorted(one.counts.items())
    ]
    missing = [
        {**_process(one, rank), "status": {"unresponsive": True, "considered_dead": rank in dead}}
        for rank in one.missing
    ]
    return {
        "hash": f"0x{one.hash:x}",
        "secondary_hash": f"0x{one.hash ^ 0x5EED:x}:0x{one.hash >> 3:x}",
        "size": len(one.ranks),
        "ranks_count": len(ranks),
        "missing_ranks_count": len(missing),
        "ranks": ranks,
        "missing_ranks": missing,
    }


def _process(one: Communicator, rank: int) -> dict[str, Any]:
    node, pid, gpu = process_of(rank)
    return {"rank": one.ranks.index(rank), "host": node, "pid": pid, "cuda_dev": gpu, "nvml_dev": gpu}
