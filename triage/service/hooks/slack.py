"""Slack's buttons and commands: signed by Slack, answered at once, done after the answer."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from triage.bots.slack.actions import Actions
from triage.bots.slack.callbacks import receive
from triage.service.deps import TheSettings, TheStore

router = APIRouter()


@router.post("/hooks/slack")
async def slack(request: Request, settings: TheSettings, store: TheStore) -> Response:
    """What a person pressed or wrote in Slack; 401 for what Slack did not sign."""
    body = await request.body()
    secret = settings.slack.signing_secret.get_secret_value()
    answer = await run_in_threadpool(receive, secret, dict(request.headers), body, store, time.time())
    actions = Actions(settings.slack, settings.web.public_url)
    then = BackgroundTask(actions.perform, answer.work, store) if answer.work is not None else None
    return Response(answer.body, answer.status, media_type="text/plain", background=then)
