"""`triage ingest --each`: many jobs, one answer each."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from triage.store import Store

Command = Callable[..., tuple[int, str, str]]
FAILURE = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\n    g()\nValueError: {}\n'


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with three jobs, one of them an archive, an empty one, and a file that belongs to none."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TRIAGE_STORE", "off")
    root = tmp_path / "jobs"
    for name, text in (("a", "shard 7 holds no samples"), ("b", "shard 7 holds no samples"), ("c", "no tokens")):
        (root / name).mkdir(parents=True)
        (root / name / "rank_0.log").write_text(FAILURE.format(text))
    with tarfile.open(root / "d.tar.gz", "w:gz") as tar:
        tar.add(root / "c", arcname="job")
    (root / "empty").mkdir()
    (root / "notes.txt").write_text("our jobs")
    return root


def lines(out: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The lines of the jobs, and the last line."""
    *rows, summary = map(json.loads, out.splitlines())
    return rows, summary


def test_each_entry_is_a_job(jobs: Path, command: Command) -> None:
    """Directories and archives are diagnosed in the order of their names; a job that cannot be read stops none."""
    status, out, errors = command("ingest", "--each", jobs, "--format", "json")
    rows, summary = lines(out)
    assert status == 0
    assert [(row["job"], row["verdict"]) for row in rows] == [
        ("a", "unknown"), ("b", "unknown"), ("c", "unknown"), ("d.tar.gz", "unknown"), ("empty", "failed")
    ]  # fmt: skip
    assert rows[-1]["hint"]
    assert [(item["verdict"], item["jobs"]) for item in summary["summary"]] == [
        ("unknown", 2), ("unknown", 2), ("failed", 1)
    ]  # fmt: skip
    assert summary["jobs"] == 5
    assert "notes.txt" in errors


def test_settings_are_stored_with_each_job(jobs: Path, command: Command, tmp_path: Path) -> None:
    """A job with a dump of its environment keeps its settings in the store, to be compared; one without has none."""
    (jobs / "a" / "env.node1").write_text("PATH=/bin\nPWD=/x\nNCCL_ALGO=Ring\nOMP_NUM_THREADS=4\n")
    path = tmp_path / "triage.db"
    assert command("ingest", "--each", jobs, "--store", path)[0] == 0
    with Store.open(path) as store:
        settings = {
            item.job_name: store.service_data.get_document(store.incidents.find_number(item.id), "environment")
            for item in store.search.list_incidents()
        }
    assert settings["b"] is None
    assert settings["a"] is not None
    assert settings["a"]["agreed"]["NCCL_ALGO"] == "Ring"


def test_the_order_does_not_depend_on_the_processes(jobs: Path, command: Command) -> None:
    """One process and four give the same lines."""
    one = command("ingest", "--each", jobs, "--again", "--workers", 1, "--format", "json")
    assert command("ingest", "--each", jobs, "--again", "--workers", 4, "--format", "json") == one


def test_a_rerun_reads_only_what_changed(jobs: Path, command: Command) -> None:
    """A job that is as it was is not read again, one that grew is; --again reads all."""
    first = lines(command("ingest", "--each", jobs, "--format", "json")[1])[0]
    with (jobs / "b" / "rank_0.log").open("a") as file:
        file.write("RuntimeError: another end\n")
    second = lines(command("ingest", "--each", jobs, "--format", "json")[1])[0]
    assert [row["job"] for row in second if row.get("unchanged")] == ["a", "c", "d.tar.gz"]
    assert first[0]["id"] == second[0]["id"]
    assert first[1]["id"] != second[1]["id"]
    again = lines(command("ingest", "--each", jobs, "--again", "--format", "json")[1])[0]
    assert not any(row.get("unchanged") for row in again)


def test_a_rerun_continues_after_an_interruption(jobs: Path, command: Command, tmp_path: Path) -> None:
    """The state has a line for each finished job; a line that was cut is read again."""
    state = tmp_path / "each.jsonl"
    command("ingest", "--each", jobs, "--state", state, "--format", "json")
    rows = state.read_text().splitlines()
    state.write_text("\n".join([*rows[:2], rows[2][:20]]))
    rerun = lines(command("ingest", "--each", jobs, "--state", state, "--format", "json")[1])[0]
    assert [row["job"] for row in rerun if row.get("unchanged")] == ["a", "b"]


def test_what_left_the_store_is_read_again(jobs: Path, command: Command, tmp_path: Path) -> None:
    """With a store, a job is only skipped while its incident is there."""
    store = tmp_path / "store.db"
    command("ingest", "--each", jobs, "--store", store, "--format", "json")
    with Store.open(store) as opened:
        assert opened.search.count_incidents() == 2  # a and b have the same content, c and d too
    skipped = lines(command("ingest", "--each", jobs, "--store", store, "--format", "json")[1])[0]
    assert sum(bool(row.get("unchanged")) for row in skipped) == 4
    os.unlink(store)
    fresh = lines(command("ingest", "--each", jobs, "--store", store, "--format", "json")[1])[0]
    assert not any(row.get("unchanged") for row in fresh)


@pytest.mark.parametrize(("fail_on", "status"), [("known", 0), ("unknown", 1), ("any", 1)])
def test_exit_status(jobs: Path, command: Command, fail_on: str, status: int) -> None:
    """It is 1 if one of the jobs has the verdict."""
    assert command("ingest", "--each", jobs, "--fail-on", fail_on, "--format", "json")[0] == status


def test_nothing_to_do(tmp_path: Path, command: Command) -> None:
    """A directory without jobs, one that is not there, and another format are errors with status 2."""
    assert command("ingest", "--each", tmp_path)[0] == 2
    assert command("ingest", "--each", tmp_path / "none")[0] == 2
    assert command("ingest", "--each", tmp_path, "--format", "html")[0] == 2
    (tmp_path / "job").mkdir()
    assert command("ingest", "--each", tmp_path, "--no-store")[0] == 2


def test_the_table(jobs: Path, command: Command) -> None:
    """The text has a line for each job and, below, one for each cause."""
    out = command("ingest", "--each", jobs, "--no-store")[1]
    table, causes = out.split("\n\n")[:2]
    assert [line.split()[0] for line in table.splitlines()[1:]] == ["a", "b", "c", "d.tar.gz", "empty"]
    assert [line.split()[:2] for line in causes.splitlines()[1:]] == [
        ["2", "unknown"],
        ["2", "unknown"],
        ["1", "failed"],
    ]
    assert "5 jobs" in out
