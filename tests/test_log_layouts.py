"""Log layouts of launchers, schedulers and containers do not change the diagnosis."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path

import pytest
from log_layouts import LAYOUTS, LAYOUTS_WITH_RANK, Place

import triage
from triage.model.diagnosis import Diagnosis
from triage.pipeline import timeline

SAMPLES = Path(__file__).resolve().parents[1] / "samples" / "jobs"
HOST = "train-worker-0"
# One console for all ranks, a directory for each, a file for each, and a job that ended well after a failure.
CONSOLES = (
    "dataloader_worker_killed_tee",
    "segfault_faulthandler_tee",
    "exception_one_rank_tee",
    "restarted_then_finished_tee",
)
OTHERS = (
    "slurm_time_limit",
    "assertion_all_ranks_interleaved",
    "memory_limit_redirects",
    "sigkill_perrank",
    "healthy_handled_plain",
)
PERRANK = ("divergence_gradient_perrank", "nan_one_rank_perrank", "monitored_barrier_perrank", "ranks_missing_perrank")
CHANGES_LINES = {"docker json-file, cut", "CRI, cut", "journald export", "CloudWatch export", "aws logs get-log-events"}
STACKS = [
    ("docker compose", "GitHub Actions"),
    ("moreutils ts", "docker json-file"),
    ("torchx", "CRI"),
    ("pdsh", "journald JSON"),
    ("CRI", "Fluent Bit"),
    ("docker logs -t", "kubectl --prefix", "GitLab"),
    ("CI line counter", "CRI"),
]


def main_result(diagnosis: Diagnosis) -> tuple[object, ...]:
    """Return what must not depend on the layout."""
    root = diagnosis.root_cause
    job = diagnosis.job
    return (diagnosis.verdict, root and root.signature, root and root.ranks, job.ranks, job.world_size)


@cache
def ingest_sample(case: str) -> Diagnosis:
    return triage.ingest(SAMPLES / case / "job")


def ingest_wrapped(case: str, layouts: Sequence[str], directory: Path) -> Diagnosis:
    """Diagnose the job with every log in these layouts, innermost first. Its host is named like a pod."""
    job = shutil.copytree(SAMPLES / case / "job", directory / "job")
    for path in job.rglob("*"):
        if path.is_file() and path.suffix != ".json":
            lines = path.read_bytes().replace(b"node1", HOST.encode()).removesuffix(b"\n").split(b"\n")
            rank = re.search(r"rank[_-]?(\d+)", path.name)
            place = Place(HOST, HOST, int(rank[1]) if rank else None)
            for name in layouts:
                lines = {**LAYOUTS, **LAYOUTS_WITH_RANK}[name](lines, place)
            path.write_bytes(b"".join(line + b"\n" for line in lines))
    return triage.ingest(job)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_does_not_change_the_diagnosis(layout: str, tmp_path: Path) -> None:
    """Verdict, root cause and ranks are the same, and the evidence has the same line and text."""
    choice = random.Random(layout)
    for case in (choice.choice(CONSOLES), choice.choice(OTHERS)):
        wrapped, plain = ingest_wrapped(case, [layout], tmp_path / case), ingest_sample(case)
        assert main_result(wrapped) == main_result(plain), case
        if plain.root_cause and wrapped.root_cause and layout not in CHANGES_LINES:
            evidence = [(fact.line, fact.text.replace(HOST, "node1")) for fact in wrapped.root_cause.evidence[:1]]
            assert evidence == [(fact.line, fact.text) for fact in plain.root_cause.evidence[:1]], case


@pytest.mark.parametrize("stack", STACKS, ids=" in ".join)
def test_layouts_stack(stack: tuple[str, ...], tmp_path: Path) -> None:
    """Two or three layers give the same result as none."""
    case = random.Random(" ".join(stack)).choice(CONSOLES)
    assert main_result(ingest_wrapped(case, stack, tmp_path)) == main_result(ingest_sample(case)), case


@pytest.mark.parametrize("layout", LAYOUTS_WITH_RANK)
def test_layouts_with_ranks_separate_the_ranks(layout: str, tmp_path: Path) -> None:
    """The labelled output of all ranks, line by line in one file, gives the result of one file per rank."""
    case = random.Random(layout).choice(PERRANK)
    ingest_wrapped(case, [layout], tmp_path)
    files = sorted(path for path in (tmp_path / "job").rglob("*") if re.search(r"rank[_-]?\d+", path.name))
    lines = [path.read_bytes().splitlines(keepends=True) for path in files]
    for path in files:
        path.unlink()
    (tmp_path / "job" / "console.log").write_bytes(
        b"".join(line for turn in zip_longest(*lines, fillvalue=b"") for line in turn)
    )
    assert main_result(triage.ingest(tmp_path / "job")) == main_result(ingest_sample(case)), case


def test_last_lines_are_shown_unwrapped(tmp_path: Path) -> None:
    """`triage timeline` shows what a rank wrote, without the JSON or fields of a collector."""
    for layout in ("docker json-file", "journald export"):
        ingest_wrapped("nan_one_rank_perrank", [layout], tmp_path / layout)
        texts = [event.text for event in timeline([str(tmp_path / layout / "job")]).events]
        assert any("step" in text for text in texts)
        assert not any(mark in text for text in texts for mark in ('{"log"', "MESSAGE="))
