"""Dumps → one recording: the newest dump of each rank, its entries as columns, and the groups of the job."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from triage.artifacts.flight.columns import Interned, Tables, usable
from triage.artifacts.flight.fast_unpickler import PackedEntries
from triage.artifacts.flight.group_status import (
    CallColumns,
    StatusOfRank,
    join_status,
    mark_proven_complete,
    parse_status,
    settle_batches,
)
from triage.artifacts.flight.load import Loaded
from triage.artifacts.flight.model import COMPLETED, Dump, Group, GroupStatus, Recording, Table
from triage.artifacts.flight.process_transfer import PartialRecording
from triage.artifacts.interface import ArtifactError
from triage.model.evidence import Warning

NEWEST_VERSION = (2, 10)
"""The newest known format: torch 2.13."""
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
)
_NAMED = {
    "record": "record_id",
    "seq": "collective_seq_id",
    "p2p": "p2p_seq_id",
    "created": "time_created_ns",
}
_NEWER = "new-dump-version"
_SHARED = ("op", "shape", "dtype", "stack", "group")
"""Columns of indices into the lists that the dumps share."""
_TRANSFERRED = (
    "rank",
    "source",
    "failure",
    "version",
    "is_complete",
    "config",
    "status",
    "written",
    "last_time",
    "has_frames",
)
"""Fields of a dump that another process sends besides its columns."""
_DEFAULT = "default_pg"
_MAX_RANKS = 1 << 20
MAX_ENTRIES = 24_000_000
"""Of all dumps together, 70 bytes each: ten thousand ranks with full ring buffers, and a limit for compressed bombs."""


@dataclass
class _RankDump:
    """One dump as it was read. `config` maps a group's name to the index of its members, `status` is its pg_status."""

    rank: int
    source: str
    failure: int
    columns: dict[str, Any]
    version: str
    is_complete: bool
    config: dict[str, int]
    status: dict[str, tuple[int, int, int]]
    written: float | None = None
    last_time: int = 0
    has_frames: bool = False

    @property
    def order(self) -> tuple[Any, ...]:
        """The last of several dumps of one rank is the best: by failure, by time, then the one with frames."""
        return (self.failure, self.last_time, len(self.columns["record_id"]), self.has_frames, self.source)


