"""`/api/v1`: one module per subject, in the order of the OpenAPI document."""

from __future__ import annotations

from fastapi import APIRouter

from triage.service.api import catalog, causes, clusters, hosts, incidents, intake, operation, tasks, views

ROUTERS: tuple[APIRouter, ...] = (
    intake.router,
    tasks.router,
    incidents.router,
    causes.router,
    hosts.router,
    views.router,
    clusters.router,
    catalog.router,
    intake.alerts_router,
    operation.router,
)
