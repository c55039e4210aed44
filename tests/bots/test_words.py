"""The bot's own messages stay within Slack's limits and are harmless, whatever people and logs write."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from hypothesis import Phase, given, settings, strategies as st

from tests.render.test_bots import HOSTILE, strings
from tests.store.factories import NOW, known_diagnosis
from triage.bots.slack import messages
from triage.model.store import Feedback, Incident, StoredIncident
from triage.store.notifications import Notification, Repeat
from triage.store.search import SearchHit, SimilarIncident
from triage.testing.slack import SlackServer, find_problem

hostile = st.sampled_from(HOSTILE) | st.text(max_size=60)
LINK = "https://triage.example"


def incident(text: str) -> Incident:
    return Incident(
        "i-4f2a9c", "j-1", text, text, "known", text, signature=text or None, hosts=(text, text), ranks=(1,), at=NOW
    )


def all_messages(text: str, count: int) -> list[dict[str, Any]]:
    """Return all kinds of messages of the bot, with `text` in every field."""
    example_incident = incident(text)
    message = Notification(1, "slack", "C1", text, text, text, (text,), example_incident.id, None, NOW)
    feedback = tuple(
        Feedback(number, example_incident.id, NOW, text, "wrong", text, None, None) for number in range(count)
    )
    notes = messages.footer_notes(StoredIncident(example_incident, known_diagnosis("a"), feedback), (NOW, text))
    return [
        {"text": "notes", "blocks": [messages.context(notes)]},
        messages.repeats(message, [Repeat(text, text, (text,), NOW)] * count),
        messages.digest(
            "2025-11-21",
            [replace(example_incident, id=f"i-{number}", signature=f"{text}{number}") for number in range(count)],
        ),
        messages.search_results(text, [SearchHit(example_incident, f"\x02{text}\x03")] * count, LINK),
        messages.similar_incidents(text, [SimilarIncident(example_incident, text, (text, text))] * count, LINK),
        messages.usage(text),
    ]


@settings(max_examples=40, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(text=hostile, count=st.sampled_from([1, 3, 60]))
def test_slack_accepts_every_message(text: str, count: int) -> None:
    """Messages stay within the limits and contain no mention, foreign link or control character."""
    for message in all_messages(text, count):
        assert find_problem({"channel": "C1", **message}) == "", message
        for value in strings(message):
            assert not re.search(r"<(?!https://triage\.example/incidents/i-4f2a9c\|)", value)
            assert not re.search(
                "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]", value
            )


@settings(max_examples=20, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(text=hostile)
def test_the_form_for_a_reason_is_valid(text: str) -> None:
    """Slack opens it for any name of the incident."""
    view = messages.wrong_form(text, json.dumps({"incident": "i-1", "once": "x"}))
    assert view["type"] == "modal"
    assert len(view["title"]["text"]) <= 24
    assert (
        find_problem(
            {"channel": "C1", "text": "a", "blocks": [item for item in view["blocks"] if item["type"] == "context"]}
        )
        == ""
    )


def test_slack_opens_the_form(slack: SlackServer) -> None:
    """The local Slack checks the whole view."""
    from slack_sdk import WebClient

    slack.add_channel("C1")
    client = WebClient(token=slack.token, base_url=f"{slack.url}/api/")
    assert client.views_open(trigger_id=slack._new_trigger(), view=messages.wrong_form("i-1", "{}"))["ok"]
