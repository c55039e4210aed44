"""What the store remembers: incidents, feedback, clusters and the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from triage.model.diagnosis import Diagnosis, Fingerprint, Verdict


@dataclass(frozen=True, slots=True)
class Incident:
    """A diagnosis that the store remembers, in one line. `at` is when it failed, as far as is known; `seen` counts
    ingests of the same files.

    `ranks` and `hosts` are those of the root cause. `agree` and `wrong` count the feedback. `name` is the cluster's, if
    a person gave it one.
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
    seen: int = 1
    catalog_version: str = ""
    agree: int = 0
    wrong: int = 0


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a person said about a diagnosis. `said` is what the diagnosis had as its root then, `signature` what it
    should have been.
    """

    id: int
    incident: str
    at: float
    actor: str
    verdict: Literal["agree", "wrong"]
    because: str
    signature: str | None
    said: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """What an incident was held for before and after; `old` and `new` are a signature, a cluster, or the verdict where
    there is neither.
    """

    incident: str
    at: float
    reason: str
    old: str
    new: str
    old_catalog: str
    new_catalog: str


@dataclass(frozen=True, slots=True)
class Remembered:
    """All that the store has about one incident."""

    incident: Incident
    diagnosis: Diagnosis
    feedback: tuple[Feedback, ...] = ()
    history: tuple[Change, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Unknown failures that are one. `keys` are its fingerprints; `recent` and `before` count incidents of the last and
    the last but one week.
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


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the audit log: who did what to which thing, and the entry that took it back, if one did."""

    id: int
    at: float
    actor: str
    action: str
    subject: str
    details: Mapping[str, object] = field(default_factory=dict)
    undone_by: int | None = None