@dataclass
class RecordingBuilder:
    """Builds a recording from dumps that are added one by one, so that only one is in memory as a tree."""

    notes: list[tuple[str, str | None, str]] = field(default_factory=list)
    _entries: int = 0
    _tables: Tables = field(default_factory=Tables)
    _dumps: dict[int, _RankDump] = field(default_factory=dict)
    _members: Interned[tuple[int, ...]] = field(default_factory=Interned)

    def add(self, rank: int, source: str, loaded: Loaded, failure: int = 0, written: float | None = None) -> None:
        """Add one dump; `written` is when its file was. Raises ArtifactError for data that is not a dump."""
        value = loaded.value if isinstance(loaded.value, dict) else {"entries": loaded.value}
        entries = self._entries_of(value, rank, source, loaded.is_complete)
        try:
            columns = self._tables.read(entries)
        except (TypeError, ValueError, OverflowError, RecursionError, KeyError, AttributeError) as error:
            message = f"its entries do not have the format that torch writes ({type(error).__name__})"
            raise ArtifactError(message, hint="look at the file itself") from error
        version = str(value.get("version", ""))[:40]
        self._check_version(version, source)
        self._store(
            _RankDump(
                rank,
                source,
                failure,
                columns,
                version,
                loaded.is_complete,
                self._config(value.get("pg_config")),
                parse_status(value.get("pg_status")),
                written,
                int(columns["time_created_ns"].max()) if len(entries) else 0,
                bool(columns["stack"].any()) if len(entries) else False,
            )
        )

    def export(self, warnings: list[Warning]) -> PartialRecording:
        """Return all that was read, to be merged by another process."""
        lists = {name + "s": getattr(self._tables, name + "s").values for name in _SHARED}
        lists["members"] = self._members.values
        dumps = [({name: getattr(dump, name) for name in _TRANSFERRED}, dump.columns) for dump in self._dumps.values()]
        return PartialRecording(dumps, lists, self.notes, warnings)

    def merge(self, part: PartialRecording) -> None:
        """Take what another process has read. No dump can be added afterwards."""
        index = {name: getattr(self._tables, name + "s").merge(part.lists[name + "s"]) for name in _SHARED}
        members = self._members.merge(part.lists["members"])
        self.notes += [note for note in part.notes if note[0] != _NEWER or not self._has_newer_version()]
        for fields, columns in part.dumps:
            columns |= {name: index[name][columns[name]] for name in _SHARED}
            config = {name: int(members[number]) for name, number in fields["config"].items()}
            self._store(_RankDump(**{**fields, "columns": columns, "config": config}))

    def _store(self, dump: _RankDump) -> None:
        """Keep the later of two dumps of one rank, as long as there is room."""
        rank, source, count = dump.rank, dump.source, len(dump.columns["record_id"])
        if self._entries + count > MAX_ENTRIES:
            message = f"left out, because the dumps before it already hold {self._entries:,} entries"
            self.notes.append(("too-many-entries", source, message))
            return
        self._entries += count
        other = self._dumps.get(rank)
        if other is None:
            self._dumps[rank] = dump
            return
        older, newer = sorted((other, dump), key=lambda each: each.order)
        self._dumps[rank] = newer
        if _stem(source) != _stem(other.source):
            message = f"left out, because {newer.source} is a later dump of rank {rank}"
            self.notes.append(("older-dump", older.source, message))

    def _entries_of(self, value: Mapping[Any, Any], rank: int, source: str, is_complete: bool) -> Any:
        """The entries that can be read. Raises ArtifactError where the value is not a dump or none can be read."""
        entries = value.get("entries", [])
        if not isinstance(entries, (list, PackedEntries)) or not {"entries", "pg_config", "pg_status"} & value.keys():
            hint = "a dump has entries, pg_config and pg_status"
            raise ArtifactError("plain data, but not a Flight Recorder dump", hint=hint)
        if isinstance(entries, PackedEntries):
            readable: Any = entries
        else:
            readable = list(filter(usable, entries))
        if entries and not readable and is_complete:
            hint = "if it is the dump of a newer torch, report it to the maintainers"
            raise ArtifactError("none of its entries can be read", hint=hint)
        lost = len(entries) - len(readable)
        if lost or not is_complete:
            message = (
                f"the dump of rank {rank} ends early or is damaged: {len(readable)} "
                f"{'entry' if len(readable) == 1 else 'entries'} read, {lost} lost"
            )
            self.notes.append(("cut-dump", source, message))
        return readable

    def _has_newer_version(self) -> bool:
        return any(code == _NEWER for code, _, _ in self.notes)

    def _check_version(self, version: str, source: str) -> None:
        numbers = re.fullmatch(r"(\d{1,3})\.(\d{1,3})", version)
        if numbers and (int(numbers[1]), int(numbers[2])) > NEWEST_VERSION and not self._has_newer_version():
            newest = ".".join(map(str, NEWEST_VERSION))
            message = f"format {version} is newer than {newest}, the newest known; only the known fields were read"
            self.notes.append((_NEWER, source, message))

    def _config(self, config: Any) -> dict[str, int]:
        """Group name to the index of its members.

        torch writes the members as text: `[0, 1]`, the same long text in the dump of every rank.
        """
        members: dict[str, int] = {}
        for name, group in config.items() if isinstance(config, dict) else ():
            if isinstance(group, dict):
                ranks = group.get("ranks", "")
                text = ",".join(map(str, ranks)) if isinstance(ranks, list) else ranks if isinstance(ranks, str) else ""
                members[str(name)] = self._members.index_of(text, lambda text=text: _numbers(text))  # type: ignore[misc]
        return members

    def build(self) -> Recording:
        """Return the recording of all dumps; an empty one without any dump."""
        tables, rank_dumps = self._tables, [self._dumps[rank] for rank in sorted(self._dumps)]
        groups, index = _groups(rank_dumps, tables, self._members.values)
        status = join_status(groups, _number_status(rank_dumps, tables, index))
        for dump in rank_dumps:
            mapping = np.zeros(len(tables.groups.values), dtype=np.int32)
            for local in _distinct(dump.columns["group"]):
                mapping[local] = index[dump.rank, local]
            dump.columns["group"] = mapping[dump.columns["group"]]
        columns = {name: _joined(rank_dumps, _NAMED.get(name, name)) for name in _COLUMNS}
        ranks = np.array([dump.rank for dump in rank_dumps], dtype=np.int32)
        rank = np.repeat(ranks, [len(dump.columns["group"]) for dump in rank_dumps])
        done = columns["state"] == COMPLETED
        dumps = _place_dumps(rank_dumps, columns["record"], done | columns["retired"])
        if len(rank):
            _settle_calls(columns, rank, done, tables.ops.values, status)
        return Recording(
            dumps,
            groups,
            Table(rank=rank, done=done, **columns),
            tuple(tables.ops.values),
            tuple(tables.shapes.values),
            tuple(tables.dtypes.values),
            tuple(tables.stacks.values),
            tuple(self.notes),
            status,
        )


