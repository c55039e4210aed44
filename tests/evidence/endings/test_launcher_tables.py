"""The table of torchelastic and the boxes of Open MPI are no last lines of a rank, and what stands around them is."""

from __future__ import annotations

import pytest

from triage.evidence.endings.launcher_tables import without_tables
from triage.records.text import Line

RULE = "=" * 60
TABLE = [
    "Traceback (most recent call last):",
    '  File "/opt/venv/bin/torchrun", line 8, in <module>',
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    RULE,
    "train.py FAILED",
    "  exitcode  : 74 (pid: 9)",
    RULE,
]


@pytest.mark.parametrize("table", [TABLE, TABLE[:-1], TABLE[2:]], ids=["whole", "cut", "without its traceback"])
def test_the_table_and_its_traceback_are_left_out(table: list[str]) -> None:
    """What a rank wrote above stays, with its level; a table that was cut ends with the lines."""
    lines = [Line(n, text.encode(), 1970) for n, text in enumerate(["FATAL: gone", *table])]
    assert without_tables(lines, ["fatal", *[""] * len(table)]) == (lines[:1], ["fatal"])


def test_lines_behind_the_table_stay() -> None:
    """The rule closes the table, so a message of the scheduler is a last line."""
    lines = [Line(n, text.encode(), 1970) for n, text in enumerate([*TABLE, "srun: error: lost"])]
    assert without_tables(lines, [""] * len(lines)) == (lines[-1:], [""])


BOX_RULE = "-" * 74
BOXES = [
    BOX_RULE,
    "Primary job  terminated normally, but 1 process returned",
    "a non-zero exit code. Per user-direction, the job has been aborted.",
    BOX_RULE,
    BOX_RULE,
    "mpirun detected that one or more processes exited with non-zero status, thus causing",
    "the job to be terminated. The first process to do so was:",
    "",
    "  Process name: [[20411,1],0]",
    BOX_RULE,
]


@pytest.mark.parametrize("boxes", [BOXES, BOXES[:-1]], ids=["whole", "cut"])
def test_boxes_about_ends_are_left_out(boxes: list[str]) -> None:
    """What a rank wrote above stays; the rules that open boxes hold no text."""
    lines = [Line(n, text.encode(), 1970) for n, text in enumerate(["FATAL: gone", *boxes])]
    own, _ = without_tables(lines, [""] * len(lines))
    assert [line.data.decode() for line in own if line.data.decode() != BOX_RULE] == ["FATAL: gone"]


def test_a_box_that_states_a_cause_stays() -> None:
    """Open MPI says in such boxes too why it did not start."""
    lines = [Line(n, text.encode(), 1970) for n, text in enumerate([BOX_RULE, "There are not enough slots", BOX_RULE])]
    assert without_tables(lines, [""] * 3)[0] == lines
