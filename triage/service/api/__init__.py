"""`/api/v1`, one module a subject, in the order of the document."""

from __future__ import annotations

from fastapi import APIRouter

from triage.service.api import alerts, catalog, clusters, incidents, intake, operation, searching

ROUTERS: tuple[APIRouter, ...] = (
    intake.router,
    incidents.router,
    clusters.router,
    catalog.router,
    searching.router,
    alerts.router,
    operation.router,
)
