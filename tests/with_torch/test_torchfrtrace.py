"""The table in docs/flight-recorder.md has the current results of torchfrtrace and triage on the recorded dumps."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from triage.artifacts.flight.analyse import analyse
from triage.artifacts.flight.dump_files import read_dump_files
from triage.base.rank_ranges import format_ranks

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("TRIAGE_TORCH", "")
SAMPLES = sorted(path.parent for path in (ROOT / "samples" / "flight").glob("*/TRUTH.yaml"))
ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not PYTHON, reason="TRIAGE_TORCH names no Python with torch; make test-torch does"),
]


def triage_result(case: Path) -> str:
    """Return triage's root fault in one line, as the table shows it."""
    faults = [fault for fault in analyse(read_dump_files([str(case)])[0]).faults if not fault.explained_by]
    if not faults:
        return "no fault"
    (fault,) = faults
    since = f" since #{fault.since}" if fault.since not in (None, fault.seq) else ""
    certainty = "" if fault.is_certain else ", not certain"
    return f"`{fault.rule}`, {format_ranks(fault.ranks)}, #{fault.seq}{since}{certainty}"


def test_the_comparison_with_torchfrtrace_is_current() -> None:
    """Every recorded job has a row with what both programs print now."""
    written = {
        row[1]: row.groups()[2:] for row in ROW.finditer((ROOT / "docs" / "flight-recorder.md").read_text("utf-8"))
    }
    command = [PYTHON, str(Path(__file__).with_name("peer.py")), *map(str, SAMPLES)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    peers = json.loads(done.stdout)
    measured = {case.name: (*peers[case.name], triage_result(case)) for case in SAMPLES}
    assert written == measured
