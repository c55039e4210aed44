"""Health, status, limits and metrics of the service, and who is asking."""

from __future__ import annotations

from fastapi import APIRouter, Response

from triage.base.errors import TriageError
from triage.render.table import iso
from triage.service import incident_queries, view_queries
from triage.service.api import schemas
from triage.service.api.responses import JsonResponse
from triage.service.dependencies import CatalogDep, ServiceState, StateDep, StoreDep, Viewer
from triage.service.work.job_files import upload_directory
from triage.store import Store

router = APIRouter(tags=["operation"])
conventional_router = APIRouter()
"""Routes that other programs expect at the root."""
STUCK_SECONDS = 3600.0  # a task that waits longer means that no worker runs


@router.get("/health", response_model=schemas.Health)
def health() -> JsonResponse:
    """Return whether the service is alive. Needs no sign-in."""
    return JsonResponse({"status": "ok", "checks": {}})


@router.get("/ready", response_model=schemas.Health, responses={503: {"model": schemas.Health}})
def ready(state: StateDep) -> JsonResponse:
    """Return whether the service can work: store, catalog, uploads and workers. Needs no sign-in.

    It can also work on a read-only store, which `checks.store` says.
    """
    checks: dict[str, str] = {}
    condition = state.condition.get()
    try:
        oldest = state.store.tasks.longest_wait()
        checks["store"] = "ok" if condition == "writable" else condition
        is_stuck = condition == "writable" and oldest is not None and oldest >= STUCK_SECONDS
        checks["tasks"] = "tasks wait, but no worker runs" if is_stuck else "ok"
    except TriageError:
        checks["store"] = "cannot read the store"
    checks["catalog"] = "ok" if state.catalog().signatures else "the catalog has no signatures"
    has_uploads = condition != "writable" or upload_directory(state.settings).is_dir()
    checks["uploads"] = "ok" if has_uploads else "the directory of uploads is missing"
    is_ready = all(result in ("ok", "read-only") for result in checks.values())
    return JsonResponse(
        {"status": "ok" if is_ready else "failing", "checks": checks}, status_code=200 if is_ready else 503
    )


@router.get("/status", response_model=schemas.Status)
def status(state: StateDep, store: StoreDep, catalog: CatalogDep, _: Viewer) -> JsonResponse:
    """Return versions, the last ingest, tasks and the size of the store."""
    current = incident_queries.service_status(store, catalog, state.started)
    values = {name: getattr(current, name) for name in incident_queries.ServiceStatus.__dataclass_fields__}
    values["store_condition"] = state.condition.get()
    return JsonResponse({**values, "started_at": iso(current.started_at), "last_ingest": iso(current.last_ingest)})


@router.get("/me", response_model=schemas.Me)
def me(user: Viewer, store: StoreDep) -> JsonResponse:
    """Return who is signed in, and what they may do."""
    visit = store.visits.last(user.name) if view_queries.is_remembered(user) else None
    values = {"name": user.name, "role": user.role, "scopes": sorted(user.scopes), "how": user.sign_in_method}
    sees = None if user.sees is None else ["=".join(fact) for fact in user.sees]
    return JsonResponse({**values, "last_visit": iso(visit), "sees": sees})


@router.get("/limits", response_model=schemas.LimitsOut)
def limits(state: StateDep, _: Viewer) -> JsonResponse:
    """Return the limits on requests and uploads."""
    values = {**state.settings.tasks.model_dump(), **state.settings.web.model_dump()}
    return JsonResponse({name: values[name] for name in schemas.LimitsOut.model_fields})


@conventional_router.get("/metrics")
@router.get(
    "/metrics", responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}, response_class=Response
)
def metrics(state: StateDep, store: StoreDep, _: Viewer) -> Response:
    """Return metrics in Prometheus' text format. A scraper needs a token that may read."""
    return Response(_metrics_text(store, state), media_type="text/plain; version=0.0.4; charset=utf-8")


def _metrics_text(store: Store, state: ServiceState) -> str:
    """Return the metrics of the store and of all processes, the same from each process."""
    lines: list[str] = []

    def add_gauge(name: str, description: str, values: dict[str, float]) -> None:
        lines.extend([f"# HELP triage_{name} {description}", f"# TYPE triage_{name} gauge"])
        lines.extend(f"triage_{name}{labels} {value:.17g}" for labels, value in values.items())

    counts = store.tasks.counts()
    states = ("queued", "running", "done", "failed", "cancelled")
    posts = sorted(store.outbox.counts().items())
    oldest, last_ingest = store.tasks.longest_wait() or 0.0, store.incidents.last_stored_at() or 0.0
    add_gauge("store_writable", "1 while the store can be written.", {"": state.condition.get() == "writable"})
    add_gauge("incidents", "Incidents in the store.", {"": store.search.count_incidents()})
    add_gauge("tasks", "Tasks by state.", {f'{{state="{name}"}}': counts.get(name, 0) for name in states})
    add_gauge("task_oldest_waiting_seconds", "Seconds for which the oldest task has waited.", {"": oldest})
    add_gauge("last_ingest_timestamp_seconds", "Time of the last ingest.", {"": last_ingest})
    add_gauge("outbox", "Posts by state.", {f'{{state="{name}"}}': count for name, count in posts})
    lines.extend(state.response_counts.metrics())
    return "\n".join(lines) + "\n"
