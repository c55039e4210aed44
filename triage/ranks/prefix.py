"""Parse the prefix of a line: who wrote the line, when, and the text behind the prefix."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

from triage.base.digit_masks import mask_digits
from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.model.evidence import Origin
from triage.ranks.grammar import ORIGIN_PARTS, Grammar, Table, start_class
from triage.ranks.grammars import BY_START
from triage.ranks.timestamps import add_fraction, match_time_zone, whole_seconds

_MAX_LAYERS = 8
# Behind another writer's prefix, `3: ` is not a label but text, such as an item of a numbered list.
_ONLY_OUTERMOST = "srun --label"
# Ray prints one of several equal lines of its workers, some time after they wrote it, and counts the others.
REPEATED_LAYER = "repeated across cluster"
REPEATED = lazy_re(r" \[repeated (\d{1,18})x across cluster\](?: \(Ray deduplicates .*\))?$")


@dataclass(slots=True, eq=False)  # not frozen, for speed: one is made for every line
class ParsedLine:
    """A line without its prefix: `writer` is the text of the writer layers, `layers` are the names of all layers.

    `outer_host` is the host that an outer layer names where an inner one names another. `lines`: Ray prints the line
    for so many equal ones.
    """

    text: str
    writer: str
    opens_record: bool
    layers: tuple[str, ...]
    origin: Origin
    outer_host: str = ""
    lines: int = 1


class _Stamp(NamedTuple):
    """Where the parts of a timestamp stand: those of its whole seconds by their names, its fraction and its zone."""

    has_zone: bool
    names: tuple[str, ...]
    places: tuple[slice, ...]
    fraction: slice | None
    zone: slice | None


class _OriginPlaces(NamedTuple):
    """Where the parts of the origin stand. A number with a sign is none."""

    rank: slice | None = None
    local_rank: slice | None = None
    host: slice | None = None
    task: slice | None = None
    pid: slice | None = None
    stream: slice | None = None


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the parts of a prefix stand, in all lines that differ only in their digits.

    `origin` is None where the prefix says nothing of it. `outer_host` is empty where only one layer names a host,
    `repeats` where Ray counts no others.
    """

    layers: tuple[str, ...]
    opens_record: bool
    writer: tuple[slice, ...]
    origin: _OriginPlaces | None
    outer_host: slice
    stamps: tuple[_Stamp, ...]
    text: slice
    repeats: slice


_NOWHERE = slice(0, 0)
_UNKNOWN = Origin()
_WHOLE_SECONDS = ("Y", "mon", "M", "D", "h", "m", "s")
_MOST_PLACES = 1 << 13
_LONGEST_KEPT = 1 << 11


def parse_prefix(
    line: str, year: int = 1970, table: Table = BY_START, outer: ParsedLine | None = None, mask: bytes | None = None
) -> ParsedLine:
    """Remove the layers of the prefix one by one. An inner layer overrides an outer one; the last timestamp counts.

    `year` is for timestamps without one. `table` has the grammars of the line's source. `outer` is what was parsed
    around the line already (a log wrapper). `mask` is the line's mask, if it is known.
    """
    places = _places_of(line, table, *((), False) if outer is None else (outer.layers, bool(outer.writer)), mask)
    time = zoned_time = None if outer is None else outer.origin.time
    for stamp in places.stamps:
        time, zoned_time = _read_time(line, stamp, year, time, zoned_time)
    origin = _read_origin(line, places.origin, time)
    opens_record, writer = places.opens_record, "".join([line[at] for at in places.writer]) if places.writer else ""
    if outer is None and places.outer_host is places.repeats is _NOWHERE:
        return ParsedLine(line[places.text], writer.rstrip(), opens_record, places.layers, origin)
    outer_host = line[places.outer_host]
    if outer is not None:
        outer_host = outer_host or outer.outer_host or outer.origin.host or ""
        origin = _with_outer(origin, outer.origin)
        opens_record, writer = opens_record or outer.opens_record, outer.writer + writer
    outer_host = "" if outer_host == origin.host else outer_host
    lines = int(line[places.repeats] or 1)
    return ParsedLine(line[places.text], writer.rstrip(), opens_record, places.layers, origin, outer_host, lines)


def read_layers(line: str, table: Table) -> tuple[str, ...]:
    """Return the names of the layers of the prefix of a line."""
    return _places_of(line, table, (), False).layers


def read_text(line: str, table: Table) -> tuple[str, bool]:
    """Return the text of a line behind its prefix, and whether the prefix opens a record."""
    places = _places_of(line, table, (), False)
    return line[places.text], places.opens_record


def may_have_time(mask: bytes, table: Table) -> tuple[bool, bool]:
    """Whether the prefix of ASCII lines with a mask has a stamp, and whether it names a writer."""
    places = _places_of("", table, (), False, mask)
    text = mask.decode("ascii")
    return bool(places.stamps), bool("".join([text[at] for at in places.writer]).rstrip())


def names_rank(line: str, table: Table) -> bool:
    """Whether the prefix of a line has a rank or a local rank: no digit decides that."""
    origin = _places_of(line, table, (), False).origin
    return origin is not None and (origin.rank is not None or origin.local_rank is not None)


