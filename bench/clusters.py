"""Grouping of unknown failures: ours beside Drain3, the masked headline alone, and TF-IDF with agglomerative clustering, on one corpus in one run.

Precision, recall and F1 are over pairs of failures; "merged apart" is the share of pairs that must not be merged and were. The speed is
failures a second on one core, from the fact to its cluster.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.clusters.corpus import failures, pairs  # noqa: E402
from tests.clusters.measure import merged, score  # noqa: E402
from triage.clusters import Clusters, fingerprint  # noqa: E402
from triage.clusters.fingerprint import masked  # noqa: E402
from triage.clusters.rules import rules  # noqa: E402
from triage.model import Evidence  # noqa: E402

Method = Callable[[Sequence[Evidence]], list[str]]
SEED = 7


def first_line(fact: Evidence) -> str:
    return masked(fact.text.split("\n", 1)[0], rules())


def ours(facts: Sequence[Evidence]) -> list[str]:
    clusters = Clusters()
    given = [clusters.assign(fingerprint(fact)).cluster for fact in facts]
    return [clusters.resolve(cluster) for cluster in given]


def exact(facts: Sequence[Evidence]) -> list[str]:
    return [fingerprint(fact).key for fact in facts]


def masked_line(facts: Sequence[Evidence]) -> list[str]:
    return [first_line(fact) for fact in facts]


def drain(facts: Sequence[Evidence]) -> list[str]:
    from drain3 import TemplateMiner
    from drain3.template_miner_config import TemplateMinerConfig

    config = TemplateMinerConfig()
    config.drain_sim_th = 0.8
    miner = TemplateMiner(config=config)
    return [str(miner.add_log_message(first_line(fact))["cluster_id"]) for fact in facts]


def tfidf(facts: Sequence[Evidence]) -> list[str]:
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectors = TfidfVectorizer(token_pattern=r"\S+").fit_transform([first_line(fact) for fact in facts]).toarray()
    found = AgglomerativeClustering(n_clusters=None, metric="cosine", linkage="average", distance_threshold=0.25).fit_predict(vectors)
    return [str(label) for label in found]


METHODS: tuple[tuple[str, Method], ...] = (
    ("triage", ours),
    ("triage, exact keys only", exact),
    ("masked headline", masked_line),
    ("Drain3, similarity 0.8", drain),
    ("TF-IDF + agglomerative", tfidf),
)


def main() -> None:
    corpus = failures(SEED)
    facts = [failure.fact() for failure in corpus]
    labels = [failure.label for failure in corpus]
    held = [index for index, failure in enumerate(corpus) if failure.group == "held_out"]
    print(f"{len(corpus)} failures of {len(set(labels))} classes; held out: {len(held)} of {len({labels[index] for index in held})}")
    print("                            all: precision recall    F1   held out: F1   merged apart   failures/s")
    line = ""
    for name, method in METHODS:
        method(facts[:1] * 2)  # imports and compiles
        start = time.process_time()
        found = method(facts)
        speed = len(facts) / (time.process_time() - start)
        whole = score(labels, found)
        rest = score([labels[index] for index in held], [found[index] for index in held])
        apart = merged(labels, found, pairs())
        print(f"  {name:<30}{whole.precision:8.3f} {whole.recall:8.3f} {whole.f1:8.3f} {rest.f1:13.3f} {apart:12.3f} {speed:14.0f}")
        line = (
            line or f"cluster_f1={rest.f1:.3f} cluster_precision={rest.precision:.4f} cluster_apart={apart:.4f} cluster_per_s={speed:.0f}"
        )
    print("BENCH", line)


if __name__ == "__main__":
    main()
