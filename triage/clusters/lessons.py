"""What later failures learn from people: words that two merged headlines had in each other's place mean the same
under their guard, and words by which two separated headlines differ tell causes apart.

A lesson is not stored: it follows from the keys that a person moved and from the pairs that a person keeps apart, so
undoing the action undoes the lesson.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from triage.base.lazy_dataclass import dataclass
from triage.clusters.known_key import LEAST_SHARED, KnownKey, overlap

MOST_WORDS = 3
"""Headlines that differ in more words than these are two sentences, of which no word stands for another."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """`here` and `there` mean the same under `guard`; `actor` merged two headlines that differed so."""

    guard: str
    here: frozenset[str]
    there: frozenset[str]
    actor: str


class Lessons:
    """All lessons of the known keys. `moved`: by key, who put it into its cluster; `vetoes`: pairs of keys apart."""

    def __init__(self, known: Sequence[KnownKey], moved: Mapping[str, str], vetoes: Collection[frozenset[str]]) -> None:
        self._same: dict[str, set[Lesson]] = defaultdict(set)
        self._different: set[tuple[str, frozenset[frozenset[str]]]] = set()
        for key, mate, actor in _find_mates(known, moved):
            here, there = key.terms - mate.terms, mate.terms - key.terms
            self._same[key.guard] |= {Lesson(key.guard, here, there, actor), Lesson(key.guard, there, here, actor)}
        by_key = {one.key: one for one in known} if vetoes else {}
        for pair in vetoes:
            keys = [by_key[key] for key in pair if key in by_key]
            if len(keys) == 2 and keys[0].guard == keys[1].guard and _is_lesson(*keys):
                self._different.add((keys[0].guard, _difference(*keys)))

    def separate(self, one: KnownKey, other: KnownKey) -> bool:
        """Whether two headlines of one guard differ as two that a person keeps apart."""
        return bool(self._different) and (one.guard, _difference(one, other)) in self._different

    def apply(self, new: KnownKey) -> Iterator[tuple[Lesson, KnownKey]]:
        """Yield each lesson about words of a new key, with the key without them."""
        for lesson in sorted(self._same.get(new.guard, ()), key=lambda one: (sorted(one.here), sorted(one.there))):
            if lesson.here <= new.terms and lesson.there.isdisjoint(new.terms):
                yield lesson, without(new, lesson.here)


def without(key: KnownKey, terms: frozenset[str]) -> KnownKey:
    """Return the key without these words."""
    return replace(key, terms=key.terms - terms, message=key.message - terms)


def _find_mates(known: Sequence[KnownKey], moved: Mapping[str, str]) -> Iterator[tuple[KnownKey, KnownKey, str]]:
    """Yield each key that a person moved, the nearest of its cluster that differs in words of both, and the person."""
    clusters: dict[tuple[str, str], list[KnownKey]] = defaultdict(list)
    for one in known if moved else ():
        clusters[one.cluster, one.guard].append(one)
    for members in clusters.values():
        for key in members:
            mates = [mate for mate in members if key.key in moved and _is_lesson(key, mate) and _have_own(key, mate)]
            if mates:
                nearest = max(mates, key=lambda mate: (overlap(mate.terms, key.terms), mate.key))
                yield key, nearest, moved[key.key]


def _is_lesson(one: KnownKey, other: KnownKey) -> bool:
    most = max(len(one.terms - other.terms), len(other.terms - one.terms))
    return 0 < most <= MOST_WORDS and len(one.terms & other.terms) >= LEAST_SHARED


def _have_own(one: KnownKey, other: KnownKey) -> bool:
    return not (one.terms <= other.terms or other.terms <= one.terms)


def _difference(one: KnownKey, other: KnownKey) -> frozenset[frozenset[str]]:
    return frozenset((one.terms - other.terms, other.terms - one.terms))
