"""Compare the clusters of triage with Drain3, the masked line alone, and TF-IDF with agglomerative clustering.

All run on one corpus in one run. Precision, recall and F1 are over pairs of failures; "wrongly merged pairs" is the
share of pairs that must not be merged and were. The speed is failures per second on one core, from the fact to its
cluster. With `--write` the tables in docs/clustering.md are written again.

    python bench/clusters.py --hard [PART ...]   texts and whole jobs of the hard corpus (hard_clusters.py), with the
                                                 misses of visible classes
    python bench/clusters.py --show CLASS        the texts of a visible class of it, as glog/packer-null
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import curation  # noqa: E402
import hard_clusters  # noqa: E402
import table  # noqa: E402

from tests.clusters.corpus import Failure, failures, pairs  # noqa: E402
from tests.clusters.measure import merged, score  # noqa: E402
from tests.clusters.neighbours import sentences  # noqa: E402
from triage.clusters import Clusters, fingerprint  # noqa: E402
from triage.clusters.fingerprint import mask_variables  # noqa: E402
from triage.clusters.rules import load_rules  # noqa: E402
from triage.model.evidence import Evidence  # noqa: E402

Method = Callable[[Sequence[Evidence]], list[str]]
SEED = 7


def first_line(fact: Evidence) -> str:
    """Return the masked first line of a failure."""
    return mask_variables(fact.text.split("\n", 1)[0], load_rules())


def triage_clusters(facts: Sequence[Evidence]) -> list[str]:
    """Cluster as triage does."""
    clusters = Clusters()
    names = [clusters.assign(fingerprint(fact)).cluster for fact in facts]
    return [clusters.resolve(cluster) for cluster in names]


def exact_keys(facts: Sequence[Evidence]) -> list[str]:
    """Cluster by equal fingerprint keys only."""
    return [fingerprint(fact).key for fact in facts]


def masked_line(facts: Sequence[Evidence]) -> list[str]:
    """Cluster by equal masked first lines."""
    return [first_line(fact) for fact in facts]


def drain(facts: Sequence[Evidence]) -> list[str]:
    """Cluster with Drain3 on the masked first lines."""
    from drain3 import TemplateMiner
    from drain3.template_miner_config import TemplateMinerConfig

    config = TemplateMinerConfig()
    config.drain_sim_th = 0.8
    miner = TemplateMiner(config=config)
    return [str(miner.add_log_message(first_line(fact))["cluster_id"]) for fact in facts]


def tfidf(facts: Sequence[Evidence]) -> list[str]:
    """Cluster with TF-IDF and agglomerative clustering on the masked first lines."""
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectors = TfidfVectorizer(token_pattern=r"\S+").fit_transform([first_line(fact) for fact in facts]).toarray()
    clusters = AgglomerativeClustering(
        n_clusters=None, metric="cosine", linkage="average", distance_threshold=0.25
    ).fit_predict(vectors)
    return [str(label) for label in clusters]


METHODS: tuple[tuple[str, Method], ...] = (
    ("triage", triage_clusters),
    ("triage, exact keys only", exact_keys),
    ("masked line", masked_line),
    ("Drain3 on it, similarity 0.8", drain),
    ("TF-IDF + agglomerative, 0.25", tfidf),
)


HEAD = (
    "method",
    "precision",
    "recall",
    "F1",
    "held out: precision",
    "held out: F1",
    "wrongly merged pairs",
    "failures/s",
)
NEIGHBOURS = ("functions", "causes", "method", "precision", "recall", "F1")
STABILITY = ("method", "new classes seen as new", "moved when 40 % new classes came", "moved when all came again")


def measure_stability(corpus: Sequence[Failure], method: Method) -> tuple[float, float, float]:
    """Return three shares: failures of new classes that are in no known cluster, failures that move to another cluster
    when new classes come, and when all failures come again.
    """
    items = [failure for failure in corpus if failure.group != "pairs"]
    labels = sorted({failure.label for failure in items})
    known = set(random.Random(SEED).sample(labels, len(labels) * 6 // 10))
    counts: Counter[str] = Counter()
    some = [
        failure
        for failure in items
        if failure.label in known and counts.update([failure.label]) is None and counts[failure.label] <= 4
    ]
    unseen = [failure for failure in items if failure.label not in known]
    clusters = method([failure.fact() for failure in [*some, *unseen]])
    known_clusters = set(clusters[: len(some)])
    new = sum(cluster not in known_clusters for cluster in clusters[len(some) :]) / len(unseen)
    early = [failure.fact() for failure in items if failure.label in known]
    more = [failure.fact() for failure in unseen]
    before, after, again = method(early), method([*early, *more]), method([*early, *more, *early])
    return new, moved(before, after[: len(early)]), moved(before, again[-len(early) :])


def moved(before: Sequence[str], after: Sequence[str]) -> float:
    """Return the share of failures that left most of their cluster, or joined others, whichever is more."""
    return max(_left(before, after), _left(after, before))


def _left(before: Sequence[str], after: Sequence[str]) -> float:
    moves: dict[str, Counter[str]] = defaultdict(Counter)
    for old, new in zip(before, after, strict=True):
        moves[old][new] += 1
    return 1 - sum(max(counts.values()) for counts in moves.values()) / len(before)


def measure_neighbours() -> list[tuple[str, ...]]:
    """Return the rows of all methods for functions that raise several sentences, both halves."""
    rows = []
    for name, method in METHODS:
        clusters = method([one.fact() for one in sentences()])
        for is_set_aside, half in ((False, "visible"), (True, "set aside")):
            pairs_of = [
                (one, cluster)
                for one, cluster in zip(sentences(), clusters, strict=True)
                if one.is_set_aside is is_set_aside
            ]
            result = score([one.cause for one, _ in pairs_of], [cluster for _, cluster in pairs_of])
            rows.append(
                (
                    f"{len({one.place for one, _ in pairs_of})} {half}",
                    str(len({one.cause for one, _ in pairs_of})),
                    name,
                    *(f"{value:.3f}" for value in (result.precision, result.recall, result.f1)),
                )
            )
    return rows


def measure_hard_corpus(filters: Sequence[str], *, write: bool) -> None:
    """Print the misses of visible classes and the table of all methods; `write` puts it into docs/clustering.md."""
    from accuracy import run_all

    rows, texts = hard_clusters.measure_hard(run_all, filters)
    decisions = curation.measure_curation(texts)
    print(table.as_markdown(hard_clusters.HEAD, rows))
    print(table.as_markdown(curation.HEAD, decisions))
    if write and not filters:
        table.write(ROOT / "docs" / "clustering.md", "hard", hard_clusters.HEAD, rows)
        table.write(ROOT / "docs" / "clustering.md", "curation", curation.HEAD, decisions)
    print("BENCH", hard_clusters.bench_line(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the tables in docs/clustering.md again")
    parser.add_argument(
        "--hard", nargs="*", metavar="PART",
        help="measure the hard corpus instead, as texts and whole jobs; only classes whose names contain a PART",
    )  # fmt: skip
    parser.add_argument("--show", metavar="CLASS", help="print the texts of a class of the hard corpus")
    args = parser.parse_args()
    if args.show:
        hard_clusters.show(args.show)
    elif args.hard is not None:
        measure_hard_corpus(args.hard, write=args.write)
    else:
        measure_corpus(write=args.write)


def measure_corpus(*, write: bool) -> None:
    """Print the tables of all methods, and with `write` put them into docs/clustering.md."""
    corpus = failures(SEED)
    facts = [failure.fact() for failure in corpus]
    labels = [failure.label for failure in corpus]
    held = [index for index, failure in enumerate(corpus) if failure.group == "held_out"]
    print(
        f"{len(corpus)} failures of {len(set(labels))} classes; held out: {len(held)} of "
        f"{len({labels[index] for index in held})}\n"
    )
    rows, stays, line = [], [], ""
    for name, method in METHODS:
        method(facts[:1] * 2)  # imports and compiles
        start = time.process_time()
        clusters = method(facts)
        speed = len(facts) / (time.process_time() - start)
        whole = score(labels, clusters)
        rest = score([labels[index] for index in held], [clusters[index] for index in held])
        apart = merged(labels, clusters, pairs())
        new, came, again = measure_stability(corpus, method)
        numbers = (whole.precision, whole.recall, whole.f1, rest.precision, rest.f1)
        rows.append((name, *(f"{number:.3f}" for number in numbers), f"{apart:.1%}", f"{round(speed, -2):,.0f}"))
        stays.append((name, f"{new:.1%}", f"{came:.1%}", f"{again:.1%}"))
        line = line or (
            f"cluster_f1={rest.f1:.3f} cluster_precision={rest.precision:.4f} cluster_apart={apart:.4f} "
            f"cluster_new={new:.3f} "
            f"cluster_moved={max(came, again):.4f} cluster_per_s={speed:.0f}"
        )
    print(table.as_markdown(HEAD, rows))
    print(table.as_markdown(STABILITY, stays))
    neighbours = measure_neighbours()
    print(table.as_markdown(NEIGHBOURS, neighbours))
    if write:
        table.write(ROOT / "docs" / "clustering.md", "neighbours", NEIGHBOURS, neighbours)
        table.write(ROOT / "docs" / "clustering.md", "clusters", HEAD, rows)
        table.write(ROOT / "docs" / "clustering.md", "later", STABILITY, stays)
    print("BENCH", line)


if __name__ == "__main__":
    main()
