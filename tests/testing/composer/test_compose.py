"""A plan is a job: the same bytes each time, with what its files allow to be known."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from triage.testing.composer import Plan, compose, is_held_out, list_cells
from triage.testing.composer.compose import tell_story
from triage.testing.composer.dressings import DRESSINGS
from triage.testing.composer.faults import FAULTS
from triage.testing.composer.layouts import LAYOUTS
from triage.testing.composer.noise import find_failure

CELLS = list(list_cells())
# A record becomes fields; a parent process prints the exception of its child. Only the ends of texts stay as they were.
REWRITES_TEXTS = {"json-lines", "torch-spawn", "ray-driver"}
NAMES = [dressing.name for dressing in DRESSINGS]
PLANS = st.builds(
    lambda cell, dressing, seed: Plan(*cell, dressing, seed),
    st.sampled_from(CELLS),
    st.sampled_from(NAMES),
    st.integers(0, 999),
)
SAMPLE = random.Random(21).sample(CELLS, min(len(CELLS), 60))
each_sampled_cell = pytest.mark.parametrize(
    ("fault", "layout"), [pytest.param(*cell, id=" in ".join(cell)) for cell in SAMPLE]
)


def join(files: Mapping[str, bytes]) -> str:
    """Return all paths and all texts of files that are not compressed."""
    return "\n".join(f"{path}\n{content.decode('utf-8', 'replace')}" for path, content in files.items())


def is_in(text: str, part: str) -> bool:
    """Whether a line is part of a text, as it is or as JSON has it, with or without escapes of other letters."""
    return any(form in text for form in (part, json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1]))


@settings(max_examples=60, deadline=None)
@given(plan=PLANS)
def test_the_same_plan_gives_the_same_bytes(plan: Plan) -> None:
    """No clock, no global state: the job can be composed again from its four values."""
    first, second = compose(plan), compose(plan)
    assert (first.files, first.expected) == (second.files, second.expected)
    assert first.files
    assert all(not Path(path).is_absolute() and ".." not in Path(path).parts for path in first.files)


@each_sampled_cell
def test_a_dressing_does_not_change_what_is_expected(fault: str, layout: str) -> None:
    """Every dressing of a sampled cell composes, and has the truth of the job as it was written."""
    plain = compose(Plan(fault, layout, "as written", 4))
    for name in random.Random(f"{fault} {layout}").sample(NAMES, 6):
        assert compose(Plan(fault, layout, name, 4)).expected == plain.expected, name


@each_sampled_cell
def test_no_line_before_the_failure_is_lost(fault: str, layout: str) -> None:
    """What ranks and kernels wrote before a process failed stands in the files, and so does what shows the cause."""
    first_line, first = (-1, -12) if layout in REWRITES_TEXTS else (0, 0)
    for seed in range(2):
        plan = Plan(fault, layout, "as written", seed)
        _, story = tell_story(plan)
        text = join(compose(plan).files)
        for line in story.lines:
            if line.writer.kind in ("rank", "kernel") and (line.is_cause or line.at < find_failure(story)):
                parts = [part for part in line.text.split("\n") if " " in part.strip()][first_line:]  # not a bare tag
                missing = [part for part in parts if not is_in(text, part.strip()[first:])]
                assert missing == [], line


@each_sampled_cell
def test_expected_hosts_stand_in_the_files(fault: str, layout: str) -> None:
    """A host that must be named can be read somewhere, at least without its domain."""
    for seed in range(3):
        job = compose(Plan(fault, layout, "as written", seed))
        text = join(job.files)
        missing = [host for host in job.expected.hosts or () if host.partition(".")[0] not in text]
        assert missing == []


@each_sampled_cell
def test_the_truth_is_of_this_world(fault: str, layout: str) -> None:
    """Ranks and hosts exist; what is known is what is true."""
    for seed in range(3):
        plan = Plan(fault, layout, "as written", seed)
        world, story = tell_story(plan)
        expected = compose(plan).expected
        assert expected.true_ranks <= set(world.ranks) or not story.truth.nodes  # ranks that were never started
        assert expected.true_hosts == {world.hosts[node] for node in story.truth.nodes}
        assert expected.ranks in (None, expected.true_ranks)
        assert expected.hosts in (None, expected.true_hosts)


def test_faults_name_layouts_that_exist() -> None:
    """A fault that needs certain layouts is composed in all of them that its other needs allow, and in no other."""
    names = {layout.name for layout in LAYOUTS}
    for fault in (fault for fault in FAULTS if fault.layouts):
        used = {layout for name, layout in CELLS if name == fault.name}
        assert fault.layouts <= names
        assert len(used) >= 5
        assert used <= fault.layouts


def test_values_of_unknown_ranks_cannot_be_compared() -> None:
    """Where no line tells its rank, a job whose values differ may look well, or only show how it ended."""
    cells = [(fault, layout) for fault, layout in list_cells() if fault.startswith("value-differs")]
    jobs = [compose(Plan(fault, layout, "as written", 0)).expected for fault, layout in cells]
    unplaced = [(fault, job) for (fault, _), job in zip(cells, jobs, strict=True) if job.ranks is None]
    assert unplaced
    for fault, job in unplaced:
        assert ("clean" in job.verdicts) == (fault == "value-differs-to-the-end")
        assert ("unknown" in job.verdicts) == (fault == "value-differs-and-is-checked") == (None in job.roots)


def test_what_lines_say_alone_is_right_where_their_ranks_are_unknown() -> None:
    """Damage of a file counts only where nobody can know that all ranks wrote it."""
    for layout, is_right in (("srun-file-per-task", False), ("srun-plain", True)):
        expected = compose(Plan("checkpoint-written-by-all", layout, "as written", 0)).expected
        assert ("checkpoint.corrupt" in expected.roots) == is_right


def test_half_of_the_cells_are_held_out() -> None:
    """The share is near a half, and does not depend on the order of faults and layouts."""
    share = sum(is_held_out(*cell) for cell in CELLS) / len(CELLS)
    assert 0.4 < share < 0.6


def test_a_job_is_written_below_a_directory(tmp_path: Path) -> None:
    """Each file is there with its bytes."""
    job = compose(Plan(*CELLS[0], "gzip", 1))
    job.write(tmp_path)
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == set(job.files)
