"""Perform the actions of buttons, forms and commands, after Slack has its response."""

from __future__ import annotations

import json
import logging
import time

from triage.base.errors import OptionError, TriageError
from triage.bots.changed import request_updates
from triage.bots.interface import Undelivered
from triage.bots.slack import messages
from triage.bots.slack.callbacks import Command, Press, SlackAction, WrongExplanation
from triage.bots.slack.client import Client
from triage.bots.subject import incident_url
from triage.render import slack
from triage.render.slack import mrkdwn
from triage.settings.notifications import SlackSettings
from triage.store import Store

DAY = 86_400.0
_log = logging.getLogger("triage.bots")


class Actions:
    """Writes feedback and mutes, opens forms, and answers commands."""

    def __init__(self, settings: SlackSettings, public_url: str = "", *, client: Client | None = None) -> None:
        self._settings = settings
        self._public_url = public_url
        self._client = client

    def perform(self, action: SlackAction, store: Store, now: float | None = None) -> None:
        """Perform an action. An error is shown to the person if possible; it is never raised."""
        moment = time.time() if now is None else now
        try:
            if isinstance(action, Command):
                self._answer(action.answer_url, self._run_command(action, store))
            elif isinstance(action, WrongExplanation):
                because = action.because or "no reason given"
                self._mark_wrong(action.incident, action.user, because, action.signature, store, moment)
            else:
                self._handle_press(action, store, moment)
        except TriageError as error:
            _log.warning("%s: %s", type(action).__name__, error)
            if not isinstance(action, WrongExplanation):
                text = mrkdwn(f"That did not work: {error}; {error.hint}", 1000)
                self._answer(action.answer_url, messages.plain(text))

    def _handle_press(self, press: Press, store: Store, now: float) -> None:
        if press.action == "agree":
            stored = store.incidents.get(press.incident)
            if not any(item.actor == press.user and item.verdict == "agree" for item in stored.feedback):
                store.feedback.add(press.incident, "agree", actor=press.user)
            request_updates(store, stored.incident.id, now=now)
        elif press.action == "mute":
            self._mute(press, store, now)
        else:
            self._ask_reason(press, store, now)

    def _mute(self, press: Press, store: Store, now: float) -> None:
        for message in store.notifications.list_for_incident(press.incident):
            if message.kind == "slack" and message.place == press.channel:
                until = now + self._settings.mute_days * DAY
                details = {"place": message.place, "cause": message.cause, "until": until}
                with store.connections.write():
                    store.notifications.mute("slack", message.place, message.cause, until, press.user)
                    store.audit.write_entry(now, press.user, "mute", press.incident, details)
                    request_updates(store, press.incident, now=now)
                return
        raise OptionError(
            "this channel has no message about this incident",
            hint="the routes of the settings can leave out causes permanently",
        )

    def _ask_reason(self, press: Press, store: Store, now: float) -> None:
        """Open the form that asks for a reason; if Slack refuses, record the feedback without one."""
        incident = store.incidents.get(press.incident).incident.id
        try:
            client = self._client or Client(self._settings)
            metadata = json.dumps({"incident": incident, "once": press.once})
            client.open(press.trigger, messages.wrong_form(incident, metadata))
        except Undelivered as error:
            _log.warning("the form for a reason could not be opened: %s", error)
            self._mark_wrong(incident, press.user, "no reason given", "", store, now)

    def _mark_wrong(self, incident: str, user: str, because: str, signature: str, store: Store, now: float) -> None:
        store.feedback.add(incident, "wrong", actor=user, because=because, signature=signature or None)
        request_updates(store, store.incidents.get(incident).incident.id, now=now)

    def _run_command(self, command: Command, store: Store) -> slack.Message:
        verb, _, rest = command.text.strip().partition(" ")
        rest = rest.strip()
        if verb == "search" and rest:
            hits = store.search.search_text(rest, limit=messages.MAX_LISTED)
            return messages.search_results(rest, hits, self._public_url)
        if verb == "similar" and rest:
            similar = store.search.find_similar(rest, limit=messages.MAX_LISTED)
            return messages.similar_incidents(rest, similar, self._public_url)
        if verb == "show" and rest:
            stored = store.incidents.get(rest)
            url = incident_url(self._public_url, stored.incident.id)
            shown = slack.message(stored.diagnosis, link=url, notes=messages.footer_notes(stored, None))
            return slack.within({**shown, "blocks": [*shown["blocks"], *slack.thread(stored.diagnosis)["blocks"]]})
        return messages.usage(command.command)

    def _answer(self, url: str, message: slack.Message) -> None:
        """Post to the address of the signed request, if the settings allow it."""
        if not any(url.startswith(allowed) for allowed in self._settings.answer_urls):
            _log.warning("no answer: the requested address is not Slack's")
            return
        from slack_sdk.errors import SlackClientError
        from slack_sdk.http_retry.builtin_handlers import RateLimitErrorRetryHandler
        from slack_sdk.webhook import WebhookClient

        client = WebhookClient(
            url, timeout=round(self._settings.timeout), retry_handlers=[RateLimitErrorRetryHandler(max_retry_count=1)]
        )
        try:
            reply = client.send_dict({"response_type": "ephemeral", "replace_original": False, **message})
            if reply.status_code >= 400:
                _log.warning("Slack refused the answer: %s %s", reply.status_code, reply.body[:200])
        except (SlackClientError, OSError) as error:
            _log.warning("the answer did not arrive: %s", error)
