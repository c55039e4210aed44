"""Which cluster a failure belongs to: one with the same key, or with a headline of fewer or more words; else a new one.

Version drift adds words to a message or drops some, and renames classes of exceptions; another cause changes a word. So
two headlines under one guard are the same failure when the words of one contain those of the other, and not when each
has a word of its own (docs/clustering.md has the measurements). Clusters are what this relation connects, so the order
in which failures arrive changes nothing.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from triage.clusters.fingerprint import cluster_id, headline_words, message_words
from triage.clusters.model import Assignment, NearestCluster
from triage.clusters.rules import Rules, load_rules
from triage.model.diagnosis import Fingerprint

_LEAST_SHARED = 3
_LEAST_OVERLAP = 0.6
# Four words and more are rarely shared by chance: a release may add a sentence.
_MANY_SHARED, _LEAST_OVERLAP_OF_MANY = 4, 0.35
# More words than these are a clause of their own, in which `after` or `not` says nothing of the rest.
_CLAUSE = 3


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A key of a cluster, with the words of its headline, and of these the words of the message without the class of
    the exception; without an anchor it has none.
    """

    cluster: str
    key: str
    guard: str
    terms: frozenset[str]
    message: frozenset[str]

    @staticmethod
    def of(cluster: str, fingerprint: Fingerprint) -> KnownKey:
        """Return the key that a fingerprint gives a cluster."""
        terms, message = _split_words(fingerprint.headline) if fingerprint.anchored else (frozenset(), frozenset())
        return KnownKey(cluster, fingerprint.key, fingerprint.guard, terms, message)

    @property
    def rarest(self) -> str:
        """A word that few headlines hold: long ones are rare. Any fixed order is correct."""
        terms = self.message if len(self.message) >= _LEAST_SHARED else self.terms
        return max(terms, key=lambda term: (len(term), term))


