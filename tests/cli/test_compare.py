"""`triage compare`: a failed job beside a healthy one, as text and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.store.factories import clean_diagnosis, known_diagnosis
from triage.cli import main
from triage.store import Store


@pytest.fixture
def stored(tmp_path: Path) -> tuple[str, str, str]:
    """A store with a failed and a healthy job that differ in a setting."""
    path = tmp_path / "triage.db"
    with Store.open(path) as store:
        ids = [store.incidents.add(item).id for item in (known_diagnosis("failed"), clean_diagnosis("healthy"))]
        with store.connections.write() as db:
            for incident, value in zip(ids, ("Ring\x1b[31m", "Tree"), strict=True):
                document = {"agreed": {"NCCL_ALGO": value, "OMP_NUM_THREADS": "4"}}
                store.service_data.save_document(db, incident, "environment", document)
    return str(path), ids[0], ids[1]


def test_the_text_has_differences_and_what_was_not_compared(
    stored: tuple[str, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The differing setting has both values, without control characters; parts without values say so."""
    path, failed, healthy = stored
    assert main(["compare", failed, healthy, "--store", path, "--color", "never"]) == 0
    text = capsys.readouterr().out
    assert "Settings: 1 of 2 differs." in text
    assert any(line.split()[:4] == ["!", "NCCL_ALGO", "Ring", "Tree"] for line in text.splitlines())
    assert "Pace: Nothing was compared: neither job states pace." in text
    assert "OMP_NUM_THREADS" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_json_has_all_parts(stored: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON names its schema, both incidents and each part."""
    path, failed, healthy = stored
    assert main(["compare", failed, healthy, "--store", path, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["failed"]["id"], document["healthy"]["id"]) == (
        "triage.comparison/1", failed, healthy,
    )  # fmt: skip
    assert [part["name"] for part in document["parts"]] == ["settings", "versions", "facts", "size", "pace", "values"]


def test_without_a_healthy_job_the_error_says_what_to_do(
    stored: tuple[str, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Where no healthy job of the same kind is stored, the hint has both ways on."""
    path, failed, _ = stored
    assert main(["compare", failed, "--store", path]) == 2
    error = capsys.readouterr().err
    assert "no healthy job" in error
    assert f"triage compare {failed} ID" in error