def _settle_calls(
    columns: Mapping[str, Any],
    rank: Any,
    done: Any,
    ops: Sequence[str],
    status: Mapping[tuple[int, int], GroupStatus],
) -> None:
    """Mark as done all calls that are complete in truth."""
    is_gloo = np.array([op.partition(":")[0] == "gloo" for op in ops])[columns["op"]]
    done |= columns["retired"] & is_gloo  # gloo writes no states, it only retires what is done
    calls = CallColumns(
        rank,
        columns["group"],
        np.where(columns["is_p2p"], columns["p2p"], columns["seq"]),
        columns["is_p2p"],
        np.array([op.endswith(":coalesced") for op in ops])[columns["op"]],
        ~is_gloo,
        columns["state"],
        done,
    )
    settle_batches(calls)
    mark_proven_complete(calls, status)


def _number_status(
    rank_dumps: Sequence[_RankDump], tables: Tables, index: Mapping[tuple[int, int], int]
) -> list[StatusOfRank]:
    """The pg_status of each rank, with the number of the group of each pg_id in its entries."""
    numbers: dict[int, dict[str, int]] = {dump.rank: {} for dump in rank_dumps}
    for (rank, local), number in index.items():
        numbers[rank][str(tables.groups.values[local][0])] = number
    return [StatusOfRank(dump.rank, dump.status, numbers[dump.rank]) for dump in rank_dumps]


def _place_dumps(rank_dumps: Sequence[_RankDump], record_ids: Any, is_written_done: Any) -> dict[int, Dump]:
    """The dumps by rank, each with its rows in the table. `is_written_done` are the entries that say they are done."""
    ends = np.cumsum([len(dump.columns["group"]) for dump in rank_dumps], dtype=np.int64).tolist()
    places = list(zip([0, *ends], ends, strict=False))
    first_records = [int(record_ids[start:end].min()) if start < end else 0 for start, end in places]
    shows_done = [bool(is_written_done[start:end].any()) for start, end in places]
    # As many entries as in a dump that has surely dropped some: a full ring buffer, not a list of open calls.
    full = {
        end - start
        for (start, end), first, has_done in zip(places, first_records, shows_done, strict=True)
        if first and has_done
    }
    only_open = [
        first > 0 and not has_done and end - start not in full
        for (start, end), first, has_done in zip(places, first_records, shows_done, strict=True)
    ]
    return {
        dump.rank: Dump(
            dump.rank,
            dump.source,
            dump.version,
            entries=end - start,
            first_record=first_records[index],
            last_time=dump.last_time,
            written=dump.written,
            is_complete=dump.is_complete,
            start=start,
            end=end,
            # A rank without a call in flight has an empty dump of the same kind.
            only_open=only_open[index] or (start == end and any(only_open)),
        )
        for index, (dump, (start, end)) in enumerate(zip(rank_dumps, places, strict=True))
    }


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(sorted({rank for number in re.findall(r"\d{1,7}", text) if (rank := int(number)) < _MAX_RANKS}))


