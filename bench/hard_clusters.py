"""Measure the clusters on the hard corpus, as texts and as whole jobs: each goes through what `triage ingest` does.

Diagnoses are stored one after the other, those of 60 % of the classes first; so the rest are new classes. A failure
without a cluster (the job is called clean, inconclusive or known) is alone. One that a signature of its class's `known`
names is left out. Held-out classes are only in the totals.
"""

from __future__ import annotations

import dataclasses
import random
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import triage
from tests.clusters.hard_classes import HardClass, hard_classes, wording_of
from tests.clusters.hard_corpus import HardText, compose_hard_job, hard_plans, hard_texts
from tests.clusters.measure import score
from tests.shared_catalog import OPTIONS
from triage.clusters.fingerprint import mask_variables
from triage.clusters.rules import load_rules
from triage.model import Diagnosis
from triage.store import Store
from triage.testing.composer import Plan

SEED = 1
HEAD = ("failures", "classes", "method", "precision", "recall", "F1", "without a cluster", "new seen as new")
_CLASSES = {one.name: one for one in hard_classes()}


@dataclass(frozen=True)
class HardOutcome:
    """One diagnosed failure: its class, what it was drawn from, what was answered, and its line for other methods."""

    one: HardClass
    number: int
    source: str
    answer: str
    title: str
    line: str
    diagnosis: Diagnosis

    @property
    def has_cluster(self) -> bool:
        """Whether the root is an unknown failure."""
        return self.answer == "unknown"


def diagnose_text(text: HardText) -> HardOutcome:
    """Diagnose one text as a file."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "job.log"
        path.write_text(text.text, encoding="utf-8", newline="")
        return _outcome(
            _CLASSES[text.label], text.number, f"text {text.number}", triage.ingest(path, options=OPTIONS), text.text
        )


def diagnose_job(plan: Plan) -> HardOutcome:
    """Compose and diagnose one job."""
    job = compose_hard_job(plan)
    with tempfile.TemporaryDirectory() as scratch:
        diagnosis = triage.ingest(job.write(Path(scratch) / "job"), options=OPTIONS)
    return _outcome(
        _CLASSES[plan.fault], plan.seed % 100, f"{plan.layout}, {plan.dressing}, {plan.seed}", diagnosis, ""
    )


def _outcome(one: HardClass, number: int, source: str, diagnosis: Diagnosis, text: str) -> HardOutcome:
    root = diagnosis.root_cause
    answer = diagnosis.verdict if root is None else root.signature or ("unknown" if root.cluster else "no fingerprint")
    title = root.title if root is not None else ""
    shown = [root.evidence[0].text] if root is not None and root.evidence else text.splitlines()[-1:]
    slim = dataclasses.replace(diagnosis, timeline=(), findings=tuple(one for one in diagnosis.findings if one is root))
    return HardOutcome(one, number, source, answer, title, "".join(shown).split("\n", 1)[0], slim)


def store_order(outcomes: Sequence[HardOutcome]) -> list[HardOutcome]:
    """Return the failures that are measured in the order in which they are stored: 60 % of the classes first."""
    measured = [one for one in outcomes if one.answer not in one.one.known]
    shuffled = random.Random(SEED).sample(measured, len(measured))
    return sorted(shuffled, key=lambda one: is_new(one.one))


def is_new(one: HardClass) -> bool:
    """Whether the class comes after the others. 40 % of the classes, by their names."""
    return one.digest[1] % 5 < 2


def triage_clusters(outcomes: Sequence[HardOutcome]) -> list[str]:
    """Return the clusters of a store that has all diagnoses."""
    with tempfile.TemporaryDirectory() as scratch, Store.open(Path(scratch) / "triage.db") as store:
        stored = [store.incidents.add(one.diagnosis) for one in outcomes]
        return [
            _final_cluster(store, result.diagnosis, number) if one.has_cluster else f"none {number}"
            for number, (one, result) in enumerate(zip(outcomes, stored, strict=True))
        ]


def _final_cluster(store: Store, diagnosis: Diagnosis, number: int) -> str:
    root = diagnosis.root_cause
    return f"none {number}" if root is None or root.cluster is None else store.clusters.find_id(root.cluster)


def drain(outcomes: Sequence[HardOutcome]) -> list[str]:
    """Cluster with Drain3 on the masked first lines."""
    from drain3 import TemplateMiner
    from drain3.template_miner_config import TemplateMinerConfig

    config = TemplateMinerConfig()
    config.drain_sim_th = 0.8
    miner = TemplateMiner(config=config)
    return [str(miner.add_log_message(line)["cluster_id"]) for line in masked_lines(outcomes)]


def tfidf(outcomes: Sequence[HardOutcome]) -> list[str]:
    """Cluster with TF-IDF and agglomerative clustering on the masked first lines."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return _agglomerate(TfidfVectorizer(token_pattern=r"\S+").fit_transform(masked_lines(outcomes)).toarray(), 0.25)


