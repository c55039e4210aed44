"""How the lines of one source are dressed, told once from some lines at its start and its end: which grammars they may
have, and what wraps them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.ranks import cuts
from triage.ranks.envelopes import Kind, Opened, exported, kind_of, open_json
from triage.ranks.grammars import BY_START, Table
from triage.ranks.habits import SAMPLED, UNLABELLED, table_of
from triage.ranks.nesting import nested
from triage.ranks.prefix import parse
from triage.ranks.wrapped import width_of

_COLOUR = lazy_re(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Layout:
    """`table` are the grammars for its lines; `envelope` what they lie in; `width` where a terminal broke them.

    `cut`: a collector stands before them that cuts long ones; `escaped`: one that writes several lines as one.
    """

    table: Table
    envelope: Kind = ""
    width: int = 0
    cut: bool = False
    escaped: bool = False

    @property
    def dressed(self) -> bool:
        """Is there more around its lines than the grammars that any file may have?"""
        return bool(self.envelope or self.width or self.escaped) or not (
            self.table is BY_START or self.table is UNLABELLED
        )


PLAIN = Layout(BY_START)


def layout_of(head: bytes, tail: bytes = b"") -> Layout:
    """The layout of a source that begins with `head` and ends with `tail`; both may be cut anywhere behind their first
    line.
    """
    if exported(head or tail):
        fields = (head + tail).decode("utf-8", "replace").split("\n")
        return Layout(table_of([line[8:] for line in fields if line.startswith("MESSAGE=")][-2 * SAMPLED :]), "export")
    width = width_of(tail or head) if not (head and tail) else 0
    if width:
        whole = b"\n".join(_unbroken(width, tail or head))
        return Layout(nested(table_of(_sample(whole, SAMPLED)), whole), "", width)
    lines = _sample(head, SAMPLED // 2) + _sample(tail[tail.find(b"\n") + 1 :], SAMPLED // 2)
    table = nested(table_of(lines), head + b"\n" + tail)
    envelope = kind_of(lines, table)
    if envelope == "json":
        opened = [open_json(parse(line, 1970, table), 1970) for line in lines]
        messages = [message for line, inside in zip(lines, opened, strict=True) for message in _messages(line, inside)]
        table = nested(table_of(messages), "\n".join(messages).encode("utf-8", "replace"))
    if envelope:
        return Layout(table, envelope)
    longest = max(len(line) for data in (head, tail) for line in data.split(b"\n"))
    found = Layout(table, "", 0, *cuts.told(lines, table, longest))
    return PLAIN if table is BY_START and not (found.cut or found.escaped) else found


def _unbroken(width: int, data: bytes) -> list[bytes]:
    lines: list[bytes] = []
    goes_on = False
    for piece in data.split(b"\n"):
        if goes_on:
            lines[-1] += piece
        else:
            lines.append(piece)
        goes_on = len(piece.decode("utf-8", "replace")) == width
    return lines


def _messages(line: str, opened: Sequence[Opened] | None) -> list[str]:
    return [line] if opened is None else [message for message, _ in opened]


def _sample(data: bytes, most: int) -> list[str]:
    """Some lines, spread out; one cut off at the end is left out where there are others.

    The distances between them differ, so that of records of several lines each line has its turn.
    """
    lines = data.split(b"\n")
    lines = (lines[:-1] or lines) if lines[-1] else lines
    full = [line for line in lines if line.strip()]
    step = max(1, len(full) // most)
    return [
        _COLOUR.sub("", line[: 1 << 11].replace(b"\0", b"").decode("utf-8", "replace"))
        for line in (full[number * step + number * number % step] for number in range(len(full) // step))
    ][:most]
