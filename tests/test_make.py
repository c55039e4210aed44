"""The Makefile leaves environments of other checkouts alone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def make(checkout: Path) -> subprocess.CompletedProcess[str]:
    """Run the step that every target which installs something begins with."""
    return subprocess.run(
        ["make", "own-environment", "TORCH_VENV=none"], cwd=checkout, capture_output=True, text=True, check=False
    )


def make_environment(directory: Path, source: Path | None) -> None:
    """Make an environment in which triage is installed from `source`, or not installed."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    if source is not None:
        (packages,) = directory.glob("lib/python*/site-packages")
        info = packages / "triage_kb-0.1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: triage-kb\nVersion: 0.1\n", encoding="utf-8")
        (info / "direct_url.json").write_text(f'{{"url": "{source.as_uri()}"}}', encoding="utf-8")


def make_checkout(directory: Path) -> Path:
    """Copy the Makefile and .ci to a directory."""
    directory.mkdir()
    shutil.copy(ROOT / "Makefile", directory)
    shutil.copytree(ROOT / ".ci", directory / ".ci")
    return directory


def test_make_refuses_the_environment_of_another_checkout(tmp_path: Path) -> None:
    """It stops before it installs anything, names the other checkout and says what to do."""
    mine = make_checkout(tmp_path / "mine")
    make_environment(mine / ".venv", tmp_path / "other")
    run = make(mine)
    assert run.returncode != 0
    assert f"belongs to the checkout {tmp_path / 'other'}" in run.stderr
    assert "make VENV=" in run.stderr


def test_make_uses_its_own_or_an_empty_environment(tmp_path: Path) -> None:
    """It accepts no environment, one without triage, and its own."""
    mine = make_checkout(tmp_path / "my checkout")
    assert make(mine).returncode == 0
    make_environment(mine / ".venv", None)
    assert make(mine).returncode == 0
    shutil.rmtree(mine / ".venv")
    make_environment(mine / ".venv", mine)
    assert make(mine).returncode == 0
