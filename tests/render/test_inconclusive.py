"""triage.render.inconclusive: the sections of a report without a verdict."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import triage
from triage.render.inconclusive import sections


@pytest.mark.parametrize(("line", "is_shown"), [(41, False), (40, True)])
def test_no_line_stands_twice(line: int, is_shown: bool, tmp_path: Path) -> None:
    """An unusual line that is the last one of its writer is shown as that only."""
    lines = [f"step {step} loss {9 / (step + 1):.3f}" for step in range(40)]
    (tmp_path / "job.log").write_text("\n".join([*lines, "the oven hums differently"]) + "\n", encoding="utf-8")
    diagnosis = triage.ingest(tmp_path)
    end = diagnosis.inconclusive
    assert end is not None
    (last,) = end.last_lines
    assert last.line == 41
    end = dataclasses.replace(end, unusual_lines=(dataclasses.replace(last, line=line),))
    titles = [title for title, _ in sections(dataclasses.replace(diagnosis, inconclusive=end))]
    assert ("Unusual" in titles) is is_shown
