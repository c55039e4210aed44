"""Signed webhooks arrive exactly once at a receiver that checks them, whatever fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bots.factories import Bench, same_job
from tests.store.factories import NOW, known_diagnosis, unknown_diagnosis
from triage.bots.http import send_request
from triage.bots.interface import Undelivered
from triage.bots.webhook import WebhookBot, send, signature
from triage.bots.work import deliver_due
from triage.render import json as reports
from triage.settings.notifications import Route, WebhookSettings
from triage.store import Store
from triage.store.outbox import Post
from triage.testing.local import Reply
from triage.testing.webhook import WebhookServer

Command = Callable[..., tuple[int, str, str]]


def deliver(bench: Bench, hook: WebhookServer, rounds: int = 1, name: str = "pager") -> None:
    settings = WebhookSettings.model_validate(
        {"targets": {name: {"url": f"{hook.url}/x", "secret": "s3cret"}}, "timeout": 5}
    )
    for _ in range(rounds):
        deliver_due(bench.store, [WebhookBot(settings, "https://triage.example")], clock=lambda: bench.now)
        bench.now += 3600


@pytest.fixture
def webhook_bench(bench: Bench) -> Bench:
    bench.routing = bench.routing.model_copy(update={"routes": (Route(to="webhook:pager"),)})
    return bench


@pytest.mark.parametrize("failure", ["429", "500", "cut", "cut after", "half"])
def test_each_state_is_accepted_once(webhook_bench: Bench, failure: str) -> None:
    """The body has incident, link and report; another verdict is another delivery of the same topic."""
    with WebhookServer("s3cret") as hook:
        hook.inject_failure("", failure, times=2)
        stored = webhook_bench.ingest(unknown_diagnosis("a"))
        deliver(webhook_bench, hook, rounds=4)
        webhook_bench.ingest(unknown_diagnosis("a"))
        deliver(webhook_bench, hook)
        (body,) = hook.accepted
        assert (body["schema"], body["incident"], body["link"]) == (
            "triage.webhook/1",
            stored.id,
            f"https://triage.example/incidents/{stored.id}",
        )
        assert body["diagnosis"]["verdict"] == "unknown"
        webhook_bench.ingest(same_job(unknown_diagnosis("a"), known_diagnosis("a")))
        deliver(webhook_bench, hook)
        assert [item["diagnosis"]["verdict"] for item in hook.accepted] == ["unknown", "known"]
        assert len({item["topic"] for item in hook.accepted}) == 1
    assert {post.state for post in webhook_bench.store.outbox.list_posts() if post.kind == "webhook"} == {"sent"}


@pytest.mark.parametrize("is_sent", [False, True])
def test_a_kill_leaves_one_delivery(webhook_bench: Bench, monkeypatch: pytest.MonkeyPatch, is_sent: bool) -> None:
    """A process killed before or after the request leaves one delivery that the receiver accepts."""
    deliver_post = WebhookBot.deliver

    def die(bot: WebhookBot, post: Post, store: Store, now: float) -> str:
        if is_sent:
            deliver_post(bot, post, store, now)
        raise SystemExit

    with WebhookServer("s3cret") as hook:
        webhook_bench.ingest(known_diagnosis("a"))
        with monkeypatch.context() as patch:
            patch.setattr(WebhookBot, "deliver", die)
            with pytest.raises(SystemExit):
                deliver(webhook_bench, hook)
        webhook_bench.now += 3600  # the lease of the killed process ends
        deliver(webhook_bench, hook, rounds=2)
        assert len(hook.accepted) == 1


def test_a_wrong_secret_and_a_missing_target_are_dead_letters(webhook_bench: Bench) -> None:
    """The errors say what to do; after a fix and a retry the deliveries arrive."""
    with WebhookServer("other") as hook:
        webhook_bench.ingest(known_diagnosis("a"))
        deliver(webhook_bench, hook)
        (post,) = webhook_bench.store.outbox.list_posts(state="dead")
        assert "401" in (post.error or "")
        hook.secret = "s3cret"
        assert webhook_bench.store.outbox.retry(post.id, now=NOW)
        deliver(webhook_bench, hook, name="another")
        (post,) = webhook_bench.store.outbox.list_posts(state="dead")
        assert "[webhook.targets.pager]" in (post.error or "")
        assert webhook_bench.store.outbox.retry(post.id, now=NOW)
        deliver(webhook_bench, hook)
        assert len(hook.accepted) == 1


def test_a_redirect_is_not_followed(webhook_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver that answers with the address of an internal service makes triage call nothing."""
    with WebhookServer("s3cret") as internal, WebhookServer("s3cret") as hook:
        answer = Reply(302, b"", {"Location": f"{internal.url}/latest/meta-data"})
        monkeypatch.setattr(hook, "handle", lambda request: answer)
        webhook_bench.ingest(unknown_diagnosis("a"))
        deliver(webhook_bench, hook, rounds=2)
        assert hook.requests
        assert internal.requests == []
    assert {post.state for post in webhook_bench.store.outbox.list_posts() if post.kind == "webhook"} == {"dead"}


@pytest.mark.parametrize("address", ["file:///etc/passwd", "gopher://127.0.0.1/", "ftp://127.0.0.1/x", "//127.0.0.1"])
def test_only_web_addresses_are_called(address: str) -> None:
    """Addresses of files and of other protocols are refused with a hint, before anything is opened."""
    with pytest.raises(Undelivered, match="is not a web address"):
        send_request("POST", address, body=b"{}")


def test_the_receiver_refuses_old_and_forged_requests() -> None:
    """The signature covers the timestamp, and a repeated delivery counts once."""
    with WebhookServer("s3cret") as hook:
        for timestamp, signed_at, status in (
            (time.time(), None, 200),
            (time.time() - 1000, None, 401),
            (time.time() + 20, time.time(), 401),
        ):
            signed = signature("s3cret", str(int(signed_at or timestamp)), b"{}")
            headers = {
                "X-Triage-Timestamp": str(int(timestamp)),
                "X-Triage-Signature": signed,
                "X-Triage-Delivery": "1",
            }
            assert send_request("POST", hook.url, headers=headers, body=b"{}", timeout=5).status == status
        send(hook.url, "s3cret", b"{}", "1")
        assert len(hook.accepted) == 1


def test_post_webhook_retries_and_arrives_once(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`triage post webhook` uses the secret of the environment."""
    path = tmp_path / "report.json"
    path.write_text(reports.render(known_diagnosis("a")), encoding="utf-8")
    monkeypatch.setattr("time.sleep", lambda _: None)
    with WebhookServer("s3cret") as hook:
        assert "TRIAGE_WEBHOOK_SECRET" in command("post", "webhook", str(path), "--url", hook.url)[2]
        monkeypatch.setenv("TRIAGE_WEBHOOK_SECRET", "s3cret")
        hook.inject_failure("", "cut after", times=2)
        assert command("post", "webhook", str(path), "--url", hook.url)[0] == 0
        assert len(hook.accepted) == 1
        status, _, errors = command("post", "webhook", str(path), "--url", "file:///etc/passwd")
        assert status == 2
        assert "Traceback" not in errors