def sentence_model(outcomes: Sequence[HardOutcome]) -> list[str]:
    """Cluster with the vectors of a plain sentence model and agglomerative clustering on the masked first lines."""
    import sentence_transformers  # noqa: F401  (else the next import succeeds without a model)

    from triage.clusters.meaning import encode

    return _agglomerate(encode(masked_lines(outcomes), use_cache=False), 0.15)


def masked_lines(outcomes: Sequence[HardOutcome]) -> list[str]:
    """Return the masked first line of the root of each failure, else of its last line."""
    rules = load_rules()
    return [mask_variables(one.line, rules) or "empty" for one in outcomes]


def _agglomerate(vectors: object, distance: float) -> list[str]:
    from sklearn.cluster import AgglomerativeClustering

    clusters = AgglomerativeClustering(
        n_clusters=None, metric="cosine", linkage="average", distance_threshold=distance
    ).fit_predict(vectors)
    return [str(label) for label in clusters]


def show(label: str) -> None:
    """Print the texts of a visible class."""
    if _CLASSES[label].is_held_out:
        raise SystemExit(f"{label} is held out: nobody looks at it. Choose another class.")
    for text in hard_texts(SEED):
        if text.label == label:
            print(f"{'=' * 40} text {text.number}\n{text.text}")


METHODS: tuple[tuple[str, Callable[[Sequence[HardOutcome]], list[str]]], ...] = (
    ("triage", triage_clusters),
    ("Drain3, similarity 0.8", drain),
    ("TF-IDF + agglomerative, 0.25", tfidf),
    ("sentence model + agglomerative, 0.15", sentence_model),
)


