"""`triage outbox` and `triage bot slack`: what waits is seen, tried again, given up and sent."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.store.making import NOW, known
from triage.bots.announce import remember
from triage.settings.routing import Route, Routing
from triage.store import Store
from triage.testing.slack import SlackServer

pytest.importorskip("slack_sdk")
Command = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).resolve().parents[2]
ROUTING = Routing(routes=(Route(to="slack:C1"),))


@pytest.fixture
def slack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlackServer]:
    """A local Slack, settings that lead there, and a store with two posts that wait."""
    with SlackServer() as server:
        server.channel("C1")
        for name, value in {
            "TRIAGE_STORE": str(tmp_path / "triage.db"),
            "TRIAGE_SLACK_TOKEN": server.token,
            "TRIAGE_SLACK_SIGNING_SECRET": server.signing_secret,
            "TRIAGE_SLACK_API_URL": f"{server.url}/api/",
            "TRIAGE_SLACK_ANSWER_URLS": json.dumps([server.url]),
        }.items():
            monkeypatch.setenv(name, value)
        with Store.open(tmp_path / "triage.db") as store:
            for name in ("a", "b"):
                remember(store, known(name, host=f"host-{name}"), ROUTING, now=NOW)
        yield server


def states(command: Command) -> dict[int, str]:
    found = json.loads(command("outbox", "list", "--format", "json")[1])
    assert found["schema"] == "triage.outbox/1"
    return {post["id"]: post["state"] for post in found["posts"]}


def test_what_waits_is_listed_dropped_and_sent(command: Command, slack: SlackServer) -> None:
    """One is dropped, the other sent; what was sent stays sent, and what is not there is said."""
    first, second = sorted(states(command))
    assert set(states(command).values()) == {"waiting"}
    assert "slack" in command("outbox", "list")[1]
    assert command("outbox", "drop", first)[:2] == (0, "1 dropped\n")
    assert command("outbox", "send")[:2] == (0, "1 sent, 0 to be tried again, 0 dead\n")
    assert states(command) == {first: "dropped", second: "sent"}
    assert len(slack.visible("C1")) == 1
    status, _, errors = command("outbox", "retry", second)
    assert (status, "is sent" in errors) == (2, True)
    assert "has no post 99" in command("outbox", "retry", 99)[2]
    assert command("outbox", "retry")[0] == 2
    assert command("outbox", "retry", first)[0] == 0
    assert command("outbox", "send")[1] == "1 sent, 0 to be tried again, 0 dead\n"
    assert command("outbox", "list", "--state", "dead")[1] == "no posts\n"


def test_dead_letters_end_with_1_and_come_back(command: Command, slack: SlackServer) -> None:
    """A token that is wrong: dead at once, with the reason; mended, all of them are sent."""
    slack.token = "xoxb-another"
    status, out, _ = command("outbox", "send")
    assert (status, out) == (1, "0 sent, 0 to be tried again, 2 dead\n")
    listed = command("outbox", "list", "--state", "dead")[1]
    assert "invalid_auth" in listed
    slack.token = "xoxb-local-token"
    assert command("outbox", "retry", "--dead")[:2] == (0, "2 due now\n")
    assert command("outbox", "send")[1] == "2 sent, 0 to be tried again, 0 dead\n"
    assert len(slack.visible("C1")) == 2


def test_the_bot_sends_and_hears(slack: SlackServer, command: Command) -> None:
    """`triage bot slack` as a process: what waits is posted, a press is acknowledged and shown, and SIGTERM ends it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "triage", "bot", "slack", "--port", "0"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        heard = re.search(r"http://\S+", process.stdout.readline())
        assert heard
        slack.wait(lambda: len(slack.visible("C1")) == 2)
        message = slack.visible("C1")[0]
        answer = slack.click(heard[0], "C1", message["ts"], "triage.agree", user="ANNA")
        assert (answer.status, answer.seconds < 3) == (200, True)
        slack.wait(lambda: "Agreed by anna" in json.dumps(slack.visible("C1")[0]))
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")


def test_a_bot_without_its_secrets_says_what_is_missing(
    command: Command, slack: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it listens."""
    monkeypatch.setenv("TRIAGE_SLACK_SIGNING_SECRET", "")
    assert "TRIAGE_SLACK_SIGNING_SECRET" in command("bot", "slack")[2]
    monkeypatch.setenv("TRIAGE_SLACK_TOKEN", "")
    status, _, errors = command("bot", "slack")
    assert (status, "TRIAGE_SLACK_TOKEN" in errors) == (2, True)
