"""A store, a local Slack and the bot between them, with a simulated clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.store.factories import NOW
from triage.bots.announce import store_and_announce
from triage.bots.changed import ChangedBot
from triage.bots.slack.deliver import SlackBot
from triage.bots.work import DeliveryCounts, deliver_due
from triage.model.diagnosis import Diagnosis
from triage.settings.notifications import Route, RoutingSettings, SlackSettings
from triage.store import Store, StoreResult
from triage.testing.slack import SlackServer

CHANNEL = "C1"
LINK = "https://triage.example"


class Bench:
    """Tests `ingest` a diagnosis, `work` the outbox, and look at the visible messages."""

    def __init__(self, store: Store, slack: SlackServer) -> None:
        self.store = store
        self.slack = slack
        self.settings = SlackSettings(
            token=slack.token,
            signing_secret=slack.signing_secret,
            api_url=f"{slack.url}/api/",
            answer_urls=(slack.url,),
            timeout=5,
        )
        self.routing = RoutingSettings(routes=(Route(to=f"slack:{CHANNEL}"),))
        self.now = NOW

    def ingest(self, diagnosis: Diagnosis) -> StoreResult:
        return store_and_announce(self.store, diagnosis, self.routing, now=self.now)

    def bot(self) -> SlackBot:
        """Return a bot like in a new process: all its state is in the store."""
        return SlackBot(self.settings, LINK, routes=self.routing.routes, sleep=lambda _: None)

    def work(self, *, rounds: int = 1, bot: Any = None) -> list[DeliveryCounts]:
        """Deliver due posts; an hour passes between the rounds, so that delayed posts become due."""
        counts = []
        for _ in range(rounds):
            counts.append(
                deliver_due(self.store, [ChangedBot(self.routing), bot or self.bot()], clock=lambda: self.now)
            )
            self.now += 3600
        return counts

    def visible(self, thread: bool = False) -> list[dict[str, Any]]:
        """Return the messages of the channel, or the replies to the first one."""
        messages = self.slack.visible(CHANNEL)
        return self.slack.visible(CHANNEL, messages[0]["ts"]) if thread else messages

    def text(self) -> str:
        """Return all texts of the first message."""
        return texts(self.visible()[0]["blocks"])

    def route(self, **more: Any) -> None:
        """Set other rules for the channel."""
        self.routing = replace_routing(self.routing, routes=(Route(to=f"slack:{CHANNEL}", **more),))


def replace_routing(routing: RoutingSettings, **more: Any) -> RoutingSettings:
    """Return the settings with other values."""
    return routing.model_copy(update=more)


def texts(value: Any) -> str:
    """Return all texts in a part of Block Kit."""
    if isinstance(value, dict):
        return "\n".join(
            item if key == "text" and isinstance(item, str) else texts(item) for key, item in value.items()
        )
    return "\n".join(map(texts, value)) if isinstance(value, list) else ""


def same_job(diagnosis: Diagnosis, other: Diagnosis) -> Diagnosis:
    """Return the other diagnosis with the job of the first one."""
    return replace(other, job=diagnosis.job)
