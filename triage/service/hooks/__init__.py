"""Where other services call in: Slack's buttons and commands."""

from __future__ import annotations

from fastapi import APIRouter

from triage.service.hooks import slack

ROUTERS: tuple[APIRouter, ...] = (slack.router,)
