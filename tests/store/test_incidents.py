"""The same files are the same incident, and a diagnosis comes back as it went in."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

import triage
from tests.render.samples import diagnoses
from tests.store.making import DAY, NOW, clean, fact, known, unknown
from triage.base.errors import OptionError
from triage.model.diagnosis import Diagnosis, Stats
from triage.store import Store

SAMPLES = Path(__file__).parents[2] / "samples" / "jobs"


@pytest.mark.parametrize("diagnosis", [known("a"), unknown("b"), clean("c")], ids=lambda diagnosis: diagnosis.verdict)
def test_a_diagnosis_comes_back(store: Store, diagnosis: Diagnosis) -> None:
    """What is read is what was stored, to the last field."""
    stored = store.incidents.add(diagnosis)
    assert (stored.new, stored.seen, stored.diagnosis) == (True, 1, diagnosis)
    assert store.incidents.get(stored.id).diagnosis == diagnosis


@pytest.mark.parametrize(
    "name", ["sigkill_perrank", "exception_one_rank_tee", "healthy_json_archive", "restart_failed_again_redirects"]
)
def test_real_jobs_come_back(store: Store, name: str) -> None:
    """Diagnoses of recorded jobs survive the store."""
    diagnosis = triage.ingest(SAMPLES / name / "job")
    assert store.incidents.get(store.incidents.add(diagnosis).id).diagnosis == diagnosis


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(diagnoses)
def test_any_diagnosis_comes_back(store: Store, diagnosis: Diagnosis) -> None:
    """Whatever the texts hold; only clusters are the store's own."""
    identifier = "j-" + hashlib.sha256(repr(diagnosis).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    known = tuple(
        finding for finding in diagnosis.findings if finding.signature is not None
    )  # what is unknown stands in `unknown`
    diagnosis = dataclasses.replace(diagnosis, job=dataclasses.replace(diagnosis.job, id=identifier), findings=known)
    stored = store.incidents.add(diagnosis)
    assert store.incidents.get(stored.id).diagnosis == stored.diagnosis
    assert dataclasses.replace(stored.diagnosis, root_cause=None, unknown=()).job == diagnosis.job


def test_the_same_files_are_seen_again(store: Store) -> None:
    """A second ingest counts and makes nothing new, wherever the files lie and however long it took."""
    first = store.incidents.add(known("a"), now=NOW)
    moved = known("a", stats=Stats(1, 100, seconds=9.0))
    moved = dataclasses.replace(moved, job=dataclasses.replace(moved.job, path="/elsewhere", name="other"))
    again = store.incidents.add(moved, now=NOW + DAY)
    assert (again.id, again.new, again.seen) == (first.id, False, 2)
    found = store.incidents.get(first.id)
    assert (found.incident.seen, found.incident.stored_at, found.incident.seen_at) == (2, NOW, NOW + DAY)
    assert found.history == ()
    assert store.search.count() == 1


def test_another_answer_is_kept_with_its_history(store: Store) -> None:
    """When a newer catalog says something else, the incident says so, and what it said before stays."""
    identifier = store.incidents.add(unknown("a")).id
    newer = dataclasses.replace(known("a"), catalog_version="2026.12.1")
    store.incidents.add(newer)
    found = store.incidents.get(identifier)
    assert found.diagnosis == newer
    (change,) = found.history
    assert (change.old, change.new) == ("u-7f3a9c", "cuda.out-of-memory")
    assert (change.old_catalog, change.new_catalog, change.reason) == ("2026.11.1", "2026.12.1", "ingest")
    (post,) = store.outbox.listed()
    assert (post.kind, post.subject, post.payload["new"]) == ("changed", identifier, "cuda.out-of-memory")


def test_found_by_any_beginning_of_its_id(store: Store) -> None:
    """The id, the job's id, their first digits, in any case; never a guess among several."""
    stored = store.incidents.add(known("a"))
    job = known("a").job.id
    for wanted in (stored.id, job, stored.id[:6], job[2:7], stored.id.upper()):
        assert store.incidents.get(wanted).incident.id == stored.id
    for other in range(40):
        store.incidents.add(known(f"other {other}"))
    digit = next(
        digit
        for digit in "0123456789abcdef"
        if store.connections.read("SELECT count(*) FROM incident WHERE id LIKE ?", (f"i-{digit}%",))[0][0] > 1
    )
    with pytest.raises(OptionError, match="several incidents begin with"):
        store.incidents.get(digit)


@pytest.mark.parametrize("wanted", ["", "i-", "nope", "%", "i-' OR 1=1 --", "i-\0"])
def test_what_is_not_there_is_an_error_with_a_hint(store: Store, wanted: str) -> None:
    """No such incident, whatever is asked for."""
    store.incidents.add(known("a"))
    with pytest.raises(OptionError) as caught:
        store.incidents.get(wanted)
    assert "triage list" in caught.value.hint or "more of the id" in caught.value.hint


def test_clocks_that_cannot_be_right_do_not_sort(store: Store) -> None:
    """A failure of 1970 or of next year is filed under when it was stored."""
    for at in (0.0, 5.0, NOW + 400 * DAY):
        stored = store.incidents.add(known(f"at {at}", at=at), now=NOW)
        assert store.incidents.get(stored.id).incident.at == NOW
    told = store.incidents.add(known("good", at=NOW - 3 * DAY), now=NOW)
    assert store.incidents.get(told.id).incident.at == NOW - 3 * DAY


def test_removing_leaves_no_trace(store: Store) -> None:
    """A removed incident is in no table, and its words are not found."""
    keep = store.incidents.add(known("keep"))
    gone = store.incidents.add(known("gone", "host.sigkill", host="node9"))
    store.incidents.remove([store.incidents.number(gone.id)])
    assert [hit.incident.id for hit in store.search.text("torch")] == [keep.id]
    assert store.search.text("node9") == []
    dump = "\n".join(store.connections.get().iterdump())
    assert "node9" not in dump
    assert gone.id not in dump


def test_many_ranks_do_not_swell_the_store(store: Store) -> None:
    """A failure of 100,000 ranks is one incident of bounded size."""
    wide = dataclasses.replace(known("wide"))
    assert wide.root_cause is not None
    root = dataclasses.replace(wide.root_cause, ranks=tuple(range(100_000)), evidence=(fact("x"),))
    stored = store.incidents.add(dataclasses.replace(wide, root_cause=root, findings=(root,)))
    assert store.incidents.get(stored.id).diagnosis.root_cause == root
    assert store.connections.path.stat().st_size < 2_000_000
