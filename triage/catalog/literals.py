"""From a pattern to strings of which every match must contain at least one.

The scan looks for these strings with one automaton before any pattern runs, so a set that misses a match loses
evidence:
whatever is not understood counts as a gap that promises nothing. Strings never span a line break, because the scan sees
lines. The shape follows RE2's prefilter: a part of a pattern is either *exact* (it matches a few known strings and
nothing
else) or a gap with candidate sets of its own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from re import _constants as _c  # type: ignore[attr-defined]
from typing import Any

from triage.catalog.regex import parsed

MAX_PRODUCT = 16  # strings that a cross product may grow to
MAX_UNION = 64  # strings that the branches of an alternation may bring together
MIN_BYTES = 4
MAX_BYTES = 64
GOOD_LENGTH = 8  # characters; more strings are better than shorter ones
REUSE_BYTES = 12  # a literal that another pattern needs anyway is taken if it is at least this long
_MAX_WINDOW = 24  # parts of a concatenation that are combined with each other

Cost = Callable[[str], int]
# Letters that a case-insensitive RE2 also matches outside ASCII.
_FOLDED = {"k": "\u212a", "s": "\u017f"}


@dataclass(frozen=True, slots=True)
class _Part:
    """`exact`: the only strings this part can match (None: unknown). `sets`: what every match of it contains."""

    exact: frozenset[str] | None = None
    sets: tuple[frozenset[str], ...] = ()


_GAP = _Part()
_NOTHING = _Part(frozenset({""}))


def required_literals(pattern: str, cost: Cost | None = None) -> list[frozenset[str]]:
    """Candidate sets; each match of the pattern contains a string of each set. Empty when nothing is certain.

    `cost` (0 is best) steers which strings stand for the branches of an alternation, where not every choice can be
    listed.
    """
    try:
        tree = parsed(pattern)
        part = _concatenation(_items(tree, tree.state.flags, cost or _no_cost))
    except (re.error, OverflowError, RecursionError):
        return []
    return sorted({_cut(found) for found in part.sets}, key=lambda found: (len(found), sorted(found)))


def choose(candidates: Iterable[frozenset[str]], rarity: Cost, pool: Collection[str] = ()) -> frozenset[str] | None:
    """The candidate set that opens the gate least: rarest in healthy logs, not short, fewest, then in `pool`, longest.

    None when no set has only strings of MIN_BYTES or more. `rarity` counts how often a string stands in healthy logs.
    """
    usable = [found for found in candidates if _usable(found)]
    if not usable:
        return None
    known = set(pool)
    best = min(
        usable, key=lambda found: (*_price(found, rarity), not found <= known, -min(map(len, found)), sorted(found))
    )
    return frozenset(_reused(string, pool) for string in best)


def _usable(found: frozenset[str]) -> bool:
    return bool(found) and all(len(string.encode("utf-8", "surrogatepass")) >= MIN_BYTES for string in found)


def _price(found: frozenset[str], cost: Cost) -> tuple[int, bool, int]:
    """What opens the gate least: rare, not so short that it is rare by chance only, few."""
    return sum(cost(string) for string in found), min(map(len, found)) < GOOD_LENGTH, len(found)


def _reused(string: str, pool: Collection[str]) -> str:
    """A long enough string of the pool that `string` contains: whoever contains the one contains the other."""
    if string in pool or len(string) <= REUSE_BYTES:
        return string
    inside = [known for known in pool if len(known) >= REUSE_BYTES and known in string]
    return max(inside, key=lambda known: (len(known), known), default=string)


def _no_cost(_: str) -> int:
    return 0


def _items(tree: Iterable[tuple[Any, Any]], flags: int, cost: Cost) -> list[_Part]:
    found: list[_Part] = []
    before: list[tuple[Any, Any]] = []  # the characters right before
    for is_text, nodes in itertools.groupby(tree, key=lambda node: node[0] is _c.LITERAL):
        if is_text:
            before = list(nodes)
            found += _text([code for _, code in before], flags)
            continue
        for op, value in nodes:
            parts = _parts(op, value, flags, cost)
            if op is _c.BRANCH and before and parts[0].exact is None:
                # Python's parser takes what all branches begin with out of them; with it in front they are longer.
                whole = _alternation(
                    [_concatenation(_items([*before, *branch], flags, cost)) for branch in value[1]], cost
                )
                parts = [_Part(None, (*parts[0].sets, *whole.sets))]
            found += parts
            before = []
    return found


def _text(codes: Sequence[int], flags: int) -> list[_Part]:
    """Characters in a row: one part, unless some of them may be others too."""
    if flags & re.IGNORECASE or any(code == 10 or 0xD800 <= code <= 0xDFFF for code in codes):
        return [_characters([code], flags) for code in codes]
    return [_exact(frozenset({"".join(map(chr, codes))}))]


def _parts(op: Any, value: Any, flags: int, cost: Cost) -> list[_Part]:
    """One node of Python's parse tree as parts that follow one another."""
    if op is _c.IN:
        return [_class(value, flags)]
    if op in (_c.AT, _c.ASSERT, _c.ASSERT_NOT):
        return [_NOTHING]
    if op is _c.SUBPATTERN:
        _, added, removed, inner = value
        return [_concatenation(_items(inner, (flags | added) & ~removed, cost))]
    if op is _c.BRANCH:
        return [_alternation([_concatenation(_items(branch, flags, cost)) for branch in value[1]], cost)]
    if op in (_c.MAX_REPEAT, _c.MIN_REPEAT):
        low, high, inner = value
        return _repeat(low, high, _concatenation(_items(inner, flags, cost)))
    return [_GAP]


