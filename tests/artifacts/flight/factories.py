"""Dumps as torch writes them, from a simulator in which every rank runs a list of calls and waits for the others."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triage.artifacts.flight.analyse import analyse
from triage.artifacts.flight.load import Loaded
from triage.artifacts.flight.model import Analysis, Recording
from triage.artifacts.flight.recording import RecordingBuilder

START = 1_795_000_000_000_000_000
WORLD = "world"


@dataclass(frozen=True)
class Call:
    """One call of a rank: a collective of a group, or `send`/`recv` with a global `peer`.

    `place` is (file, line, function); with `works` False the collective never ends.
    """

    op: str = "all_reduce"
    group: str = WORLD
    size: tuple[int, ...] = (64,)
    dtype: str = "Float"
    place: tuple[str, int, str] | None = ("train.py", 10, "step")
    peer: int | None = None
    works: bool = True
    ms: float | None = None


@dataclass
class Job:
    """A simulated job.

    `groups` are members by name. A rank may have `window` calls open (1: it waits for each, as with Gloo); `ring` is
    the size of the ring buffer.
    """

    calls: Mapping[int, Sequence[Call]]
    groups: Mapping[str, Sequence[int]] = field(default_factory=dict)
    window: int = 1
    backend: str = "nccl"
    ring: int | None = None

    def dumps(self) -> dict[int, dict[str, Any]]:
        """Run until no rank can proceed, and return the dump of each rank."""
        groups = {WORLD: sorted(self.calls), **self.groups}
        texts = {name: str(list(members)) for name, members in groups.items()}
        groups_of: dict[int, list[str]] = {rank: [] for rank in self.calls}
        for name, members in groups.items():
            for rank in members:
                groups_of[rank].append(name)
        numbers = {name: number for number, name in enumerate(groups)}
        entered: dict[tuple[Any, ...], dict[int, Call]] = {}
        keys = {rank: list(_keys(rank, calls)) for rank, calls in self.calls.items()}
        position = dict.fromkeys(self.calls, 0)
        first_open = dict.fromkeys(self.calls, 0)
        outcomes: dict[tuple[Any, ...], bool] = {}

        def is_complete(key: tuple[Any, ...]) -> bool:
            full = len(entered[key]) == (2 if isinstance(key[0], tuple) else len(groups[key[0]]))
            if full and key not in outcomes:
                outcomes[key] = _calls_match(key, entered)
            return outcomes.get(key, False)

        moved = True
        while moved:
            moved = False
            for rank, calls in self.calls.items():
                while first_open[rank] < position[rank] and is_complete(keys[rank][first_open[rank]]):
                    first_open[rank] += 1
                    moved = True
                if position[rank] < len(calls) and position[rank] - first_open[rank] < self.window:
                    entered.setdefault(keys[rank][position[rank]], {})[rank] = calls[position[rank]]
                    position[rank] += 1
                    moved = True
        shared = {name: (str(number), "default_pg" if name == WORLD else name) for name, number in numbers.items()}
        dumps = {}
        for rank in self.calls:
            dump = self._dump(rank, groups, numbers, shared, keys[rank], position[rank], first_open[rank])
            config = {
                shared[name][0]: {"name": shared[name][0], "desc": shared[name][1], "ranks": texts[name]}
                for name in groups_of[rank]
            }
            if self.backend == "gloo":
                config = {"": {"name": "", "desc": "", "ranks": texts[WORLD] if len(groups) == 1 else "[]"}}
            dumps[rank] = {**dump, "pg_config": config}
        return dumps

    def _dump(
        self, rank: int, groups: Any, numbers: Any, shared: Any, keys: list[tuple[Any, ...]], end: int, done: int
    ) -> dict[str, Any]:
        frames: dict[tuple[str, int, str], dict[str, Any]] = {}
        entries, p2p_seq = [], 0
        for index, call in enumerate(self.calls[rank][:end]):
            p2p_seq += call.peer is not None
            finished = index < done
            name = call.op
            if call.peer is not None:
                members = list(groups[call.group])
                name = f"{call.op} {members.index(rank)}{'->' if call.op == 'send' else '<-'}{members.index(call.peer)}"
            gloo = self.backend == "gloo"
            entry: dict[str, Any] = {
                "frames": _stack(call.place, frames) if call.place else [],
                "record_id": index,
                "pg_id": numbers[call.group],
                "process_group": shared[call.group],
                "collective_seq_id": keys[index][1] if call.peer is None else 0,
                "p2p_seq_id": p2p_seq,
                "op_id": index + 1,
                "profiling_name": f"{self.backend}:{name}",
                "time_created_ns": START + index * 50_000_000 + rank * 1000,
                "input_sizes": [list(call.size)],
                "input_dtypes": [call.dtype],
                "output_sizes": [list(call.size)],
                "output_dtypes": [call.dtype],
                "state": "scheduled"
                if gloo
                else "completed"
                if finished
                else "started"
                if index == done
                else "scheduled",
                "time_discovered_started_ns": None,
                "time_discovered_completed_ns": None,
                "retired": finished,
                "timeout_ms": 600000,
                "is_p2p": call.peer is not None,
            }
            if call.ms is not None:
                entry["duration_ms"] = call.ms
            entries.append(entry)
        if self.ring:
            entries = entries[-self.ring :]
        return {
            "version": "2.10",
            "pg_config": {},
            "comm_lib_version": "2.27.3",
            "pg_status": _status(entries),
            "entries": entries,
        }


def _keys(rank: int, calls: Sequence[Call]) -> Iterable[tuple[Any, ...]]:
    """Yield the identity of each call: the n-th of its group, or the n-th between two ranks."""
    counts: dict[Any, int] = {}
    for call in calls:
        channel: Any = call.group
        if call.peer is not None:
            channel = (call.group, rank, call.peer) if call.op == "send" else (call.group, call.peer, rank)
        counts[channel] = counts.get(channel, 0) + 1
        yield (channel, counts[channel])


def _calls_match(key: tuple[Any, ...], entered: Mapping[tuple[Any, ...], Mapping[int, Call]]) -> bool:
    """Whether all ranks made the same call, and it works."""
    calls = set(entered[key].values())
    if isinstance(key[0], tuple):
        return len({(call.size, call.dtype) for call in calls}) == 1
    return len({(call.op, call.size, call.dtype) for call in calls}) == 1 and all(call.works for call in calls)


def _stack(place: tuple[str, int, str], frames: dict[tuple[str, int, str], dict[str, Any]]) -> list[dict[str, Any]]:
    file, line, name = place
    torch = ("/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", 3245, "all_reduce")
    return [
        frames.setdefault(frame, {"name": frame[2], "filename": frame[0], "line": frame[1]})
        for frame in (torch, (f"/opt/train/{file}", line, name), ("/opt/train/main.py", 7, "<module>"))
    ]


def _status(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    status: dict[str, Any] = {}
    for entry in entries:
        if not entry["is_p2p"]:
            now = status.setdefault(
                str(entry["pg_id"]), {f"last_{state}_collective": -1 for state in ("enqueued", "started", "completed")}
            )
            now["last_enqueued_collective"] = now["last_started_collective"] = entry["collective_seq_id"]
            if entry["retired"]:
                now["last_completed_collective"] = entry["collective_seq_id"]
    return status


class _TorchPickler(pickle._Pickler):  # type: ignore[name-defined]
    """Writes protocol 2 as torch's C++ pickler does: the memo holds strings, frames and tuples of groups."""

    def memoize(self, obj: Any) -> None:
        if isinstance(obj, (str, tuple)) or (isinstance(obj, dict) and "filename" in obj):
            super().memoize(obj)

    def _batch_appends(self, items: Iterable[Any], *_: Any) -> None:
        self.write(pickle.MARK)
        for item in items:
            self.save(item)
        self.write(pickle.APPENDS)

    def _batch_setitems(self, items: Iterable[tuple[Any, Any]], *_: Any) -> None:
        self.write(pickle.MARK)
        for key, value in items:
            self.save(key)
            self.save(value)
        self.write(pickle.SETITEMS)


