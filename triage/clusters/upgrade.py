"""New rules, old clusters: the kept examples get keys under the new rules, and what no longer fits is said, never
changed in silence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from triage.model.diagnosis import Fingerprint


@dataclass(frozen=True, slots=True)
class Example:
    """A kept failure of a cluster: the key it had, and its fingerprint under the new rules."""

    cluster: str
    key: str
    new: Fingerprint


@dataclass(frozen=True, slots=True)
class Upgrade:
    """`keys` are to be added to their clusters beside the old ones, each with one old key that it comes from.

    `collisions`: a new key that several clusters have: a merge to propose. `divergences`: an old key whose examples
    have several new
    ones: a split to propose, since one name now stands for failures that the rules tell apart.
    """

    version: int
    keys: tuple[tuple[str, Fingerprint, str], ...] = ()
    collisions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    divergences: tuple[tuple[str, str, tuple[str, ...]], ...] = ()


def rekeyed(examples: Iterable[Example], version: int) -> Upgrade:
    """What the examples' keys under the rules of `version` make of the clusters. Their order changes nothing."""
    origins: dict[tuple[str, str], tuple[str, Fingerprint]] = {}
    clusters: dict[str, set[str]] = defaultdict(set)
    splits: dict[tuple[str, str], set[str]] = defaultdict(set)
    for example in examples:
        place = (example.cluster, example.new.key)
        old = origins.get(place)
        if old is None or example.key < old[0]:
            origins[place] = (example.key, example.new)
        clusters[example.new.key].add(example.cluster)
        splits[example.cluster, example.key].add(example.new.key)
    return Upgrade(
        version,
        tuple((cluster, new, key) for (cluster, _), (key, new) in sorted(origins.items(), key=lambda item: item[0])),
        tuple((key, tuple(sorted(held))) for key, held in sorted(clusters.items()) if len(held) > 1),
        tuple((cluster, key, tuple(sorted(new))) for (cluster, key), new in sorted(splits.items()) if len(new) > 1),
    )
