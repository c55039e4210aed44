"""`triage outbox` and `triage bot slack` list, retry, drop and send notifications."""

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

from tests.store.factories import NOW, known_diagnosis
from triage.bots.announce import store_and_announce
from triage.settings.notifications import Route, RoutingSettings
from triage.store import Store
from triage.testing.slack import SlackServer

pytest.importorskip("slack_sdk")
Command = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).resolve().parents[2]
ROUTING = RoutingSettings(routes=(Route(to="slack:C1"),))


@pytest.fixture
def slack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlackServer]:
    """A local Slack, settings for it, and a store with two waiting notifications."""
    with SlackServer() as server:
        server.add_channel("C1")
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
                store_and_announce(store, known_diagnosis(name, host=f"host-{name}"), ROUTING, now=NOW)
        yield server


def states(command: Command) -> dict[int, str]:
    listing = json.loads(command("outbox", "list", "--format", "json")[1])
    assert listing["schema"] == "triage.outbox/1"
    return {post["id"]: post["state"] for post in listing["posts"]}


def test_notifications_are_listed_dropped_and_sent(command: Command, slack: SlackServer) -> None:
    """A sent notification cannot be retried, and a missing one is an error."""
    first, second = sorted(states(command))
    assert set(states(command).values()) == {"waiting"}
    assert "slack" in command("outbox", "list")[1]
    assert command("outbox", "drop", first)[:2] == (0, "1 dropped\n")
    assert command("outbox", "send")[:2] == (0, "1 sent, 0 to be tried again, 0 dead\n")
    assert states(command) == {first: "dropped", second: "sent"}
    assert len(slack.visible("C1")) == 1
    status, _, errors = command("outbox", "retry", second)
    assert (status, "is sent" in errors) == (2, True)
    assert "has no notification 99" in command("outbox", "retry", 99)[2]
    assert command("outbox", "retry")[0] == 2
    assert command("outbox", "retry", first)[0] == 0
    assert command("outbox", "send")[1] == "1 sent, 0 to be tried again, 0 dead\n"
    assert command("outbox", "list", "--state", "dead")[1] == "no posts\n"


def test_dead_notifications_can_be_retried(command: Command, slack: SlackServer) -> None:
    """A wrong token makes them dead with exit status 1; with the right one a retry sends them."""
    slack.token = "xoxb-another"
    status, out, _ = command("outbox", "send")
    assert (status, out) == (1, "0 sent, 0 to be tried again, 2 dead\n")
    listed = command("outbox", "list", "--state", "dead")[1]
    first, second = sorted(states(command))
    assert re.search(rf"^{second}, {first}: .*invalid_auth", listed, re.MULTILINE)
    assert all(len(line) <= 100 for line in listed.splitlines())
    slack.token = "xoxb-local-token"
    assert command("outbox", "retry", "--dead")[:2] == (0, "2 due now\n")
    assert command("outbox", "send")[1] == "2 sent, 0 to be tried again, 0 dead\n"
    assert len(slack.visible("C1")) == 2


def test_the_bot_sends_and_listens(slack: SlackServer, command: Command) -> None:
    """`triage bot slack` posts waiting notifications, handles a button, and ends with SIGTERM."""
    process = subprocess.Popen(
        [sys.executable, "-m", "triage", "bot", "slack", "--port", "0"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address
        slack.wait(lambda: len(slack.visible("C1")) == 2)
        message = slack.visible("C1")[0]
        answer = slack.click(address[0], "C1", message["ts"], "triage.agree", user="ANNA")
        assert (answer.status, answer.seconds < 3) == (200, True)
        slack.wait(lambda: "Marked as right by anna" in json.dumps(slack.visible("C1")[0]))
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")


def test_a_bot_without_its_secrets_names_the_missing_setting(
    command: Command, slack: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error comes before it listens."""
    monkeypatch.setenv("TRIAGE_SLACK_SIGNING_SECRET", "")
    assert "TRIAGE_SLACK_SIGNING_SECRET" in command("bot", "slack")[2]
    monkeypatch.setenv("TRIAGE_SLACK_TOKEN", "")
    status, _, errors = command("bot", "slack")
    assert (status, "TRIAGE_SLACK_TOKEN" in errors) == (2, True)


@pytest.mark.parametrize(
    ("token", "failure", "warning"), [("xoxb-another", "", "refused"), ("", "503", "not delivered yet")]
)
def test_a_report_says_what_became_of_its_notifications(
    command: Command, slack: SlackServer, monkeypatch: pytest.MonkeyPatch, token: str, failure: str, warning: str
) -> None:
    """One that Slack refuses will not be tried again; one that waits will be."""
    monkeypatch.setenv("TRIAGE_ROUTING_ROUTES", json.dumps([{"to": "slack:C1"}]))
    command("outbox", "drop", *states(command))
    slack.token = token or slack.token
    if failure:
        slack.inject_failure("chat.postMessage", failure, times=9)
    job = ROOT / "samples" / "jobs" / "exception_one_rank_tee" / "job"
    status, out, _ = command("ingest", job, "--notify")
    assert (status, f"1 notification {warning}" in out) == (0, True), out
