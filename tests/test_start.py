"""What a command imports before it works: counted in modules, because times depend on the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from triage.testing.jobs import JobBuilder

ROOT = Path(__file__).resolve().parents[1]
# Raise a number only with a reason: each module costs every small job 0.1 to 0.5 ms. Modules of the standard library
# differ between versions of Python.
TRIAGE_FOR_HELP, OTHERS_FOR_HELP = 34, 115
TRIAGE_FOR_JOB, OTHERS_FOR_JOB = 307, 85

COUNT = """
import contextlib, dataclasses, io, sys
before, generated, standard = set(sys.modules), [], dataclasses.dataclass

def note(cls=None, /, **options):
    def make(cls):
        if cls.__module__.startswith("triage") and options.get("init", True):
            generated.append(f"{cls.__module__}.{cls.__qualname__}")
        return standard(cls, **options)
    return make if cls is None else make(cls)

dataclasses.dataclass = note
from triage.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    status = main(sys.argv[1:])
print(status, *sorted(set(sys.modules) - before), *(f"generated:{name}" for name in generated))
"""


def imported_by(*arguments: str, cache: Path) -> tuple[list[str], list[str], list[str]]:
    """Run a command; return its modules of triage, its other modules, and its classes with generated methods."""
    # Modules that are loaded before the program, by site and by the counting itself, do not count.
    run = subprocess.run(
        [sys.executable, "-c", COUNT, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TRIAGE_CACHE": str(cache)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    status, *names = run.stdout.split()
    assert (status, run.stderr) == ("0", "")
    generated = [name for name in names if name.startswith("generated:")]
    triage = [name for name in names if name.partition(".")[0] == "triage"]
    return triage, [name for name in names if name not in triage and name not in generated], generated


@pytest.fixture
def job(tmp_path: Path) -> Path:
    job = JobBuilder(tmp_path / "job", world_size=2)
    job.rank(1).traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    return job.elastic_table({1: 1}).write()


def test_help_imports_little(tmp_path: Path) -> None:
    """`triage --help` imports the modules of the command line, and typer with what it needs."""
    triage, others, _ = imported_by("--help", cache=tmp_path)
    assert len(triage) <= TRIAGE_FOR_HELP, triage
    assert len(others) <= OTHERS_FOR_HELP, others
    assert {name.split(".")[1] for name in triage if "." in name} == {"base", "cli"}


def test_a_small_job_imports_little(warm_cache: Path, job: Path) -> None:
    """With a warm cache, `triage ingest` imports only what the diagnosis needs: no typer, no store, no readers."""
    for _ in range(2):
        triage, others, generated = imported_by("ingest", str(job), "--no-store", cache=warm_cache)
    assert len(triage) <= TRIAGE_FOR_JOB, triage
    assert len(others) <= OTHERS_FOR_JOB, others
    unneeded = {"typer", "hashlib", "subprocess", "shutil", "tempfile", "sqlite3", "numpy", "yaml", "pydantic"}
    assert unneeded.isdisjoint(others)
    assert not [name for name in triage if name.startswith(("triage.store", "triage.settings", "triage.stacks.forms"))]
    assert generated == []
