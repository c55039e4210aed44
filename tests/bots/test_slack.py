"""End to end with the real SDK against the local Slack: exactly one visible message, whatever breaks on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.bots.making import CHANNEL, Bench, same_job
from tests.store.making import clean, known, unknown
from triage.bots.announce import Topic, announce
from triage.bots.slack.client import Client
from triage.store.told import Part

ROOT = Path(__file__).resolve().parents[2]


def one_message(bench: Bench, text: str = "What cuda.out-of-memory says") -> None:
    """One message and one reply in its thread, both whole, and nothing left to send."""
    assert len(bench.visible()) == 1
    assert text in bench.text()
    assert len(bench.visible(thread=True)) == 1
    assert [post.state for post in bench.store.outbox.listed() if post.kind == "slack"].count("sent") == len(
        [post for post in bench.store.outbox.listed() if post.kind == "slack"]
    )


def test_a_failure_is_told_with_its_evidence_in_the_thread(bench: Bench) -> None:
    """Cause, who, advice, link and buttons in the message; the line of the log below it."""
    stored = bench.ingest(known("a"))
    bench.work()
    one_message(bench)
    assert (
        "1 of 2 ranks, rank 1 on node1 at 2025-11-21 04:40:00 · high confidence · `cuda.out-of-memory`" in bench.text()
    )
    assert f"<https://triage.example/incidents/{stored.id}|{stored.id}>" in bench.text()
    assert "CUDA out of memory. Tried to allocate 2.00 GiB" in str(bench.visible(thread=True)[0]["blocks"])
    assert bench.visible()[0]["blocks"][-1]["type"] == "actions"


def test_told_once_however_often_it_is_ingested(bench: Bench) -> None:
    """The same files again change nothing, not even an edit."""
    for _ in range(3):
        bench.ingest(known("a"))
        bench.work()
    one_message(bench)
    assert "edited" not in bench.visible()[0]


def test_another_verdict_edits_the_message_and_its_thread(bench: Bench) -> None:
    """Updated in place, also when the job turns out to be well."""
    first = unknown("a")
    bench.ingest(first)
    bench.work()
    ts = bench.visible()[0]["ts"]
    assert "Unknown failure" in bench.text()
    bench.ingest(same_job(first, known("a")))
    bench.work()
    one_message(bench)
    assert bench.visible()[0]["ts"] == ts
    assert "Before: u-7f3a9c" in bench.text()
    bench.ingest(same_job(first, clean("a")))
    bench.work()
    one_message(bench, "Clean:")


def test_retriage_reaches_those_who_were_told(bench: Bench) -> None:
    """What the store notes as changed becomes an edit of the message."""
    stored = bench.ingest(unknown("a"))
    bench.work()
    bench.store.incidents.rewrite(
        bench.store.incidents.number(stored.id), same_job(unknown("a"), known("a")), "retriage"
    )
    bench.now = time.time()
    bench.work(rounds=2)
    one_message(bench)


@pytest.mark.parametrize("kind", ["429", "500", "503", "cut", "cut after", "half"])
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("method", ["chat.postMessage", "conversations", "chat.update"])
def test_one_message_whatever_slack_does(bench: Bench, kind: str, times: int, method: str) -> None:
    """Rate limits, errors of the server, connections cut before, after and in the middle of the answer, once or several
    times in a row.
    """
    bench.slack.trouble(method, kind, times=times)
    if method == "conversations":
        bench.slack.trouble("chat.postMessage", "cut after", times=2)
    bench.slack.retry_after = 0
    bench.ingest(known("a"))
    bench.work(rounds=6)
    if method == "chat.update":
        bench.ingest(same_job(known("a"), known("a", "cuda.other")))
        bench.work(rounds=6)
    one_message(bench, "What cuda.other says" if method == "chat.update" else "What cuda.out-of-memory says")


def test_a_rate_limit_puts_off_for_as_long_as_slack_says(bench: Bench) -> None:
    """Retry-After is the time of the next try; nothing is tried before."""
    bench.slack.trouble("chat.postMessage", "429")
    bench.slack.retry_after = 300
    bench.ingest(known("a"))
    (done,) = bench.work(rounds=1)
    assert (done.sent, done.later) == (0, 1)
    (post,) = bench.store.outbox.listed()
    assert post.next_at == pytest.approx(bench.now - 3600 + 300)
    assert bench.visible() == []
    bench.work()
    one_message(bench)


def test_a_channel_gets_a_message_a_second(bench: Bench) -> None:
    """Two posts to one channel are a second apart, as Slack asks for."""
    waited: list[float] = []
    from triage.bots.slack.deliver import SlackBot

    bench.ingest(known("a"))
    bench.work(bot=SlackBot(bench.settings, clock=lambda: 100.0, sleep=waited.append))
    assert waited == [1.0]


class Killed(BaseException):
    """Stands for SIGKILL: nothing of the bot runs after it."""


class Dying:
    """A client that makes the bot die right after Slack has done what was asked."""

    def __init__(self, client: Client, call: str, after: int) -> None:
        self._client, self._call, self._left = client, call, after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if name != self._call:
            return found

        def act(*arguments: Any) -> Any:
            result = found(*arguments)
            self._left -= 1
            if self._left < 0:
                raise Killed
            return result

        return act


@pytest.mark.parametrize(("call", "after"), [("post", 0), ("post", 1), ("edit", 0), ("edit", 1)])
def test_killed_between_post_and_commit(bench: Bench, call: str, after: int) -> None:
    """The next bot finds in the channel what the dead one had posted, and goes on from there."""
    from triage.bots.slack.deliver import SlackBot

    first = unknown("a")
    if call == "edit":
        bench.ingest(first)
        bench.work()
    bench.slack.say(CHANNEL, "something else")
    bench.ingest(same_job(first, known("a")))
    dying: Any = Dying(Client(bench.settings), call, after)
    with pytest.raises(Killed):
        bench.work(bot=SlackBot(bench.settings, "https://triage.example", client=dying, sleep=lambda _: None))
    for number in range(3):
        bench.slack.say(CHANNEL, f"talk {number}")
    bench.now = max(bench.now, time.time()) + 3600
    bench.work(rounds=2)
    ours = [message for message in bench.visible() if "bot_id" in message]
    assert len(ours) == 1
    assert len(bench.slack.visible(CHANNEL, ours[0]["ts"])) == 1
    assert "What cuda.out-of-memory says" in str(ours[0]["blocks"])


def test_a_bot_that_is_killed_by_the_system(bench: Bench, tmp_path: Path) -> None:
    """A real process, SIGKILL in the middle of its post: Slack answers slowly, the process is gone, the message stays
    one.
    """
    bench.now = time.time() - 7200
    bench.ingest(known("a"))
    bench.slack.slowness = 20
    bench.slack.trouble("chat.postMessage", "slow")
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
    one_message(bench)


def test_two_bots_at_once_make_one_message(bench: Bench) -> None:
    """While one bot sends, another takes nothing about the same message."""
    bench.ingest(known("a"))
    taken = bench.store.outbox.take(60, kinds=("slack",), now=bench.now)
    assert taken is not None
    bench.ingest(same_job(known("a"), known("a", "cuda.other")))
    bench.work()
    bench.now -= 3600
    assert bench.visible() == []
    bench.now += 61
    bench.work(rounds=2)
    one_message(bench, "What cuda.other says")


def test_what_an_operator_must_mend_is_a_dead_letter_until_it_is_mended(bench: Bench) -> None:
    """A channel that is not there: not tried again by itself, sent when a person says so. Nothing is lost."""
    from triage.settings.routing import Route

    bench.routing = bench.routing.model_copy(update={"routes": (Route(to="slack:C9"),)})
    bench.ingest(known("a"))
    bench.work(rounds=3)
    (post,) = bench.store.outbox.listed(state="dead")
    assert "channel_not_found" in (post.error or "")
    assert post.attempts == 1
    bench.slack.channel("C9")
    assert bench.store.outbox.retry(post.id, now=bench.now)
    bench.work()
    assert len(bench.slack.visible("C9")) == 1


def test_a_service_that_is_down_for_days_loses_nothing(bench: Bench) -> None:
    """Everything waits, tries are ever rarer, and arrives when it is back."""
    bench.slack.trouble("", "503", times=10_000)
    for name in ("a", "b"):
        bench.ingest(known(name, host=f"host-{name}"))
    for _ in range(5):
        bench.work()
        bench.now += 12 * 3600
    assert bench.visible() == []
    assert {post.state for post in bench.store.outbox.listed()} == {"waiting"}
    bench.slack._troubles.clear()
    bench.work(rounds=2)
    assert len(bench.visible()) == 2


def test_deleted_by_a_person_stays_deleted(bench: Bench) -> None:
    """A message that somebody removed is not posted again."""
    first = unknown("a")
    bench.ingest(first)
    bench.work()
    bench.slack._channels[CHANNEL].clear()
    bench.ingest(same_job(first, known("a")))
    bench.work(rounds=2)
    assert bench.visible() == []
    assert bench.store.outbox.listed(state="dead") == []


def test_parts_are_noted_before_and_after(bench: Bench) -> None:
    """What is tried and has no name yet is what the next try looks for."""
    bench.ingest(known("a"))
    message = bench.store.told.message("slack", CHANNEL, f"{known('a').job.id}/0")
    assert message is not None
    assert bench.store.told.part(message.id, "message") == Part()
    bench.slack.trouble("chat.postMessage", "cut")
    bench.work()
    assert bench.store.told.part(message.id, "message") == Part(tried=True)


def test_a_secret_of_a_log_reaches_nobody(bench: Bench, tmp_path: Path) -> None:
    """Told with an incident or without: neither Slack nor the store's file has it."""
    secret = "hunter2hunter2"
    found = unknown("a", f"ValueError: cannot connect, password={secret}")
    bench.ingest(found)
    announce(
        bench.store,
        Topic("watch:x/0", None, unknown("b", f"OSError: token={secret}", "u-0a0a0a")),
        bench.routing,
        now=bench.now,
    )
    bench.work()
    assert len(bench.visible()) == 2
    assert "[redacted" in bench.text()
    assert not [request for request in bench.slack.requests if secret.encode() in request.body]
    bench.store.connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert secret.encode() not in (tmp_path / "triage.db").read_bytes()
