"""Find literals of a pattern: sets of strings of which every match contains at least one.

The scan looks for these strings with one automaton before any pattern runs, so a set that misses a match loses
evidence: whatever is unknown counts as a gap that promises nothing. Strings never span a line break, because the scan
reads lines. As in RE2's prefilter, a part of a pattern is either *exact* (it matches a few known strings and nothing
else) or a gap with candidate sets of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from triage.catalog.pattern_tree import Branch, Characters, Node, Repeat, parse_pattern

MAX_PRODUCT = 16  # strings that a cross product may grow to
MAX_UNION = 64  # strings of all branches of an alternation together
MIN_BYTES = 4
MAX_BYTES = 64
GOOD_LENGTH = 8  # characters; more strings are better than shorter ones
REUSE_BYTES = 12  # a literal that another pattern needs anyway is reused if it is at least this long
_MAX_RUN = 24  # neighbouring parts that are combined with each other

Cost = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class _Part:
    """`exact`: the only strings this part can match (None: unknown). `sets`: every match has a string of each."""

    exact: frozenset[str] | None = None
    sets: tuple[frozenset[str], ...] = ()


_GAP = _Part()
_NOTHING = _Part(frozenset({""}))


def required_literals(pattern: str, cost: Cost | None = None) -> list[frozenset[str]]:
    """Return sets of strings: each match contains a string of each set. Of alternatives the cheapest set is taken."""
    try:
        part = _concatenation(_to_parts(parse_pattern(pattern).items, cost or _no_cost))
    except (ValueError, RecursionError):
        return []
    return sorted(set(map(_truncate, part.sets)), key=lambda strings: (len(strings), sorted(strings)))


def choose_literals(
    candidates: Iterable[frozenset[str]], rarity: Cost, pool: Collection[str] = ()
) -> frozenset[str] | None:
    """The best candidate set: rarest in healthy logs, not short, fewest strings, then in `pool`, longest.

    None when no set has only strings of MIN_BYTES or more. `rarity` counts how often a string occurs in healthy logs.
    """
    usable = [strings for strings in candidates if _is_usable(strings)]
    if not usable:
        return None
    known = set(pool)
    best = min(usable, key=lambda one: (*_price(one, rarity), not one <= known, -min(map(len, one)), sorted(one)))
    return frozenset(_reuse_from_pool(string, pool) for string in best)


def _is_usable(strings: frozenset[str]) -> bool:
    return bool(strings) and all(len(string.encode("utf-8", "surrogatepass")) >= MIN_BYTES for string in strings)


def _price(strings: frozenset[str], cost: Cost) -> tuple[int, bool, int]:
    """How often the scan would stop: rare is best, then not so short that it is rare only by chance, then few."""
    return sum(map(cost, strings)), min(map(len, strings)) < GOOD_LENGTH, len(strings)


def _reuse_from_pool(string: str, pool: Collection[str]) -> str:
    """A long enough string of the pool within `string`: a text with `string` contains it too."""
    if string in pool or len(string) <= REUSE_BYTES:
        return string
    inside = [known for known in pool if len(known) >= REUSE_BYTES and known in string]
    return max(inside, key=lambda known: (len(known), known), default=string)


def _no_cost(_: str) -> int:
    return 0


def _to_parts(items: Iterable[Node], cost: Cost) -> list[_Part]:
    """The items of a sequence as parts that follow one another."""
    parts: list[_Part] = []
    before: list[_Part] = []  # the known characters right before
    for item in items:
        if isinstance(item, Branch):
            part = _alternation([_concatenation(_to_parts(branch.items, cost)) for branch in item.alternatives], cost)
            if before and part.exact is None:  # with the characters in front the strings are longer
                branches = [_concatenation([*before, *_to_parts(branch.items, cost)]) for branch in item.alternatives]
                part = _Part(None, (*part.sets, *_alternation(branches, cost).sets))
            parts.append(part)
        elif isinstance(item, Characters):
            parts.append(_GAP if item.choices is None else _exact(item.choices))
            before = [*before, parts[-1]] if item.choices and len(item.choices) == 1 else []
            continue
        elif isinstance(item, Repeat):
            parts += _repeat(item.low, item.high, _concatenation(_to_parts((item.item,), cost)))
        else:
            parts.append(_concatenation(_to_parts(item.items, cost)))
        before = []
    return parts


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

    def price(strings: frozenset[str]) -> tuple[bool, int, bool, int, int, list[str]]:
        return (not _is_usable(strings), *_price(strings, cost), -min(map(len, strings)), sorted(strings))

    chosen = _without_superstrings(frozenset().union(*(min(branch.sets, key=price) for branch in branches)))
    return _Part(None, (chosen,)) if len(chosen) <= MAX_UNION else _GAP


def _repeat(low: int, high: int | None, inner: _Part) -> list[_Part]:
    """`x+` has an x at its left and its right edge, and a gap between; `x?` is exact if x is."""
    if low == 0:
        return [_exact(inner.exact | {""})] if high == 1 and inner.exact is not None else [_GAP]
    copies = [inner] * min(low, 8)
    return copies if low == high == len(copies) else [*copies, _GAP, *copies]


def _concatenation(parts: list[_Part]) -> _Part:
    merged = _merge(parts)
    if not merged:
        return _NOTHING
    sets = [strings for part in merged if part.exact is None for strings in part.sets]
    for exact, run in itertools.groupby(merged, key=lambda part: part.exact is not None):
        if exact:
            sets.extend(_neighbour_products([part.exact or frozenset() for part in run]))
    return _Part(_product([part.exact for part in merged]), tuple(dict.fromkeys(sets)))


def _merge(parts: list[_Part]) -> list[_Part]:
    """Join neighbours that are one known string each; drop empty strings."""
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


def _neighbour_products(run: list[frozenset[str]]) -> Iterable[frozenset[str]]:
    """Every stretch of neighbouring exact parts whose cross product stays small."""
    for start in range(len(run)):
        for stop in range(start + 1, min(len(run), start + _MAX_RUN) + 1):
            product = _product(run[start:stop])
            if product is None:
                break
            if "" not in product:
                yield _without_superstrings(product)


def _product(run: Sequence[frozenset[str] | None]) -> frozenset[str] | None:
    """All concatenations; None if a part is unknown or there are too many (a single part may have more)."""
    if len(run) == 1:
        return run[0]
    product = frozenset({""})
    for strings in run:
        if strings is None or len(product) * len(strings) > MAX_PRODUCT:
            return None
        product = frozenset(left + right for left in product for right in strings)
    return product


def _without_superstrings(strings: frozenset[str]) -> frozenset[str]:
    """Drop strings that contain another one of the set: a search for the shorter one finds them too."""
    return frozenset(string for string in strings if not any(other != string and other in string for other in strings))


def _truncate(strings: frozenset[str]) -> frozenset[str]:
    cut = (string.encode()[:MAX_BYTES].decode("utf-8", "ignore") for string in strings)
    return _without_superstrings(frozenset(cut))