def _stem(source: str) -> str:
    """The name of a dump and of its JSON twin."""
    return re.sub(r"\.json(?=$|\.)", "", source)


def _joined(dumps: Sequence[_RankDump], name: str) -> Any:
    """One column of all dumps; it is dropped from the dumps to save memory."""
    if not dumps:
        kind = np.float32 if name == "duration" else np.bool_ if name in ("retired", "is_p2p") else np.int64
        return np.zeros(0, dtype=kind)
    return np.concatenate([dump.columns.pop(name) if name != "group" else dump.columns[name] for dump in dumps])


_GroupKey = tuple[str, str, int]
"""Name and description of a group, and the index of its members (-1 where no dump lists them)."""


def _group_keys(
    dumps: Sequence[_RankDump], tables: Tables, members: Sequence[tuple[int, ...]]
) -> dict[tuple[int, int], _GroupKey]:
    """The key of each (rank, index in that rank's names), from that rank's own dump."""
    keys: dict[tuple[int, int], _GroupKey] = {}
    for dump in dumps:
        local_names = _distinct(dump.columns["group"])
        only_config = dump.config.get("", -1) if len(local_names) == 1 else -1
        for local in local_names:
            number, name, desc = tables.groups.values[local]
            listed = dump.config.get(name, -1) if name else -1
            if listed < 0 and (_is_default(name, desc) or (not name and number == 0)):
                listed = only_config
            keys[dump.rank, local] = (name or f"#{number}", desc, listed if listed >= 0 and members[listed] else -1)
    return keys


def _groups(
    dumps: Sequence[_RankDump], tables: Tables, members: Sequence[tuple[int, ...]]
) -> tuple[tuple[Group, ...], dict[tuple[int, int], int]]:
    """The groups of the job, and which of them each (rank, index in that rank's names) is.

    NCCL lists the members of each group. Gloo of torch 2.13 keeps one nameless entry that later groups overwrite, so
    its members are the ranks that have entries in the group; of the default group they are all ranks.
    """
    keys = _group_keys(dumps, tables, members)
    listed_by_name: dict[tuple[str, str], set[int]] = {}
    for name, desc, listed in keys.values():
        if listed >= 0:
            listed_by_name.setdefault((name, desc), set()).add(listed)
    numbers: dict[_GroupKey, int] = {}
    ranks_with_entries: list[set[int]] = []
    index: dict[tuple[int, int], int] = {}
    for (rank, local), (name, desc, listed) in keys.items():
        others = listed_by_name.get((name, desc), set())
        listed = next(iter(others)) if listed < 0 and len(others) == 1 else listed
        number = numbers.setdefault((name, desc, listed), len(numbers))
        if number == len(ranks_with_entries):
            ranks_with_entries.append(set())
        ranks_with_entries[number].add(rank)
        index[rank, local] = number
    defaults = (listed for name, desc, listed in numbers if listed >= 0 and _is_default(name, desc))
    world = {dump.rank for dump in dumps}.union(*(members[listed] for listed in defaults))
    groups = []
    for (name, desc, listed), number in numbers.items():
        is_default = _is_default(name, desc)
        entered = tuple(sorted(world if is_default else ranks_with_entries[number]))
        groups.append(Group(name, desc, members[listed] if listed >= 0 else entered, listed >= 0 or is_default))
    return tuple(groups), index


def _distinct(column: Any) -> list[int]:
    numbers: list[int] = np.unique(column).tolist()
    return numbers


def _is_default(name: str, desc: str) -> bool:
    return desc == _DEFAULT or (name == "0" and desc in ("", "undefined"))
