"""Which cluster a failure belongs to: one with the same key, or with a headline of fewer or more words; else a new one.

Version drift adds words to a message or drops some, and renames classes of exceptions; another cause changes a word. So
two headlines under one guard are the same failure when the words of one contain those of the other, and not when each
has a word of its own, unless both are of one place and say the same in other words (docs/clustering.md has the
measurements). Clusters are what this relation connects, so the order
in which failures arrive changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from triage.clusters.fingerprint import cluster_id
from triage.clusters.known_key import LEAST_SHARED, KnownKey, overlap
from triage.clusters.lessons import Lesson, Lessons, without
from triage.clusters.model import Assignment, How, NearestCluster
from triage.clusters.rewording import are_contrary, are_reworded
from triage.clusters.rules import Rules, load_rules
from triage.model.diagnosis import Fingerprint

_LEAST_OVERLAP = 0.6
# Four words and more are rarely shared by chance: a release may add a sentence.
_MANY_SHARED, _LEAST_OVERLAP_OF_MANY = 4, 0.35
# More words than these are a clause of their own, in which `after` or `not` says nothing of the rest.
_CLAUSE = 3
MOST_PLACES = 16
"""So many places of a key are remembered: few functions raise one sentence."""


class Clusters:
    """The known keys, by guard and words.

    `vetoes` are pairs of keys that people marked as different, `moved` has by key who put it into its cluster.
    """

    def __init__(
        self,
        known: Iterable[KnownKey] = (),
        vetoes: Iterable[frozenset[str]] = (),
        by: Rules | None = None,
        moved: Mapping[str, str] | None = None,
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
        self._lessons = Lessons(tuple(self._by_key.values()), moved or {}, self._vetoes)

    def assign(self, fingerprint: Fingerprint) -> Assignment:
        """Return the cluster of a failure, and remember it. Equal input in any order gives the same clusters."""
        known = self._by_key.get(fingerprint.key)
        if known is not None:
            why = (f"same headline as before: {fingerprint.headline}",)
            joins = self._join_at_new_places(known, frozenset(fingerprint.places))
            return Assignment(self.resolve(known.cluster), "exact", why, joins, self._nearest.get(fingerprint.key))
        new = KnownKey.of(self._mint(fingerprint.key), fingerprint)
        if not fingerprint.anchored:
            self._add(new)
            return Assignment(
                new.cluster, "unanchored", ("no line says what happened, so it is not merged automatically",)
            )
        nested = self._nested(new)
        reworded = self._reworded(new)
        alike = [*nested, *reworded]
        if not alike and (taught := self._find_taught(new)) is not None:
            lesson, entry = taught
            cluster = self.resolve(entry.cluster)
            nearest = self._nearest[new.key] = self._near(new, (cluster,))
            self._add(replace(new, cluster=cluster))
            return Assignment(cluster, "taught", (_why_taught(lesson, entry),), runner_up=nearest)
        if not alike:
            nearest = self._nearest[new.key] = self._near(new, ())
            self._add(new)
            return Assignment(new.cluster, "new", (_why_new(nearest),), runner_up=nearest)
        how, best = _choose(new, nested, reworded)
        cluster = self.resolve(best.cluster)
        joins = self._joined(cluster, sorted({self.resolve(entry.cluster) for entry in alike} - {cluster}))
        nearest = self._nearest[new.key] = self._near(new, (cluster, *joins))
        self._redirect(joins, cluster)
        self._add(replace(new, cluster=cluster))
        return Assignment(cluster, how, (_why_same(new, best, how),), joins, nearest)

    def _join_at_new_places(self, known: KnownKey, places: frozenset[str]) -> tuple[str, ...]:
        """Remember places of a known key, and return the clusters that say the same there in other words."""
        if places <= known.places or len(known.places) >= MOST_PLACES:
            return ()
        entry = self._by_key[known.key] = replace(known, places=known.places | places)
        cluster = self.resolve(known.cluster)
        others = {self.resolve(one.cluster) for one in self._reworded(entry) if one.key != entry.key}
        joins = self._joined(cluster, sorted(others - {cluster}))
        self._redirect(joins, cluster)
        return joins

    def _redirect(self, others: Iterable[str], cluster: str) -> None:
        for other in others:
            self._redirects[other] = cluster
            self._members[cluster] |= self._members.pop(other)

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
            if self._same(new, self._by_key[key])
            and not are_contrary(new, self._by_key[key])
            and not self._are_apart(new, self._by_key[key])
        ]

    def _reworded(self, new: KnownKey) -> list[KnownKey]:
        """Return the known keys whose headline says the same of the same place in other words."""
        keys = {key for term in new.terms for key in self._holds.get((new.guard, term), ())}
        known = (self._by_key[key] for key in sorted(keys))
        return [one for one in known if are_reworded(new, one) and not self._are_apart(new, one)]

    def _are_apart(self, new: KnownKey, known: KnownKey) -> bool:
        """Whether a person keeps the two keys apart, or two others with the same difference."""
        return frozenset((known.key, new.key)) in self._vetoes or self._lessons.separate(new, known)

    def _find_taught(self, new: KnownKey) -> tuple[Lesson, KnownKey] | None:
        """Return the nearest key that is the same where words mean the same that a person made equal."""
        alike = [
            (overlap(rest.terms, known.terms), key, lesson)
            for lesson, rest in self._lessons.apply(new)
            for key in sorted(self._holds.get((new.guard, min(lesson.there)), ()))
            if lesson.there <= (known := self._by_key[key]).terms
            and lesson.here.isdisjoint(known.terms)
            and self._same(rest, without(known, lesson.there))
            and not self._are_apart(new, known)
        ]
        if not alike:
            return None
        _, key, lesson = max(alike, key=lambda one: one[:2])
        return lesson, self._by_key[key]

    def _same(self, new: KnownKey, known: KnownKey) -> bool:
        one, other = new.terms, known.terms
        if min(len(new.message), len(known.message)) >= LEAST_SHARED:  # the messages say enough without the class
            one, other = new.message, known.message
        shared, more = one & other, one ^ other
        if not (one <= other or other <= one) or len(shared) < LEAST_SHARED:
            return False
        least = _LEAST_OVERLAP if len(shared) < _MANY_SHARED else _LEAST_OVERLAP_OF_MANY
        return overlap(one, other) >= least and (len(more) > _CLAUSE or not more & self._rules.turning)

    def _near(self, new: KnownKey, chosen: Collection[str]) -> NearestCluster | None:
        """Return the cluster under the same guard that shares most words, without the chosen ones."""
        keys = {key for term in new.terms for key in self._holds.get((new.guard, term), ())[:_MOST_COMPARED]}
        if chosen:
            keys = {key for key in keys if self.resolve(self._by_key[key].cluster) not in chosen}
        if not keys:
            return None
        score, key = max((round(overlap(self._by_key[key].terms, new.terms), 3), key) for key in keys)
        return compare_words(self.resolve(self._by_key[key].cluster), score, new.terms, self._by_key[key].terms)


# A common word is under thousands of keys; the runner-up is only shown, and need not be the best of all.
_MOST_COMPARED = 200


def compare_words(cluster: str, score: float, here: frozenset[str], there: frozenset[str]) -> NearestCluster:
    """Return how two headlines differ, in words."""
    return NearestCluster(cluster, score, tuple(sorted(here - there)), tuple(sorted(there - here)))


def _choose(new: KnownKey, nested: Sequence[KnownKey], reworded: Sequence[KnownKey]) -> tuple[How, KnownKey]:
    """Return how a new key joins, and the nearest key that it joins."""
    how: How = "nested" if nested else "reworded"
    return how, max(nested or reworded, key=lambda entry: (overlap(entry.terms, new.terms), entry.key))


def _why_same(new: KnownKey, known: KnownKey, how: str) -> str:
    own_terms = (("it also has", new.terms - known.terms), ("it lacks", known.terms - new.terms))
    differences = [f"{phrase}: {', '.join(sorted(terms))}" for phrase, terms in own_terms if terms]
    place = f", in other words for the same of {min(new.places)}" if how == "reworded" and new.places else ""
    return f"merged automatically with key {known.key}{place}; {'; '.join(differences) or 'the words are the same'}"


def _why_taught(lesson: Lesson, known: KnownKey) -> str:
    here, there = (", ".join(sorted(terms)) for terms in (lesson.here, lesson.there))
    return (
        f"merged automatically with key {known.key}, as {lesson.actor} merged such failures: here {here}, there {there}"
    )


def _why_new(near: NearestCluster | None) -> str:
    return "nothing similar is known" if near is None else describe_nearest(near)


def describe_nearest(near: NearestCluster) -> str:
    """Return a sentence that says how near the runner-up is."""
    here, there = (", ".join(part) or "nothing" for part in (near.only_here, near.only_there))
    return f"nearest is {near.cluster}, with {near.score:.0%} of the words; only here: {here}; only there: {there}"
