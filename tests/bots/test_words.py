"""Beside the diagnosis: whatever people and logs say, what the bot says of it is taken by Slack, and nothing in it
acts.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.render.test_bots import HOSTILE, strings
from tests.store.making import NOW, known
from triage.bots.slack import words
from triage.model.store import Feedback, Incident, Remembered
from triage.store.search import Hit, Likeness
from triage.store.told import Again, Message
from triage.testing.blocks import problem
from triage.testing.slack import SlackServer

hostile = st.sampled_from(HOSTILE) | st.text(max_size=60)
LINK = "https://triage.example"


def incident(text: str) -> Incident:
    return Incident(
        "i-4f2a9c", "j-1", text, text, "known", text, signature=text or None, hosts=(text, text), ranks=(1,), at=NOW
    )


def made(text: str, count: int) -> list[dict[str, Any]]:
    """Everything that the bot says, about something of which all is called `text`."""
    found = incident(text)
    message = Message(1, "slack", "C1", text, text, text, (text,), found.id, None, NOW)
    feedback = tuple(Feedback(number, found.id, NOW, text, "wrong", text, None, None) for number in range(count))
    notes = words.notes(Remembered(found, known("a"), feedback), (NOW, text))
    return [
        {"text": "notes", "blocks": [words.context(notes)]},
        words.again(message, [Again(text, text, (text,), NOW)] * count),
        words.digest(
            "2025-11-21", [replace(found, id=f"i-{number}", signature=f"{text}{number}") for number in range(count)]
        ),
        words.hits(text, [Hit(found, f"\x02{text}\x03")] * count, LINK),
        words.likenesses(text, [Likeness(found, text, (text, text))] * count, LINK),
        words.usage(text),
    ]


@settings(max_examples=40, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(text=hostile, count=st.sampled_from([1, 3, 60]))
def test_slack_takes_all_that_the_bot_says(text: str, count: int) -> None:
    """Within the limits; nobody is pinged, no link is made, no control character passes."""
    for message in made(text, count):
        assert problem({"channel": "C1", **message}) == "", message
        for value in strings(message):
            assert not re.search(r"<(?!https://triage\.example/incidents/i-4f2a9c\|)", value)
            assert not re.search(
                "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]", value
            )


@settings(max_examples=20, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(text=hostile)
def test_the_question_is_a_modal(text: str) -> None:
    """Whatever the incident is called, Slack opens it."""
    view = words.modal(text, json.dumps({"incident": "i-1", "once": "x"}))
    assert view["type"] == "modal"
    assert len(view["title"]["text"]) <= 24
    assert (
        problem(
            {"channel": "C1", "text": "a", "blocks": [item for item in view["blocks"] if item["type"] == "context"]}
        )
        == ""
    )


def test_a_modal_opens(slack: SlackServer) -> None:
    """The local Slack checks the whole view."""
    from slack_sdk import WebClient

    slack.channel("C1")
    client = WebClient(token=slack.token, base_url=f"{slack.url}/api/")
    assert client.views_open(trigger_id=slack._trigger(), view=words.modal("i-1", "{}"))["ok"]
