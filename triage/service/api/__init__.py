"""`/api/v1`, one module a subject, in the order of the document."""

from __future__ import annotations

from fastapi import APIRouter

from triage.service.api import incidents

ROUTERS: tuple[APIRouter, ...] = (incidents.router,)
