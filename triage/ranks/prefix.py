"""Takes the prefix off a line: who wrote it, when, and what is left."""

from __future__ import annotations

from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.model.evidence import Origin
from triage.ranks.grammars import BY_START, SAYS, Table, start_class
from triage.ranks.stamps import agreed, seconds

_MAX_LAYERS = 8
# `3: ` behind the prefix of another writer is no label but text, such as an item of a numbered list.
_OUTERMOST = "srun --label"
# Ray prints one of many equal lines of several workers and counts the others.
REPEATED = lazy_re(r" \[repeated (\d+)x across cluster\](?: \(Ray deduplicates .*\))?$")


@dataclass(slots=True, eq=False)  # not frozen: one is made for every line
class Parsed:
    """A line without its prefix. `writer` is the text of the writer layers, `record` whether the line opens a record."""

    text: str
    writer: str
    record: bool
    layers: tuple[str, ...]
    origin: Origin


def parse(line: str, year: int = 1970, table: Table = BY_START, carried: Parsed | None = None) -> Parsed:
    """Peel the layers of `line` in turn. An inner layer knows better than an outer one; a stamp of any layer gives the
    time.

    `table` are the grammars that the lines of its source may have; `carried` is what was taken off already, around the
    line.
    """
    position = 0
    writer = ""
    names: list[str] = []
    known: dict[str, str] = {}
    time: float | None = None
    zoned: float | None = None
    record = False
    if carried is not None:
        writer, names, record = carried.writer, list(carried.layers), carried.record
        time = zoned = carried.origin.time
    most = len(names) + _MAX_LAYERS
    while len(names) < most:
        for grammar in table[start_class(line, position)]:
            if grammar.needs not in line or grammar.name in names or (writer and grammar.name == _OUTERMOST):
                continue
            match = grammar.pattern.match(line, position)
            if match is None:
                continue
            for key in grammar.says:
                value = match[key]
                if value:
                    known[key] = value
            if grammar.timed and match["h"]:
                stamp = seconds(match, year)
                if stamp is not None and grammar.zoned and match["z"]:
                    time = zoned = stamp
                elif stamp is not None:
                    time = stamp if zoned is None else agreed(stamp, zoned)
            kind = grammar.kind
            if kind == "writer":
                writer += match["who"] if grammar.named else match.group()
            elif kind == "record":
                record = True
            names.append(grammar.name)
            empty = match.end() == position
            position = match.end()
            break
        else:
            break
        if empty:
            break
    text = line[position:]
    if "x across cluster]" in text:
        text = REPEATED.sub("", text)
    origin = _origin(known, time)
    if carried is not None:
        origin = _filled(origin, carried.origin)
    return Parsed(text, writer.rstrip(), record, tuple(names), origin)


def _origin(known: dict[str, str], time: float | None) -> Origin:
    return Origin(
        rank=_number(known.get("rank")),
        local_rank=_number(known.get("local_rank")),
        host=known.get("host") or ("task" + known["task"] if "task" in known else None),
        pid=_number(known.get("pid")),
        stream=known.get("stream"),
        time=time,
    )


def _filled(inner: Origin, outer: Origin) -> Origin:
    """What the inner layers say, and of the rest what the outer say."""
    said = {key: getattr(outer if getattr(inner, key) is None else inner, key) for key in SAYS}
    return Origin(**said, time=inner.time)


def _number(text: str | None) -> int | None:
    return None if text is None or text.startswith("-") else int(text)
