"""What installed packages raise is never called clean, and its line is the headline (`make test-torch`).

TRIAGE_RAISE_STATEMENTS=350 tries a sample of so many of the statements.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import triage
from tests.shared_catalog import OPTIONS, share_catalog
from tests.with_torch.raise_statements import PACKAGES, RaiseStatement, find_statements

PYTHON = os.environ.get("TRIAGE_TORCH", "")
SAMPLE = int(os.environ.get("TRIAGE_RAISE_STATEMENTS", "1000000"))
LEAST_SHARE = 0.99
STEPS = [f"[2026-03-01 10:00:{second:02d}] step {second} loss {3 - second / 50:.3f} lr 1e-4" for second in range(40)]

pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="TRIAGE_TORCH names no Python with torch; make test-torch does"),
]


@pytest.fixture(scope="module")
def statements() -> list[RaiseStatement]:
    """Return all statements of the installed packages."""
    code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    site = Path(subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True).stdout.strip())
    return find_statements(site)


def choose(statements: Sequence[RaiseStatement]) -> list[RaiseStatement]:
    """Return the sample: the same statements in every run, whatever statements other versions have besides."""
    return sorted(statements, key=lambda one: hashlib.sha256(f"{one.type}{one.message}".encode()).digest())[:SAMPLE]


def diagnose(directory: Path, lines: Sequence[str]) -> tuple[str, list[str]]:
    """Return the verdict of a job that ends with these lines, and the first lines of its root cause's evidence."""
    (directory / "rank0.log").write_text("\n".join([*STEPS, *lines]) + "\n", "utf-8")
    diagnosis = triage.ingest(directory, OPTIONS)
    root = diagnosis.root_cause
    return diagnosis.verdict, [] if root is None else [root.title, *(fact.text for fact in root.evidence)]


def is_found(statement: RaiseStatement, verdict: str, texts: Sequence[str]) -> bool:
    """Whether the job failed with the line of this statement as the headline."""
    return verdict in ("known", "unknown") and any(statement.headline in text for text in texts)


def find_missed(statements: Sequence[RaiseStatement], form: str, directory: Path) -> list[str]:
    """Return the headlines that triage does not find when the job ends with a traceback, or with the bare line."""
    missed = []
    with share_catalog():
        for one in statements:
            verdict, texts = diagnose(directory, one.traceback() if form == "traceback" else one.lines)
            if not is_found(one, verdict, texts):
                missed.append(f"{verdict}: {one.headline} ({one.file}:{one.line})")
    return missed


def missed_by_all_cores(statements: Sequence[RaiseStatement], form: str, make: Callable[[str], Path]) -> list[str]:
    """Return what `find_missed` does, from as many processes as there are cores."""
    cores = os.cpu_count() or 1
    parts = [statements[number::cores] for number in range(cores)]
    directories = [make(f"part{number}") for number in range(cores)]
    with ProcessPoolExecutor(cores) as pool:
        return [line for part in pool.map(find_missed, parts, [form] * cores, directories) for line in part]


@pytest.mark.parametrize("form", ["traceback", "bare line"])
def test_what_packages_raise_is_the_headline(
    statements: list[RaiseStatement], form: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A job that ends with what a package raises is known or unknown, with that line as its headline."""
    tried = choose(statements)
    missed = missed_by_all_cores(tried, form, tmp_path_factory.mktemp)
    assert len(missed) <= (1 - LEAST_SHARE) * len(tried), "\n".join(missed)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_has_statements(statements: list[RaiseStatement], package: str) -> None:
    """The walk reads every package: none is missing in the environment."""
    assert sum(one.file.startswith(f"{package}/") for one in statements) > 100
