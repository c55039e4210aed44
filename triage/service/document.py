"""The OpenAPI document: what FastAPI knows of the routes, and besides who may ask, how to sign in, and an example of
everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from triage.service import api
from triage.service.api.examples import EXAMPLES, TEXTS
from triage.service.deps import Require
from triage.service.sessions import PLAIN

PREFIX = "/api/v1"
SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": "`triage token create NAME --scope read` makes one"},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": PLAIN,
        "description": "what signing in on the pages leaves; `__Host-triage` over https",
    },
}
TAGS = (
    ("ingest", "Send the files of a job, or name one of a configured source, and follow the task."),
    ("incidents", "What was found: lists, reports, evidence, and what people said."),
    ("clusters", "Unknown failures, what curators decided about them, and the audit log."),
    ("catalog", "The signatures."),
    ("search", "Words and sums."),
    ("alerts", "Alertmanager's webhook as a trigger."),
    ("operation", "Health, numbers, limits, and who is asking."),
)


@dataclass(frozen=True, slots=True)
class Route:
    """An address: its methods, the role that it needs (None: anybody may ask), and its first sentence."""

    methods: tuple[str, ...]
    path: str
    role: str | None
    summary: str


def routes(routers: Iterable[APIRouter], prefix: str = "") -> Iterator[Route]:
    """What the routers answer, in their order."""
    for router in routers:
        for route in router.routes:
            if isinstance(route, APIRoute):
                roles = [found.call.role for found in route.dependant.dependencies if isinstance(found.call, Require)]
                said = (route.description or "").strip().split("\n")[0]
                yield Route(tuple(sorted(route.methods or ())), prefix + route.path, roles[0] if roles else None, said)


def openapi(app: FastAPI) -> dict[str, Any]:
    """The document, made once."""
    if app.openapi_schema is None:
        app.openapi_schema = _made(app)
    return app.openapi_schema


def _made(app: FastAPI) -> dict[str, Any]:
    tags = [{"name": name, "description": said} for name, said in TAGS]
    found = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes, tags=tags)
    parts = found["components"]
    parts["securitySchemes"] = SCHEMES
    for name, example in EXAMPLES.items():
        parts["schemas"][name]["example"] = example
    roles = {
        (method.lower(), route.path): route.role for route in routes(api.ROUTERS, PREFIX) for method in route.methods
    }
    for path, item in found["paths"].items():
        for method, operation in item.items():
            role = roles[method, path]
            operation["security"] = [{name: []} for name in SCHEMES] if role else []
            operation["description"] += f"\n\nRole: {role}." if role else "\n\nAnybody may ask."
            for kind, part in operation["responses"].get("200", {}).get("content", {}).items():
                if path in TEXTS and kind.startswith("text/"):
                    part["example"] = TEXTS[path]
            operation["operationId"] = operation["operationId"].partition("_api_v1")[0]
    return found
