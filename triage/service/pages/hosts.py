"""The page of a host, and of one of its devices: what failed there, when, and what was done."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from triage.model.store import Incident
from triage.service.dependencies import StoreDep, Viewer
from triage.service.pages.rendering import page_and_json, render_page
from triage.store import Store
from triage.store.host_history import HostHistory
from triage.store.search import Filter

router = APIRouter()
MAX_INCIDENTS = 50


@dataclass(frozen=True, slots=True)
class HostView:
    """The history of a host or a device, and its latest incidents."""

    history: HostHistory
    incidents: tuple[Incident, ...]


@page_and_json(router, "/hosts/{host}")
def show_host(request: Request, host: str, store: StoreDep, _: Viewer) -> Response:
    """Show what failed on a host, when, and what was done."""
    return render_page(request, "host.html", make_view(store, host))


@page_and_json(router, "/hosts/{host}/devices/{device}")
def show_device(request: Request, host: str, device: str, store: StoreDep, _: Viewer) -> Response:
    """Show what failed on a device of a host, when, and what was done."""
    return render_page(request, "host.html", make_view(store, host, device))


def make_view(store: Store, host: str, device: str | None = None) -> HostView:
    """Return the page of a host, or of one of its devices."""
    filter_ = Filter(failed_host=host, device=device)
    return HostView(store.host_history(host, device), tuple(store.search.list_incidents(filter_, limit=MAX_INCIDENTS)))