def _characters(codes: Iterable[int], flags: int) -> _Part:
    strings: set[str] = set()
    for code in codes:
        character = chr(code)
        if character == "\n" or 0xD800 <= code <= 0xDFFF:
            return _GAP
        if flags & re.IGNORECASE:
            if not character.isascii():
                return _GAP
            strings |= {character.lower(), character.upper(), _FOLDED.get(character.lower(), character)}
        strings.add(character)
    return _exact(frozenset(strings)) if 0 < len(strings) <= MAX_PRODUCT else _GAP


def _class(items: Sequence[tuple[Any, Any]], flags: int) -> _Part:
    codes: list[int] = []
    for op, value in items:
        if op is _c.LITERAL:
            codes.append(value)
        elif op is _c.RANGE and value[1] - value[0] < MAX_PRODUCT:
            codes.extend(range(value[0], value[1] + 1))
        else:
            return _GAP
    return _characters(codes, flags)


def _exact(strings: frozenset[str]) -> _Part:
    return _Part(strings, () if "" in strings else (strings,))


def _alternation(branches: list[_Part], cost: Cost) -> _Part:
    """Exact when all branches are; otherwise the cheapest set of each branch, together."""
    if all(branch.exact is not None for branch in branches):
        union = frozenset().union(*(branch.exact or frozenset() for branch in branches))
        if len(union) <= MAX_UNION:
            return _exact(union)
    if not all(branch.sets for branch in branches):
        return _GAP

    def price(found: frozenset[str]) -> tuple[bool, int, bool, int, int, list[str]]:
        return (not _usable(found), *_price(found, cost), -min(map(len, found)), sorted(found))

    chosen = _minimal(frozenset().union(*(min(branch.sets, key=price) for branch in branches)))
    return _Part(None, (chosen,)) if len(chosen) <= MAX_UNION else _GAP


def _repeat(low: int, high: int, inner: _Part) -> list[_Part]:
    """`x+` promises an x at its left and at its right edge, whatever stands between; `x?` is exact if x is."""
    if low == 0:
        return [_exact(inner.exact | {""})] if high == 1 and inner.exact is not None else [_GAP]
    copies = [inner] * min(low, 8)
    return copies if low == high == len(copies) else [*copies, _GAP, *copies]


def _concatenation(parts: list[_Part]) -> _Part:
    merged = _merge(parts)
    if not merged:
        return _NOTHING
    sets = [found for part in merged if part.exact is None for found in part.sets]
    for exact, run in itertools.groupby(merged, key=lambda part: part.exact is not None):
        if exact:
            sets.extend(_windows([part.exact or frozenset() for part in run]))
    whole = _product([part.exact for part in merged])
    return _Part(whole, tuple(dict.fromkeys(sets)))


def _merge(parts: list[_Part]) -> list[_Part]:
    """Neighbours that are one known string each become one string; the empty string disappears."""
    merged: list[_Part] = []
    for part in parts:
        if part.exact == frozenset({""}):
            continue
        last = merged[-1].exact if merged else None
        if last is not None and part.exact is not None and len(last) == len(part.exact) == 1:
            merged[-1] = _exact(frozenset({min(last) + min(part.exact)}))
        else:
            merged.append(part)
    return merged


def _windows(run: list[frozenset[str]]) -> Iterable[frozenset[str]]:
    """Every stretch of neighbouring exact parts whose cross product stays small."""
    for start in range(len(run)):
        for stop in range(start + 1, min(len(run), start + _MAX_WINDOW) + 1):
            product = _product(run[start:stop])
            if product is None:
                break
            if "" not in product:
                yield _minimal(product)


def _product(run: Sequence[frozenset[str] | None]) -> frozenset[str] | None:
    """All concatenations, or None if a part is unknown or they are too many (a single part may have more)."""
    if len(run) == 1:
        return run[0]
    product = frozenset({""})
    for strings in run:
        if strings is None or len(product) * len(strings) > MAX_PRODUCT:
            return None
        product = frozenset(left + right for left in product for right in strings)
    return product


def _minimal(strings: frozenset[str]) -> frozenset[str]:
    """Without strings that contain another one of the set: the shorter one finds them too."""
    return frozenset(string for string in strings if not any(other != string and other in string for other in strings))


def _cut(strings: frozenset[str]) -> frozenset[str]:
    cut = (string.encode()[:MAX_BYTES].decode("utf-8", "ignore") for string in strings)
    return _minimal(frozenset(cut))
