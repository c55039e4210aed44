"""Bodies of requests, as pydantic models with examples."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class FeedbackIn(BaseModel):
    """Agree with a diagnosis, or mark it as wrong with a reason and the right signature."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"verdict": "wrong", "because": "the disk was full before", "signature": "host.disk-full"}
        },
    )

    verdict: Literal["agree", "wrong"]
    because: str = Field(default="", max_length=2000)
    signature: str | None = Field(default=None, max_length=120)


class IngestFile(BaseModel):
    """An uploaded file by the SHA-256 of its content; its name can hold the rank."""

    model_config = ConfigDict(extra="forbid")

    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    name: str = Field(min_length=1, max_length=255)


class IngestIn(BaseModel):
    """Uploaded files, a job in a configured source, or one at an allowed address. `labels`: facts as `team=vision`."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"source": "slurm", "job": "1234"}})

    files: list[IngestFile] = Field(default=[], max_length=1000)
    source: str | None = Field(default=None, max_length=100)
    job: str | None = Field(default=None, max_length=200)
    address: str | None = Field(default=None, max_length=2000)
    name: str | None = Field(default=None, max_length=200)
    labels: list[Annotated[str, Field(max_length=260)]] = Field(default=[], max_length=50)


class Alert(BaseModel):
    """One alert of Alertmanager."""

    model_config = ConfigDict(extra="allow")

    status: str = Field(default="firing", max_length=20)
    labels: dict[str, str] = Field(default={}, max_length=200)


class AlertsIn(BaseModel):
    """The body of Alertmanager's webhook, version 4."""

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


class Reason(BaseModel):
    """The reason for a decision."""

    model_config = ConfigDict(extra="forbid")

    because: str = Field(default="", max_length=2000)


class WorkIn(BaseModel):
    """What to change of the work on a cause; the rest stays. `date`: of the fix, or until when it is ignored."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"status": "fixed", "fixed_in": "2.6.1", "assignee": "anna"}}
    )

    status: Literal["open", "acknowledged", "fixed", "ignored"] | None = None
    fixed_in: str | None = Field(default=None, max_length=100)
    date: str | None = Field(default=None, max_length=40)
    assignee: str | None = Field(default=None, max_length=100)
    ticket: str | None = Field(default=None, max_length=500)


class BulkWorkIn(WorkIn):
    """A change of several causes, given by signature or cluster."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"causes": ["cuda.out-of-memory", "host.sigkill"], "status": "acknowledged"}},
    )

    causes: list[Annotated[str, Field(max_length=200)]] = Field(min_length=1, max_length=500)


class CommentIn(BaseModel):
    """A comment on a cause."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"text": "node17 is drained"}})

    text: str = Field(min_length=1, max_length=4000)


class ViewIn(BaseModel):
    """Filters of a list, as the parameters of its address, under a name. `shared`: everybody sees the view."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"name": "Mine", "page": "causes", "query": {"assignee": "anna"}}},
    )

    name: str = Field(min_length=1, max_length=100)
    page: Literal["causes", "incidents"]
    query: dict[str, Annotated[str, Field(max_length=400)]] = Field(default={}, max_length=50)
    shared: bool = False


class SubscriptionIn(BaseModel):
    """What to post to a target: the failures of a cause, of a saved view, or of filters of the lists."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"to": "slack:C0123ABCD", "cause": "cuda.out-of-memory"}}
    )

    to: str = Field(min_length=1, max_length=200)
    cause: str | None = Field(default=None, max_length=200)
    view: str | None = Field(default=None, max_length=40)
    filter: dict[str, Annotated[str, Field(max_length=400)]] = Field(default={}, max_length=20)


class NameIn(BaseModel):
    """The name of a cluster, and a note about it."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "Tokenizer file is gone", "note": ""}}
    )

    name: str = Field(min_length=1, max_length=200)
    note: str = Field(default="", max_length=5000)


class MergeIn(Reason):
    """The other cluster."""

    other: str = Field(min_length=1, max_length=100)


class SplitIn(Reason):
    """The fingerprints to move into a new cluster."""

    keys: list[str] = Field(min_length=1, max_length=1000)


class AssignIn(Reason):
    """The cluster for an incident's failure; null: a new one."""

    cluster: str | None = Field(default=None, max_length=100)


class PromoteIn(BaseModel):
    """The id and the title of the new signature. `draft`: only show it."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"signature": "data.tokenizer-gone", "title": "The tokenizer's file is gone"}},
    )

    signature: str = Field(pattern=r"^[a-z0-9-]+\.[a-z0-9-]+$", max_length=100)
    title: str = Field(default="", max_length=80)
    draft: bool = False
