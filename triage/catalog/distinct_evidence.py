"""Group equal evidence, and test a leaf against each group once."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from triage.catalog.backtracking import BacktrackingSearches
from triage.catalog.model import Leaf
from triage.catalog.regex import compile_pattern, list_named_groups
from triage.model.evidence import Evidence

Captures = Mapping[str, str]
_Key = tuple[str, str, str, tuple[tuple[str, str], ...]]
NO_CAPTURES: Captures = {}
MAX_TEXT = 1 << 18  # characters of one text that patterns see; the scan keeps less of a line
MAX_PLACES = 64  # matches of one pattern in one text


class DistinctEvidence:
    """Evidence with the same (kind, component, text, fields), with its text as the bytes that RE2 reads.

    `indices` are its places in the list of evidence; `number` counts groups in the order of their first evidence.
    `searches` runs the patterns of the engine regex.
    """

    __slots__ = ("bytes", "captures_by_pattern", "component", "fields", "indices", "kind", "number", "searches")

    def __init__(self, number: int, evidence: Evidence, first: int, searches: BacktrackingSearches) -> None:
        self.number = number
        self.searches = searches
        self.kind = evidence.kind
        self.component = evidence.component
        self.fields = evidence.fields
        self.bytes = evidence.text[:MAX_TEXT].encode("utf-8", "replace")
        self.indices = [first]
        # Captures of each match of a table's pattern; None until a table asks, because most evidence never needs it.
        self.captures_by_pattern: dict[str, list[Captures]] | None = None

    def test(self, leaf: Leaf) -> Captures | None:
        """Return the captures if the leaf holds, otherwise None."""
        if (leaf.kind is not None and leaf.kind != self.kind) or (
            leaf.component is not None and leaf.component != self.component
        ):
            return None
        captures = NO_CAPTURES
        for name, pattern in leaf.fields.items():
            value = self.fields.get(name)
            of_field = None if value is None else _match_whole(pattern, value[:MAX_TEXT])
            if of_field is None:
                return None
            captures = {**of_field, **captures}
        if leaf.engine == "regex":
            of_text = self._search_backtracking(leaf)
            return None if of_text is None else {**captures, **of_text}
        if leaf.text is not None:
            of_text = self._find_values(leaf.text, leaf.values) if leaf.values else _search(leaf.text, self.bytes)
            if of_text is None:
                return None
            captures = {**captures, **of_text}
        if leaf.not_text is not None and compile_pattern(leaf.not_text).search(self.bytes):
            return None
        return captures

    def _search_backtracking(self, leaf: Leaf) -> Captures | None:
        """The captures if `text` is found and `not_text` is not; None, too, if a search takes too long."""
        text = self.bytes.decode("utf-8", "replace")
        try:
            captures = NO_CAPTURES if leaf.text is None else self.searches.search(leaf.text, text)
            if captures is None or (
                leaf.not_text is not None and self.searches.search(leaf.not_text, text) is not None
            ):
                return None
        except TimeoutError:
            return None
        return captures

    def _find_values(self, pattern: str, values: Mapping[str, tuple[str, ...]]) -> Captures | None:
        """The first match that captures these values. All rows of a table share the pattern, so it is searched once."""
        if self.captures_by_pattern is None:
            self.captures_by_pattern = {}
        captures = self.captures_by_pattern.get(pattern)
        if captures is None:
            matches = itertools.islice(compile_pattern(pattern).finditer(self.bytes), MAX_PLACES)
            captures = self.captures_by_pattern[pattern] = [_read_captures(pattern, match) for match in matches]
        fitting = (one for one in captures if all(one.get(name) in texts for name, texts in values.items()))
        return next(fitting, None)


def group_evidence(evidence: Sequence[Evidence]) -> list[DistinctEvidence]:
    """Group equal evidence, in the order of the first of each group."""
    groups: dict[_Key, DistinctEvidence] = {}
    add_evidence(evidence, groups, BacktrackingSearches())
    return list(groups.values())


def add_evidence(
    evidence: Iterable[Evidence], groups: dict[_Key, DistinctEvidence], searches: BacktrackingSearches, start: int = 0
) -> list[DistinctEvidence]:
    """Add evidence, numbered from `start`, to the groups; return the new groups in order."""
    known = len(groups)
    for index, item in enumerate(evidence, start):
        key = (item.kind, item.component, item.text, tuple(sorted(item.fields.items())) if item.fields else ())
        group = groups.get(key)
        if group is None:
            groups[key] = DistinctEvidence(len(groups), item, index, searches)
        else:
            group.indices.append(index)
    return list(itertools.islice(groups.values(), known, None))


def _search(pattern: str, text: bytes) -> Captures | None:
    match = compile_pattern(pattern).search(text)
    return None if match is None else _read_captures(pattern, match)


# A job has few different field values (types, exit codes) and many signatures that ask for them.
@functools.lru_cache(maxsize=65_536)
def _match_whole(pattern: str, value: str) -> Captures | None:
    match = compile_pattern(pattern).fullmatch(value.encode("utf-8", "replace"))
    return None if match is None else _read_captures(pattern, match)


def _read_captures(pattern: str, match: Any) -> Captures:
    values = ((name, match.group(number)) for name, number in list_named_groups(pattern))
    return {name: value.decode("utf-8", "replace") for name, value in values if value is not None}
