"""The Python API: what the command line answers, for programs."""

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


def test_kept_and_found_again(job: Path, tmp_path: Path) -> None:
    """With a store the diagnosis is kept; search, similar and incident find it there."""
    store = tmp_path / "triage.db"
    diagnosis = triage.ingest(job, store=store)
    (hit,) = triage.search("memory", store=store)
    assert triage.incident(hit.incident.id, store=store).diagnosis == diagnosis
    assert triage.similar(hit.incident.id, store=store) == []


def test_without_a_store_nothing_is_kept(job: Path, tmp_path: Path) -> None:
    """Reading needs a store that is there, and makes none."""
    triage.ingest(job)
    with pytest.raises(triage.TriageError, match="no store"):
        triage.search("memory", store=tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()


def test_a_signature_by_its_id() -> None:
    """What the catalog says; a wrong id is told those that come near."""
    assert triage.signature("cuda.out-of-memory").steps
    with pytest.raises(triage.TriageError) as caught:
        triage.signature("cuda.out-of-memry")
    assert "cuda.out-of-memory" in caught.value.hint
