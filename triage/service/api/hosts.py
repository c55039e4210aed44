"""Hosts and their devices: what failed there, when, and what was done."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path

from triage.render import causes as rendered
from triage.render.table import iso
from triage.service.api import schemas
from triage.service.api.responses import JsonResponse, comment_as_dict
from triage.service.dependencies import StoreDep, Viewer
from triage.store.host_history import HostHistory

router = APIRouter(prefix="/hosts", tags=["hosts"])
HostName = Annotated[str, Path(max_length=300, description="its name as in the logs", examples=["node7"])]
DeviceName = Annotated[str, Path(max_length=300, description="as in the failure", examples=["0000:3b:00.0"])]


@router.get("/{host}", response_model=schemas.HostRow)
def get_host(host: HostName, store: StoreDep, _: Viewer) -> JsonResponse:
    """Return what failed on a host: times, devices, causes, comments. `GET /incidents?host=…` lists the incidents."""
    return JsonResponse(_as_dict(store.host_history(host)))


@router.get("/{host}/devices/{device}", response_model=schemas.HostRow)
def get_device(host: HostName, device: DeviceName, store: StoreDep, _: Viewer) -> JsonResponse:
    """Return what failed on one device of a host."""
    return JsonResponse(_as_dict(store.host_history(host, device)))


def _as_dict(history: HostHistory) -> dict[str, Any]:
    def times(first: float, last: float, count: int) -> dict[str, Any]:
        return {"incidents": count, "first_at": iso(first) if count else None, "last_at": iso(last) if count else None}

    return {
        "host": history.host,
        "device": history.device,
        **times(history.first_at, history.last_at, history.incidents),
        "devices": [{"device": row.name, **times(row.first, row.last, row.count)} for row in history.devices],
        "causes": [rendered.as_dict(cause) for cause in history.causes],
        "comments": [{"cause": cause, **comment_as_dict(comment)} for cause, comment in history.comments],
    }