@functools.lru_cache(maxsize=1 << 16)
def _split_words(headline: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of a headline, and those of its message. A store asks for the same ones with every new key."""
    terms = headline_words(headline)
    return terms, message_words(headline, terms)


class Clusters:
    """The known keys, by guard and words. `vetoes` are pairs of keys that people marked as different."""

    def __init__(
        self, known: Iterable[KnownKey] = (), vetoes: Iterable[frozenset[str]] = (), by: Rules | None = None
    ) -> None:
        self._rules = by or load_rules()
        self._vetoes = frozenset(vetoes)
        self._by_key: dict[str, KnownKey] = {}
        self._names: set[str] = set()
        self._first: dict[tuple[str, str], list[str]] = defaultdict(
            list
        )  # keys under their rarest word: to find headlines with fewer words
        self._holds: dict[tuple[str, str], list[str]] = defaultdict(
            list
        )  # keys under every word: to find headlines with more words
        self._members: dict[str, set[str]] = defaultdict(set)  # keys of each cluster that leads to no other
        self._nearest: dict[str, NearestCluster | None] = {}  # of each key, the nearest when it was new
        self._redirects: dict[str, str] = {}
        for entry in known:
            self._add(entry)

    def assign(self, fingerprint: Fingerprint) -> Assignment:
        """Return the cluster of a failure, and remember it. Equal input in any order gives the same clusters."""
        known = self._by_key.get(fingerprint.key)
        if known is not None:
            why = (f"same headline as before: {fingerprint.headline}",)
            return Assignment(self.resolve(known.cluster), "exact", why, runner_up=self._nearest.get(fingerprint.key))
        new = KnownKey.of(self._mint(fingerprint.key), fingerprint)
        if not fingerprint.anchored:
            self._add(new)
            return Assignment(
                new.cluster, "unanchored", ("no line says what happened, so it is not merged automatically",)
            )
        nested = self._nested(new)
        if not nested:
            nearest = self._nearest[new.key] = self._near(new, ())
            self._add(new)
            return Assignment(new.cluster, "new", (_why_new(nearest),), runner_up=nearest)
        best = max(nested, key=lambda entry: (_overlap(entry.terms, new.terms), entry.key))
        cluster = self.resolve(best.cluster)
        joins = self._joined(cluster, sorted({self.resolve(entry.cluster) for entry in nested} - {cluster}))
        nearest = self._nearest[new.key] = self._near(new, (cluster, *joins))
        for other in joins:
            self._redirects[other] = cluster
            self._members[cluster] |= self._members.pop(other)
        self._add(replace(new, cluster=cluster))
        return Assignment(cluster, "nested", (_why_nested(new, best),), joins, nearest)

    def _joined(self, cluster: str, others: Sequence[str]) -> tuple[str, ...]:
        """Return those of the others that are the same as `cluster` now, without any that people keep apart."""
        together = set(self._members[cluster])
        joins: list[str] = []
        for other in others:
            members = self._members[other]
            if not any(pair & members and pair & together for pair in self._vetoes):
                together |= members
                joins.append(other)
        return tuple(joins)

    def resolve(self, cluster: str) -> str:
        """Return the cluster that a name stands for today."""
        while cluster in self._redirects:
            cluster = self._redirects[cluster]
        return cluster

    def _add(self, entry: KnownKey) -> None:
        self._by_key[entry.key] = entry
        self._names.add(entry.cluster)
        self._members[self.resolve(entry.cluster)].add(entry.key)
        if entry.terms:
            self._first[entry.guard, entry.rarest].append(entry.key)
            for term in entry.terms:
                self._holds[entry.guard, term].append(entry.key)

    def _mint(self, key: str) -> str:
        """Return a short name from the first key of the cluster, longer where two clusters would share it."""
        return next(
            name for name in (cluster_id(key, digits) for digits in range(6, len(key) + 1)) if name not in self._names
        )

    def _nested(self, new: KnownKey) -> list[KnownKey]:
        """Return the known keys whose headline has the same words and some more, or some less."""
        fewer = {key for term in new.terms for key in self._first.get((new.guard, term), ())}
        more = self._holds.get((new.guard, new.rarest), ())
        return [
            self._by_key[key]
            for key in sorted(fewer.union(more))
            if self._same(new, self._by_key[key]) and frozenset((key, new.key)) not in self._vetoes
        ]

    def _same(self, new: KnownKey, known: KnownKey) -> bool:
        one, other = new.terms, known.terms
        if min(len(new.message), len(known.message)) >= _LEAST_SHARED:  # the messages say enough without the class
            one, other = new.message, known.message
        shared, more = one & other, one ^ other
        if not (one <= other or other <= one) or len(shared) < _LEAST_SHARED:
            return False
        least = _LEAST_OVERLAP if len(shared) < _MANY_SHARED else _LEAST_OVERLAP_OF_MANY
        return _overlap(one, other) >= least and (len(more) > _CLAUSE or not more & self._rules.turning)

    def _near(self, new: KnownKey, chosen: Collection[str]) -> NearestCluster | None:
        """Return the cluster under the same guard that shares most words, without the chosen ones."""
        keys = {key for term in new.terms for key in self._holds.get((new.guard, term), ())[:_MOST_COMPARED]}
        if chosen:
            keys = {key for key in keys if self.resolve(self._by_key[key].cluster) not in chosen}
        if not keys:
            return None
        score, key = max((round(_overlap(self._by_key[key].terms, new.terms), 3), key) for key in keys)
        return compare_words(self.resolve(self._by_key[key].cluster), score, new.terms, self._by_key[key].terms)


# A common word is under thousands of keys; the runner-up is only shown, and need not be the best of all.
_MOST_COMPARED = 200


def compare_words(cluster: str, score: float, here: frozenset[str], there: frozenset[str]) -> NearestCluster:
    """Return how two headlines differ, in words."""
    return NearestCluster(cluster, score, tuple(sorted(here - there)), tuple(sorted(there - here)))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / (len(one | other) or 1)


def _why_nested(new: KnownKey, known: KnownKey) -> str:
    own_terms = (("it also has", new.terms - known.terms), ("it lacks", known.terms - new.terms))
    differences = [f"{phrase}: {', '.join(sorted(terms))}" for phrase, terms in own_terms if terms]
    return f"merged automatically with key {known.key}; {'; '.join(differences) or 'the words are the same'}"


def _why_new(near: NearestCluster | None) -> str:
    return "nothing similar is known" if near is None else describe_nearest(near)


def describe_nearest(near: NearestCluster) -> str:
    """Return a sentence that says how near the runner-up is."""
    here, there = (", ".join(part) or "nothing" for part in (near.only_here, near.only_there))
    return f"nearest is {near.cluster}, with {near.score:.0%} of the words; only here: {here}; only there: {there}"
