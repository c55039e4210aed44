r"""Parse a pattern into the tree that `literals` reads.

Covers the dialect that `regex.verify` accepts, which RE2 and Python read alike, and what `backtracking` adds to it. An
escape outside it, such as `\07`, is an error: a wrong reading would promise literals that a match need not contain.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from triage.base.lazy_re import lazy_re

MAX_CHOICES = 16  # different characters of a class; a larger class promises nothing
_TOKEN = lazy_re(
    r"""(?sx)
    (?P<repeated> \\[1-9] | \(\?P=\w+\) )
    | \( (?: \? (?: P<\w+> | (?P<look> <?[=!] ) | > | (?P<flags> [a-zA-Z-]*) (?P<scope> [:)] ) ) )? (?P<open>)
    | (?P<close> [)] ) | (?P<branch> [|] ) | (?P<any> [.] | \\[dDwWsS] ) | (?P<anchor> [\^$] | \\[bBA] )
    | \[ (?P<negated> \^? ) (?P<members> \]? (?: \\. | [^\]\\] )* ) \] (?P<class>)
    | (?: (?P<sign> [*+?] ) | \{ (?P<low> \d+ ) (?P<comma> ,? ) (?P<high> \d* ) \} ) [?+]? (?P<repeat>)
    | (?P<character> \\x[0-9A-Fa-f]{2} | \\. | [^\\\[(] )"""
)
_MEMBER = lazy_re(r"(?s)\\x[0-9A-Fa-f]{2}|\\.|.")
_CLASSES = {rf"\{letter}" for letter in "dDwWsS"}
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
# Letters that a case-insensitive RE2 also matches outside ASCII.
_FOLDED = {"k": "\u212a", "s": "\u017f"}


@dataclass(frozen=True, slots=True)
class Characters:
    """One character out of `choices`; None if these are too many, unknown, or not within one line."""

    choices: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Sequence:
    """Items in a row. `plain` is a group `(?:…)`, which only holds items together."""

    items: tuple[Node, ...]
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Branch:
    """One of several sequences."""

    alternatives: tuple[Sequence, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`item` from `low` to `high` times; `high` is None without an upper bound."""

    item: Node
    low: int
    high: int | None


Node = Characters | Sequence | Branch | Repeat
_UNKNOWN = Characters(None)


@dataclass(slots=True)
class _OpenGroup:
    plain: bool
    ignore_case: bool
    looks_around: bool = False
    alternatives: list[list[Node]] = field(default_factory=lambda: [[]])

    def close(self) -> Sequence:
        """The finished group, with what all alternatives begin with in front of the branch."""
        rows = [tuple(_without_plain_groups(items)) for items in self.alternatives]
        if len(rows) == 1:
            return Sequence(rows[0], self.plain)
        shared = list(itertools.takewhile(lambda nodes: len(set(nodes)) == 1, zip(*rows, strict=False)))
        branch = Branch(tuple(Sequence(row[len(shared) :]) for row in rows))
        return Sequence((*(nodes[0] for nodes in shared), branch), self.plain)


def parse_pattern(pattern: str) -> Sequence:
    """The tree of a pattern that `regex.verify` has passed. ValueError if a part of it is not understood."""
    groups = [_OpenGroup(plain=False, ignore_case=False)]
    end = 0
    for token in _TOKEN.finditer(pattern):
        if token.start() != end:
            break
        end = token.end()
        if token.lastgroup == "open":
            _open(groups, token)
        elif token.lastgroup == "close" and len(groups) > 1:
            closed = groups.pop()
            groups[-1].alternatives[-1].append(Sequence(()) if closed.looks_around else closed.close())
        elif token.lastgroup == "branch":
            groups[-1].alternatives.append([])
        else:
            _add(groups[-1].alternatives[-1], token, groups[-1].ignore_case)
    if end != len(pattern) or len(groups) > 1:
        raise ValueError(f"not understood from character {end + 1} on: {pattern}")
    return groups[0].close()


def _open(groups: list[_OpenGroup], token: re.Match[str]) -> None:
    """Start a group; `(?i)` has none and sets the flag of the whole pattern."""
    on, _, off = (token["flags"] or "").partition("-")
    ignore_case = (groups[-1].ignore_case or "i" in on) and "i" not in off
    if token["scope"] == ")":
        groups[-1].ignore_case = ignore_case
    else:
        groups.append(_OpenGroup(token[0] in ("(?:", "(?>"), ignore_case, token["look"] is not None))


def _add(items: list[Node], token: re.Match[str], ignore_case: bool) -> None:
    kind = token.lastgroup
    if kind == "character":
        items.append(_characters([_decode(token[0])], ignore_case))
    elif kind == "class":
        items.append(_UNKNOWN if token["negated"] else _character_class(token["members"], ignore_case))
    elif kind == "any":
        items.append(_UNKNOWN)
    elif kind == "repeated":
        items.append(Repeat(_UNKNOWN, 0, None))
    elif kind == "anchor":
        items.append(Sequence(()))
    elif kind == "repeat" and items:
        low, high = _SIGNS[token["sign"]] if token["sign"] else (int(token["low"]), int(token["high"] or 0) or None)
        items[-1] = Repeat(items[-1], low, high if token["comma"] != "" else low)
    else:
        raise ValueError(f"not understood: {token[0]} at character {token.start() + 1}")


def _without_plain_groups(items: Iterable[Node]) -> Iterator[Node]:
    for item in items:
        yield from item.items if isinstance(item, Sequence) and item.plain else (item,)


def _character_class(members: str, ignore_case: bool) -> Characters:
    """The characters of `[…]`. A class like \\d inside makes it unknown."""
    characters: list[str] = []
    parts = _MEMBER.findall(members)
    while parts:
        part = parts.pop(0)
        if part in _CLASSES:
            return _UNKNOWN
        first = last = _decode(part)
        if len(parts) > 1 and parts[0] == "-":
            last = _decode(parts[1])
            del parts[:2]
        if ord(last) - ord(first) >= MAX_CHOICES:
            return _UNKNOWN
        characters += map(chr, range(ord(first), ord(last) + 1))
    return _characters(characters, ignore_case)


def _characters(characters: Iterable[str], ignore_case: bool) -> Characters:
    choices = set(characters)
    if ignore_case:
        if not all(map(str.isascii, choices)):
            return _UNKNOWN
        choices = {other for c in choices for other in (c, c.lower(), c.upper(), _FOLDED.get(c.lower(), c))}
    promising = len(choices) <= MAX_CHOICES and not any(c == "\n" or "\ud800" <= c <= "\udfff" for c in choices)
    return Characters(frozenset(choices)) if promising else _UNKNOWN


def _decode(text: str) -> str:
    """The character that a plain or escaped one stands for."""
    if text.startswith("\\x"):
        return chr(int(text[2:], 16))
    if not text.startswith("\\"):
        return text
    if text[1] in _CONTROLS:
        return _CONTROLS[text[1]]
    if text[1].isalnum():
        raise ValueError(f"not understood: {text}")
    return text[1]
