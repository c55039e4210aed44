"""The Python API gives programs what the command line prints."""

from __future__ import annotations

from pathlib import Path

import pytest

import triage
from triage.testing.jobs import JobBuilder


@pytest.fixture
def job(tmp_path: Path) -> Path:
    built = JobBuilder(tmp_path / "job", world_size=2).steps(2)
    built.rank(1).traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
    return built.elastic_table({1: 1}).write()


def test_a_stored_diagnosis_can_be_read_again(job: Path, tmp_path: Path) -> None:
    """With a store, `ingest` saves the diagnosis, and `search`, `similar` and `incident` read it."""
    store = tmp_path / "triage.db"
    diagnosis = triage.ingest(job, store=store)
    (hit,) = triage.search("memory", store=store)
    assert triage.incident(hit.incident.id, store=store).diagnosis == diagnosis
    assert triage.similar(hit.incident.id, store=store) == []


def test_nothing_is_stored_without_a_store(job: Path, tmp_path: Path) -> None:
    """`search` fails if the store does not exist, and does not create it."""
    triage.ingest(job)
    with pytest.raises(triage.TriageError, match="the store does not exist"):
        triage.search("memory", store=tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()


def test_a_signature_is_read_by_its_id() -> None:
    """`signature` returns the catalog's entry; for a wrong id the hint names similar ones."""
    assert triage.signature("cuda.out-of-memory").steps
    with pytest.raises(triage.TriageError) as caught:
        triage.signature("cuda.out-of-memry")
    assert "cuda.out-of-memory" in caught.value.hint
