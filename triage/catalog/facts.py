"""Evidence that says the same, once, and the test of one leaf against it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence

from triage.catalog.model import Leaf
from triage.catalog.regex import compiled, named_groups
from triage.model.evidence import Evidence

Captures = Mapping[str, str]
_Key = tuple[str, str, str, tuple[tuple[str, str], ...]]
NO_CAPTURES: Captures = {}
MAX_TEXT = 1 << 18  # characters of one fact that patterns see; the scan keeps less of a line
MAX_PLACES = 64  # of one pattern in one text


class Fact:
    """One distinct (kind, component, text, fields), with its text as the bytes that RE2 reads.

    `indices` say where in the list of evidence it stands; facts are numbered by their first evidence.
    """

    __slots__ = ("bytes", "component", "everywhere", "fields", "indices", "kind", "number")

    def __init__(self, number: int, evidence: Evidence, first: int) -> None:
        self.number = number
        self.kind = evidence.kind
        self.component = evidence.component
        self.fields = evidence.fields
        self.bytes = evidence.text[:MAX_TEXT].encode("utf-8", "replace")
        self.indices = [first]
        self.everywhere: dict[str, list[Captures]] | None = (
            None  # the captures of each place where a pattern of a table is found
        )

    def test(self, leaf: Leaf) -> Captures | None:
        """The captures if the leaf holds, otherwise None."""
        if (leaf.kind is not None and leaf.kind != self.kind) or (
            leaf.component is not None and leaf.component != self.component
        ):
            return None
        captures = NO_CAPTURES
        for name, pattern in leaf.fields.items():
            value = self.fields.get(name)
            found = None if value is None else _whole(pattern, value[:MAX_TEXT])
            if found is None:
                return None
            captures = {**found, **captures}
        if leaf.text is not None:
            found = self._with(leaf.text, leaf.values) if leaf.values else _within(leaf.text, self.bytes)
            if found is None:
                return None
            captures = {**captures, **found}
        if leaf.not_text is not None and compiled(leaf.not_text).search(self.bytes):
            return None
        return captures

    def _with(self, pattern: str, values: Mapping[str, tuple[str, ...]]) -> Captures | None:
        """A place where the pattern captures these values. All rows of a table share the pattern, so it is searched
        once.
        """
        if self.everywhere is None:
            self.everywhere = {}
        places = self.everywhere.get(pattern)
        if places is None:
            found = itertools.islice(compiled(pattern).finditer(self.bytes), MAX_PLACES)
            places = self.everywhere[pattern] = [_groups(pattern, place) for place in found]
        return next(
            (place for place in places if all(place.get(name) in wanted for name, wanted in values.items())), None
        )


def distinct(evidence: Sequence[Evidence]) -> list[Fact]:
    """The facts in the order in which they are first seen."""
    facts: dict[_Key, Fact] = {}
    gather(evidence, facts)
    return list(facts.values())


def gather(evidence: Iterable[Evidence], facts: dict[_Key, Fact], start: int = 0) -> list[Fact]:
    """Add evidence, numbered from `start`, to the facts that are known; those that are new, in order."""
    known = len(facts)
    for index, item in enumerate(evidence, start):
        key = (item.kind, item.component, item.text, tuple(sorted(item.fields.items())) if item.fields else ())
        fact = facts.get(key)
        if fact is None:
            facts[key] = Fact(len(facts), item, index)
        else:
            fact.indices.append(index)
    return list(itertools.islice(facts.values(), known, None))


def _within(pattern: str, text: bytes) -> Captures | None:
    found = compiled(pattern).search(text)
    return None if found is None else _groups(pattern, found)


# A job has few different field values (types, exit codes) and many signatures that ask for them.
@functools.lru_cache(maxsize=65_536)
def _whole(pattern: str, value: str) -> Captures | None:
    found = compiled(pattern).fullmatch(value.encode("utf-8", "replace"))
    return None if found is None else _groups(pattern, found)


def _groups(pattern: str, found: object) -> Captures:
    group = found.group  # type: ignore[attr-defined]
    values = ((name, group(number)) for name, number in named_groups(pattern))
    return {name: value.decode("utf-8", "replace") for name, value in values if value is not None}
