"""Schemas of responses for the OpenAPI document. Responses are made from the store's objects; tests compare both."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Open(BaseModel):
    """An object that may have more keys."""

    model_config = ConfigDict(extra="allow")


class ErrorDetails(BaseModel):
    """The content of an error."""

    status: int
    code: str
    message: str
    hint: str
    fields: list[dict[str, str]]


class Problem(BaseModel):
    """The one shape of an error."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "error": {
                    "status": 404,
                    "code": "not-found",
                    "message": "there is no task t-1",
                    "hint": "upload the job again",
                    "fields": [],
                }
            }
        }
    )

    error: ErrorDetails


class IncidentRow(Open):
    """An incident in a list."""

    id: str
    verdict: Literal["known", "unknown", "inconclusive", "clean"]
    title: str
    signature: str | None
    cluster: str | None
    confidence: float
    ranks: list[int]
    hosts: list[str]
    at: str | None


class IncidentList(BaseModel):
    """One page of a list. `next` is the value of `after` for the next page; null on the last one."""

    total: int
    next: str | None
    incidents: list[IncidentRow]


class CauseRow(Open):
    """A cause of failures. Times are those of failures; `days` counts each of the last 28 days, the oldest first."""

    id: str
    kind: Literal["signature", "cluster"]
    title: str
    incidents: int
    recent: int
    jobs: int
    host_count: int
    hosts: list[str]
    days: list[int]
    first_at: str | None
    last_at: str | None
    last_has_time: bool
    status: Literal["open", "acknowledged", "fixed", "regressed", "ignored"]
    assignee: str
    ticket: str
    fixed_in: str
    fixed_at: str | None
    since_fix: int
    ignored_until: str | None


class WorkEntries(BaseModel):
    """The audit entries of a change, one for each cause."""

    entries: list[int]


class CommentRow(BaseModel):
    """A comment on a cause."""

    at: str
    actor: str
    text: str


class CommentList(BaseModel):
    """The comments on a cause, the oldest first."""

    comments: list[CommentRow]


class CauseList(BaseModel):
    """Some causes, and how many match the filters in all.

    `late_since`: their counts may lack failures that were stored since; null: they are current.
    """

    total: int
    causes: list[CauseRow]
    late_since: str | None


class DeviceRow(BaseModel):
    """The failures of a device."""

    device: str
    incidents: int
    first_at: str | None
    last_at: str | None


class CauseComment(CommentRow):
    """A comment on a cause, and the cause."""

    cause: str


class HostRow(BaseModel):
    """The failures of a host or of one of its devices, null times without any; causes have all of their failures."""

    host: str
    device: str | None
    incidents: int
    first_at: str | None
    last_at: str | None
    devices: list[DeviceRow]
    causes: list[CauseRow]
    comments: list[CauseComment]


class ViewRow(BaseModel):
    """A saved view; `address` is the list with its filters."""

    id: str
    name: str
    page: Literal["causes", "incidents"]
    query: dict[str, str]
    shared: bool
    address: str
    actor: str
    at: str


class ViewList(BaseModel):
    """The saved views that you see, by name."""

    views: list[ViewRow]


class SubscriptionRow(BaseModel):
    """A subscription: failures of `cause`, or those that `filter` matches, are posted to `to`."""

    id: str
    owner: str
    to: str
    cause: str | None
    filter: dict[str, str]
    at: str


class SubscriptionList(BaseModel):
    """The subscriptions, and the targets that take some."""

    targets: list[str]
    subscriptions: list[SubscriptionRow]


class Done(BaseModel):
    """What the request ended or deleted."""

    id: str


class Report(Open):
    """`triage.diagnosis/2` (see docs/json.md) with the key `incident`."""

    schema_: Literal["triage.diagnosis/2"] = Field(alias="schema")
    verdict: Literal["known", "unknown", "inconclusive", "clean"]
    incident: IncidentRow


class SimilarList(BaseModel):
    """Similar incidents, with the reason and their feedback."""

    schema_: Literal["triage.similar/1"] = Field(alias="schema")
    incident: str
    similar: list[IncidentRow]


class FeedbackRow(Open):
    """One person's feedback on a diagnosis."""

    id: int
    incident: str
    actor: str
    verdict: Literal["agree", "wrong"]
    because: str
    signature: str | None


