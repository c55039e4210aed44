"""Whether it is well, how fresh it is, what may be asked of it, and its numbers for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from triage.base.errors import TriageError
from triage.render.table import iso
from triage.service import queries
from triage.service.api import schemas
from triage.service.api.answers import Json
from triage.service.deps import TheCatalog, TheService, TheStore, Viewer
from triage.service.state import Service
from triage.service.work.files import uploads
from triage.store import Store

router = APIRouter(tags=["operation"])
STUCK = 3600.0  # a task that waits so long means that nobody works


@router.get("/health", response_model=schemas.Health)
def health() -> Json:
    """It is alive. Anybody may ask."""
    return Json({"status": "ok", "checks": {}})


@router.get("/ready", response_model=schemas.Health, responses={503: {"model": schemas.Health}})
def ready(service: TheService) -> Json:
    """It can work: the store can be read, the catalog is there, somebody does tasks. Anybody may ask."""
    checks: dict[str, str] = {}
    try:
        oldest = service.store.tasks.oldest_waiting()
        checks["store"] = "ok"
        checks["tasks"] = "ok" if oldest is None or oldest < STUCK else "tasks wait and nobody does them"
    except TriageError:
        checks["store"] = "cannot be read"
    checks["catalog"] = "ok" if service.catalog().signatures else "there are no signatures"
    checks["uploads"] = "ok" if uploads(service.settings).is_dir() else "the directory of uploads is not there"
    well = all(said == "ok" for said in checks.values())
    return Json({"status": "ok" if well else "failing", "checks": checks}, status_code=200 if well else 503)


@router.get("/status", response_model=schemas.Status)
def status(service: TheService, store: TheStore, catalog: TheCatalog, _: Viewer) -> Json:
    """How fresh everything is: versions, the last ingest, tasks, the size of the store."""
    found = queries.fresh(store, catalog, service.started)
    values = {name: getattr(found, name) for name in queries.Fresh.__dataclass_fields__}
    return Json({**values, "started_at": iso(found.started_at), "last_ingest": iso(found.last_ingest)})


@router.get("/me", response_model=schemas.Me)
def me(who: Viewer) -> Json:
    """Who asks, and what they may do."""
    return Json({"name": who.name, "role": who.role, "scopes": sorted(who.scopes), "how": who.how})


@router.get("/limits", response_model=schemas.LimitsOut)
def limits(service: TheService, _: Viewer) -> Json:
    """What may be sent."""
    tasks, web = service.settings.tasks, service.settings.web
    found = {name: getattr(tasks, name) for name in ("upload_bytes", "upload_files", "waiting")}
    return Json(
        {**found, **{name: getattr(web, name) for name in ("body_bytes", "requests_a_minute", "changes_a_minute")}}
    )


@router.get(
    "/metrics", responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}, response_class=Response
)
def metrics(service: TheService, store: TheStore, _: Viewer) -> Response:
    """Numbers in Prometheus' text format. A scraper signs in with a token that may read."""
    return Response(numbers(store, service), media_type="text/plain; version=0.0.4; charset=utf-8")


def numbers(store: Store, service: Service) -> str:
    """The numbers of the store and of all processes: the same, whichever process is asked."""
    lines: list[str] = []

    def add(name: str, kind: str, words: str, values: dict[str, float]) -> None:
        lines.extend([f"# HELP triage_{name} {words}", f"# TYPE triage_{name} {kind}"])
        lines.extend(f"triage_{name}{labels} {value:.17g}" for labels, value in values.items())

    counts = store.tasks.counts()
    states = ("queued", "running", "done", "failed", "cancelled")
    add("incidents", "gauge", "Incidents in the store.", {"": store.search.count()})
    add("tasks", "gauge", "Tasks by state.", {f'{{state="{state}"}}': counts.get(state, 0) for state in states})
    add(
        "task_oldest_waiting_seconds",
        "gauge",
        "How long the oldest task has waited.",
        {"": store.tasks.oldest_waiting() or 0.0},
    )
    add(
        "last_ingest_timestamp_seconds",
        "gauge",
        "When something new was last stored.",
        {"": store.incidents.last_seen() or 0.0},
    )
    posts = store.outbox.counts()
    add(
        "outbox",
        "gauge",
        "Posts to others by state.",
        {f'{{state="{state}"}}': count for state, count in sorted(posts.items())},
    )
    lines.extend(service.counters.lines())
    return "\n".join(lines) + "\n"
