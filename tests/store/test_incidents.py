"""triage.store.incidents: the same files are the same incident, and a diagnosis is restored without loss."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

import triage
from tests.render.factories import diagnoses
from tests.store.factories import (
    DAY,
    NOW,
    clean_diagnosis,
    dump_tables,
    known_diagnosis,
    make_fact,
    unknown_diagnosis,
    with_job_id,
)
from triage.base.errors import OptionError
from triage.evidence.redact import redact_all
from triage.model.diagnosis import Diagnosis, Stats
from triage.store import Store
from triage.store.audit import machine_user

SAMPLES = Path(__file__).parents[2] / "samples" / "jobs"


@pytest.mark.parametrize(
    "diagnosis",
    [known_diagnosis("a"), unknown_diagnosis("b"), clean_diagnosis("c")],
    ids=lambda diagnosis: diagnosis.verdict,
)
def test_a_diagnosis_is_restored(store: Store, diagnosis: Diagnosis) -> None:
    """The diagnosis that is read equals the stored one."""
    stored = store.incidents.add(diagnosis)
    assert (stored.is_new, stored.ingests, stored.diagnosis) == (True, 1, diagnosis)
    assert store.incidents.get(stored.id).diagnosis == diagnosis


@pytest.mark.parametrize(
    "name", ["sigkill_perrank", "exception_one_rank_tee", "healthy_json_archive", "restart_failed_again_redirects"]
)
def test_diagnoses_of_recorded_jobs_are_restored(store: Store, name: str) -> None:
    """Diagnoses of recorded jobs are stored without loss."""
    diagnosis = triage.ingest(SAMPLES / name / "job")
    assert store.incidents.get(store.incidents.add(diagnosis).id).diagnosis == diagnosis


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(diagnoses)
def test_any_diagnosis_is_restored(store: Store, diagnosis: Diagnosis) -> None:
    """Only clusters and secrets change, whatever the texts contain."""
    identifier = "j-" + hashlib.sha256(repr(diagnosis).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    known_diagnosis = tuple(
        finding for finding in diagnosis.findings if finding.signature is not None
    )  # what is unknown stands in `unknown`
    diagnosis = dataclasses.replace(
        diagnosis, job=dataclasses.replace(diagnosis.job, id=identifier), findings=known_diagnosis
    )
    stored = store.incidents.add(diagnosis)
    assert store.incidents.get(stored.id).diagnosis == stored.diagnosis
    assert stored.diagnosis.job == redact_all(diagnosis).job


def test_a_second_ingest_is_counted(store: Store) -> None:
    """A second ingest of the same files counts and creates nothing."""
    first = store.incidents.add(known_diagnosis("a"), now=NOW)
    moved = known_diagnosis("a", stats=Stats(1, 100, seconds=9.0))
    moved = dataclasses.replace(moved, job=dataclasses.replace(moved.job, path="/elsewhere", name="other"))
    again = store.incidents.add(moved, now=NOW + DAY)
    assert (again.id, again.is_new, again.ingests) == (first.id, False, 2)
    details = store.incidents.get(first.id)
    assert (details.incident.ingests, details.incident.stored_at, details.incident.seen_at) == (2, NOW, NOW + DAY)
    assert details.history == ()
    assert store.search.count_incidents() == 1


def test_a_changed_diagnosis_has_a_history(store: Store) -> None:
    """A newer catalog changes the incident, and the old root cause stays in its history."""
    identifier = store.incidents.add(unknown_diagnosis("a")).id
    newer = dataclasses.replace(known_diagnosis("a"), catalog_version="2026.12.1")
    store.incidents.add(newer)
    details = store.incidents.get(identifier)
    assert details.diagnosis == newer
    (change,) = details.history
    assert (change.old, change.new) == ("u-7f3a9c", "cuda.out-of-memory")
    assert (change.old_catalog, change.new_catalog, change.reason) == ("2026.11.1", "2026.12.1", "ingest")
    (post,) = store.outbox.list_posts()
    assert (post.kind, post.subject, post.payload["new"]) == ("changed", identifier, "cuda.out-of-memory")


def test_a_changed_verdict_is_in_the_audit_log(store: Store) -> None:
    """Who ingested the same content again, when, and the verdicts before and after; an equal verdict leaves nothing."""
    identifier = store.incidents.add(known_diagnosis("a"), actor="alice", now=NOW).id
    store.incidents.add(known_diagnosis("a", stats=Stats(1, 100)), actor="bob", now=NOW + 1)
    newer = dataclasses.replace(known_diagnosis("a"), catalog_version="2026.12.1", tool_version="2.0")
    store.incidents.add(newer, actor="bob", now=NOW + 2)
    assert store.audit.list_entries() == []
    whitewashed = dataclasses.replace(clean_diagnosis("a"), catalog_version="2026.13.1", tool_version="2.1")
    assert store.incidents.add(whitewashed, actor="mallory", now=NOW + DAY).id == identifier
    (entry,) = store.audit.list_entries(subject=identifier)
    assert (entry.at, entry.actor, entry.action, entry.subject) == (NOW + DAY, "mallory", "change verdict", identifier)
    assert entry.details == {
        "before": "known cuda.out-of-memory",
        "after": "clean",
        "reason": "ingest",
        "catalogs": "2026.12.1 → 2026.13.1",
        "versions": "2.0 → 2.1",
    }
    store.incidents.replace_diagnosis(store.incidents.find_number(identifier), known_diagnosis("a"), "retriage")
    latest = store.audit.list_entries()[0]
    assert (latest.actor, latest.details["reason"]) == (machine_user(), "retriage")
    assert (latest.details["before"], latest.details["after"]) == ("clean", "known cuda.out-of-memory")


def test_jobs_with_the_same_first_digits_are_two_incidents(store: Store) -> None:
    """A job whose digest was made to begin like another one's changes nothing of it, and gets a longer id."""
    digest = hashlib.sha256(b"a").hexdigest()
    forged = f"j-{digest[:16]}{'0' * 48}"
    first = store.incidents.add(with_job_id(known_diagnosis("a"), f"j-{digest}"))
    second = store.incidents.add(with_job_id(clean_diagnosis("b"), forged))
    again = store.incidents.add(with_job_id(clean_diagnosis("b"), forged))
    assert (first.id, second.id) == (f"i-{digest[:12]}", f"i-{digest[:16]}")
    assert (second.is_new, again.is_new, again.id) == (True, False, second.id)
    assert store.incidents.get(first.id).diagnosis.verdict == "known"
    assert store.incidents.get(f"j-{digest}").incident.id == store.incidents.get(digest[:12]).incident.id == first.id
    assert store.incidents.get(forged).incident.id == second.id
    with pytest.raises(OptionError, match="several incidents begin with"):
        store.incidents.get(digest[:11])
    assert store.audit.list_entries() == []