def _places_of(
    line: str, table: Table, outer_layers: tuple[str, ...], has_outer_writer: bool, mask: bytes | None = None
) -> _Places:
    masked = mask_digits(line.encode("utf-8", "surrogatepass")) if mask is None else mask
    find_places = _find_places if len(masked) <= _LONGEST_KEPT else _find_places.__wrapped__
    return find_places(masked, table, outer_layers, has_outer_writer)


@functools.lru_cache(_MOST_PLACES)
def _find_places(masked: bytes, table: Table, outer_layers: tuple[str, ...], has_outer_writer: bool) -> _Places:
    """Find the layers of the prefix of a line whose digits are masked: no single digit decides what a grammar matches.

    A job writes the same lines with other numbers again and again.
    """
    line = masked.decode("utf-8", "surrogatepass")
    position = 0
    names = list(outer_layers)
    has_writer, opens_record = has_outer_writer, False
    writer: list[slice] = []
    origin: dict[str, slice] = {}
    outer_host = _NOWHERE
    stamps = []
    most = len(names) + _MAX_LAYERS
    while len(names) < most and (matched := _match_layer(line, position, table, names, has_writer)) is not None:
        grammar, layer = matched
        for key in grammar.origin_parts:
            if layer[key]:
                outer_host = origin.get("host", _NOWHERE) if key == "host" else outer_host
                origin[key] = slice(*layer.span(key))
        if grammar.has_time and layer["h"]:
            stamps.append(_find_stamp(layer, has_zone=grammar.has_zone))
        if grammar.kind == "writer":
            writer.append(slice(*layer.span("who" if grammar.has_writer_group else 0)))
            has_writer = has_writer or bool(line[writer[-1]])
        opens_record = opens_record or grammar.kind == "record"
        names.append(grammar.name)
        is_empty = layer.end() == position
        position = layer.end()
        if is_empty:
            break
    repeated = REPEATED.search(line, position) if "x across cluster]" in line else None
    end = repeated.start() if repeated else len(line)
    return _Places(
        (*names, REPEATED_LAYER) if repeated else tuple(names),
        opens_record,
        tuple(writer),
        _find_origin(line, origin),
        outer_host,
        tuple(stamps),
        slice(position, end),
        slice(*repeated.span(1)) if repeated else _NOWHERE,
    )


def _match_layer(
    line: str, position: int, table: Table, names: Sequence[str], has_writer: bool
) -> tuple[Grammar, re.Match[str]] | None:
    """Return the grammar of the layer at `position`, and its match."""
    for grammar in table[start_class(line, position)]:
        if grammar.required_text not in line or names.count(grammar.name) >= grammar.most:
            continue
        if has_writer and grammar.name == _ONLY_OUTERMOST:
            continue
        match = grammar.pattern.match(line, position)
        if match is not None:
            return grammar, match
    return None


def _find_stamp(layer: re.Match[str], *, has_zone: bool) -> _Stamp:
    parts = {key: slice(*layer.span(key)) for key, value in layer.groupdict().items() if value}
    whole = {key: at for key, at in parts.items() if key in _WHOLE_SECONDS}
    return _Stamp(has_zone, tuple(whole), tuple(whole.values()), parts.get("f"), parts.get("z"))


def _find_origin(line: str, origin: dict[str, slice]) -> _OriginPlaces | None:
    numbers = ("rank", "local_rank", "pid")
    parts = {key: at for key, at in origin.items() if key not in numbers or not line.startswith("-", at.start)}
    return _OriginPlaces(**parts) if parts else None


def _read_time(
    line: str, stamp: _Stamp, year: int, time: float | None, zoned_time: float | None
) -> tuple[float | None, float | None]:
    """Return the time of a stamp, and the last time with a zone; they stay as they are if it is no time."""
    whole = whole_seconds(stamp.names, tuple([line[at] for at in stamp.places]), year)
    if whole is None:
        return time, zoned_time
    zone = line[stamp.zone] if stamp.zone else None
    read = add_fraction(whole, line[stamp.fraction] if stamp.fraction else None, zone)
    if stamp.has_zone and zone:
        return read, read
    return read if zoned_time is None else match_time_zone(read, zoned_time), zoned_time


def _read_origin(line: str, places: _OriginPlaces | None, time: float | None) -> Origin:
    if places is None:
        return _UNKNOWN if time is None else Origin(time=time)
    rank, local_rank, host, task, pid, stream = places
    return Origin(
        int(line[rank]) if rank else None,
        int(line[local_rank]) if local_rank else None,
        line[host] if host else "task" + line[task] if task else None,
        int(line[pid]) if pid else None,
        line[stream] if stream else None,
        time,
    )


def _with_outer(inner: Origin, outer: Origin) -> Origin:
    """Take from the outer origin what the inner one lacks."""
    return Origin(
        **{key: getattr(outer if getattr(inner, key) is None else inner, key) for key in ORIGIN_PARTS}, time=inner.time
    )
