"""The work behind buttons and commands, done after Slack has its answer."""

from __future__ import annotations

import json
import logging
import time

from triage.base.errors import OptionError, TriageError
from triage.bots.changed import refresh
from triage.bots.interface import Undelivered
from triage.bots.slack import words
from triage.bots.slack.callbacks import Command, Explained, Press, Work
from triage.bots.slack.client import Client
from triage.bots.subject import link
from triage.render import slack
from triage.render.slack import mrkdwn
from triage.settings.slack import Slack
from triage.store import Store

DAY = 86_400.0
_log = logging.getLogger("triage.bots")


class Actions:
    """What a press, a modal or a command brings about."""

    def __init__(self, settings: Slack, public_url: str = "", *, client: Client | None = None) -> None:
        self._settings = settings
        self._public_url = public_url
        self._client = client

    def perform(self, work: Work, store: Store, now: float | None = None) -> None:
        """Do it. What fails is told to the person where that is possible, and is never an error of the caller."""
        moment = time.time() if now is None else now
        try:
            if isinstance(work, Command):
                self._answer(work.answer_url, self._found(work, store))
            elif isinstance(work, Explained):
                self._say_wrong(
                    work.incident, work.user, work.because or "no reason given", work.signature, store, moment
                )
            else:
                self._pressed(work, store, moment)
        except TriageError as error:
            _log.warning("%s: %s", type(work).__name__, error)
            if not isinstance(work, Explained):
                self._answer(work.answer_url, words.plain(mrkdwn(f"That did not work: {error}; {error.hint}", 1000)))

    def _pressed(self, work: Press, store: Store, now: float) -> None:
        if work.action == "agree":
            known = store.incidents.get(work.incident)
            if not any(item.actor == work.user and item.verdict == "agree" for item in known.feedback):
                store.feedback.add(work.incident, "agree", actor=work.user)
            refresh(store, known.incident.id, now=now)
        elif work.action == "mute":
            self._mute(work, store, now)
        else:
            self._ask(work, store, now)

    def _mute(self, work: Press, store: Store, now: float) -> None:
        for message in store.told.about(work.incident):
            if message.kind == "slack" and message.place == work.channel:
                until = now + self._settings.mute_days * DAY
                with store.connections.write():
                    store.told.mute("slack", message.place, message.cause, until, work.user)
                    store.audit.note(
                        now,
                        work.user,
                        "mute",
                        work.incident,
                        {"place": message.place, "cause": message.cause, "until": until},
                    )
                    refresh(store, work.incident, now=now)
                return
        raise OptionError(
            "no message about this incident is known here", hint="routes in the settings say what is muted for ever"
        )

    def _ask(self, work: Press, store: Store, now: float) -> None:
        """Ask why; when Slack does not let us ask, what was said without a reason counts."""
        incident = store.incidents.get(work.incident).incident.id
        try:
            client = self._client or Client(self._settings)
            client.open(work.trigger, words.modal(incident, json.dumps({"incident": incident, "once": work.once})))
        except Undelivered as error:
            _log.warning("the question could not be asked: %s", error)
            self._say_wrong(incident, work.user, "no reason given", "", store, now)

    def _say_wrong(self, incident: str, user: str, because: str, signature: str, store: Store, now: float) -> None:
        store.feedback.add(incident, "wrong", actor=user, because=because, signature=signature or None)
        refresh(store, store.incidents.get(incident).incident.id, now=now)

    def _found(self, work: Command, store: Store) -> slack.Message:
        verb, _, rest = work.text.strip().partition(" ")
        rest = rest.strip()
        if verb == "search" and rest:
            return words.hits(rest, store.search.text(rest, limit=words.LISTED), self._public_url)
        if verb == "similar" and rest:
            return words.likenesses(rest, store.search.similar(rest, limit=words.LISTED), self._public_url)
        if verb == "show" and rest:
            found = store.incidents.get(rest)
            shown = slack.message(
                found.diagnosis, link=link(self._public_url, found.incident.id), notes=words.notes(found, None)
            )
            return slack.within({**shown, "blocks": [*shown["blocks"], *slack.thread(found.diagnosis)["blocks"]]})
        return words.usage(work.command)

    def _answer(self, url: str, made: slack.Message) -> None:
        """To the address that came with the signed request, and only below those that the settings allow."""
        if not any(url.startswith(known) for known in self._settings.answer_urls):
            _log.warning("an answer was asked for at an address that is not Slack's")
            return
        from slack_sdk.errors import SlackClientError
        from slack_sdk.http_retry.builtin_handlers import RateLimitErrorRetryHandler
        from slack_sdk.webhook import WebhookClient

        client = WebhookClient(
            url, timeout=round(self._settings.timeout), retry_handlers=[RateLimitErrorRetryHandler(max_retry_count=1)]
        )
        try:
            reply = client.send_dict({"response_type": "ephemeral", "replace_original": False, **made})
            if reply.status_code >= 400:
                _log.warning("the answer was refused: %s %s", reply.status_code, reply.body[:200])
        except (SlackClientError, OSError) as error:
            _log.warning("the answer did not arrive: %s", error)