def test_found_by_any_prefix_of_its_id(store: Store) -> None:
    """The id, the job's id and their first digits work in any case, and ambiguous ones are errors."""
    stored = store.incidents.add(known_diagnosis("a"))
    job = known_diagnosis("a").job.id
    for reference in (stored.id, job, stored.id[:6], job[2:7], stored.id.upper()):
        assert store.incidents.get(reference).incident.id == stored.id
    for other in range(40):
        store.incidents.add(known_diagnosis(f"other {other}"))
    digit = next(
        digit
        for digit in "0123456789abcdef"
        if store.connections.read("SELECT count(*) FROM incident WHERE id LIKE ?", (f"i-{digit}%",))[0][0] > 1
    )
    with pytest.raises(OptionError, match="several incidents begin with"):
        store.incidents.get(digit)


@pytest.mark.parametrize("reference", ["", "i-", "nope", "%", "i-' OR 1=1 --", "i-\0"])
def test_a_missing_incident_is_an_error_with_a_hint(store: Store, reference: str) -> None:
    """A reference to a missing incident is an error with a hint."""
    store.incidents.add(known_diagnosis("a"))
    with pytest.raises(OptionError) as caught:
        store.incidents.get(reference)
    assert "triage list" in caught.value.hint or "more of the id" in caught.value.hint


def test_impossible_times_are_ignored(store: Store) -> None:
    """A failure of 1970 or of next year gets the time of its storage."""
    for at in (0.0, 5.0, NOW + 400 * DAY):
        stored = store.incidents.add(known_diagnosis(f"at {at}", at=at), now=NOW)
        assert store.incidents.get(stored.id).incident.at == NOW
    dated = store.incidents.add(known_diagnosis("good", at=NOW - 3 * DAY), now=NOW)
    assert store.incidents.get(dated.id).incident.at == NOW - 3 * DAY


def test_a_removed_incident_leaves_no_trace(store: Store) -> None:
    """A removed incident is in no table and is not found by the search."""
    keep = store.incidents.add(known_diagnosis("keep"))
    gone = store.incidents.add(known_diagnosis("gone", "host.sigkill", host="node9"))
    store.incidents.remove([store.incidents.find_number(gone.id)])
    assert [hit.incident.id for hit in store.search.search_text("torch")] == [keep.id]
    assert store.search.search_text("node9") == []
    dump = dump_tables(store)
    assert "node9" not in dump
    assert gone.id not in dump


def test_many_ranks_take_bounded_space(store: Store) -> None:
    """A failure of 100,000 ranks is one incident of bounded size."""
    wide = dataclasses.replace(known_diagnosis("wide"))
    assert wide.root_cause is not None
    root = dataclasses.replace(wide.root_cause, ranks=tuple(range(100_000)), evidence=(make_fact("x"),))
    stored = store.incidents.add(dataclasses.replace(wide, root_cause=root, findings=(root,)))
    assert store.incidents.get(stored.id).diagnosis.root_cause == root
    assert store.connections.size_bytes() < 4_000_000


def test_only_agree_and_wrong_are_verdicts_of_people(store: Store) -> None:
    """Another word is refused, and nothing is stored."""
    stored = store.incidents.add(known_diagnosis("a"))
    with pytest.raises(OptionError, match="'maybe' is not a verdict"):
        store.feedback.add(stored.id, "maybe", actor="ann")  # type: ignore[arg-type]
    assert store.feedback.list_feedback() == []
