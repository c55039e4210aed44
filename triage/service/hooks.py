"""Slack's buttons and commands: Slack signs the request, the work is done after the response."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request, Response
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool

from triage.bots.slack.actions import Actions
from triage.bots.slack.callbacks import handle_request
from triage.service.dependencies import SettingsDep, StoreDep

router = APIRouter()


@router.post("/hooks/slack")
async def slack(request: Request, settings: SettingsDep, store: StoreDep) -> Response:
    """Handle a button or command from Slack; 401 for what Slack did not sign."""
    body = await request.body()
    secret = settings.slack.signing_secret.get_secret_value()
    reply = await run_in_threadpool(handle_request, secret, dict(request.headers), body, store, time.time())
    actions = Actions(settings.slack, settings.web.public_url)
    background = BackgroundTask(actions.perform, reply.action, store) if reply.action is not None else None
    return Response(reply.body, reply.status, media_type="text/plain", background=background)
