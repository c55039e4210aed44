"""`triage ingest --dask`: a cluster reads one job, or many."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.local_cluster import Cluster

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "jobs"
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with three jobs: of the third nothing can be read."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "jobs"
    root.mkdir()
    for name in ("sigkill_perrank", "agent_breaks_the_tie"):
        (root / name).symlink_to(SAMPLES / name / "job")
    (root / "empty").mkdir()
    return root


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_output_is_that_of_one_machine(cluster: Cluster, command: Command, form: str) -> None:
    """The same text and JSON, but what the run cost; nothing is said of workers that did their work."""
    arguments = ("ingest", SAMPLES / "sigkill_perrank" / "job", "--no-store", "--format", form)
    status, here, _ = command(*arguments)
    assert command(*arguments, "--dask", cluster.address)[0] == status == 0
    _, there, errors = command(*arguments, "--dask", cluster.address)
    assert errors == ""
    if form == "json":
        reports = json.loads(here), json.loads(there)
        for report in reports:
            del report["stats"]
        assert reports[0] == reports[1]
    else:
        texts = [re.sub(r" · \d+\.\d s · ", " · ", " ".join(text.split())) for text in (here, there)]
        assert texts[0] == texts[1]


def test_each_job_is_a_task(cluster: Cluster, command: Command, jobs: Path) -> None:
    """The lines and the summary are those of this machine; a rerun reads nothing."""
    here = command("ingest", "--each", jobs, "--again", "--format", "json", "--no-store")
    there = command("ingest", "--each", jobs, "--again", "--format", "json", "--no-store", "--dask", cluster.address)
    assert there == here
    rows = list(map(json.loads, there[1].splitlines()))
    assert [row["verdict"] for row in rows[:-1]] == ["known", "failed", "unknown"]
    _, out, _ = command("ingest", "--each", jobs, "--format", "json", "--no-store", "--dask", cluster.address)
    assert [row.get("unchanged", False) for row in map(json.loads, out.splitlines()[:-1])] == [True, False, True]


def test_what_workers_cannot_do_is_said(
    cluster: Cluster, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that workers do not find is read here, with a line on standard error."""
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "rank_0.log").write_text("ValueError: no tokens\n")
    monkeypatch.chdir(tmp_path)  # workers have another directory
    status, _, errors = command("ingest", "job", "--no-store", "--dask", cluster.address)
    assert status == 0
    assert errors == (
        "triage: 2 of 2 parts of the work were done here, because workers could not (No such file or directory); "
        "workers must open the same paths, with credentials of their own\n"
    )


def test_without_dask_the_extra_is_named(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    status, _, errors = command("ingest", SAMPLES / "sigkill_perrank" / "job", "--dask", "tcp://127.0.0.1:1")
    assert status == 2
    assert "pip install 'triage-kb[dask]'" in errors
