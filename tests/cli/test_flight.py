"""`triage flight` on directories of dumps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.artifacts.flight.factories import Call, Job, write

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    return write(Job({rank: [Call()] * (3 if rank == 2 else 6) for rank in range(4)}), tmp_path / "dumps")


def test_formats(command: Command, dumps: Path, tmp_path: Path) -> None:
    """Text is the default; JSON and HTML are options."""
    status, text, _ = command("flight", str(dumps))
    assert status == 0
    assert "rank 2 has not entered all_reduce #4" in " ".join(text.split())
    assert json.loads(command("flight", str(dumps), "--format", "json")[1])["faults"][0]["ranks"] == [2]
    assert command("flight", str(dumps), "-f", "html", "-o", str(tmp_path / "x.html"))[0] == 0
    assert (tmp_path / "x.html").read_text().startswith("<!doctype html>")


def test_exit_status(command: Command, dumps: Path, tmp_path: Path) -> None:
    """It is 1 only with --fail and a fault."""
    assert command("flight", str(dumps), "--fail")[0] == 1
    healthy = write(Job({rank: [Call()] * 3 for rank in range(2)}), tmp_path / "healthy")
    assert command("flight", str(healthy), "--fail")[0] == 0


def test_no_dump_is_an_error_with_a_hint(command: Command, tmp_path: Path) -> None:
    """The hint names the variable for dump files."""
    (tmp_path / "train.log").write_text("step 1\n")
    status, _, message = command("flight", str(tmp_path))
    assert status == 2
    assert "TORCH_FR_DUMP_TEMP_FILE" in message


def test_repro_of_an_incident_of_the_store(command: Command, dumps: Path, tmp_path: Path) -> None:
    """The files of the incident are read again; missing files and unknown ids are errors."""
    store = str(tmp_path / "kb.db")
    assert command("ingest", str(dumps), "--store", store, "--format", "json")[0] == 0
    (incident,) = json.loads(command("list", "--store", store, "--format", "json")[1])["incidents"]
    status, script, _ = command("repro", incident["id"], "--store", store)
    assert status == 0
    assert script == command("repro", str(dumps))[1]
    dumps.rename(tmp_path / "moved")
    status, _, message = command("repro", incident["id"], "--store", store)
    assert (status, "no longer exists" in message, "triage repro DIR" in message) == (2, True, True)
    status, _, message = command("repro", "i-0000000000", "--store", store)
    assert (status, "no incident i-0000000000" in message) == (2, True)
    status, _, message = command("repro", "nowhere", "--store", store)
    assert (status, "neither a file nor an incident" in message) == (2, True)