def rows_of(name: str, outcomes: Sequence[HardOutcome]) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return the rows of all methods, and the clusters of triage."""
    rows, own = [], []
    for method, cluster in METHODS:
        try:
            clusters = cluster(outcomes)
        except ImportError as error:
            print(f"{method} is left out: {error}")
            continue
        own = own or clusters
        parts = sorted({_part_of(one.one) for one in outcomes}, key=lambda part: (part.count(","), part))
        rows += [_row(name, part, method, outcomes, clusters) for part in parts]
    return rows, own


def _row(
    name: str, part: str, method: str, outcomes: Sequence[HardOutcome], clusters: Sequence[str]
) -> tuple[str, ...]:
    """Return the row of a part of the corpus."""
    chosen = [number for number, one in enumerate(outcomes) if _part_of(one.one) == part]
    result = score([outcomes[number].one.name for number in chosen], [clusters[number] for number in chosen])
    early = {clusters[number] for number, one in enumerate(outcomes) if not is_new(one.one)}
    own = method == METHODS[0][0]
    new = [
        clusters[number] not in early and (outcomes[number].has_cluster or not own)
        for number in chosen
        if is_new(outcomes[number].one)
    ]
    alone = [not outcomes[number].has_cluster for number in chosen]
    return (
        name,
        f"{len({outcomes[number].one.name for number in chosen})} {part}",
        method,
        *(f"{value:.3f}" for value in (result.precision, result.recall, result.f1)),
        f"{sum(alone) / (len(alone) or 1):.1%}" if own else "",
        f"{sum(new) / (len(new) or 1):.1%}",
    )


def _part_of(one: HardClass) -> str:
    half = "held out" if one.is_held_out else "visible"
    return f"{one.part}, {half}" if one.part else half


def bench_line(rows: Sequence[tuple[str, ...]]) -> str:
    """Return precision, recall and F1 of triage on held-out classes, for texts and for jobs, to compare versions."""
    return " ".join(
        f"hard_{name}_precision={cells[0]} hard_{name}_recall={cells[1]} hard_{name}_f1={cells[2]}"
        for name, classes, method, *cells in rows
        if method == METHODS[0][0] and classes.endswith(" held out") and "," not in classes
    )


def print_misses(name: str, outcomes: Sequence[HardOutcome], clusters: Sequence[str]) -> None:
    """Print what is wrong with visible classes: no cluster, two classes in one cluster, one class in several."""
    visible = [(one, cluster) for one, cluster in zip(outcomes, clusters, strict=True) if not one.one.is_held_out]
    for one, _ in visible:
        if not one.has_cluster:
            print(f"{name} | no cluster | {one.one.name} ({one.source}): {one.answer}: {one.title[:90]}")
    members: dict[str, list[HardOutcome]] = defaultdict(list)
    parts: dict[str, set[str]] = defaultdict(set)
    for one, cluster in visible:
        if one.has_cluster:
            members[cluster].append(one)
            parts[one.one.name].add(cluster)
    for cluster, joined in sorted(members.items()):
        counts = Counter(one.one.name for one in joined)
        if len(counts) > 1:
            print(f"{name} | joined | {dict(counts)} in {cluster}: {sorted({one.title[:70] for one in joined})[:3]}")
    for label, split in sorted(parts.items()):
        if len(split) > 1:
            titles = sorted(
                {(cluster, one.title[:70]) for cluster in split for one in members[cluster] if one.one.name == label}
            )
            print(f"{name} | split | {label} in {len(split)}: {titles}")


def recall_by_wording(outcomes: Sequence[HardOutcome], clusters: Sequence[str]) -> str:
    """Return how many pairs of a class are in one cluster, for pairs of one wording and of two."""
    counts: Counter[tuple[bool, bool]] = Counter()
    members: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for one, cluster in zip(outcomes, clusters, strict=True):
        members[one.one.name].append((wording_of(one.one, one.number), cluster))
    for pairs in members.values():
        counts.update((first[0] == other[0], first[1] == other[1]) for first, other in combinations(pairs, 2))
    return ", ".join(
        f"{counts[same, True]} of {counts[same, True] + counts[same, False]} pairs of {name}"
        for same, name in ((True, "one wording"), (False, "two wordings"))
    )


def measure_hard(
    run_all: Callable[..., list[HardOutcome]], filters: Sequence[str] = ()
) -> tuple[list[tuple[str, ...]], list[HardOutcome]]:
    """Print the misses of visible classes; return the rows of the table, and all texts. `run_all` as in
    bench/accuracy.py.

    `filters`: only classes whose names contain one.
    """

    def is_chosen(label: str) -> bool:
        return not filters or any(part in label for part in filters)

    rows, texts = list[tuple[str, ...]](), list[HardOutcome]()
    for name, function, items in (
        ("texts", diagnose_text, [text for text in hard_texts(SEED) if is_chosen(text.label)]),
        ("jobs", diagnose_job, [plan for plan in hard_plans(SEED) if is_chosen(plan.fault)]),
    ):
        started = time.monotonic()
        outcomes = store_order(run_all(function, items, name))
        diagnosed = time.monotonic()
        more, clusters = rows_of(name, outcomes)
        print_misses(name, outcomes, clusters)
        print(
            f"{name}: {len(items)} diagnosed in {diagnosed - started:.0f} s, {len(items) - len(outcomes)} named by a "
            f"signature that is right too, clustered in {time.monotonic() - diagnosed:.0f} s"
        )
        print(f"{name}: in one cluster are {recall_by_wording(outcomes, clusters)}")
        rows += more
        texts = texts or outcomes
    return rows, texts
