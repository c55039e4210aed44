"""Standard input as a file without a name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_spool_is_closed_at_the_end_of_the_process() -> None:
    """Python warns of no file that was left open."""
    program = "import triage; print(triage.ingest('-').verdict)"
    done = subprocess.run(
        [sys.executable, "-W", "always::ResourceWarning", "-c", program],
        input="step 1\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TRIAGE_STORE": "off"},
    )
    assert (done.stdout, done.stderr) == ("inconclusive\n", "")
