"""triage.store.cause_work: the status of a cause, who works on it, and what was written about it."""

from __future__ import annotations

import pytest

from tests.store.factories import DAY, NOW, known_diagnosis, unknown_diagnosis
from tests.store.test_causes import without_time
from triage.base.errors import OptionError
from triage.store import Store
from triage.store.cause_work import WorkChange
from triage.store.causes import CauseFilter

OOM = "cuda.out-of-memory"


def change(store: Store, *causes: str, **values: object) -> list[int]:
    """Change the work on causes, by default on the one of known failures."""
    return store.cause_work.change(causes or (OOM,), WorkChange(**values), actor="ann", now=NOW)  # type: ignore[arg-type]


@pytest.mark.parametrize(("after", "status"), [(0.0, "fixed"), (1.0, "regressed")])
def test_a_failure_after_the_fix_is_a_regression(store: Store, after: float, status: str) -> None:
    """A cause regresses by a failure after the fix, not by one before it that is ingested later."""
    store.incidents.add(known_diagnosis("a", at=NOW - DAY), now=NOW)
    change(store, status="fixed", fixed_in="torch 2.6", date=NOW)
    store.incidents.add(known_diagnosis("b", at=NOW + after), now=NOW + 2 * DAY)
    cause = store.causes.get(OOM, now=NOW)
    assert (cause.status, cause.since_fix, cause.fixed_in) == (status, int(after > 0), "torch 2.6")


def test_a_failure_without_a_time_is_no_regression(store: Store) -> None:
    """Where only the time of the ingest is known, it does not show that a failure came after the fix."""
    change(store, status="fixed", date=NOW)
    store.incidents.add(without_time(known_diagnosis("a")), now=NOW + DAY)
    assert store.causes.get(OOM, now=NOW).status == "fixed"


@pytest.mark.parametrize(("later", "status"), [(DAY - 1, "ignored"), (DAY, "open")])
def test_ignoring_ends_by_itself(store: Store, later: float, status: str) -> None:
    """An ignored cause is open again when its date has come."""
    store.incidents.add(known_diagnosis("a"), now=NOW)
    change(store, status="ignored", date=NOW + DAY)
    cause = store.causes.get(OOM, now=NOW + later)
    assert (cause.status, cause.ignored_until is None) == (status, status == "open")


def test_many_causes_are_changed_at_once_and_audited(store: Store) -> None:
    """A change of several causes is one transaction with an audit entry each; filters find them; the rest stays."""
    store.incidents.add(known_diagnosis("a"), now=NOW)
    store.incidents.add(known_diagnosis("b", "host.sigkill"), now=NOW)
    entries = change(store, OOM, "host.sigkill", status="acknowledged", assignee="bob")
    change(store, "host.sigkill", ticket="https://tickets.example/7")
    assert len(entries) == 2
    (entry,) = store.audit.list_entries(subject=OOM)
    assert (entry.actor, entry.action, entry.details) == ("ann", "work", {"status": "acknowledged", "assignee": "bob"})
    assert store.causes.list_causes(CauseFilter(assignee="bob", status="waiting"), now=NOW).total == 2
    assert store.causes.list_causes(CauseFilter(status="fixed"), now=NOW).total == 0
    cause = store.causes.get("host.sigkill", now=NOW)
    assert (cause.status, cause.assignee, cause.ticket) == ("acknowledged", "bob", "https://tickets.example/7")


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"status": "ignored"},
        {"status": "ignored", "date": NOW},
        {"status": "open", "date": NOW + DAY},
        {"assignee": "a" * 101},
    ],
)
def test_changes_without_a_meaning_are_errors(store: Store, values: dict[str, object]) -> None:
    """An empty change, a wrong date or a long name changes nothing."""
    with pytest.raises(OptionError):
        change(store, **values)
    assert store.cause_work.read_all() == {}
    assert store.audit.list_entries() == []


def test_the_work_of_merged_clusters_stays(store: Store) -> None:
    """The cluster that stays has the work of the merged one where it has none, and the comments of both."""
    for name, text in (("u-aaaaaa", "ValueError: shard 7 is bad"), ("u-bbbbbb", "KeyError: weights are gone")):
        store.incidents.add(unknown_diagnosis(name, text, name), now=NOW + (name == "u-bbbbbb"))
    change(store, "u-bbbbbb", assignee="bob")
    store.cause_work.comment("u-bbbbbb", "the copy broke off", actor="bob", now=NOW)
    store.cause_work.comment("u-aaaaaa", "seen again", actor="ann", now=NOW + 1)
    store.cluster_actions.merge(["u-aaaaaa", "u-bbbbbb"], actor="ann")
    assert store.causes.get("u-aaaaaa", now=NOW).assignee == "bob"
    assert [item.text for item in store.cause_work.list_comments("u-aaaaaa")] == ["the copy broke off", "seen again"]
    change(store, "u-aaaaaa", assignee="eve")
    assert store.causes.get("u-bbbbbb", now=NOW).assignee == "eve"
    with pytest.raises(OptionError, match="empty"):
        store.cause_work.comment("u-aaaaaa", " ", actor="ann")
