"""Parse the prefix of a line: who wrote the line, when, and the text behind the prefix."""

from __future__ import annotations

import re
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.model.evidence import Origin
from triage.ranks.grammar import ORIGIN_PARTS, Grammar, Table, start_class
from triage.ranks.grammars import BY_START
from triage.ranks.timestamps import epoch_seconds, match_time_zone

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


def parse_prefix(line: str, year: int = 1970, table: Table = BY_START, outer: ParsedLine | None = None) -> ParsedLine:
    """Remove the layers of the prefix one by one. An inner layer overrides an outer one; the last timestamp counts.

    `year` is for timestamps without one. `table` has the grammars of the line's source. `outer` is what was parsed
    around the line already (a log wrapper).
    """
    position = 0
    writer = ""
    names: list[str] = []
    parts: dict[str, str] = {}
    time: float | None = None
    zoned_time: float | None = None
    opens_record = False
    outer_host = ""
    if outer is not None:
        writer, names, opens_record = outer.writer, list(outer.layers), outer.opens_record
        time = zoned_time = outer.origin.time
    most = len(names) + _MAX_LAYERS
    while len(names) < most:
        for grammar in table[start_class(line, position)]:
            if grammar.required_text not in line or names.count(grammar.name) >= grammar.most:
                continue
            if writer and grammar.name == _ONLY_OUTERMOST:
                continue
            match = grammar.pattern.match(line, position)
            if match is None:
                continue
            for key in grammar.origin_parts:
                value = match[key]
                if value:
                    if key == "host":
                        outer_host = parts.get(key, "")
                    parts[key] = value
            if grammar.has_time and match["h"]:
                time, zoned_time = _read_time(grammar, match, year, time, zoned_time)
            kind = grammar.kind
            if kind == "writer":
                writer += match["who"] if grammar.has_writer_group else match.group()
            elif kind == "record":
                opens_record = True
            names.append(grammar.name)
            is_empty = match.end() == position
            position = match.end()
            break
        else:
            break
        if is_empty:
            break
    repeated = REPEATED.search(line, position) if "x across cluster]" in line else None
    text = line[position : repeated.start()] if repeated else line[position:]
    if repeated:
        names.append(REPEATED_LAYER)
    origin = _origin(parts, time)
    if outer is not None:
        outer_host = outer_host or outer.outer_host or outer.origin.host or ""
        origin = _with_outer(origin, outer.origin)
    outer_host = "" if outer_host == origin.host else outer_host
    lines = int(repeated[1]) if repeated else 1
    return ParsedLine(text, writer.rstrip(), opens_record, tuple(names), origin, outer_host, lines)


def _read_time(
    grammar: Grammar, match: re.Match[str], year: int, time: float | None, zoned_time: float | None
) -> tuple[float | None, float | None]:
    """Return the time of a stamp, and the last time with a zone; they stay as they are if it is no time."""
    stamp = epoch_seconds(match, year)
    if stamp is None:
        return time, zoned_time
    if grammar.has_zone and match["z"]:
        return stamp, stamp
    return stamp if zoned_time is None else match_time_zone(stamp, zoned_time), zoned_time


def _origin(parts: dict[str, str], time: float | None) -> Origin:
    return Origin(
        rank=_number(parts.get("rank")),
        local_rank=_number(parts.get("local_rank")),
        host=parts.get("host") or ("task" + parts["task"] if "task" in parts else None),
        pid=_number(parts.get("pid")),
        stream=parts.get("stream"),
        time=time,
    )


def _with_outer(inner: Origin, outer: Origin) -> Origin:
    """Take from the outer origin what the inner one lacks."""
    return Origin(
        **{key: getattr(outer if getattr(inner, key) is None else inner, key) for key in ORIGIN_PARTS}, time=inner.time
    )


def _number(text: str | None) -> int | None:
    return None if text is None or text.startswith("-") else int(text)
