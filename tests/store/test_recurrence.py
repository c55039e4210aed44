"""triage.store.recurrence"""

from __future__ import annotations

from triage.model.diagnosis import Diagnosis
from triage.model.store import Recurrence
from triage.store import Store
from triage.store.cause_work import WorkChange
from triage.store.recurrence import WEEK, find_recurrence

from .factories import DAY, NOW, clean_diagnosis, known_diagnosis, unknown_diagnosis


def recurrence_of(store: Store, diagnosis: Diagnosis) -> Recurrence | None:
    """Store a diagnosis and return its recurrence."""
    return find_recurrence(store, store.incidents.add(diagnosis).id)


def test_the_first_of_a_cause_has_none(store: Store) -> None:
    """Neither have other causes before it, clean jobs, and incidents that failed later."""
    store.incidents.add(known_diagnosis("other", "nccl.timeout"))
    store.incidents.add(known_diagnosis("later", at=NOW + DAY))
    assert recurrence_of(store, known_diagnosis("first")) is None
    assert recurrence_of(store, clean_diagnosis("clean")) is None


def test_incidents_of_the_week_before_are_recent(store: Store) -> None:
    """An incident that failed exactly a week before is not, one a second later is."""
    store.incidents.add(known_diagnosis("a", at=NOW - WEEK))
    store.incidents.add(known_diagnosis("b", at=NOW - WEEK + 1))
    assert recurrence_of(store, known_diagnosis("c")) == Recurrence(2, 1, NOW - WEEK + 1, ("node1",))


def test_only_hosts_that_failed_each_time_are_named(store: Store) -> None:
    """A host of this failure that another one spared is not named."""
    store.incidents.add(known_diagnosis("a", host="node7", at=NOW - 2 * DAY))
    store.incidents.add(known_diagnosis("b", host="node7", at=NOW - DAY))
    assert recurrence_of(store, known_diagnosis("c", host="node7")) == Recurrence(2, 2, NOW - DAY, ("node7",))
    assert recurrence_of(store, known_diagnosis("d", host="node8")) == Recurrence(3, 3, NOW, ())


def test_the_latest_reason_is_quoted(store: Store) -> None:
    """Feedback without a reason, and that of other causes, is not."""
    for name, signature in (("a", "cuda.out-of-memory"), ("b", "nccl.timeout")):
        incident = store.incidents.add(known_diagnosis(name, signature, at=NOW - DAY)).id
        store.feedback.add(incident, "agree", actor="anna", because=f"fixed {name}")
        store.feedback.add(incident, "agree", actor="bert")
    again = recurrence_of(store, known_diagnosis("c"))
    assert again is not None
    assert again.note == "anna: fixed a"


def test_the_last_fix_and_comment_are_told(store: Store) -> None:
    """They are those of the cause, of a signature and of a cluster; without work there is nothing to tell."""
    for make, cause in ((known_diagnosis, "cuda.out-of-memory"), (unknown_diagnosis, "")):
        first = store.incidents.add(make("a", at=NOW - DAY))
        cause = cause or str(store.incidents.get(first.id).incident.cluster)
        again = recurrence_of(store, make("b"))
        assert again is not None
        assert again.fix == ""
        store.cause_work.change([cause], WorkChange("fixed", "trainer 4.2", 0.0, "mira", "T-1"), actor="mira")
        store.cause_work.comment(cause, "the batch was halved", actor="mira", now=NOW)
        again = recurrence_of(store, make("c"))
        assert again is not None
        assert again.fix == (
            "Last fixed in trainer 4.2 on 1970-01-01. Assigned to mira. Ticket: T-1. "
            "Last comment by mira: the batch was halved"
        )


def test_unknown_failures_recur_by_their_cluster(store: Store) -> None:
    """The same unknown failure of another job is one; a failure of another cluster is not."""
    store.incidents.add(unknown_diagnosis("a", at=NOW - DAY))
    assert recurrence_of(store, unknown_diagnosis("b")) == Recurrence(1, 1, NOW - DAY, ("node1",))
    other = unknown_diagnosis("c", "KeyError: nothing of the kind in this table", "u-123456")
    assert recurrence_of(store, other) is None
