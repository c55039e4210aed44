"""The written backtraces of tests/artifacts/backtraces, each inside the log of a rank: what `ingest` makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage import pipeline
from triage.model import Evidence
from triage.stacks import parse, reduce

CORPUS = sorted((Path(__file__).parents[1] / "artifacts" / "backtraces").glob("*.txt"))
# What is not put together in a log, and why.
GAPS = {
    "caffe2-interleaved": "its frame numbers look like the tags of ranks",
    "jvm-spark-prefix": "the exception's line is a failure of its own, so the frames alone do not say its type",
    "systemd-journal": "the line with the signal has journald's prefix, the frames have none",
}


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Evidence]]:
    """The facts of each sample, all read in one go: every one is the log of a rank, with a step before it."""
    directory = tmp_path_factory.mktemp("job")
    for rank, path in enumerate(CORPUS):
        (directory / f"rank{rank}.log").write_text(f"step 1 loss 2.0\n{path.read_text('utf-8').rstrip()}\n", "utf-8")
    read = pipeline._read([str(directory)], pipeline.Options(), None)
    found: dict[str, list[Evidence]] = {path.stem: [] for path in CORPUS}
    for fact in (*read.harvest.facts, *read.result.facts):
        if fact.kind in ("crash", "terminate", "fatal-python", "stack"):
            found[CORPUS[int(Path(fact.source).stem.removeprefix("rank"))].stem].append(fact)
    return found


@pytest.mark.parametrize("name", [path.stem for path in CORPUS])
def test_a_backtrace_in_a_log_is_found(name: str, facts: dict[str, list[Evidence]]) -> None:
    """The crash point is the one that the text alone gives; the gaps are exactly those that are known."""
    text = next(path for path in CORPUS if path.stem == name).read_text("utf-8")
    wanted = {crash.point for crash in map(reduce, parse(text)) if crash.key}
    found = {fact.fields.get("crash_point", "") for fact in facts[name]} - {""}
    assert bool(not wanted or wanted & found) is (name not in GAPS), (wanted, facts[name])
