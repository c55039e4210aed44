"""The healthy job that a failed one is compared with, and the comparison of what the store keeps of both."""

from __future__ import annotations

import dataclasses

import pytest

from tests.store.factories import NOW, clean_diagnosis, known_diagnosis
from triage.base.errors import NotFoundError, OptionError
from triage.model import Diagnosis
from triage.store import Store
from triage.store.healthy_jobs import compare_stored


def with_facts(diagnosis: Diagnosis, *, at: float = NOW, **facts: str) -> Diagnosis:
    """Return a diagnosis of a job with facts that ended at a time."""
    values = {name: (value,) for name, value in facts.items()}
    root = diagnosis.root_cause
    root = dataclasses.replace(root, first_time=at) if root is not None else None
    return dataclasses.replace(
        diagnosis, root_cause=root, job=dataclasses.replace(diagnosis.job, facts=values, last_time=at)
    )


def add(store: Store, diagnosis: Diagnosis) -> str:
    """Store a diagnosis; return its id."""
    return store.incidents.add(diagnosis, now=NOW + 1000).id


def test_the_closest_healthy_job_is_suggested(store: Store) -> None:
    """A job with the same project and user comes before a later one with the project alone, which comes before none."""
    failed = add(store, with_facts(known_diagnosis("failed"), project="llm", user="anna"))
    assert compare_stored(store, failed).healthy is None
    add(store, with_facts(clean_diagnosis("other project"), project="vision", user="eve"))
    assert compare_stored(store, failed).comparison is None
    project = add(store, with_facts(clean_diagnosis("project"), at=NOW - 10, project="llm", user="ben"))
    pair = compare_stored(store, failed)
    assert pair.healthy is not None
    assert (pair.healthy.id, pair.common_facts) == (project, ("project",))
    both = add(store, with_facts(clean_diagnosis("both"), at=NOW - 99, project="llm", user="anna"))
    pair = compare_stored(store, failed)
    assert pair.healthy is not None
    assert (pair.healthy.id, pair.common_facts) == (both, ("project", "user"))


def test_the_last_healthy_job_before_the_failure_is_best(store: Store) -> None:
    """Of several, the last one before the failure is taken; one after it only if there is none before."""
    failed = add(store, with_facts(known_diagnosis("failed"), at=NOW, model="m"))
    after = add(store, with_facts(clean_diagnosis("after"), at=NOW + 50, model="m"))
    pair = compare_stored(store, failed)
    assert pair.healthy is not None
    assert pair.healthy.id == after
    add(store, with_facts(clean_diagnosis("long before"), at=NOW - 500, model="m"))
    before = add(store, with_facts(clean_diagnosis("before"), at=NOW - 5, model="m"))
    pair = compare_stored(store, failed)
    assert pair.healthy is not None
    assert pair.healthy.id == before


def test_a_failed_job_is_never_suggested(store: Store) -> None:
    """Another failed job of the same project is not healthy, and a job of the same name is taken without facts."""
    failed = add(store, with_facts(known_diagnosis("same"), project="llm"))
    add(store, with_facts(known_diagnosis("failed too"), project="llm"))
    assert compare_stored(store, failed).healthy is None
    healthy = clean_diagnosis("x")
    named = dataclasses.replace(healthy, job=dataclasses.replace(healthy.job, name="same"))
    longer = dataclasses.replace(clean_diagnosis("y"), job=dataclasses.replace(clean_diagnosis("y").job, name="same-2"))
    add(store, longer)
    assert compare_stored(store, failed).healthy is None
    expected = add(store, named)
    pair = compare_stored(store, failed)
    assert pair.healthy is not None
    assert (pair.healthy.id, pair.common_facts) == (expected, ())


def test_the_stored_environment_is_compared(store: Store) -> None:
    """Settings of the documents of both incidents are compared; an incident without one says that nothing was."""
    failed, healthy = add(store, known_diagnosis("failed")), add(store, clean_diagnosis("healthy"))
    pair = compare_stored(store, failed, healthy)
    assert pair.comparison is not None
    assert pair.comparison.parts[0].why_not == "neither job states settings"
    with store.connections.write() as db:
        for incident, value in ((failed, "Ring"), (healthy, "Tree")):
            store.service_data.save_document(db, incident, "environment", {"agreed": {"NCCL_ALGO": value}})
    pair = compare_stored(store, failed, healthy)
    assert pair.comparison is not None
    assert [(row.failed, row.healthy) for row in pair.comparison.parts[0].rows] == [("Ring", "Tree")]


def test_a_job_is_not_compared_with_itself_or_with_one_that_does_not_exist(store: Store) -> None:
    """Both are errors that say what to give."""
    failed = add(store, known_diagnosis("failed"))
    with pytest.raises(OptionError, match="with itself"):
        compare_stored(store, failed, failed)
    with pytest.raises(NotFoundError):
        compare_stored(store, failed, "i-0000")


def test_a_hidden_healthy_job_is_not_suggested(store: Store) -> None:
    """Who sees a part is suggested a job of this part, and cannot name one outside of it."""
    failed = add(store, with_facts(known_diagnosis("failed"), project="p", team="vision"))
    hidden = add(store, with_facts(clean_diagnosis("hidden"), project="p", team="llm"))
    part = store.visible_to((("team", "vision"),), "mira")
    assert compare_stored(part, failed).healthy is None
    with pytest.raises(NotFoundError):
        compare_stored(part, failed, hidden)
