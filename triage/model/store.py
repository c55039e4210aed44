"""The records of the store: incidents, feedback, clusters and the audit log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Literal

from triage.base.lazy_dataclass import dataclass
from triage.model.diagnosis import Diagnosis, Fingerprint, Verdict


@dataclass(frozen=True, slots=True)
class Incident:
    """The summary of a stored diagnosis.

    `at` is when the job failed; where its files have no time (`has_time` is false), when it was ingested. `ingests`
    counts how often the same files were ingested. `ranks` and `hosts` are those of the root cause. `agree` and `wrong`
    count the feedback. `name` is the name that a person gave to the cluster.
    """

    id: str
    job: str
    job_name: str
    path: str
    verdict: Verdict
    title: str
    signature: str | None = None
    cluster: str | None = None
    name: str | None = None
    domain: str = ""
    severity: str = ""
    confidence: float = 0.0
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    at: float = 0.0
    stored_at: float = 0.0
    seen_at: float = 0.0
    ingests: int = 1
    catalog_version: str = ""
    agree: int = 0
    wrong: int = 0
    has_time: bool = True


@dataclass(frozen=True, slots=True)
class Feedback:
    """One person's opinion of a diagnosis.

    `diagnosed` is the root cause (a signature, a cluster or the verdict) at that time, `signature` the right one, and
    `because` the reason.
    """

    id: int
    incident: str
    at: float
    actor: str
    verdict: Literal["agree", "wrong"]
    because: str
    signature: str | None
    diagnosed: str | None


@dataclass(frozen=True, slots=True)
class DiagnosisChange:
    """A change of an incident's root cause.

    `old` and `new` are a signature, a cluster, or the verdict where there is neither.
    """

    incident: str
    at: float
    reason: str
    old: str
    new: str
    old_catalog: str
    new_catalog: str


@dataclass(frozen=True, slots=True)
class StoredIncident:
    """Everything that the store has about one incident."""

    incident: Incident
    diagnosis: Diagnosis
    feedback: tuple[Feedback, ...] = ()
    history: tuple[DiagnosisChange, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)


def list_places(keys: Iterable[Fingerprint]) -> tuple[str, ...]:
    """Return `file:function` of the frames that raised a failure, or the programs that printed it, each once."""
    return tuple(dict.fromkeys(place for key in keys for place in key.places))


@dataclass(frozen=True, slots=True)
class Cluster:
    """Similar unknown failures.

    `keys` are its fingerprints; `recent` and `before` count the incidents of the last week and of the week before.
    """

    id: str
    state: str
    title: str
    name: str | None = None
    note: str = ""
    keys: tuple[Fingerprint, ...] = ()
    incidents: int = 0
    jobs: int = 0
    ranks: int = 0
    first_seen: float | None = None
    last_seen: float | None = None
    recent: int = 0
    before: int = 0
    signature: str | None = None
    redirect: str | None = None

    @property
    def places(self) -> tuple[str, ...]:
        """`file:function` of the frames that raised it, or the programs that printed it, over all fingerprints."""
        return list_places(self.keys)


@dataclass(frozen=True, slots=True)
class Cause:
    """What ended jobs: a signature, or a cluster of unknown failures, with the sums of its incidents.

    `id` is the signature or the cluster. `days` counts the failures of each day (UTC) of the last four weeks, the
    oldest first, `recent` those of the last seven days; `first_at` and `last_at` are the times of failures, and
    `last_has_time` is false where the last one has the time of its ingest. `hosts` are the three with the most
    failures, of `host_count`. `first_stored` is when its first incident was stored.

    `status` is `regressed` where it was fixed and `since_fix` failures came after `fixed_at`.
    """

    id: str
    kind: Literal["signature", "cluster"]
    title: str
    incidents: int
    recent: int
    first_at: float
    last_at: float
    first_stored: float
    last_stored: float
    domain: str = ""
    severity: str = ""
    jobs: int = 0
    host_count: int = 0
    hosts: tuple[str, ...] = ()
    days: tuple[int, ...] = ()
    last_has_time: bool = True
    status: Literal["open", "acknowledged", "fixed", "regressed", "ignored"] = "open"
    assignee: str = ""
    ticket: str = ""
    fixed_in: str = ""
    fixed_at: float | None = None
    since_fix: int = 0
    ignored_until: float | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One entry of the audit log: who did what to which subject, and the entry that undid it, if any."""

    id: int
    at: float
    actor: str
    action: str
    subject: str
    details: Mapping[str, object] = field(default_factory=dict)
    undone_by: int | None = None


_KEYS = {"ingests": "seen", "diagnosed": "said"}


def record_keys(kind: type[Incident] | type[Feedback]) -> dict[str, str]:
    """Return the column and JSON key of each attribute of a record."""
    return {name: _KEYS.get(name, name) for name in kind.__dataclass_fields__}


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Earlier incidents with the cause of one incident.

    `total` counts them all, `recent` those of the week before it; `last_at` is when the latest of them failed. `hosts`
    are those that failed in all of them and in this one. `note` is the latest feedback that gives a reason, behind who
    gave it. `fix` says what was last done about the cause: its fix, assignee and ticket, and the latest comment.
    """

    total: int
    recent: int
    last_at: float
    hosts: tuple[str, ...] = ()
    note: str = ""
    fix: str = ""
