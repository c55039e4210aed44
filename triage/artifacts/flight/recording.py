"""Dumps → one recording: the newest dump of each rank, its entries as columns, and groups that are the same group on
all ranks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from triage.artifacts.flight.columns import Interned, Tables, usable
from triage.artifacts.flight.load import Loaded
from triage.artifacts.flight.model import COMPLETED, Dump, Group, Recording, Table
from triage.artifacts.flight.packed import Packed
from triage.artifacts.flight.shares import Handed
from triage.artifacts.interface import ArtifactError
from triage.model.evidence import Warning

KNOWN = (2, 10)
"""The newest format that was looked at: torch 2.13."""
_COLUMNS = (
    "record",
    "group",
    "seq",
    "p2p",
    "op",
    "shape",
    "dtype",
    "stack",
    "state",
    "created",
    "retired",
    "is_p2p",
    "duration",
    "timeout",
)
_NAMED = {
    "record": "record_id",
    "seq": "collective_seq_id",
    "p2p": "p2p_seq_id",
    "created": "time_created_ns",
    "timeout": "timeout_ms",
}
_NEWER = "new-dump-version"
_SHARED = ("op", "shape", "dtype", "stack", "group")
"""Columns of indices into the lists that the dumps share."""
_TOLD = ("rank", "source", "failure", "version", "library", "whole", "config", "status", "last_time", "framed")
_LIBRARIES = ("comm_lib_version", "nccl_version", "hccl_version", "mccl_version", "bccl_version")
_DEFAULT = "default_pg"
_MAX_RANKS = 1 << 20
MAX_ENTRIES = 24_000_000
"""Of all dumps together, 75 bytes each: ten thousand ranks with a full ring, and what small compressed files can unfold to."""


@dataclass
class _One:
    """One dump as it was read."""

    rank: int
    source: str
    failure: int
    columns: dict[str, Any]
    version: str
    library: str
    whole: bool
    config: dict[str, int]
    status: dict[int, tuple[int, int, int]]
    last_time: int = 0
    framed: bool = False

    @property
    def order(self) -> tuple[Any, ...]:
        """Of several dumps of one rank the last is the best: by failure, by time, then the one with frames."""
        return (self.failure, self.last_time, len(self.columns["record_id"]), self.framed, self.source)


@dataclass
class Builder:
    """Takes dumps one by one, so that only one is in memory as a tree."""

    notes: list[tuple[str, str | None, str]] = field(default_factory=list)
    _entries: int = 0
    _tables: Tables = field(default_factory=Tables)
    _ones: dict[int, _One] = field(default_factory=dict)
    _members: Interned[tuple[int, ...]] = field(default_factory=Interned)

    def add(self, rank: int, source: str, loaded: Loaded, failure: int = 0) -> None:
        """One dump. Raises ArtifactError for data that is no dump."""
        self._hold(self._one(rank, source, loaded, failure))

    def hand(self, warnings: list[Warning]) -> Handed:
        """All that was read, for another process."""
        lists = {name + "s": getattr(self._tables, name + "s").values for name in _SHARED} | {
            "members": self._members.values
        }
        told = [({name: getattr(one, name) for name in _TOLD}, one.columns) for one in self._ones.values()]
        return Handed(told, lists, self.notes, warnings)

    def take(self, handed: Handed) -> None:
        """What another process has read. No dump can be added afterwards."""
        index = {name: getattr(self._tables, name + "s").join(handed.lists[name + "s"]) for name in _SHARED}
        members = self._members.join(handed.lists["members"])
        self.notes += [
            note for note in handed.notes if note[0] != _NEWER or all(code != _NEWER for code, _, _ in self.notes)
        ]
        for told, columns in handed.ones:
            columns |= {name: index[name][columns[name]] for name in _SHARED}
            config = {name: int(members[number]) for name, number in told["config"].items()}
            status = {int(number): tuple(values) for number, values in told["status"].items()}
            self._hold(_One(**{**told, "columns": columns, "config": config, "status": status}))

    def _hold(self, one: _One) -> None:
        """The later one of two dumps of one rank, as far as there is room."""
        rank, source = one.rank, one.source
        self._entries += len(one.columns["record_id"])
        if self._entries > MAX_ENTRIES:
            self._entries -= len(one.columns["record_id"])
            self.notes.append(
                (
                    "too-many-entries",
                    source,
                    f"left out, because the dumps before it hold {self._entries:,} entries already",
                )
            )
            return
        other = self._ones.get(rank)
        self._ones[rank] = one if other is None else max(one, other, key=lambda each: each.order)
        if other is not None and _stem(source) != _stem(other.source):
            left = min(one, other, key=lambda each: each.order).source
            self.notes.append(
                ("older-dump", left, f"left out, because {self._ones[rank].source} is a later dump of rank {rank}")
            )

    def _one(self, rank: int, source: str, loaded: Loaded, failure: int) -> _One:
        value = loaded.value if isinstance(loaded.value, dict) else {"entries": loaded.value}
        entries = value.get("entries", [])
        if not isinstance(entries, (list, Packed)) or (
            "entries" not in value and "pg_config" not in value and "pg_status" not in value
        ):
            raise ArtifactError(
                "plain data, but no Flight Recorder dump", hint="a dump has entries, pg_config and pg_status"
            )
        good = (
            entries
            if isinstance(entries, Packed) or (loaded.whole and all(map(usable, entries)))
            else list(filter(usable, entries))
        )
        if entries and not good and loaded.whole:
            raise ArtifactError(
                "none of its entries can be read", hint="is it a dump of a newer torch? tell the maintainers"
            )
        if len(good) < len(entries) or not loaded.whole:
            lost = len(entries) - len(good)
            self.notes.append(
                (
                    "cut-dump",
                    source,
                    f"the dump of rank {rank} ends early or is damaged: {len(good)} entries read, {lost} lost",
                )
            )
        try:
            columns = self._tables.read(good)
        except (TypeError, ValueError, OverflowError, RecursionError, KeyError, AttributeError) as error:
            raise ArtifactError(
                f"its entries are not as torch writes them ({type(error).__name__})", hint="look at the file itself"
            ) from error
        version = str(value.get("version", ""))[:40]
        self._check_version(version, source)
        return _One(
            rank,
            source,
            failure,
            columns,
            version,
            next((str(value[key])[:40] for key in _LIBRARIES if value.get(key)), ""),
            loaded.whole,
            self._config(value.get("pg_config")),
            _status(value.get("pg_status")),
            int(columns["time_created_ns"].max()) if len(good) else 0,
            bool(columns["stack"].any()) if len(good) else False,
        )

    def _check_version(self, version: str, source: str) -> None:
        numbers = re.fullmatch(r"(\d{1,3})\.(\d{1,3})", version)
        if (
            numbers
            and (int(numbers[1]), int(numbers[2])) > KNOWN
            and not any(code == _NEWER for code, _, _ in self.notes)
        ):
            message = (
                f"format {version} is newer than {KNOWN[0]}.{KNOWN[1]}, the newest known; what is known of it was read"
            )
            self.notes.append((_NEWER, source, message))

    def _config(self, config: Any) -> dict[str, int]:
        """Group name to the index of its members. torch writes them as text: `[0, 1]`, the same long text in the dump
        of every rank.
        """
        found: dict[str, int] = {}
        for name, group in config.items() if isinstance(config, dict) else ():
            if isinstance(group, dict):
                ranks = group.get("ranks", "")
                text = (
                    ranks
                    if isinstance(ranks, str)
                    else ",".join(str(rank) for rank in ranks)
                    if isinstance(ranks, list)
                    else ""
                )
                found[str(name)] = self._members.index(text, lambda text=text: _numbers(text))  # type: ignore[misc]
        return found

    def build(self) -> Recording:
        """All of them together. With no dump at all, an empty recording."""
        import numpy as np

        ones = [self._ones[rank] for rank in sorted(self._ones)]
        groups, index = _groups(ones, self._tables, self._members.values)
        dumps: dict[int, Dump] = {}
        start = 0
        for one in ones:
            end = start + len(one.columns["record_id"])
            named = {local: index[one.rank, local] for local in _distinct(one.columns["group"])}
            records = one.columns["record_id"]
            dumps[one.rank] = Dump(
                one.rank, one.source, one.version, one.library, end - start,
                int(records.min()) if end > start else 0, one.last_time, one.whole, start, end,
                {named[local]: one.status[pg] for local in named if (pg := self._tables.groups.values[local][0]) in one.status},
            )  # fmt: skip
            start = end
            mapping = np.zeros(len(self._tables.groups.values), dtype=np.int32)
            for local, group in named.items():
                mapping[local] = group
            one.columns["group"] = mapping[one.columns["group"]]
        columns = {name: _joined(ones, _NAMED.get(name, name)) for name in _COLUMNS}
        rank = np.repeat(
            np.array([one.rank for one in ones], dtype=np.int32), [dump.entries for dump in dumps.values()]
        )
        done = columns["state"] == COMPLETED
        quiet = np.array([op.partition(":")[0] == "gloo" for op in self._tables.ops.values] or [False])
        if len(rank):
            done |= columns["retired"] & quiet[columns["op"]]  # gloo writes no states; what it is done with is retired
        return Recording(
            dumps, groups, Table(rank=rank, done=done, **columns), tuple(self._tables.ops.values), tuple(self._tables.shapes.values),
            tuple(self._tables.dtypes.values), tuple(self._tables.stacks.values), tuple(self.notes),
        )  # fmt: skip


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(sorted({rank for number in re.findall(r"\d{1,7}", text) if (rank := int(number)) < _MAX_RANKS}))


def _stem(source: str) -> str:
    """A dump and its JSON twin are one."""
    return re.sub(r"\.json(?=$|\.)", "", source)


def _joined(ones: list[_One], name: str) -> Any:
    import numpy as np

    if not ones:
        return np.zeros(
            0, dtype=np.float32 if name == "duration" else np.bool_ if name in ("retired", "is_p2p") else np.int64
        )
    return np.concatenate([one.columns.pop(name) if name != "group" else one.columns[name] for one in ones])


def _status(status: Any) -> dict[int, tuple[int, int, int]]:
    """Group id to (last enqueued, last started, last completed); JSON writes the numbers as text."""
    found = {}
    for number, state in status.items() if isinstance(status, dict) else ():
        if isinstance(state, dict) and str(number).isdigit():
            values = [str(state.get(f"last_{word}_collective", -1)) for word in ("enqueued", "started", "completed")]
            if all(re.fullmatch(r"-?\d{1,18}", value) for value in values):
                found[int(number)] = (int(values[0]), int(values[1]), int(values[2]))
    return found


def _groups(
    ones: Sequence[_One], tables: Tables, members: Sequence[tuple[int, ...]]
) -> tuple[tuple[Group, ...], dict[tuple[int, int], int]]:
    """The groups of the job, and for (rank, index in that rank's names) which of them it is.

    NCCL states the members of each group. Gloo of torch 2.13 keeps one nameless entry that later groups overwrite, so
    there
    the members are those that have entries in the group; of the default group they are all ranks.
    """
    keys: dict[tuple[int, int], tuple[str, str, int]] = {}  # the members by their index, -1 where they are not stated
    for one in ones:
        local_names = _distinct(one.columns["group"])
        lone = one.config.get("", -1) if len(local_names) == 1 else -1
        for local in local_names:
            number, name, desc = tables.groups.values[local]
            stated = one.config.get(name, -1) if name else -1
            if stated < 0 and (_is_default(name, desc) or (not name and number == 0)):
                stated = lone
            keys[one.rank, local] = (name or f"#{number}", desc, stated if stated >= 0 and members[stated] else -1)
    known: dict[tuple[str, str], set[int]] = {}
    for name, desc, stated in keys.values():
        if stated >= 0:
            known.setdefault((name, desc), set()).add(stated)
    groups: dict[tuple[str, str, int], int] = {}
    seen: list[set[int]] = []
    index: dict[tuple[int, int], int] = {}
    for (rank, local), (name, desc, stated) in keys.items():
        only = known.get((name, desc), set())
        stated = next(iter(only)) if stated < 0 and len(only) == 1 else stated
        group = groups.setdefault((name, desc, stated), len(groups))
        if group == len(seen):
            seen.append(set())
        seen[group].add(rank)
        index[rank, local] = group
    world = {one.rank for one in ones}
    world.update(
        rank for (name, desc, stated) in groups if stated >= 0 and _is_default(name, desc) for rank in members[stated]
    )
    made = []
    for (name, desc, stated), group in groups.items():
        everybody = members[stated] if stated >= 0 else tuple(sorted(world if _is_default(name, desc) else seen[group]))
        made.append(Group(name, desc, everybody, stated >= 0 or _is_default(name, desc)))
    return tuple(made), index


def _distinct(column: Any) -> list[int]:
    import numpy as np

    found: list[int] = np.unique(column).tolist()
    return found


def _is_default(name: str, desc: str) -> bool:
    return desc == _DEFAULT or (name == "0" and desc in ("", "undefined"))
