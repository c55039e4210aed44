"""New rules, old clusters: the kept examples get keys under the new rules, and what no longer fits is said, never changed in silence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from triage.clusters.fingerprint import fingerprint
from triage.clusters.rules import Rules
from triage.model import Evidence, Fingerprint


@dataclass(frozen=True, slots=True)
class Example:
    """A kept failure of a cluster, with the key it had."""

    cluster: str
    key: str
    fact: Evidence


@dataclass(frozen=True, slots=True)
class Upgrade:
    """`keys` are to be added to their clusters beside the old ones.

    `collisions`: a new key that several clusters have: a merge to propose. `divergences`: an old key whose examples have several new
    ones: a split to propose, since one name now stands for failures that the rules tell apart.
    """

    version: int
    keys: tuple[tuple[str, Fingerprint], ...]
    collisions: tuple[tuple[str, tuple[str, ...]], ...]
    divergences: tuple[tuple[str, str, tuple[str, ...]], ...]


def rekeyed(examples: Iterable[Example], by: Rules) -> Upgrade:
    """The examples' keys under the rules `by`."""
    fingerprints: dict[tuple[str, str], Fingerprint] = {}
    clusters: dict[str, set[str]] = defaultdict(set)
    splits: dict[tuple[str, str], set[str]] = defaultdict(set)
    for example in examples:
        new = fingerprint(example.fact, by)
        fingerprints[example.cluster, new.key] = new
        clusters[new.key].add(example.cluster)
        splits[example.cluster, example.key].add(new.key)
    return Upgrade(
        by.version,
        tuple((cluster, fingerprints[cluster, key]) for cluster, key in sorted(fingerprints)),
        tuple((key, tuple(sorted(held))) for key, held in sorted(clusters.items()) if len(held) > 1),
        tuple((cluster, key, tuple(sorted(new))) for (cluster, key), new in sorted(splits.items()) if len(new) > 1),
    )
