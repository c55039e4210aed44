"""What the document says of answers: schemas with examples. Answers are written from the store's own objects; tests
hold both together.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Open(BaseModel):
    """An object that may get more keys."""

    model_config = ConfigDict(extra="allow")


class Said(BaseModel):
    """What every error says."""

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
                    "hint": "upload it again",
                    "fields": [],
                }
            }
        }
    )

    error: Said


class IncidentRow(Open):
    """An incident in one line."""

    id: str
    verdict: Literal["known", "unknown", "clean"]
    title: str
    signature: str | None
    cluster: str | None
    confidence: float
    ranks: list[int]
    hosts: list[str]
    at: str | None


class IncidentList(BaseModel):
    """A page of a list. `next` goes into `after` for the next one; null on the last."""

    total: int
    next: str | None
    incidents: list[IncidentRow]


class Report(Open):
    """`triage.diagnosis/1`, see docs/json.md, with the key `incident`."""

    schema_: Literal["triage.diagnosis/1"] = Field(alias="schema")
    verdict: Literal["known", "unknown", "clean"]
    incident: IncidentRow


class SimilarList(BaseModel):
    """Incidents like another, with why, and what people said then."""

    schema_: Literal["triage.similar/1"] = Field(alias="schema")
    incident: str
    similar: list[IncidentRow]


class FeedbackRow(Open):
    """What a person said of a diagnosis."""

    id: int
    incident: str
    actor: str
    verdict: Literal["agree", "wrong"]
    because: str
    signature: str | None


class FeedbackIn(BaseModel):
    """Agree, or say that it is wrong, why, and what it should have been."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"verdict": "wrong", "because": "the disk was full before", "signature": "host.disk-full"}
        },
    )

    verdict: Literal["agree", "wrong"]
    because: str = Field(default="", max_length=2000)
    signature: str | None = Field(default=None, max_length=120)


class EvidenceList(BaseModel):
    """The evidence of an incident; `number` names a piece in the other addresses."""

    evidence: list[dict[str, Any]]


class ContextPiece(BaseModel):
    """Lines around a piece of evidence. `marked` are its own first and last line."""

    source: str
    line: int
    marked: list[int]
    lines: list[str]


class Document(Open):
    """A document beside an incident; its key `schema` says which."""

    schema_: str = Field(alias="schema")


class TaskRow(BaseModel):
    """A task. `progress` is {"stage", "done", "total"} while it runs, `result` names the incident, `error` says why it
    failed.
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
    """The newest tasks, and how many are in each state."""

    counts: dict[str, int]
    tasks: list[TaskRow]


class UploadRow(BaseModel):
    """How far an upload is."""

    sha256: str
    received: int
    complete: bool


class IngestFile(BaseModel):
    """A file that has been sent, by the SHA-256 of its content; its name tells of its rank."""

    model_config = ConfigDict(extra="forbid")

    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    name: str = Field(min_length=1, max_length=255)


class IngestIn(BaseModel):
    """Files that have been sent, or a job in a configured source. Never a path, never an address."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"source": "slurm", "job": "1234"}})

    files: list[IngestFile] = Field(default=[], max_length=1000)
    source: str | None = Field(default=None, max_length=100)
    job: str | None = Field(default=None, max_length=200)
    name: str | None = Field(default=None, max_length=200)


class AlertsOut(BaseModel):
    """What came of a notification: tasks, and alerts that name no job."""

    tasks: list[TaskRow]
    skipped: list[dict[str, str]]


class Alert(Open):
    """One alert of Alertmanager."""

    status: str = Field(default="firing", max_length=20)
    labels: dict[str, str] = Field(default={}, max_length=200)


