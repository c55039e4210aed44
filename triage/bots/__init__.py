"""What tells others: posts of the outbox, brought to where people are.

Ingest and people write posts into the store (`announce`); a worker (`work`) takes them and lets the bot of their kind
deliver them. A post
says no more than what is to be told about, so that what arrives is the newest, however often it was tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triage.bots.interface import Bot
    from triage.settings import Settings

KINDS = ("changed", "slack", "webhook")

__all__ = ["KINDS", "bots"]


def bots(settings: Settings) -> tuple[Bot, ...]:
    """The bots that these settings make possible, in the order of KINDS. Raises OptionError where a package is missing."""
    from triage.bots.changed import Changed
    from triage.bots.webhook import WebhookBot

    made: list[Bot] = [Changed(settings.routing)]
    if settings.slack.token.get_secret_value():
        from triage.bots.slack.deliver import SlackBot

        made.append(SlackBot(settings.slack, settings.web.public_url, routes=settings.routing.routes))
    if settings.webhook.targets:
        made.append(WebhookBot(settings.webhook, settings.web.public_url))
    return tuple(made)
