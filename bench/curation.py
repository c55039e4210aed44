"""Measure what people's decisions about clusters are worth on the texts of the hard corpus.

Suggestions: all texts are stored; for each cluster whose class has another one, is one of the first three suggested
clusters of that class? Decisions: half of the texts are stored, a person merges the clusters of each class, and the
other half is stored: how many of these are in the cluster of their class, with and without lessons from the merges?
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest import mock

from hard_clusters import HardOutcome

from triage.store import Store, cluster_links

SEED, SHOWN = 3, 3
HEAD = (
    "classes",
    "clusters with another of their class",
    "suggested among the first three",
    "suggestions right",
    "later failures in the cluster of their class: no decisions",
    "merged",
    "merged, with lessons",
)


def measure_curation(outcomes: Sequence[HardOutcome]) -> list[tuple[str, ...]]:
    """Return the rows of the table, for visible and for held-out classes."""
    unknown = [one for one in outcomes if one.has_cluster]
    shuffled = random.Random(SEED).sample(unknown, len(unknown))
    suggested = _count_suggestions(unknown)
    ways = [_count_later(shuffled, merges=merges, lessons=lessons) for merges, lessons in ((0, 0), (1, 0), (1, 1))]
    rows = []
    for is_held_out in (False, True):
        hits, mates, right, shown = suggested[is_held_out]
        later = (f"{each[is_held_out, True]} of {each[is_held_out, True] + each[is_held_out, False]}" for each in ways)
        name = "held out" if is_held_out else "visible"
        rows.append((name, str(mates), f"{hits} of {mates}", f"{right} of {shown}", *later))
    return rows


def _count_suggestions(outcomes: Sequence[HardOutcome]) -> Mapping[bool, Sequence[int]]:
    """Return by half: clusters with a right suggestion, clusters with another of their class, and of all suggestions
    for these the right ones and their number.
    """
    counts = {half: [0, 0, 0, 0] for half in (False, True)}
    with tempfile.TemporaryDirectory() as scratch, Store.open(Path(scratch) / "triage.db") as store:
        classes = _classes_of(store, outcomes, _store_all(store, outcomes))
        halves = {one.one.name: one.one.is_held_out for one in outcomes}
        number_of = Counter(classes.values())
        for cluster, name in sorted(classes.items()):
            if number_of[name] < 2:
                continue
            near = store.clusters.find_near(cluster, most=SHOWN)
            right = sum(classes.get(one.cluster) == name for one in near)
            half = halves[name]
            counts[half] = [
                had + more for had, more in zip(counts[half], (right > 0, 1, right, len(near)), strict=True)
            ]
    return counts


def _count_later(outcomes: Sequence[HardOutcome], *, merges: int, lessons: int) -> Counter[tuple[bool, bool]]:
    """Count the later half by (held out, in the cluster that its class has)."""
    early, late = outcomes[: len(outcomes) // 2], outcomes[len(outcomes) // 2 :]
    reader = cluster_links.read_actor if lessons else lambda why: ""
    counts: Counter[tuple[bool, bool]] = Counter()
    with (
        tempfile.TemporaryDirectory() as scratch,
        Store.open(Path(scratch) / "triage.db") as store,
        mock.patch.object(cluster_links, "read_actor", reader),
    ):
        stored = _store_all(store, early)
        if merges:
            _merge_classes(store, early, stored)
        home = {name: cluster for cluster, name in _classes_of(store, early, stored).items()}
        for one, cluster in zip(late, _store_all(store, late), strict=True):
            if one.one.name in home:
                counts[one.one.is_held_out, store.clusters.find_id(cluster) == home[one.one.name]] += 1
    return counts


def _store_all(store: Store, outcomes: Sequence[HardOutcome]) -> list[str]:
    """Store the diagnoses; return the cluster of each as it was when it was stored."""
    roots = (store.incidents.add(one.diagnosis).diagnosis.root_cause for one in outcomes)
    return [root.cluster for root in roots if root is not None and root.cluster is not None]


def _classes_of(store: Store, outcomes: Sequence[HardOutcome], stored: Sequence[str]) -> dict[str, str]:
    """Return the class that most failures of each cluster have. The largest clusters come last."""
    members: dict[str, Counter[str]] = defaultdict(Counter)
    for one, cluster in zip(outcomes, stored, strict=True):
        members[store.clusters.find_id(cluster)][one.one.name] += 1
    by_size = sorted(members.items(), key=lambda item: (item[1].total(), item[0]))
    return {cluster: counts.most_common(1)[0][0] for cluster, counts in by_size}


def _merge_classes(store: Store, outcomes: Sequence[HardOutcome], stored: Sequence[str]) -> None:
    clusters: dict[str, list[str]] = defaultdict(list)
    for cluster, name in _classes_of(store, outcomes, stored).items():
        clusters[name].append(cluster)
    for same in clusters.values():
        if len(same) > 1:
            store.cluster_actions.merge(sorted(same), actor="curator")
