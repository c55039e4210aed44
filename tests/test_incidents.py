"""The written jobs of samples/jobs: the script that writes them, and what they are there for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

SAMPLES = Path(__file__).resolve().parents[1] / "samples"


def contents(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def written() -> dict[str, dict[str, object]]:
    truths = {
        path.parent.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in SAMPLES.glob("jobs/*/TRUTH.yaml")
    }
    return {name: truth for name, truth in truths.items() if truth["layout"].startswith("written ")}


def test_the_script_writes_the_same_bytes(tmp_path: Path) -> None:
    """samples/build/incidents.py, run again, gives exactly the written jobs of samples/jobs."""
    subprocess.run([sys.executable, "-B", str(SAMPLES / "build" / "incidents.py"), "-o", str(tmp_path)], check=True)
    assert {path.name for path in tmp_path.iterdir()} == set(written())
    for name in written():
        assert contents(tmp_path / name) == contents(SAMPLES / "jobs" / name)


def test_there_are_many_with_several_ranks_and_some_that_hold_only_symptoms() -> None:
    """At least thirty jobs of two ranks or more, and at least six in which no cause may be claimed."""
    truths = written()
    assert sum(int(str(truth["world_size"])) > 1 for truth in truths.values()) >= 30
    assert sum(name.startswith("symptoms_") and truth["root"] == [None] for name, truth in truths.items()) >= 6
