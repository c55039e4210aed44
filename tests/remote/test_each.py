"""`triage ingest --each` on a prefix of an object store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from triage.cli import main

from .conftest import Bucket

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "jobs"


def test_each_prefix_is_a_job(
    s3: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The jobs below a prefix have the answers of the same jobs on disk, and a rerun lists only."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    names = ["dataloader_worker_killed_tee", "sigkill_perrank"]
    for name in names:
        s3.put_directory(SAMPLES / name / "job", f"jobs/{name}")
    address = f"s3://{s3.name}/jobs/"
    command = ["ingest", "--each", address, "--no-store", "--format", "json"]
    assert main(command) == 0
    *rows, _ = map(json.loads, capsys.readouterr().out.splitlines())
    assert [row["job"] for row in rows] == names
    assert [row["path"] for row in rows] == [f"{address}{name}/" for name in names]
    assert main([*command[:2], *(str(SAMPLES / name) for name in names), *command[3:]]) == 0
    local = [json.loads(line) for line in capsys.readouterr().out.splitlines()][:-1]
    assert [row["id"] for row in rows] == [row["id"] for row in local if row["job"] == "job"]
    assert main(command) == 0
    *rerun, _ = map(json.loads, capsys.readouterr().out.splitlines())
    assert all(row["unchanged"] for row in rerun)
