"""Behaviour of the whole process: closed streams, encodings, imports, completion."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .factories import LOG, ROOT, run

# pydantic is not among them: typer 0.29 imports it to read the values of options.
HEAVY = ("rich", "yaml", "hyperscan", "re2", "torch", "triage.pipeline", "triage.render", "triage.catalog")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_encoding_of_the_locale(report: Path, encoding: str) -> None:
    """Characters that the encoding lacks are written as escapes."""
    result = run("show", str(report), env={"PYTHONIOENCODING": encoding})
    assert (result.returncode, result.stderr) == (0, b"")
    assert (
        "训练失败" in result.stdout.decode()
        if encoding == "utf-8"
        else "\\u8bad\\u7ec3" in result.stdout.decode(encoding)
    )


def test_json_is_utf8_in_any_locale(report: Path) -> None:
    """The encoding of the terminal does not matter."""
    result = run("show", str(report), "--format", "json", env={"PYTHONIOENCODING": "ascii"})
    assert "训练失败" in result.stdout.decode("utf-8")


def test_a_closed_pipe_is_not_an_error(report: Path) -> None:
    """Nothing is printed, and the exit status stays 0."""
    reader, writer = os.pipe()
    os.close(reader)
    result = run("show", str(report), stdout=writer, stderr=subprocess.PIPE, capture_output=False)
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_a_full_disk_is_one_sentence(report: Path) -> None:
    """The error is printed once, also when the interpreter ends."""
    with open("/dev/full", "wb") as full:
        result = run("show", str(report), stdout=full, stderr=subprocess.PIPE, capture_output=False)
    assert result.returncode == 2
    assert result.stderr.decode().startswith("triage: cannot write to standard output: No space left on device\n")
    assert b"Exception ignored" not in result.stderr


@pytest.mark.parametrize(("closed", "status"), [(">&-", 2), ("2>&-", 0), ("<&-", 0), (">&- -o out.txt", 0)])
def test_closed_streams(report: Path, tmp_path: Path, closed: str, status: int) -> None:
    """Only standard output is needed, unless -o names a file."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    line = f'"{sys.executable}" -m triage show "{report}" {closed}'
    result = subprocess.run(["/bin/sh", "-c", line], cwd=tmp_path, env=environment, capture_output=True, timeout=60)
    assert result.returncode == status
    assert b"Traceback" not in result.stderr


def test_help_imports_no_heavy_package() -> None:
    """Help needs only typer, so that it is fast."""
    code = "import sys; from triage.cli import main; main(['ingest', '--help']); print(*sys.modules, file=sys.stderr)"
    result = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, timeout=60
    )
    loaded = result.stderr.decode().split()
    assert "triage.cli.app" in loaded
    assert not [name for name in loaded if name.startswith(HEAVY)]


def test_importing_the_package_imports_nothing() -> None:
    """`import triage` loads no other module."""
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
    """Completion after `catalog show cuda.` and after `--signature` offers ids."""
    for command_line, index in (("triage catalog show cuda.", 3), ("triage explain x --signature cuda.", 4)):
        result = run(env={"_TRIAGE_COMPLETE": "complete_bash", "COMP_WORDS": command_line, "COMP_CWORD": str(index)})
        assert b"cuda.out-of-memory" in result.stdout.split()


def test_version() -> None:
    """`--version` prints name and version on standard output."""
    assert run("--version").stdout == b"triage 0.1.0\n"


def test_without_a_command_help_goes_to_standard_error() -> None:
    """The exit status is 2, so that a script notices."""
    result = run()
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"triage ingest job_logs/" in result.stderr


def test_the_second_command_compiles_no_pattern(tmp_path: Path, warm_cache: Path) -> None:
    """The first `triage ingest` stores its regular expressions, the second finds all; `off` stores none."""
    (tmp_path / "job.log").write_text(LOG, encoding="utf-8")
    stored = []
    for cache in (str(warm_cache), str(warm_cache), "off"):
        arguments = ("ingest", "job.log", "--no-store", "--exact", "--format", "json")
        result = run(*arguments, env={"TRIAGE_CACHE": cache}, cwd=tmp_path)
        assert result.returncode == 0
        stored.append([path.stat().st_mtime_ns for path in tmp_path.rglob("patterns-*")])
    assert len(stored[0]) == 1
    assert stored[0] == stored[1] == stored[2]
