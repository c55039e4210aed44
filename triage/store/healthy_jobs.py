"""Compare a stored failed job with a healthy one: the last one of the same user, project and model that ended well."""

from __future__ import annotations

from dataclasses import dataclass, replace

from triage.base.errors import OptionError
from triage.compare.job_comparison import JobComparison, JobSide, compare_jobs
from triage.model.store import Incident
from triage.store import Store
from triage.store.search import Filter, Search

# The facts that must be the same, the closest job first.
_CHOICES = (
    *(("model", "project", "user"), ("model", "project"), ("model", "user"), ("project", "user")),
    *(("model",), ("project",), ("user",), ("team",)),
)


@dataclass(frozen=True, slots=True)
class StoredComparison:
    """A failed job beside a healthy one. Without a healthy one, `healthy` and `comparison` are None.

    `common_facts` are the names of the facts by which it was chosen; empty if a person chose it, or by the job's name.
    """

    failed: Incident
    healthy: Incident | None = None
    common_facts: tuple[str, ...] = ()
    comparison: JobComparison | None = None


def compare_stored(store: Store, failed: str, healthy: str | None = None) -> StoredComparison:
    """Compare two incidents; without `healthy`, with the suggested one. Raises OptionError."""
    one, side = _read_side(store, failed)
    if healthy is None:
        suggested = suggest_healthy(store.search, one)
        if suggested is None:
            return StoredComparison(one)
        healthy, names = suggested[0].id, suggested[1]
    else:
        names = ()
    other, other_side = _read_side(store, healthy)
    if other.id == one.id:
        raise OptionError(f"{one.id} cannot be compared with itself", hint="give another incident, a healthy job")
    return StoredComparison(one, other, names, compare_jobs(side, other_side))


def _read_side(store: Store, reference: str) -> tuple[Incident, JobSide]:
    stored = store.incidents.get(reference)
    number = store.incidents.find_number(stored.incident.id)
    return stored.incident, JobSide(stored.diagnosis.job, store.service_data.get_document(number, "environment"))


def suggest_healthy(search: Search, failed: Incident) -> tuple[Incident, tuple[str, ...]] | None:
    """Return a healthy job, and the names of the facts that both have; None where no fact leads to one.

    The last one before the failure is best, else the last one at all. A job of the same name comes after those with a
    common fact.
    """
    facts = search.facts_of([failed.id]).get(failed.id, {})
    for names in _CHOICES:
        if all(name in facts for name in names):
            wanted = tuple((name, facts[name][0]) for name in names)
            healthy = _find_last(search, failed, Filter(verdict="clean", facts=wanted))
            if healthy is not None:
                return healthy, names
    same_name = _find_last(search, failed, Filter(verdict="clean", job=failed.job_name)) if failed.job_name else None
    return (same_name, ()) if same_name is not None and same_name.job_name == failed.job_name else None


def _find_last(search: Search, failed: Incident, filter_: Filter) -> Incident | None:
    """Return the last job before the failure that matches, else the last at all; never the failed one itself."""
    for chosen in (replace(filter_, until=failed.at), filter_):
        for incident in search.list_incidents(chosen, limit=2):
            if incident.id != failed.id:
                return incident
    return None
