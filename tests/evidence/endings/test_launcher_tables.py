"""The table of torchelastic is no last line of a rank, and what stands around it is."""

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
