"""The OpenAPI document: FastAPI's description of the routes, plus roles, ways to sign in, errors and examples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from triage.service import api
from triage.service.api.schemas import Problem
from triage.service.dependencies import Require
from triage.service.sessions import SESSION_COOKIE

PREFIX = "/api/v1"
SECURITY_SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": "`triage token create NAME --scope read` makes one"},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": SESSION_COOKIE,
        "description": "set by signing in on the pages; over https its name is `__Host-triage`",
    },
}
TAGS = (
    ("ingest", "Send the files of a job, or name a job of a configured source, and follow the task."),
    ("incidents", "Lists, reports, evidence and feedback."),
    ("causes", "What ended jobs, with counts, days, times and hosts, and the work on it."),
    ("views", "Saved filters of the lists, and subscriptions that post failures."),
    ("clusters", "Unknown failures, the decisions of curators, and the audit log."),
    ("catalog", "The signatures."),
    ("search", "Full-text search and statistics."),
    ("alerts", "Alertmanager's webhook."),
    ("operation", "Health, metrics, limits, and who is signed in."),
)
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": description}
    for status, description in (
        (400, "The request is invalid"),
        (401, "Nobody is signed in, or the token is wrong"),
        (403, "The user may not do this, or another site sent the request"),
        (404, "Not found"),
        (408, "The request came too slowly"),
        (409, "In conflict with the current state"),
        (413, "Too large"),
        (415, "Wrong content type"),
        (421, "Wrong host name"),
        (422, "Invalid fields"),
        (429, "Too many requests"),
        (500, "A bug"),
        (503, "The store is busy, or too many tasks wait"),
        (507, "The disk is full"),
    )
}


@dataclass(frozen=True, slots=True)
class Route:
    """An address: its methods, the role that it needs (None: no sign-in), and the first line of its description."""

    methods: tuple[str, ...]
    path: str
    role: str | None
    summary: str


def list_routes(routers: Iterable[APIRouter], prefix: str = "") -> Iterator[Route]:
    """Yield the routes of routers, in their order."""
    for router in routers:
        for route in router.routes:
            if isinstance(route, APIRoute):
                calls = [dependency.call for dependency in route.dependant.dependencies]
                role = next((call.role for call in calls if isinstance(call, Require)), None)
                summary = (route.description or "").strip().split("\n")[0]
                yield Route(tuple(sorted(route.methods or ())), prefix + route.path, role, summary)


def get_document(app: FastAPI) -> dict[str, Any]:
    """Return the document, which is made once."""
    if app.openapi_schema is None:
        app.openapi_schema = _make_document(app)
    return app.openapi_schema


def _make_document(app: FastAPI) -> dict[str, Any]:
    tags = [{"name": name, "description": description} for name, description in TAGS]
    document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes, tags=tags)
    document["components"]["securitySchemes"] = SECURITY_SCHEMES
    for name, example in _EXAMPLES.items():
        document["components"]["schemas"][name]["example"] = example
    roles = {
        (method.lower(), route.path): route.role
        for route in list_routes(api.ROUTERS, PREFIX)
        for method in route.methods
    }
    for path, item in document["paths"].items():
        for method, operation in item.items():
            _complete_operation(operation, path, roles[method, path])
    return document


def _complete_operation(operation: dict[str, Any], path: str, role: str | None) -> None:
    """Add the role, the ways to sign in and the example of a text, and shorten the id."""
    operation["security"] = [{name: []} for name in SECURITY_SCHEMES] if role else []
    operation["description"] += f"\n\nRole: {role}." if role else "\n\nNeeds no sign-in."
    operation["operationId"] = operation["operationId"].partition("_api_v1")[0]
    for kind, content in operation["responses"].get("200", {}).get("content", {}).items():
        if path in _TEXT_EXAMPLES and kind.startswith("text/"):
            content["example"] = _TEXT_EXAMPLES[path]


_INCIDENT: dict[str, Any] = {
    "id": "i-9f2c41d07b3e",
    "job": "j-9f2c41d07b3e",
    "job_name": "llama-70b-17",
    "path": "job.tar.gz",
    "verdict": "known",
    "title": "A data-loading worker was killed",
    "signature": "data.worker-killed",
    "cluster": None,
    "name": None,
    "domain": "data",
    "severity": "fatal",
    "confidence": 0.9,
    "ranks": [1],
    "hosts": ["node17"],
    "at": "2026-11-21T03:00:03Z",
    "stored_at": "2026-11-21T03:10:00Z",
    "seen_at": "2026-11-21T03:10:00Z",
    "seen": 1,
    "catalog_version": "2026.11.1",
    "agree": 1,
    "wrong": 0,
    "has_time": True,
}
_VIEW: dict[str, Any] = {
    "id": "v-7f3a9c001122",
    "name": "Mine",
    "page": "causes",
    "query": {"assignee": "anna"},
    "shared": False,
    "address": "/causes?assignee=anna",
    "actor": "anna",
    "at": "2026-11-21T03:10:00Z",
}
_SUBSCRIPTION: dict[str, Any] = {
    "id": "s-7f3a9c001122",
    "owner": "anna",
    "to": "slack:C0123ABCD",
    "cause": "cuda.out-of-memory",
    "filter": {},
    "at": "2026-11-21T03:10:00Z",
}
_TASK: dict[str, Any] = {
    "id": "t-7f3a9c0011223344",
    "kind": "ingest",
    "name": "llama-70b-17",
    "state": "done",
    "attempts": 1,
    "created_at": "2026-11-21T03:00:00Z",
    "started_at": "2026-11-21T03:00:01Z",
    "ended_at": "2026-11-21T03:00:04Z",
    "actor": "ci",
    "cancel": False,
    "progress": None,
    "result": {"incident": "i-9f2c41d07b3e", "new": True, "verdict": "known"},
    "error": None,
}
_CLUSTER: dict[str, Any] = {
    "id": "u-7f3a9c",
    "state": "open",
    "title": "RuntimeError: the tokenizer's file <path> has no tokens",
    "name": None,
    "incidents": 8,
    "ranks": 64,
    "first_seen": "2026-11-14T10:00:00Z",
    "last_seen": "2026-11-21T03:00:03Z",
}
_CAUSE: dict[str, Any] = {
    "id": "data.worker-killed",
    "kind": "signature",
    "title": "A data-loading worker was killed",
    "incidents": 12,
    "recent": 3,
    "first_at": "2026-09-01T10:00:00Z",
    "last_at": "2026-11-21T03:00:03Z",
    "first_stored": "2026-09-01T10:10:00Z",
    "last_stored": "2026-11-21T03:10:00Z",
    "domain": "data",
    "severity": "fatal",
    "jobs": 4,
    "host_count": 5,
    "hosts": ["node17", "node3", "node4"],
    "days": [0, 2, 1],
    "last_has_time": True,
    "status": "regressed",
    "assignee": "anna",
    "ticket": "https://tickets.example/7",
    "fixed_in": "2.6.1",
    "fixed_at": "2026-11-14T10:00:00Z",
    "since_fix": 3,
    "ignored_until": None,
}
_COMMENT = {"at": "2026-11-21T04:00:00Z", "actor": "anna", "text": "node17 is drained"}
_SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_WHY = "the same missing file"

_EXAMPLES: dict[str, Any] = {
    "IncidentRow": _INCIDENT,
    "TaskRow": _TASK,
    "IncidentList": {"total": 1, "next": None, "incidents": [_INCIDENT]},
    "Report": {"schema": "triage.diagnosis/2", "verdict": "known", "incident": _INCIDENT, "warnings": []},
    "SimilarList": {
        "schema": "triage.similar/1",
        "incident": "i-9f2c41d07b3e",
        "similar": [{**_INCIDENT, "why": "the same cause"}],
    },
    "FeedbackRow": {
        "id": 3,
        "incident": "i-9f2c41d07b3e",
        "at": "2026-11-21T04:00:00Z",
        "actor": "anna",
        "verdict": "wrong",
        "because": "the disk was full before",
        "signature": "host.no-space",
    },
    "EvidenceList": {
        "evidence": [
            {
                "number": 0,
                "of": "data.worker-killed",
                "source": "rank1.log",
                "line": 1234,
                "rank": 1,
                "text": "RuntimeError: …",
            }
        ]
    },
    "ContextPiece": {
        "source": "rank1.log",
        "line": 1233,
        "marked": [1234, 1234],
        "lines": ["step 17", "RuntimeError: …", "step 18"],
    },
    "Document": {"schema": "triage.environment/1", "differences": []},
    "TaskList": {"counts": {"done": 1}, "tasks": [_TASK]},
    "UploadRow": {"sha256": _SHA, "received": 1048576, "complete": False},
    "AlertsOut": {"tasks": [_TASK], "skipped": [{"job": "", "message": "invalid name of a job"}]},
    "SignatureRow": {
        "id": "cuda.out-of-memory",
        "title": "The GPU's memory is full",
        "role": "cause",
        "severity": "fatal",
    },
    "SignatureList": {
        "version": "2026.11.1",
        "signatures": [{"id": "cuda.out-of-memory", "title": "The GPU's memory is full"}],
    },
    "CauseRow": _CAUSE,
    "WorkEntries": {"entries": [17, 18]},
    "CommentRow": _COMMENT,
    "CommentList": {"comments": [_COMMENT]},
    "ViewRow": _VIEW,
    "ViewList": {"views": [_VIEW]},
    "SubscriptionRow": _SUBSCRIPTION,
    "SubscriptionList": {"targets": ["slack:C0123ABCD"], "subscriptions": [_SUBSCRIPTION]},
    "Done": {"id": "s-7f3a9c001122"},
    "CauseList": {"total": 1, "causes": [_CAUSE], "late_since": None},
    "HostRow": {
        "host": "node17",
        "device": None,
        "incidents": 3,
        "first_at": "2026-09-01T10:00:00Z",
        "last_at": "2026-11-21T03:00:00Z",
        "devices": [
            {
                "device": "0000:3b:00.0",
                "incidents": 2,
                "first_at": "2026-09-01T10:00:00Z",
                "last_at": "2026-11-20T08:00:00Z",
            }
        ],
        "causes": [_CAUSE],
        "comments": [{**_COMMENT, "cause": "data.worker-killed"}],
    },
    "ClusterRow": _CLUSTER,
    "ClusterList": {"clusters": [_CLUSTER]},
    "Reason": {"because": "a test job"},
    "MergeIn": {"other": "u-0a1b2c", "because": _WHY},
    "SplitIn": {"keys": ["k1:3f2a9d"], "because": "another file"},
    "AssignIn": {"cluster": "u-0a1b2c", "because": _WHY},
    "Promotion": {
        "path": "data/tokenizer-gone.yaml",
        "yaml": "id: data.tokenizer-gone\n…",
        "problems": [],
        "conflicts": [],
        "entry": 17,
    },
    "Decision": {"entry": 17, "cluster": "u-7f3a9c"},
    "AuditList": {
        "next": None,
        "entries": [
            {
                "id": 17,
                "at": "2026-11-21T04:00:00Z",
                "actor": "anna",
                "action": "merge",
                "subject": "u-7f3a9c",
                "details": {},
            }
        ],
    },
    "SearchOut": {
        "schema": "triage.search/1",
        "words": "worker killed",
        "catalog": [],
        "incidents": [{**_INCIDENT, "snippet": "«worker» «killed»"}],
    },
    "Stats": {"schema": "triage.stats/1", "incidents": 120, "verdicts": [{"name": "known", "count": 100}]},
    "CatalogOut": {"version": "2026.11.1", "signatures": 300, "problems": []},
    "Health": {"status": "ok", "checks": {"store": "ok", "tasks": "ok", "catalog": "ok", "uploads": "ok"}},
    "Status": {
        "version": "0.3.0",
        "catalog": "2026.11.1",
        "started_at": "2026-11-21T00:00:00Z",
        "incidents": 120,
        "last_ingest": "2026-11-21T03:10:00Z",
        "tasks": {"done": 120},
        "store_version": 4,
        "store_bytes": 1048576,
        "store_condition": "writable",
    },
    "Me": {
        "name": "ci",
        "role": "submitter",
        "scopes": ["ingest", "read"],
        "how": "token",
        "last_visit": None,
        "sees": ["team=vision"],
    },
    "LimitsOut": {
        "upload_bytes": 2147483648,
        "upload_files": 100,
        "open_uploads": 64,
        "client_open_uploads": 16,
        "open_bytes": 34359738368,
        "client_open_bytes": 8589934592,
        "body_bytes": 1048576,
        "requests_a_minute": 1200,
        "changes_a_minute": 120,
        "waiting": 200,
    },
    "SourceList": {"sources": [{"name": "slurm", "one": False}]},
}

# Examples of responses that are not JSON, by address.
_TEXT_EXAMPLES = {
    "/api/v1/tasks/{task_id}/events": "event: task\ndata: "
    '{"id":"t-7f3a9c0011223344","state":"running","progress":{"stage":"scan"}}\n\n',
    "/api/v1/incidents/{incident}/evidence/{number}/raw": (
        "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed.\n"
    ),
    "/api/v1/incidents/{incident}/report": "known: a data-loading worker was killed on rank 1 (node17)\n",
    "/api/v1/metrics": (
        "# HELP triage_incidents Incidents in the store.\n# TYPE triage_incidents gauge\ntriage_incidents 120\n"
    ),
}
