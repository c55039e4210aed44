"""The page and the address of the API that show a failed job beside a healthy one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from tests.service.test_visibility import (
    HIDDEN,
    HTML,
    client_of,
    copy_store,
    database,
    fill_once,
    service,
    settings,
    team_store,
    values,
)
from tests.store.conftest import postgres_server
from tests.store.factories import clean_diagnosis
from triage.cli.ingest_job import ingest_job
from triage.store import Store

__all__ = ["copy_store", "database", "fill_once", "postgres_server", "service", "settings", "team_store", "values"]


def write_job(directory: Path, *, algorithm: str, loss: float, fails: bool) -> Path:
    """Write the files of a job of 30 steps, which fails or finishes."""
    directory.mkdir()
    steps = "".join(f"2026-03-01 10:00:{n:02d},000 step {n} loss {loss / n:.4f}\n" for n in range(1, 31))
    end = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: bad shard\n'
    (directory / "rank0.log").write_text(steps + (end if fails else "Training finished\n"), encoding="utf-8")
    dump = f"PATH=/bin\nPWD=/x\nNCCL_ALGO={algorithm}\nOMP_NUM_THREADS=4\nSLURM_JOB_ID={loss}\n"
    (directory / "env.node1").write_text(dump, encoding="utf-8")
    return directory


@pytest.fixture
def pair(path: Path, tmp_path: Path) -> tuple[str, str]:
    """The incidents of a failed and of a healthy job, ingested on the command line with a label."""
    jobs = [
        write_job(tmp_path / "failed", algorithm="Ring", loss=8.0, fails=True),
        write_job(tmp_path / "healthy", algorithm="Tree", loss=4.0, fails=False),
    ]
    for job in jobs:
        report = tmp_path / "report.json"
        ingest_job([str(job)], format="json", output=report, store=str(path), label=["project=llm"], quiet=True)
        assert json.loads(report.read_text(encoding="utf-8"))["verdict"] == ("clean" if job == jobs[1] else "unknown")
    with Store.open(path) as store:
        names = {item.job_name: item.id for item in store.search.list_incidents()}
    return names["failed"], names["healthy"]


def test_the_api_compares_with_the_last_healthy_job(client: TestClient, pair: tuple[str, str]) -> None:
    """Jobs ingested on the command line are compared by settings, pace and losses; numbers of jobs are left out."""
    answer = client.get(f"/api/v1/incidents/{pair[0]}/compare").json()
    assert (answer["schema"], answer["healthy"]["id"], answer["common_facts"]) == (
        "triage.comparison/1", pair[1], ["project"],
    )  # fmt: skip
    parts = {part["name"]: part for part in answer["parts"]}
    assert [row["name"] for row in parts["settings"]["rows"]] == ["NCCL_ALGO"]
    assert parts["pace"]["rows"][0] == {
        "name": "steps a second", "failed": "1", "healthy": "1", "differs": False, "step": None,
    }  # fmt: skip
    loss = parts["values"]["rows"][0]
    assert (loss["step"], loss["failed"], loss["healthy"], loss["differs"]) == (30, "0.2667", "0.1333", True)
    assert parts["versions"]["why_not"]


def test_the_page_is_reached_from_the_incident(client: TestClient, pair: tuple[str, str]) -> None:
    """The page of a failed incident links to the comparison, which says what differs and what was not compared."""
    address = f"/incidents/{pair[0]}/compare"
    assert f'href="{address}"' in client.get(f"/incidents/{pair[0]}", headers=HTML).text
    assert "/compare" not in client.get(f"/incidents/{pair[1]}", headers=HTML).text
    page = client.get(address, headers=HTML).text
    for text in (
        "NCCL_ALGO",
        "Ring",
        "Tree",
        "the last one with the same project",
        "loss at step 30",
        "Nothing was compared",
    ):
        assert text in page, text
    assert "OMP_NUM_THREADS" not in page


def test_without_a_healthy_job_the_page_asks_for_one(client: TestClient, store: Store) -> None:
    """The page says that none is stored and takes an id; the API answers 404 with what to do."""
    incident = store.search.list_incidents()[0].id
    page = client.get(f"/incidents/{incident}/compare", headers=HTML)
    assert (page.status_code, "No healthy job" in page.text, "Nothing differs" in page.text) == (200, True, False)
    answer = client.get(f"/api/v1/incidents/{incident}/compare")
    assert (answer.status_code, "project" in answer.json()["error"]["hint"]) == (404, True)
    other = store.incidents.add(clean_diagnosis("healthy")).id
    chosen = client.get(f"/api/v1/incidents/{incident}/compare", params={"healthy": other})
    assert (chosen.status_code, chosen.json()["healthy"]["id"]) == (200, other)
    assert client.get(f"/incidents/{incident}/compare", params={"healthy": incident}, headers=HTML).status_code == 400


def test_a_hidden_job_cannot_be_compared_with(
    service: FastAPI, team_store: Store, values: dict[str, list[str]]
) -> None:
    """For a reader of a part, a hidden incident as the healthy one is one that does not exist."""
    own, hidden = values["incident"][0], values["incident"][6]
    with client_of(service, team_store, "vera") as client:
        for address in (f"/incidents/{own}/compare", f"/api/v1/incidents/{own}/compare"):
            answer = client.get(address, params={"healthy": hidden})
            assert (answer.status_code, HIDDEN in answer.text) == (404, False)
