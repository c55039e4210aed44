"""Signed webhooks against a receiver that checks them: each delivery is taken once, whatever breaks."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bots.making import Bench, same_job
from tests.store.making import NOW, known, unknown
from triage.bots.http import call
from triage.bots.webhook import WebhookBot, send, signature
from triage.bots.work import work
from triage.render import json as reports
from triage.settings.routing import Route
from triage.settings.webhook import Webhook
from triage.testing.webhook import WebhookServer

Command = Callable[..., tuple[int, str, str]]


def deliver(bench: Bench, hook: WebhookServer, rounds: int = 1, name: str = "pager") -> None:
    settings = Webhook.model_validate({"targets": {name: {"url": f"{hook.url}/x", "secret": "s3cret"}}, "timeout": 5})
    for _ in range(rounds):
        work(bench.store, [WebhookBot(settings, "https://triage.example")], clock=lambda: bench.now)
        bench.now += 3600


@pytest.fixture
def routed(bench: Bench) -> Bench:
    bench.routing = bench.routing.model_copy(update={"routes": (Route(to="webhook:pager"),)})
    return bench


@pytest.mark.parametrize("trouble", ["429", "500", "cut", "cut after", "half"])
def test_taken_once(routed: Bench, trouble: str) -> None:
    """With incident, link and the whole report; another verdict is another delivery of the same topic."""
    with WebhookServer("s3cret") as hook:
        hook.trouble("", trouble, times=2)
        stored = routed.ingest(unknown("a"))
        deliver(routed, hook, rounds=4)
        routed.ingest(unknown("a"))
        deliver(routed, hook)
        (taken,) = hook.accepted
        assert (taken["schema"], taken["incident"], taken["link"]) == (
            "triage.webhook/1",
            stored.id,
            f"https://triage.example/incidents/{stored.id}",
        )
        assert taken["diagnosis"]["verdict"] == "unknown"
        routed.ingest(same_job(unknown("a"), known("a")))
        deliver(routed, hook)
        assert [item["diagnosis"]["verdict"] for item in hook.accepted] == ["unknown", "known"]
        assert len({item["topic"] for item in hook.accepted}) == 1
    assert {post.state for post in routed.store.outbox.listed() if post.kind == "webhook"} == {"sent"}


def test_a_wrong_secret_and_a_missing_target_are_dead_letters(routed: Bench) -> None:
    """With what to do; mended and tried again, they arrive."""
    with WebhookServer("other") as hook:
        routed.ingest(known("a"))
        deliver(routed, hook)
        (post,) = routed.store.outbox.listed(state="dead")
        assert "401" in (post.error or "")
        hook.secret = "s3cret"
        assert routed.store.outbox.retry(post.id, now=NOW)
        deliver(routed, hook, name="another")
        (post,) = routed.store.outbox.listed(state="dead")
        assert "[webhook.targets.pager]" in (post.error or "")
        assert routed.store.outbox.retry(post.id, now=NOW)
        deliver(routed, hook)
        assert len(hook.accepted) == 1


def test_the_receiver_refuses_what_is_stale_or_forged() -> None:
    """The stamp is part of what is signed, and a delivery counts once."""
    with WebhookServer("s3cret") as hook:
        for stamp, signed, status in (
            (time.time(), None, 200),
            (time.time() - 1000, None, 401),
            (time.time() + 20, time.time(), 401),
        ):
            named = signature("s3cret", str(int(signed or stamp)), b"{}")
            headers = {"X-Triage-Timestamp": str(int(stamp)), "X-Triage-Signature": named, "X-Triage-Delivery": "1"}
            assert call("POST", hook.url, headers=headers, body=b"{}", timeout=5).status == status
        send(hook.url, "s3cret", b"{}", "1")
        assert len(hook.accepted) == 1


def test_from_the_command_line(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`triage post webhook` with the secret of the environment, tried again, taken once."""
    path = tmp_path / "report.json"
    path.write_text(reports.render(known("a")), encoding="utf-8")
    monkeypatch.setattr("time.sleep", lambda _: None)
    with WebhookServer("s3cret") as hook:
        assert "TRIAGE_WEBHOOK_SECRET" in command("post", "webhook", str(path), "--url", hook.url)[2]
        monkeypatch.setenv("TRIAGE_WEBHOOK_SECRET", "s3cret")
        hook.trouble("", "cut after", times=2)
        assert command("post", "webhook", str(path), "--url", hook.url)[0] == 0
        assert len(hook.accepted) == 1
        status, _, errors = command("post", "webhook", str(path), "--url", "file:///etc/passwd")
        assert status == 2
        assert "Traceback" not in errors
