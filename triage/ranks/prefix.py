"""Takes the prefix off a line: who wrote it, when, and what is left."""

from __future__ import annotations

from dataclasses import dataclass

from triage.model import Origin
from triage.ranks.grammars import BY_START, start_class
from triage.ranks.stamps import seconds

_MAX_LAYERS = 6
# `3: ` behind the prefix of another writer is no label but text, such as an item of a numbered list.
_OUTERMOST = "srun --label"


@dataclass(slots=True, eq=False)  # not frozen: one is made for every line
class Parsed:
    """A line without its prefix. `writer` is the text of the writer layers, `record` whether the line opens a record."""

    text: str
    writer: str
    record: bool
    layers: tuple[str, ...]
    origin: Origin


def parse(line: str, year: int = 1970) -> Parsed:
    """Peel the layers of `line` in turn. An inner layer knows better than an outer one; a stamp of any layer gives the time."""
    position = 0
    writer = ""
    names: list[str] = []
    known: dict[str, str] = {}
    time: float | None = None
    record = False
    while len(names) < _MAX_LAYERS:
        for grammar in BY_START[start_class(line, position)]:
            if grammar.name in names or (writer and grammar.name == _OUTERMOST):
                continue
            match = grammar.pattern.match(line, position)
            if match is None:
                continue
            for key in grammar.says:
                value = match[key]
                if value:
                    known[key] = value
            if grammar.timed and match["h"]:
                time = seconds(match, year) or time
            if grammar.writer:
                writer += match.group()
            record = record or grammar.record
            names.append(grammar.name)
            empty = match.end() == position
            position = match.end()
            break
        else:
            break
        if empty:
            break
    origin = Origin(
        rank=_number(known.get("rank")),
        local_rank=_number(known.get("local_rank")),
        host=known.get("host"),
        pid=_number(known.get("pid")),
        stream=known.get("stream"),
        time=time,
    )
    return Parsed(line[position:], writer.rstrip(), record, tuple(names), origin)


def _number(text: str | None) -> int | None:
    return None if text is None or text.startswith("-") else int(text)
