"""A store, a local Slack and a bot between them, with a clock of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.store.making import NOW
from triage.bots.announce import remember
from triage.bots.changed import Changed
from triage.bots.slack.deliver import SlackBot
from triage.bots.work import Done, work
from triage.model.diagnosis import Diagnosis
from triage.settings.routing import Route, Routing
from triage.settings.slack import Slack
from triage.store import Store, Stored
from triage.testing.slack import SlackServer

CHANNEL = "C1"
LINK = "https://triage.example"


class Bench:
    """`ingest` a diagnosis, `work` the outbox, look at what is visible."""

    def __init__(self, store: Store, slack: SlackServer) -> None:
        self.store = store
        self.slack = slack
        self.settings = Slack(
            token=slack.token,
            signing_secret=slack.signing_secret,
            api_url=f"{slack.url}/api/",
            answer_urls=(slack.url,),
            timeout=5,
        )
        self.routing = Routing(routes=(Route(to=f"slack:{CHANNEL}"),))
        self.now = NOW

    def ingest(self, diagnosis: Diagnosis) -> Stored:
        return remember(self.store, diagnosis, self.routing, now=self.now)

    def bot(self) -> SlackBot:
        """A bot as a new process has it: it knows nothing but the store."""
        return SlackBot(self.settings, LINK, routes=self.routing.routes, sleep=lambda _: None)

    def work(self, *, rounds: int = 1, bot: Any = None) -> list[Done]:
        """Work the outbox; between the rounds an hour goes by, so that what was put off is due."""
        done = []
        for _ in range(rounds):
            done.append(work(self.store, [Changed(self.routing), bot or self.bot()], clock=lambda: self.now))
            self.now += 3600
        return done

    def visible(self, thread: bool = False) -> list[dict[str, Any]]:
        """The messages of the channel, or the replies to the first of them."""
        messages = self.slack.visible(CHANNEL)
        return self.slack.visible(CHANNEL, messages[0]["ts"]) if thread else messages

    def text(self) -> str:
        """All that the first message says."""
        return texts(self.visible()[0]["blocks"])

    def route(self, **more: Any) -> None:
        """Other rules for the channel."""
        self.routing = replace_routing(self.routing, routes=(Route(to=f"slack:{CHANNEL}", **more),))


def replace_routing(routing: Routing, **more: Any) -> Routing:
    """The settings with other values."""
    return routing.model_copy(update=more)


def texts(value: Any) -> str:
    """Every text in a piece of Block Kit."""
    if isinstance(value, dict):
        return "\n".join(
            item if key == "text" and isinstance(item, str) else texts(item) for key, item in value.items()
        )
    return "\n".join(map(texts, value)) if isinstance(value, list) else ""


def same_job(diagnosis: Diagnosis, other: Diagnosis) -> Diagnosis:
    """The other diagnosis, of the same job."""
    return replace(other, job=diagnosis.job)
