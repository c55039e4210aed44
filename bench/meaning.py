"""Compare search by meaning with full text, on questions of support staff, each with the signature that answers it.

60 questions (`tests/clusters/questions.toml`) were read when the search was changed; 40 (`questions_set_aside.toml`)
were written before and only measure it. Needs the extra `torch` (`make bench-meaning`). With `--write` the table in
docs/clustering.md is written again. The last line is machine-readable.
"""

from __future__ import annotations

import argparse
import sys
import time
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import table  # noqa: E402

from triage.catalog.load import load  # noqa: E402
from triage.catalog.model import Signature  # noqa: E402
from triage.store import meaning_search  # noqa: E402

QUESTIONS = {
    "": ROOT / "tests" / "clusters" / "questions.toml",
    ", set aside": ROOT / "tests" / "clusters" / "questions_set_aside.toml",
}
HEAD = ("search", "first", "among three", "among five", "among ten", "mean reciprocal rank", "ms a question")
Search = Callable[[str], list[str]]


def searches(known: Sequence[Signature]) -> list[tuple[str, Search]]:
    """Return the searches by name; each returns the ids that answer a question, best first."""
    documents = [meaning_search.passages(item) for item in known]

    def by_text(question: str) -> list[str]:
        numbers, _ = meaning_search.search_text(meaning_search.build_index(known), None, question, len(known))
        return [known[number].id for number in numbers]

    def by_vectors(question: str) -> list[str]:
        scores = meaning_search.compare_question([question], documents)
        return [known[number].id for number in sorted(range(len(known)), key=lambda number: (-scores[number], number))]

    def by_both(question: str) -> list[str]:
        return [item.id for item in meaning_search.search_by_meaning(known, (), question, len(known))]

    return [("full text", by_text), ("sentence vectors", by_vectors), ("both (`--meaning`)", by_both)]


def measure(search: Search, questions: dict[str, str], most: int) -> tuple[tuple[str, ...], tuple[float, float]]:
    """Return the cells of a row, and the shares of questions answered first and among five."""
    search("anything")  # loads, and reads the catalog once
    started = time.perf_counter()
    answers = [search(question) for question in questions]
    milliseconds = (time.perf_counter() - started) * 1000 / len(questions)
    places = [
        answer.index(expected) if expected in answer else most
        for answer, expected in zip(answers, questions.values(), strict=True)
    ]
    shares = [sum(place < depth for place in places) / len(places) for depth in (1, 3, 5, 10)]
    rank = sum(1 / (place + 1) for place in places) / len(places)
    cells = (*(f"{share:.0%}" for share in shares), f"{rank:.2f}", f"{milliseconds:.0f}")
    return cells, (shares[0], shares[2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the table in docs/clustering.md again")
    args = parser.parse_args()
    known = load().signatures
    rows: list[tuple[str, ...]] = []
    keys: dict[str, list[tuple[float, float]]] = {}
    for label, path in QUESTIONS.items():
        questions = tomllib.loads(path.read_text(encoding="utf-8"))["questions"]
        missing = sorted(set(questions.values()) - {item.id for item in known})
        if missing:
            sys.exit(f"{path.name} names unknown signatures: {', '.join(missing)}")
        for name, search in searches(known):
            row, key = measure(search, questions, len(known))
            rows.append((f"{name}{label}", *row))
            keys.setdefault(label, []).append(key)
    print(table.as_markdown(HEAD, rows))
    if args.write:
        table.write(ROOT / "docs" / "clustering.md", "meaning", HEAD, rows)
    (text, _, both), (_, _, aside) = keys.values()
    print(
        f"BENCH meaning_top1={both[0]:.3f} meaning_top5={both[1]:.3f} "
        f"fulltext_top1={text[0]:.3f} fulltext_top5={text[1]:.3f} "
        f"aside_top1={aside[0]:.3f} aside_top5={aside[1]:.3f}"
    )


if __name__ == "__main__":
    main()