class AlertsIn(Open):
    """Alertmanager's webhook, version 4."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "example": {
                "version": "4",
                "groupKey": '{}:{alertname="JobFailed"}',
                "status": "firing",
                "alerts": [{"status": "firing", "labels": {"alertname": "JobFailed", "job": "1234"}}],
            }
        },
    )

    version: Literal["4"]
    alerts: list[Alert] = Field(max_length=500)


class SignatureRow(Open):
    """A signature of the catalog."""

    id: str
    title: str


class SignatureList(BaseModel):
    """The catalog."""

    version: str
    signatures: list[SignatureRow]


class ClusterRow(Open):
    """Unknown failures that are one."""

    id: str
    state: str
    title: str
    name: str | None
    incidents: int


class ClusterList(BaseModel):
    """By what matters: growing, then recent, then many jobs."""

    clusters: list[ClusterRow]


class Because(BaseModel):
    """Why."""

    model_config = ConfigDict(extra="forbid")

    because: str = Field(default="", max_length=2000)


class NameIn(BaseModel):
    """A name, and what is known about it."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "Tokenizer file is gone", "note": ""}}
    )

    name: str = Field(min_length=1, max_length=200)
    note: str = Field(default="", max_length=5000)


class MergeIn(Because):
    """Another cluster that is the same."""

    other: str = Field(min_length=1, max_length=100)


class SplitIn(Because):
    """Fingerprints that leave it."""

    keys: list[str] = Field(min_length=1, max_length=1000)


class AssignIn(Because):
    """The cluster that an incident's failure belongs to; none: a new one."""

    cluster: str | None = Field(default=None, max_length=100)


class PromoteIn(BaseModel):
    """The id and the title that the signature gets. `draft`: only show it."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"signature": "data.tokenizer-gone", "title": "The tokenizer's file is gone"}},
    )

    signature: str = Field(pattern=r"^[a-z0-9-]+\.[a-z0-9-]+$", max_length=100)
    title: str = Field(default="", max_length=80)
    draft: bool = False


class Promotion(BaseModel):
    """The file, where it belongs, what `catalog check` says of it, and other failures that its pattern matches too."""

    path: str
    yaml: str
    problems: list[dict[str, Any]]
    conflicts: list[str]
    entry: int | None


class Moved(BaseModel):
    """A decision: the number of its entry in the audit log, by which it is taken back, and the cluster that it is about
    now.
    """

    entry: int
    cluster: str


class AuditList(BaseModel):
    """Who did what, the latest first. `next` goes into `before`."""

    next: int | None
    entries: list[dict[str, Any]]


class SearchOut(BaseModel):
    """Signatures and incidents with the words; in `snippet` they stand between « and »."""

    schema_: Literal["triage.search/1"] = Field(alias="schema")
    words: str
    catalog: list[dict[str, Any]]
    incidents: list[IncidentRow]


class Stats(Open):
    """Sums by verdict, signature, host, device and week."""

    schema_: Literal["triage.stats/1"] = Field(alias="schema")
    incidents: int


class CatalogOut(BaseModel):
    """The catalog in use."""

    version: str
    signatures: int
    problems: list[str]


class Health(BaseModel):
    """Is it alive, or ready to work?"""

    status: Literal["ok", "failing"]
    checks: dict[str, str]


class Status(BaseModel):
    """How fresh everything is."""

    version: str
    catalog: str
    started_at: str
    incidents: int
    last_ingest: str | None
    tasks: dict[str, int]
    store_version: int
    store_bytes: int


class Me(BaseModel):
    """Who asks."""

    name: str
    role: Literal["viewer", "submitter", "curator", "admin"]
    scopes: list[str]
    how: str


class LimitsOut(BaseModel):
    """What may be sent."""

    upload_bytes: int
    upload_files: int
    body_bytes: int
    requests_a_minute: int
    changes_a_minute: int
    waiting: int


class SourceList(BaseModel):
    """Names that `POST /ingest` takes; `one`: the source is one job and takes no `job`."""

    sources: list[dict[str, Any]]


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": said}
    for status, said in (
        (400, "The request cannot be used"),
        (401, "Nobody is signed in, or the token is wrong"),
        (403, "Not allowed to who is signed in, or sent by another site"),
        (404, "Not there"),
        (408, "It came too slowly"),
        (409, "Not as things stand now"),
        (413, "Too large"),
        (415, "Another content type is needed"),
        (421, "Called by a name that is not ours"),
        (422, "The fields cannot be used"),
        (429, "Too many requests"),
        (500, "A bug"),
        (503, "Not now: the store is busy or too much waits"),
        (507, "No room on the disk"),
    )
}
