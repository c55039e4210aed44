"""Leaves that look at the digits of a text, and so have to be asked for each text, asked together.

Thousands of ranks say the same, and most of these leaves do not hold. Once some were asked often enough, one pass of an
automaton over a text
tells whose pattern stands in it, and only those are tested. What a leaf without a pattern says depends on a few fields,
and is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from triage.catalog.facts import Captures, Fact
from triage.catalog.model import Leaf

Owned = tuple[int, Leaf]  # with the number of its signature
Holding = tuple[int, Leaf, Captures]

WORTH = 64  # texts after which an automaton is worth its making
REMEMBERED = 4096  # different values of the fields
MEMORY = 64 * 1024 * 1024  # for the automaton: one that runs out of it finds nothing


class Together:
    """Some leaves of any signatures."""

    def __init__(self, leaves: Sequence[Owned]) -> None:
        self._by_pattern: dict[str, list[Owned]] = {}
        self._bare: list[Owned] = []
        for owner, leaf in leaves:
            if leaf.text is None and leaf.not_text is None:
                self._bare.append((owner, leaf))
            else:
                self._by_pattern.setdefault(leaf.text or "", []).append((owner, leaf))
        self._names = sorted({name for _, leaf in self._bare for name in leaf.fields})
        self._known: dict[tuple[str | None, ...], list[Holding]] = {}
        self._worded = [owned for same in self._by_pattern.values() for owned in same]
        self._asked = 0
        self._present: Callable[[bytes], Iterable[Owned]] = lambda text: self._worded

    def holding(self, fact: Fact) -> list[Holding]:
        """Those that hold for a fact, which is of their kind and component, with what they capture."""
        found = self._by_fields(fact) if self._bare else []
        if not self._worded:
            return found
        self._asked += 1
        if self._asked == WORTH:
            self._present = _finder(self._by_pattern)
        return [*found, *_tested(self._present(fact.bytes), fact)]

    def _by_fields(self, fact: Fact) -> list[Holding]:
        values = tuple(map(fact.fields.get, self._names))
        found = self._known.get(values)
        if found is None:
            found = _tested(self._bare, fact)
            if len(self._known) < REMEMBERED:
                self._known[values] = found
        return found


def _tested(leaves: Iterable[Owned], fact: Fact) -> list[Holding]:
    return [(owner, leaf, captures) for owner, leaf in leaves if (captures := fact.test(leaf)) is not None]


def _finder(by_pattern: dict[str, list[Owned]]) -> Callable[[bytes], Iterable[Owned]]:
    """The leaves whose pattern stands in a text; all of them, if RE2 cannot search for these patterns at once."""
    import re2  # type: ignore[import-untyped, unused-ignore]

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY
    automaton = re2.Set.SearchSet(options)
    try:
        for pattern in by_pattern:
            automaton.Add(pattern)
        automaton.Compile()
    except re2.error:
        return lambda text: [owned for same in by_pattern.values() for owned in same]
    behind = list(by_pattern.values())
    return lambda text: [owned for number in automaton.Match(text) or () for owned in behind[number]]