def as_pickle(dump: Any) -> bytes:
    """Return the bytes that torch writes, with equal strings as one object."""
    strings: dict[str, str] = {}

    def share(value: Any) -> Any:
        if isinstance(value, str):
            return strings.setdefault(value, value)
        if isinstance(value, list):
            for index, item in enumerate(value):
                value[index] = share(item)
        elif isinstance(value, dict):
            for key in list(value):
                value[strings.setdefault(key, key)] = share(value.pop(key))
        return value

    target = io.BytesIO()
    _TorchPickler(target, 2).dump(share(dump))
    return target.getvalue()


def as_json(dump: Mapping[str, Any]) -> bytes:
    """Return torch's JSON: without stacks, the status as text, 0 for no time."""
    entries = [
        {key: (0 if value is None else value) for key, value in entry.items() if key != "frames"}
        for entry in dump["entries"]
    ]
    status = {name: {key: str(value) for key, value in group.items()} for name, group in dump["pg_status"].items()}
    return json.dumps({**dump, "entries": entries, "pg_status": status}, sort_keys=True, separators=(",", ":")).encode()


def write(job: Job, directory: Path, prefix: str = "fr_rank_") -> Path:
    """Write one pickle for each rank."""
    directory.mkdir(parents=True, exist_ok=True)
    for rank, dump in job.dumps().items():
        (directory / f"{prefix}{rank}").write_bytes(as_pickle(dump))
    return directory


def recording(job: Job, without: Iterable[int] = ()) -> Recording:
    """Return the recording of a job, without files."""
    builder = RecordingBuilder()
    for rank, dump in job.dumps().items():
        if rank not in set(without):
            builder.add(rank, f"fr_rank_{rank}", Loaded(dump, True))
    return builder.build()


def analysis(job: Job, without: Iterable[int] = ()) -> Analysis:
    """Return the analysis of a job."""
    return analyse(recording(job, without))


def without_starts(dumps: dict[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return dumps as NCCL writes them without timing: no call is ever `started`."""
    for dump in dumps.values():
        for entry in dump["entries"]:
            entry["state"] = "scheduled" if entry["state"] == "started" else entry["state"]
        for numbers in dump["pg_status"].values():
            numbers["last_started_collective"] = -1
    return dumps


def only_open(dumps: dict[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return dumps of the calls in flight (`onlyActive`)."""
    for dump in dumps.values():
        dump["entries"] = [entry for entry in dump["entries"] if entry["state"] != "completed"]
    return dumps


def analyse_dumps(dumps: Mapping[int, Mapping[str, Any]], written: float | None = None) -> Analysis:
    """Return the analysis of dumps, with the time at which their files were written."""
    builder = RecordingBuilder()
    for rank, dump in dumps.items():
        builder.add(rank, f"fr_rank_{rank}", Loaded(dump, True), written=written)
    return analyse(builder.build())