class EvidenceList(BaseModel):
    """The evidence of an incident; other addresses use its `number`."""

    evidence: list[dict[str, Any]]


class ContextPiece(BaseModel):
    """Lines around a piece of evidence; `marked` are the first and last line of the evidence itself."""

    source: str
    line: int
    marked: list[int]
    lines: list[str]


class Document(Open):
    """A document stored with an incident; `schema` names its kind."""

    schema_: str = Field(alias="schema")


class TaskRow(BaseModel):
    """A task.

    `progress` is {"stage", "done", "total"} while it runs, `result` names the incident, `error` is why it failed.
    """

    id: str
    kind: str
    name: str | None
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    attempts: int
    created_at: str
    started_at: str | None
    ended_at: str | None
    actor: str
    cancel: bool
    progress: dict[str, Any] | None
    result: dict[str, Any] | None
    error: dict[str, Any] | None


class TaskList(BaseModel):
    """The newest tasks, and the number of tasks in each state."""

    counts: dict[str, int]
    tasks: list[TaskRow]


class UploadRow(BaseModel):
    """The progress of an upload."""

    sha256: str
    received: int
    complete: bool


class AlertsOut(BaseModel):
    """The tasks of a notification, and the alerts that were skipped."""

    tasks: list[TaskRow]
    skipped: list[dict[str, str]]


class SignatureRow(Open):
    """A signature of the catalog."""

    id: str
    title: str


class SignatureList(BaseModel):
    """The signatures of the catalog."""

    version: str
    signatures: list[SignatureRow]


class ClusterRow(Open):
    """A cluster of unknown failures."""

    id: str
    state: str
    title: str
    name: str | None
    incidents: int


class ClusterList(BaseModel):
    """Clusters: growing ones first, then recent ones, then by jobs."""

    clusters: list[ClusterRow]


class Promotion(BaseModel):
    """The signature file, its path, the findings of `catalog check`, and other clusters that its pattern matches."""

    path: str
    yaml: str
    problems: list[dict[str, Any]]
    conflicts: list[str]
    entry: int | None


class Decision(BaseModel):
    """A decision: the number of its audit entry, which can be undone, and the cluster that it now concerns."""

    entry: int
    cluster: str


class AuditList(BaseModel):
    """Audit entries, latest first. `next` is the value of `before` for the next page."""

    next: int | None
    entries: list[dict[str, Any]]


class SearchOut(BaseModel):
    """Signatures and incidents with the words; « and » mark the words in `snippet`."""

    schema_: Literal["triage.search/1"] = Field(alias="schema")
    query: str = Field(alias="words")
    catalog: list[dict[str, Any]]
    incidents: list[IncidentRow]


class Stats(Open):
    """Counts by verdict, signature, host, device and week."""

    schema_: Literal["triage.stats/1"] = Field(alias="schema")
    incidents: int


class CatalogOut(BaseModel):
    """The catalog in use."""

    version: str
    signatures: int
    problems: list[str]


class Health(BaseModel):
    """Whether the service is alive or ready."""

    status: Literal["ok", "failing"]
    checks: dict[str, str]


class Status(BaseModel):
    """Versions, the last ingest, tasks and the size of the store."""

    version: str
    catalog: str
    started_at: str
    incidents: int
    last_ingest: str | None
    tasks: dict[str, int]
    store_version: int
    store_bytes: int
    store_condition: Literal["writable", "read-only", "damaged"]


class Me(BaseModel):
    """Who is signed in. `last_visit`: when their visit of the list of causes before this one ended.

    `sees`: the facts of the jobs whose incidents they see; null: all incidents.
    """

    name: str
    role: Literal["viewer", "submitter", "curator", "admin"]
    scopes: list[str]
    how: str
    last_visit: str | None
    sees: list[str] | None


class LimitsOut(BaseModel):
    """Limits on requests and uploads; `client_…` are those of one token, session or address."""

    upload_bytes: int
    upload_files: int
    open_uploads: int
    client_open_uploads: int
    open_bytes: int
    client_open_bytes: int
    body_bytes: int
    requests_a_minute: int
    changes_a_minute: int
    waiting: int


class SourceList(BaseModel):
    """Sources for `POST /ingest`; `one`: the source is one job and takes no `job`."""

    sources: list[dict[str, Any]]
