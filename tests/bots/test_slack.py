"""With the real SDK against the local Slack: exactly one visible message, whatever fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.bots.factories import CHANNEL, Bench, same_job
from tests.store.factories import clean_diagnosis, known_diagnosis, unknown_diagnosis
from triage.bots.announce import Topic, announce
from triage.bots.slack.client import Client
from triage.store.notifications import NotificationPart

ROOT = Path(__file__).resolve().parents[2]


def assert_one_message(bench: Bench, text: str = "What cuda.out-of-memory says") -> None:
    """Assert that there is one complete message with one reply, and nothing left to send."""
    assert len(bench.visible()) == 1
    assert text in bench.text()
    assert len(bench.visible(thread=True)) == 1
    assert [post.state for post in bench.store.outbox.list_posts() if post.kind == "slack"].count("sent") == len(
        [post for post in bench.store.outbox.list_posts() if post.kind == "slack"]
    )


def test_a_failure_is_posted_with_its_evidence_in_the_thread(bench: Bench) -> None:
    """The message has cause, rank, advice, link and buttons; the reply has the log line."""
    stored = bench.ingest(known_diagnosis("a"))
    bench.work()
    assert_one_message(bench)
    assert (
        "1 of 2 ranks, rank 1 on node1 at 2025-11-21 04:40:00 · high confidence · `cuda.out-of-memory`" in bench.text()
    )
    assert f"<https://triage.example/incidents/{stored.id}|{stored.id}>" in bench.text()
    assert "CUDA out of memory. Tried to allocate 2.00 GiB" in str(bench.visible(thread=True)[0]["blocks"])
    assert bench.visible()[0]["blocks"][-1]["type"] == "actions"


def test_repeated_ingest_posts_once(bench: Bench) -> None:
    """The same files again cause no edit."""
    for _ in range(3):
        bench.ingest(known_diagnosis("a"))
        bench.work()
    assert_one_message(bench)
    assert "edited" not in bench.visible()[0]


def test_another_verdict_edits_the_message_and_its_thread(bench: Bench) -> None:
    """They are updated in place, also when the job turns out to be healthy."""
    first = unknown_diagnosis("a")
    bench.ingest(first)
    bench.work()
    ts = bench.visible()[0]["ts"]
    assert "Unknown failure" in bench.text()
    bench.ingest(same_job(first, known_diagnosis("a")))
    bench.work()
    assert_one_message(bench)
    assert bench.visible()[0]["ts"] == ts
    assert "Earlier diagnosis: u-7f3a9c" in bench.text()
    bench.ingest(same_job(first, clean_diagnosis("a")))
    bench.work()
    assert_one_message(bench, "Clean:")


def test_retriage_edits_the_message(bench: Bench) -> None:
    """A changed diagnosis in the store becomes an edit."""
    stored = bench.ingest(unknown_diagnosis("a"))
    bench.work()
    bench.store.incidents.replace_diagnosis(
        bench.store.incidents.find_number(stored.id), same_job(unknown_diagnosis("a"), known_diagnosis("a")), "retriage"
    )
    bench.now = time.time()
    bench.work(rounds=2)
    assert_one_message(bench)


@pytest.mark.parametrize("kind", ["429", "500", "503", "cut", "cut after", "half"])
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("method", ["chat.postMessage", "conversations", "chat.update"])
def test_one_message_whatever_slack_does(bench: Bench, kind: str, times: int, method: str) -> None:
    """Rate limits, server errors and cut connections, once or several times, still leave one message."""
    bench.slack.inject_failure(method, kind, times=times)
    if method == "conversations":
        bench.slack.inject_failure("chat.postMessage", "cut after", times=2)
    bench.slack.retry_after = 0
    bench.ingest(known_diagnosis("a"))
    bench.work(rounds=6)
    if method == "chat.update":
        bench.ingest(same_job(known_diagnosis("a"), known_diagnosis("a", "cuda.other")))
        bench.work(rounds=6)
    assert_one_message(bench, "What cuda.other says" if method == "chat.update" else "What cuda.out-of-memory says")


def test_a_rate_limit_delays_the_next_try(bench: Bench) -> None:
    """The next try comes after the time in Retry-After."""
    bench.slack.inject_failure("chat.postMessage", "429")
    bench.slack.retry_after = 300
    bench.ingest(known_diagnosis("a"))
    (counts,) = bench.work(rounds=1)
    assert (counts.sent, counts.later) == (0, 1)
    (post,) = bench.store.outbox.list_posts()
    assert post.next_at == pytest.approx(bench.now - 3600 + 300)
    assert bench.visible() == []
    bench.work()
    assert_one_message(bench)


def test_posts_to_a_channel_are_a_second_apart(bench: Bench) -> None:
    """The bot waits between two posts, as Slack requires."""
    waits: list[float] = []
    from triage.bots.slack.deliver import SlackBot

    bench.ingest(known_diagnosis("a"))
    bench.work(bot=SlackBot(bench.settings, clock=lambda: 100.0, sleep=waits.append))
    assert waits == [1.0]


class Killed(BaseException):
    """Stands for SIGKILL: no code of the bot runs after it."""


class KillingClient:
    """A client that kills the bot right after Slack handled a call."""

    def __init__(self, client: Client, call: str, after: int) -> None:
        self._client, self._call, self._left = client, call, after

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if name != self._call:
            return method

        def act(*arguments: Any) -> Any:
            result = method(*arguments)
            self._left -= 1
            if self._left < 0:
                raise Killed
            return result

        return act


@pytest.mark.parametrize(("call", "after"), [("post", 0), ("post", 1), ("edit", 0), ("edit", 1)])
def test_killed_between_post_and_commit(bench: Bench, call: str, after: int) -> None:
    """The next bot finds the message of the killed one in the channel and continues."""
    from triage.bots.slack.deliver import SlackBot

    first = unknown_diagnosis("a")
    if call == "edit":
        bench.ingest(first)
        bench.work()
    bench.slack.post_as_user(CHANNEL, "something else")
    bench.ingest(same_job(first, known_diagnosis("a")))
    client: Any = KillingClient(Client(bench.settings), call, after)
    with pytest.raises(Killed):
        bench.work(bot=SlackBot(bench.settings, "https://triage.example", client=client, sleep=lambda _: None))
    for number in range(3):
        bench.slack.post_as_user(CHANNEL, f"talk {number}")
    bench.now = max(bench.now, time.time()) + 3600
    bench.work(rounds=2)
    ours = [message for message in bench.visible() if "bot_id" in message]
    assert len(ours) == 1
    assert len(bench.slack.visible(CHANNEL, ours[0]["ts"])) == 1
    assert "What cuda.out-of-memory says" in str(ours[0]["blocks"])


def test_sigkill_during_a_post_leaves_one_message(bench: Bench, tmp_path: Path) -> None:
    """A real process is killed while Slack answers slowly."""
    bench.now = time.time() - 7200
    bench.ingest(known_diagnosis("a"))
    bench.slack.delay = 20
    bench.slack.inject_failure("chat.postMessage", "slow")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TRIAGE_STORE": str(tmp_path / "triage.db"),
        "TRIAGE_SLACK_TOKEN": bench.slack.token,
        "TRIAGE_SLACK_API_URL": f"{bench.slack.url}/api/",
    }
    process = subprocess.Popen([sys.executable, "-m", "triage", "outbox", "send"], env=environment, cwd=tmp_path)
    until = time.monotonic() + 60
    while not bench.slack.visible(CHANNEL) and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    assert len(bench.visible()) == 1
    bench.now = time.time() + 3600
    bench.work(rounds=2)
    assert_one_message(bench)


def test_two_bots_at_once_make_one_message(bench: Bench) -> None:
    """While one bot sends a message, another takes no post of the same message."""
    bench.ingest(known_diagnosis("a"))
    taken = bench.store.outbox.take(60, kinds=("slack",), now=bench.now)
    assert taken is not None
    bench.ingest(same_job(known_diagnosis("a"), known_diagnosis("a", "cuda.other")))
    bench.work()
    bench.now -= 3600
    assert bench.visible() == []
    bench.now += 61
    bench.work(rounds=2)
    assert_one_message(bench, "What cuda.other says")


def test_a_missing_channel_is_a_dead_letter_until_a_retry(bench: Bench) -> None:
    """It is not retried automatically, and `outbox retry` sends it."""
    from triage.settings.notifications import Route

    bench.routing = bench.routing.model_copy(update={"routes": (Route(to="slack:C9"),)})
    bench.ingest(known_diagnosis("a"))
    bench.work(rounds=3)
    (post,) = bench.store.outbox.list_posts(state="dead")
    assert "channel_not_found" in (post.error or "")
    assert post.attempts == 1
    bench.slack.add_channel("C9")
    assert bench.store.outbox.retry(post.id, now=bench.now)
    bench.work()
    assert len(bench.slack.visible("C9")) == 1


def test_nothing_is_lost_while_slack_is_down(bench: Bench) -> None:
    """Posts wait for days and arrive when the service is back."""
    bench.slack.inject_failure("", "503", times=10_000)
    for name in ("a", "b"):
        bench.ingest(known_diagnosis(name, host=f"host-{name}"))
    for _ in range(5):
        bench.work()
        bench.now += 12 * 3600
    assert bench.visible() == []
    assert {post.state for post in bench.store.outbox.list_posts()} == {"waiting"}
    bench.slack._failures.clear()
    bench.work(rounds=2)
    assert len(bench.visible()) == 2


def test_a_deleted_message_stays_deleted(bench: Bench) -> None:
    """A message that a person deleted is not posted again."""
    first = unknown_diagnosis("a")
    bench.ingest(first)
    bench.work()
    bench.slack._channels[CHANNEL].clear()
    bench.ingest(same_job(first, known_diagnosis("a")))
    bench.work(rounds=2)
    assert bench.visible() == []
    assert bench.store.outbox.list_posts(state="dead") == []


def test_a_try_is_recorded_before_the_post(bench: Bench) -> None:
    """A part that was tried and has no `ts` is searched for by the next try."""
    bench.ingest(known_diagnosis("a"))
    message = bench.store.notifications.get("slack", CHANNEL, f"{known_diagnosis('a').job.id}/0")
    assert message is not None
    assert bench.store.notifications.get_part(message.id, "message") == NotificationPart()
    bench.slack.inject_failure("chat.postMessage", "cut")
    bench.work()
    assert bench.store.notifications.get_part(message.id, "message") == NotificationPart(tried=True)


def test_secrets_of_a_log_are_redacted(bench: Bench, tmp_path: Path) -> None:
    """Neither Slack nor the file of the store contains them, with or without an incident."""
    secret = "hunter2hunter2"
    bench.ingest(unknown_diagnosis("a", f"ValueError: cannot connect, password={secret}"))
    announce(
        bench.store,
        Topic("watch:x/0", None, unknown_diagnosis("b", f"OSError: token={secret}", "u-0a0a0a")),
        bench.routing,
        now=bench.now,
    )
    bench.work()
    assert len(bench.visible()) == 2
    assert "[redacted" in bench.text()
    assert not [request for request in bench.slack.requests if secret.encode() in request.body]
    bench.store.connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert secret.encode() not in (tmp_path / "triage.db").read_bytes()
