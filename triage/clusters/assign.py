"""Which cluster a failure belongs to: the same key, or a headline that only says more or less than a known one; else a
new cluster.

Version drift adds words to a message or drops some; another cause swaps a word. So two headlines under one guard are
the same failure
when the words of one contain those of the other, and not when each has a word of its own (docs/clustering.md has the
measurements).
Groups are the connected ones under this relation, so the order in which failures arrive changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from triage.clusters.fingerprint import short, words
from triage.clusters.model import Assignment, Near
from triage.clusters.rules import Rules, rules
from triage.model.diagnosis import Fingerprint

_SHARED = 3
_OVERLAP = 0.6


@dataclass(frozen=True, slots=True)
class Known:
    """A key that a cluster has. `words` is empty for what has no anchor."""

    cluster: str
    key: str
    guard: str
    words: frozenset[str]

    @staticmethod
    def of(cluster: str, fingerprint: Fingerprint) -> Known:
        return Known(
            cluster,
            fingerprint.key,
            fingerprint.guard,
            words(fingerprint.headline) if fingerprint.anchored else frozenset(),
        )


class Clusters:
    """The keys known so far, found by guard and words. `vetoes` are pairs of keys that a person said to be different."""

    def __init__(
        self, known: Iterable[Known] = (), vetoes: Iterable[frozenset[str]] = (), by: Rules | None = None
    ) -> None:
        self._rules = by or rules()
        self._vetoes = frozenset(vetoes)
        self._by_key: dict[str, Known] = {}
        self._names: set[str] = set()
        self._first: dict[tuple[str, str], list[str]] = defaultdict(
            list
        )  # keys under their rarest word: to find what is said in less
        self._holds: dict[tuple[str, str], list[str]] = defaultdict(
            list
        )  # keys under every word: to find what is said in more
        self._members: dict[str, set[str]] = defaultdict(set)  # keys of each cluster that leads to no other
        self._nearest: dict[str, Near | None] = {}  # of each key, what it came near to when it was new
        self._redirects: dict[str, str] = {}
        for entry in known:
            self._add(entry)

    def assign(self, fingerprint: Fingerprint) -> Assignment:
        """Where a failure belongs; it is known from then on. Equal input in any order gives the same groups."""
        known = self._by_key.get(fingerprint.key)
        if known is not None:
            why = (f"the same headline as before: {fingerprint.headline}",)
            return Assignment(self.resolve(known.cluster), "exact", why, runner_up=self._nearest.get(fingerprint.key))
        new = Known.of(self._mint(fingerprint.key), fingerprint)
        if not fingerprint.anchored:
            self._add(new)
            return Assignment(
                new.cluster, "unanchored", ("no line says what happened, so it is merged with nothing by itself",)
            )
        nested = self._nested(new)
        if not nested:
            nearest = self._nearest[new.key] = self._near(new, ())
            self._add(new)
            return Assignment(new.cluster, "new", (_why_new(nearest),), runner_up=nearest)
        best = max(nested, key=lambda entry: (_overlap(entry.words, new.words), entry.key))
        cluster = self.resolve(best.cluster)
        joins = self._joined(cluster, sorted({self.resolve(entry.cluster) for entry in nested} - {cluster}))
        nearest = self._nearest[new.key] = self._near(new, (cluster, *joins))
        for other in joins:
            self._redirects[other] = cluster
            self._members[cluster] |= self._members.pop(other)
        self._add(replace(new, cluster=cluster))
        return Assignment(cluster, "nested", (_why_nested(new, best),), joins, nearest)

    def _joined(self, cluster: str, others: Sequence[str]) -> tuple[str, ...]:
        """Those of the others that are one with `cluster` now; what a person keeps apart is not joined by a third
        failure either.
        """
        together = set(self._members[cluster])
        joins: list[str] = []
        for other in others:
            members = self._members[other]
            if not any(pair & members and pair & together for pair in self._vetoes):
                together |= members
                joins.append(other)
        return tuple(joins)

    def resolve(self, cluster: str) -> str:
        """The cluster that a name stands for today."""
        while cluster in self._redirects:
            cluster = self._redirects[cluster]
        return cluster

    def _add(self, entry: Known) -> None:
        self._by_key[entry.key] = entry
        self._names.add(entry.cluster)
        self._members[self.resolve(entry.cluster)].add(entry.key)
        if entry.words:
            self._first[entry.guard, _rarest(entry.words)].append(entry.key)
            for word in entry.words:
                self._holds[entry.guard, word].append(entry.key)

    def _mint(self, key: str) -> str:
        """A short name from the key that founds the cluster, longer where two would share it."""
        return next(
            name for name in (short(key, digits) for digits in range(6, len(key) + 1)) if name not in self._names
        )

    def _nested(self, new: Known) -> list[Known]:
        """The known keys whose headline says the same in fewer or in more words."""
        fewer = {key for word in new.words for key in self._first.get((new.guard, word), ())}
        more = self._holds.get((new.guard, _rarest(new.words)), ())
        return [
            self._by_key[key]
            for key in sorted(fewer.union(more))
            if self._same(new.words, self._by_key[key].words) and frozenset((key, new.key)) not in self._vetoes
        ]

    def _same(self, one: frozenset[str], other: frozenset[str]) -> bool:
        if not (one <= other or other <= one) or len(one & other) < _SHARED:
            return False
        return _overlap(one, other) >= _OVERLAP and not (one ^ other) & self._rules.turning

    def _near(self, new: Known, chosen: Collection[str]) -> Near | None:
        """Of the keys under the same guard that share a telling word, the one that shares most, outside the chosen
        clusters.
        """
        keys = {key for word in new.words for key in self._holds.get((new.guard, word), ())[:_LOOKED_AT]}
        if chosen:
            keys = {key for key in keys if self.resolve(self._by_key[key].cluster) not in chosen}
        if not keys:
            return None
        score, key = max((round(_overlap(self._by_key[key].words, new.words), 3), key) for key in keys)
        return near(self.resolve(self._by_key[key].cluster), score, new.words, self._by_key[key].words)


# A common word is under thousands of keys; the runner-up is for a reader's eye and need not be the best of all of them.
_LOOKED_AT = 200


def near(cluster: str, score: float, here: frozenset[str], there: frozenset[str]) -> Near:
    """How far two headlines are apart, in words."""
    return Near(cluster, score, tuple(sorted(here - there)), tuple(sorted(there - here)))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / (len(one | other) or 1)


def _rarest(words: frozenset[str]) -> str:
    """A word that few headlines hold: long ones are rare. Any fixed order is correct."""
    return max(words, key=lambda word: (len(word), word))


def _why_nested(new: Known, known: Known) -> str:
    more, fewer = sorted(new.words - known.words), sorted(known.words - new.words)
    said = (
        f"says more by the words {', '.join(more)}"
        if more
        else f"leaves out the words {', '.join(fewer)}"
        if fewer
        else "has the same words"
    )
    return f"merged by itself with key {known.key}, which it {said}"


def _why_new(near: Near | None) -> str:
    return "nothing like it is known" if near is None else told(near)


def told(near: Near) -> str:
    """How near the runner-up came, in words."""
    here, there = (", ".join(words) or "nothing" for words in (near.only_here, near.only_there))
    return f"nearest is {near.cluster}, with {near.score:.0%} of the words: only here {here}; only there {there}"
