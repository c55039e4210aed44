"""The first screen of the report on a terminal, of all samples and of composed and hung jobs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest

import triage
from tests.shared_catalog import OPTIONS, share_catalog
from triage.cli import main
from triage.model import Diagnosis
from triage.model.store import Recurrence
from triage.render import phrases, text
from triage.testing import schedules
from triage.testing.composer import Plan, compose

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
JOBS = sorted(path.parent for path in (SAMPLES / "jobs").glob("*/job")) + sorted(
    path for path in (SAMPLES / "flight").iterdir() if path.is_dir()
)
# A fault of each kind of answer in layouts that differ much; none of these cells is held out.
COMPOSED = (
    ("out-of-memory", "stern", "as written"),
    ("xid-79-fallen-off-bus", "kubernetes-pods", "CRI"),
    ("two-user-errors", "srun-label", "as written"),
    ("host-silent", "json-lines", "gzip"),
    ("npu-out-of-memory", "msrun", "as written"),
    ("slurm-cancelled-then-errors", "srun-label", "blank lines"),
    ("user-error", "bash-file-per-rank", "UTF-16"),
    ("host-frozen", "ray-session", "aws logs get-log-events"),  # paths longer than a row
    ("earlier-error-handled", "nemo-launcher", "aws logs get-log-events"),
    ("silent-exit", "sagemaker-mpi", "docker json-file"),
)
HUNG = (
    ("skipped-call", "dump-timed"),
    ("other-operation", "plog-timeout"),
    ("rank-conditional", "ras-json"),
    ("missing-send", "watchdog-2.1-2.3"),
)
LONG = Recurrence(
    40, 12, 0.0, ("node7", "node8", "node9"), "anna: " + "a long reason " * 40, "Last fixed in a version" * 9
)


@pytest.fixture(scope="module", autouse=True)
def _shared() -> Iterator[None]:
    with share_catalog():
        yield


def check(diagnosis: Diagnosis) -> None:
    """Assert that verdict, rank, place, quote and advice begin on the first screen, also below what was seen before."""
    kind, root = phrases.verdict_kind(diagnosis), diagnosis.root_cause
    for recurrence in (None, LONG):
        screen = first_rows(text.render(diagnosis, width=80, verbose=False, recurrence=recurrence).splitlines())
        whole = "\n".join(screen)
        assert screen[0].startswith(kind)
        assert all(len(line) <= 80 or " " not in line.strip() for line in screen)
        if kind == "CLEAN":
            continue
        advice = {"INCONCLUSIVE": "What to add", "SYMPTOMS ONLY": "Next time"}.get(kind, "What to do")
        assert any(line.startswith(advice) for line in screen), whole
        if root is None or kind == "INCONCLUSIVE":
            continue
        facts = phrases.distinct_evidence(root)
        flat = "".join(whole.split())
        assert "".join(phrases.describe_line_origin(diagnosis).split()) in flat
        if facts:
            assert phrases.format_place(facts[0], diagnosis) in whole  # in one piece, to be copied
            assert any(line.startswith("  | ") for line in screen) or phrases.repeats_title(facts[0], root)


def first_rows(lines: list[str], columns: int = 80, rows: int = 24) -> list[str]:
    """Return the lines that a terminal of this size shows first; it breaks longer ones itself."""
    ends = accumulate(max(-(-len(line) // columns), 1) for line in lines)
    return [line for line, end in zip(lines, ends, strict=True) if end <= rows]


def test_triage_alone_shows_what_one_can_do(capsys: pytest.CaptureFixture[str]) -> None:
    """Without arguments it names commands that exist, on a screen of 80 columns."""
    assert main([]) == 2
    shown = capsys.readouterr().err
    commands = re.findall(r"^  triage (\w+)", shown, re.MULTILINE)
    assert commands[:1] == ["ingest"]
    assert all(len(line) <= 80 for line in shown.splitlines())
    for name in commands:
        assert main([name, "--help"]) == 0


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_samples_begin_with_what_counts(job: Path) -> None:
    """Each recorded job shows verdict, rank, line, quote and action in 24 lines at 80 columns."""
    check(triage.ingest(job / "job" if (job / "job").exists() else job, options=OPTIONS))


@pytest.mark.parametrize(("fault", "layout", "dressing"), COMPOSED)
def test_composed_jobs_begin_with_what_counts(tmp_path: Path, fault: str, layout: str, dressing: str) -> None:
    """So does each composed job."""
    check(triage.ingest(compose(Plan(fault, layout, dressing, 1)).write(tmp_path / "job"), options=OPTIONS))


@pytest.mark.parametrize(("fault", "form"), HUNG)
def test_hung_jobs_begin_with_what_counts(tmp_path: Path, fault: str, form: str) -> None:
    """So does each hung job, whatever evidence it left."""
    assert not schedules.is_held_out(fault, form)
    check(triage.ingest(schedules.draw_job(fault, form, 3).write(tmp_path / "job"), options=OPTIONS))


@pytest.mark.parametrize("lines", [1, 2, 6, 7, 40])
@pytest.mark.parametrize("columns", [20, 160, 400])
def test_a_long_quote_leaves_room_for_the_advice(lines: int, columns: int) -> None:
    """However many lines a message has, and however long they are, what to do begins on the first screen."""
    job = triage.ingest(SAMPLES / "jobs" / "checkpoint_size_mismatch_twonode" / "job", options=OPTIONS)
    assert job.root_cause is not None
    quote = "\n".join("a word " * (columns // 7) for _ in range(lines))
    first, *others = job.root_cause.evidence
    root = dataclasses.replace(job.root_cause, evidence=(dataclasses.replace(first, text=quote), *others))
    check(dataclasses.replace(job, root_cause=root, findings=(root, *job.findings[1:])))
