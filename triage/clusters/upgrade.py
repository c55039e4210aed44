"""New rules for old clusters: stored examples get new keys, and conflicts are reported, not resolved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from triage.model.diagnosis import Fingerprint


@dataclass(frozen=True, slots=True)
class Example:
    """A stored failure of a cluster: the key it had, and its fingerprint under the new rules."""

    cluster: str
    key: str
    new: Fingerprint


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What new rules change.

    `keys` are to be added to their clusters, each with an old key that it comes from. `collisions`: a new key that
    several clusters have, so they may be merged. `divergences`: an old key whose examples have several new keys, so the
    cluster may be split.
    """

    version: int
    keys: tuple[tuple[str, Fingerprint, str], ...] = ()
    collisions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    divergences: tuple[tuple[str, str, tuple[str, ...]], ...] = ()


def rekey_examples(examples: Iterable[Example], version: int) -> Upgrade:
    """Return what the keys of the examples under the rules of `version` change. Their order does not matter."""
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
        tuple((key, tuple(sorted(names))) for key, names in sorted(clusters.items()) if len(names) > 1),
        tuple((cluster, key, tuple(sorted(new))) for (cluster, key), new in sorted(splits.items()) if len(new) > 1),
    )
