"""The jobs of samples/jobs that samples/build/compared.py writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SAMPLES = Path(__file__).resolve().parents[1] / "samples"


def test_the_script_writes_the_same_bytes(tmp_path: Path) -> None:
    """samples/build/compared.py writes exactly its jobs of samples/jobs."""
    subprocess.run([sys.executable, "-B", str(SAMPLES / "build" / "compared.py"), "-o", str(tmp_path)], check=True)
    written = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {path: (SAMPLES / "jobs" / path).read_bytes() for path in written}
