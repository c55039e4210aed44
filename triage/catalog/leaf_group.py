"""Test several leaves against a text at once: those that depend on its digits, and so on each single text.

Thousands of ranks write the same line, and most of these leaves do not hold. After some texts, one pass of an
automaton finds the patterns that occur in a text, and only their leaves are tested. The result of leaves without a
pattern depends on a few fields and is remembered. Leaves of the engine regex are tested on every text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from triage.catalog import regex
from triage.catalog.distinct_evidence import Captures, DistinctEvidence
from triage.catalog.model import Leaf

OwnedLeaf = tuple[int, Leaf]  # with the number of its signature
LeafMatch = tuple[int, Leaf, Captures]

TEXTS_BEFORE_AUTOMATON = 64  # texts after which an automaton pays off
MAX_REMEMBERED = 4096  # different values of the fields
AUTOMATON_MEMORY = 64 * 1024 * 1024  # an automaton that runs out of it finds nothing


class LeafGroup:
    """Some leaves of any signatures."""

    def __init__(self, leaves: Sequence[OwnedLeaf]) -> None:
        self._by_pattern: dict[str, list[OwnedLeaf]] = {}
        self._without_pattern: list[OwnedLeaf] = []
        self._backtracking = [(owner, leaf) for owner, leaf in leaves if leaf.engine == "regex"]
        for owner, leaf in leaves:
            if leaf.engine == "regex":
                continue
            if leaf.text is None and leaf.not_text is None:
                self._without_pattern.append((owner, leaf))
            else:
                self._by_pattern.setdefault(leaf.text or "", []).append((owner, leaf))
        self._field_names = sorted({name for _, leaf in self._without_pattern for name in leaf.fields})
        self._matches_by_fields: dict[tuple[str | None, ...], list[LeafMatch]] = {}
        self._with_pattern = [owned for same in self._by_pattern.values() for owned in same]
        self._text_count = 0
        self._select: Callable[[bytes], Iterable[OwnedLeaf]] = lambda text: self._with_pattern

    def find_matches(self, evidence: DistinctEvidence) -> list[LeafMatch]:
        """The leaves that hold for evidence of their kind and component, with their captures."""
        matches = self._match_fields(evidence) if self._without_pattern else []
        if self._backtracking:
            matches = [*matches, *_test_leaves(self._backtracking, evidence)]
        if not self._with_pattern:
            return matches
        self._text_count += 1
        if self._text_count == TEXTS_BEFORE_AUTOMATON:
            self._select = _build_pattern_finder(self._by_pattern)
        return [*matches, *_test_leaves(self._select(evidence.bytes), evidence)]

    def _match_fields(self, evidence: DistinctEvidence) -> list[LeafMatch]:
        values = tuple(map(evidence.fields.get, self._field_names))
        matches = self._matches_by_fields.get(values)
        if matches is None:
            matches = _test_leaves(self._without_pattern, evidence)
            if len(self._matches_by_fields) < MAX_REMEMBERED:
                self._matches_by_fields[values] = matches
        return matches


def _test_leaves(leaves: Iterable[OwnedLeaf], evidence: DistinctEvidence) -> list[LeafMatch]:
    return [(owner, leaf, captures) for owner, leaf in leaves if (captures := evidence.test(leaf)) is not None]


def _build_pattern_finder(by_pattern: dict[str, list[OwnedLeaf]]) -> Callable[[bytes], Iterable[OwnedLeaf]]:
    """A function that selects the leaves whose pattern occurs in a text; all, if RE2 cannot search for them at once."""
    leaves = list(by_pattern.values())
    find = regex.build_set_search(by_pattern, AUTOMATON_MEMORY)
    if find is None:
        return lambda text: [owned for same in leaves for owned in same]
    return lambda text: [owned for number in find(text) for owned in leaves[number]]
