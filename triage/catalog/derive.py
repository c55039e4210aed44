"""A pattern from the lines of one failure: what they share stays, what differs becomes a capture, numbers and places
that mean nothing are opened.

The result is a draft in RE2's dialect that matches every line it was made of.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re

MOST_TOKENS = 120  # of a line; the rest of a long one does not count
FEWEST_FOR_CONSTANT = 3  # lines that must agree before a number among them may be taken for a part of the message
# Digits are those of RE2, which are ASCII; others are letters here.
_TOKEN = lazy_re(
    r"(?P<address>0x[0-9a-fA-F]+)|(?P<ip>(?<![\w.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]+)?)|(?P<path>(?<![\w/])(?:/[\w.@+=-]+){2,}/?)"
    r"|(?P<id>\b(?=[0-9a-f-]*[a-f])(?=[0-9a-f-]*[0-9])[0-9a-f]{8,}(?:-[0-9a-f]{4,}){0,4}\b)|(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<word>[^\W0-9]+(?:[0-9]+[^\W0-9]+)*)|(?P<space>[ \t\f]+)|(?P<sign>.)"
)
_OPEN = {
    "address": r"0x[0-9a-fA-F]+",
    "ip": r"\d+\.\d+\.\d+\.\d+(?::\d+)?",
    "path": r"/\S+",
    "id": r"[0-9a-f-]+",
    "number": r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?",
}
_SPACE = r"[ \t\f]+"
# A number right behind one of these is a part of what the message says.
_CODES = lazy_re(
    r"(?i)(?:err(?:no|or)?|code|status|xid|signal|exitcode|retcode|version|http)\b[^\w]{0,4}(?:code\W{1,4})?(?:is\W{1,3})?$"
)
_RESERVED = {"rank", "ranks", "host"}
_ESCAPED = lazy_re(r"([\\.^$*+?{}\[\]|()])")


@dataclass(frozen=True, slots=True)
class Derived:
    """`pattern` matches all the lines; `captures` are the values that the first of them has."""

    pattern: str
    captures: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Piece:
    kind: str
    text: str


def derive(lines: Sequence[str]) -> Derived:
    """One pattern for all the lines, which must not be empty. It begins at the start of the text when all of them begin
    alike.
    """
    parsed = [_pieces(line) for line in dict.fromkeys(lines)]
    shared = parsed[0]
    for other in parsed[1:]:
        shared = _shared(shared, other)
    constant = len(lines) >= FEWEST_FOR_CONSTANT
    return _write(parsed, shared, constant)


def _pieces(line: str) -> list[_Piece]:
    return [_Piece(match.lastgroup or "sign", match.group()) for match in _TOKEN.finditer(line)][:MOST_TOKENS]


def _shared(one: Sequence[_Piece], other: Sequence[_Piece]) -> list[_Piece]:
    """The pieces that both have in this order; of numbers and the like it is enough that both have one there."""

    def same(piece: _Piece) -> str:
        return f"<{piece.kind}>" if piece.kind in _OPEN or piece.kind == "space" else piece.text

    matcher = difflib.SequenceMatcher(
        None, [same(piece) for piece in one], [same(piece) for piece in other], autojunk=False
    )
    kept: list[_Piece] = []
    for begin, there, size in matcher.get_matching_blocks():
        for step in range(size):
            mine, theirs = one[begin + step], other[there + step]
            kept.append(mine if mine.text == theirs.text else _Piece(mine.kind, ""))  # an empty text: it differs
    return kept


def _write(parsed: Sequence[Sequence[_Piece]], shared: Sequence[_Piece], constant: bool) -> Derived:
    """The pattern, with gaps where a line has more than what is shared."""
    gaps = [False] * (len(shared) + 1)
    for line in parsed:
        place = 0
        for piece in line:
            if place < len(shared) and _fits(piece, shared[place]):
                place += 1
            else:
                gaps[place] = True
    names: set[str] = set()
    parts: list[str] = [] if gaps[0] else ["^"]
    said = ""
    for number, piece in enumerate(shared):
        if number and gaps[number]:
            parts.append(_group("what", r"[^\n]*?", names, said))
        if piece.kind == "space":
            parts.append(" " if piece.text == " " else _SPACE)
        elif piece.text and (piece.kind not in _OPEN or (constant and _means(said))):
            parts.append(_ESCAPED.sub(r"\\\1", piece.text))
        else:
            parts.append(_group(piece.kind, _OPEN.get(piece.kind, r"\S+"), names, said))
        said += piece.text or "…"
    pattern = "".join(parts).strip(" ")
    found = re.search(pattern, "".join(piece.text for piece in parsed[0]))
    captures = {name: value for name, value in (found.groupdict() if found else {}).items() if value}
    return Derived(pattern, captures)


def _means(said: str) -> bool:
    """Does what stands before a number make it a part of the message? It is a code, or the end of a word (float32)."""
    return bool(_CODES.search(said)) or said[-1:].isalpha()


def _fits(piece: _Piece, wanted: _Piece) -> bool:
    return piece.kind == wanted.kind and (
        wanted.text in (piece.text, "") or piece.kind in _OPEN or piece.kind == "space"
    )


def _group(kind: str, inner: str, names: set[str], said: str) -> str:
    """A capture, called after the word before it where there is one."""
    before = re.search(r"([a-z_]{3,20})\W{0,3}$", said)
    name = before[1].strip("_") if before else kind
    if not name or name in _RESERVED or not name.isidentifier():
        name = kind
    base, number = name, 2
    while name in names:
        name, number = f"{base}{number}", number + 1
    names.add(name)
    return f"(?P<{name}>{inner})"
