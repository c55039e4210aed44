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


# With a stamp of its own before each line as well; some forms then are taken for records of a logger.
STAMPED = {
    *("c10-rank-prefix-and-colour", "caffe2-single", "compute-sanitizer-oob", "compute-sanitizer-source", "faulthandler-prefixed"),
    *("gdb-rank-prefix", "hs-err", "paddle-enforce", "ray-absl-twice"),
}


def read(directory: Path, dress: str) -> dict[str, list[Evidence]]:
    """The facts of each sample, all read in one go: every one is the log of a rank, with a step before it."""
    for rank, path in enumerate(CORPUS):
        lines = ["step 1 loss 2.0", *path.read_text("utf-8").rstrip().split("\n")]
        (directory / f"rank{rank}.log").write_text("".join(f"{dress.format(rank=rank)}{line}\n" for line in lines), "utf-8")
    known = pipeline._read([str(directory)], pipeline.Options(), None)
    found: dict[str, list[Evidence]] = {path.stem: [] for path in CORPUS}
    for fact in (*known.harvest.facts, *known.result.facts):
        if fact.kind in ("crash", "terminate", "fatal-python", "stack"):
            found[CORPUS[int(Path(fact.source).stem.removeprefix("rank"))].stem].append(fact)
    return found


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Evidence]]:
    return read(tmp_path_factory.mktemp("job"), "")


@pytest.fixture(scope="module")
def stamped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Evidence]]:
    return read(tmp_path_factory.mktemp("job"), "2026-11-21T10:00:05.123Z [rank{rank}]: ")


def is_found(name: str, facts: dict[str, list[Evidence]]) -> bool:
    """Is the crash point the one that the text alone gives?"""
    text = next(path for path in CORPUS if path.stem == name).read_text("utf-8")
    wanted = {crash.point for crash in map(reduce, parse(text)) if crash.key}
    return not wanted or bool(wanted & {fact.fields.get("crash_point", "") for fact in facts[name]} - {""})


@pytest.mark.parametrize("name", [path.stem for path in CORPUS])
def test_a_backtrace_in_a_log_is_found(name: str, facts: dict[str, list[Evidence]]) -> None:
    """The crash point is the one that the text alone gives; the gaps are exactly those that are known."""
    assert is_found(name, facts) is (name not in GAPS), facts[name]


@pytest.mark.parametrize("name", [path.stem for path in CORPUS])
def test_a_backtrace_whose_lines_are_stamped_is_found(name: str, stamped: dict[str, list[Evidence]]) -> None:
    """A collector's stamp and a rank before every line; the gaps are exactly those that are known."""
    assert is_found(name, stamped) is (name not in STAMPED | GAPS.keys()), stamped[name]
