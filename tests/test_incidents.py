"""The jobs of samples/jobs that samples/build/incidents.py writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

SAMPLES = Path(__file__).resolve().parents[1] / "samples"


def read_files(directory: Path) -> dict[str, bytes]:
    """Return the content of every file below a directory by its relative path."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def read_written_truths() -> dict[str, dict[str, object]]:
    """Return TRUTH.yaml of every written job by its name."""
    truths = {
        path.parent.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in SAMPLES.glob("jobs/*/TRUTH.yaml")
    }
    return {name: truth for name, truth in truths.items() if truth["layout"].startswith("written ")}


def test_the_script_writes_the_same_bytes(tmp_path: Path) -> None:
    """samples/build/incidents.py writes exactly the written jobs of samples/jobs."""
    subprocess.run([sys.executable, "-B", str(SAMPLES / "build" / "incidents.py"), "-o", str(tmp_path)], check=True)
    assert {path.name for path in tmp_path.iterdir()} == set(read_written_truths())
    for name in read_written_truths():
        assert read_files(tmp_path / name) == read_files(SAMPLES / "jobs" / name)


def test_written_jobs_include_many_ranks_and_symptoms_only() -> None:
    """At least thirty jobs have two ranks or more, and at least six show only symptoms."""
    truths = read_written_truths()
    assert sum(int(str(truth["world_size"])) > 1 for truth in truths.values()) >= 30
    assert sum(name.startswith("symptoms_") and truth["root"] == [None] for name, truth in truths.items()) >= 6
