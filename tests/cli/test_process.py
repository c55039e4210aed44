"""What only a process of its own shows: closed streams, encodings, imports, completion."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .making import ROOT, run

# pydantic is not among them: typer 0.29 imports it to read the values of options.
HEAVY = ("rich", "yaml", "hyperscan", "re2", "torch", "triage.pipeline", "triage.render", "triage.catalog")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_encoding_of_the_locale(report: Path, encoding: str) -> None:
    """What the encoding lacks is written as escapes; nothing crashes."""
    result = run("show", str(report), env={"PYTHONIOENCODING": encoding})
    assert (result.returncode, result.stderr) == (0, b"")
    assert (
        "训练失败" in result.stdout.decode()
        if encoding == "utf-8"
        else "\\u8bad\\u7ec3" in result.stdout.decode(encoding)
    )


def test_json_is_utf8_in_any_locale(report: Path) -> None:
    """JSON has one encoding."""
    result = run("show", str(report), "--format", "json", env={"PYTHONIOENCODING": "ascii"})
    assert "训练失败" in result.stdout.decode("utf-8")


def test_a_reader_that_went_away_is_no_error(report: Path) -> None:
    """A closed pipe is silent, and the status is that of the work."""
    reader, writer = os.pipe()
    os.close(reader)
    result = run("show", str(report), stdout=writer, stderr=subprocess.PIPE, capture_output=False)
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_a_full_disk_is_one_sentence(report: Path) -> None:
    """2 and why, once; not again when the interpreter ends."""
    with open("/dev/full", "wb") as full:
        result = run("show", str(report), stdout=full, stderr=subprocess.PIPE, capture_output=False)
    assert result.returncode == 2
    assert result.stderr.decode().startswith("triage: cannot write to standard output: No space left on device\n")
    assert b"Exception ignored" not in result.stderr


@pytest.mark.parametrize(("closed", "status"), [(">&-", 2), ("2>&-", 0), ("<&-", 0), (">&- -o out.txt", 0)])
def test_closed_streams(report: Path, tmp_path: Path, closed: str, status: int) -> None:
    """Without standard output there is no place for the report unless -o names one; the others are not needed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    line = f'"{sys.executable}" -m triage show "{report}" {closed}'
    result = subprocess.run(["/bin/sh", "-c", line], cwd=tmp_path, env=environment, capture_output=True, timeout=60)
    assert result.returncode == status
    assert b"Traceback" not in result.stderr


def test_help_imports_no_heavy_package() -> None:
    """Help and --version need typer and nothing of the stages, so that they are instant."""
    code = "import sys; from triage.cli import main; main(['ingest', '--help']); print(*sys.modules, file=sys.stderr)"
    result = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, timeout=60
    )
    loaded = result.stderr.decode().split()
    assert "triage.cli.app" in loaded
    assert not [name for name in loaded if name.startswith(HEAVY)]


def test_importing_the_package_imports_nothing() -> None:
    """`import triage` loads no other module of the project and none that a bare interpreter has not."""
    code = "import sys; before = set(sys.modules); import triage; print(*sorted(set(sys.modules) - before))"
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=60,
        text=True,
    )
    assert result.stdout.split() == ["__future__", "triage"]


def test_ids_complete_in_the_shell() -> None:
    """The tab key after `catalog show cuda.` and after `--signature` offers ids."""
    for words, index in (("triage catalog show cuda.", 3), ("triage explain x --signature cuda.", 4)):
        result = run(env={"_TRIAGE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(index)})
        assert b"cuda.out-of-memory" in result.stdout.split()


def test_version() -> None:
    """The name and the version, on standard output."""
    assert run("--version").stdout == b"triage 0.1.0\n"


def test_no_command_is_help_and_two() -> None:
    """A script that forgot the command notices."""
    result = run()
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"triage ingest job_logs/" in result.stderr
