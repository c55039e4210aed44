"""Bots that deliver notifications to Slack, webhooks, other channels and issue trackers.

`announce` writes notifications into the outbox of the store; the worker (`work`) takes them and lets the bot of their
kind deliver them. A notification names only its subject, so that every delivery shows the newest state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triage.bots.interface import Bot
    from triage.settings import Settings

KINDS = ("changed", "slack", "webhook", "channel", "issue")

__all__ = ["KINDS", "build_bots"]


def build_bots(settings: Settings) -> tuple[Bot, ...]:
    """Return the bots that are configured, in the order of KINDS. Raises OptionError for a missing package."""
    from triage.bots.changed import ChangedBot
    from triage.bots.webhook import WebhookBot

    bots: list[Bot] = [ChangedBot(settings.routing)]
    if settings.slack.token.get_secret_value():
        from triage.bots.slack.deliver import SlackBot

        bots.append(SlackBot(settings.slack, settings.web.public_url, routes=settings.routing.routes))
    if settings.webhook.targets:
        bots.append(WebhookBot(settings.webhook, settings.web.public_url))
    if settings.channel.targets:
        from triage.bots.channel import ChannelBot

        bots.append(ChannelBot(settings.channel, settings.web.public_url))
    if settings.issue.targets:
        from triage.bots.issues import IssueBot

        bots.append(IssueBot(settings.issue, settings.web.public_url))
    return tuple(bots)
