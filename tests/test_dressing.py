"""Whatever launchers, schedulers and containers put around the output of a job, the diagnosis is that of the bare
output.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path

import pytest
from dressing import LAYOUTS, RANKED, Place

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


def answer(found: Diagnosis) -> tuple[object, ...]:
    """What must not depend on the clothes."""
    root = found.root_cause
    return (found.verdict, root and root.signature, root and root.ranks, found.job.ranks, found.job.world_size)


@cache
def bare(case: str) -> Diagnosis:
    return triage.ingest(SAMPLES / case / "job")


def dressed(case: str, layouts: Sequence[str], directory: Path) -> Diagnosis:
    """The job with every log in these layouts, innermost first; its host is called as a pod."""
    job = shutil.copytree(SAMPLES / case / "job", directory / "job")
    for path in job.rglob("*"):
        if path.is_file() and path.suffix != ".json":
            lines = path.read_bytes().replace(b"node1", HOST.encode()).removesuffix(b"\n").split(b"\n")
            rank = re.search(r"rank[_-]?(\d+)", path.name)
            place = Place(HOST, HOST, int(rank[1]) if rank else None)
            for name in layouts:
                lines = {**LAYOUTS, **RANKED}[name](lines, place)
            path.write_bytes(b"".join(line + b"\n" for line in lines))
    return triage.ingest(job)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_does_not_change_the_answer(layout: str, tmp_path: Path) -> None:
    """Verdict, root, its ranks and the ranks known are the same, and the evidence is on the same line, in the same
    words.
    """
    choice = random.Random(layout)
    for case in (choice.choice(CONSOLES), choice.choice(OTHERS)):
        found, wanted = dressed(case, [layout], tmp_path / case), bare(case)
        assert answer(found) == answer(wanted), case
        if wanted.root_cause and found.root_cause and layout not in CHANGES_LINES:
            told = [(fact.line, fact.text.replace(HOST, "node1")) for fact in found.root_cause.evidence[:1]]
            assert told == [(fact.line, fact.text) for fact in wanted.root_cause.evidence[:1]], case


@pytest.mark.parametrize("stack", STACKS, ids=" in ".join)
def test_layouts_stack(stack: tuple[str, ...], tmp_path: Path) -> None:
    """Two or three layers give the same answer as none."""
    case = random.Random(" ".join(stack)).choice(CONSOLES)
    assert answer(dressed(case, stack, tmp_path)) == answer(bare(case)), case


@pytest.mark.parametrize("layout", RANKED)
def test_layouts_that_name_ranks_tell_them(layout: str, tmp_path: Path) -> None:
    """The output of all ranks in one file, line by line in turn, each line labelled: the answer is that of the files of
    each rank.
    """
    case = random.Random(layout).choice(PERRANK)
    dressed(case, [layout], tmp_path)
    files = sorted(path for path in (tmp_path / "job").rglob("*") if re.search(r"rank[_-]?\d+", path.name))
    lines = [path.read_bytes().splitlines(keepends=True) for path in files]
    for path in files:
        path.unlink()
    (tmp_path / "job" / "console.log").write_bytes(
        b"".join(line for turn in zip_longest(*lines, fillvalue=b"") for line in turn)
    )
    assert answer(triage.ingest(tmp_path / "job")) == answer(bare(case)), case


def test_last_lines_are_shown_without_what_is_around_them(tmp_path: Path) -> None:
    """`triage timeline` shows what a rank wrote, not the JSON or the fields that a collector made of it."""
    for layout in ("docker json-file", "journald export"):
        dressed("nan_one_rank_perrank", [layout], tmp_path / layout)
        told = [event.text for event in timeline([str(tmp_path / layout / "job")]).events]
        assert any("step" in text for text in told)
        assert not any(mark in text for text in told for mark in ('{"log"', "MESSAGE="))
