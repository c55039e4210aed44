"""Teams, Discord, PagerDuty, Opsgenie and e-mail show one message, whatever fails, as far as their protocols allow."""

from __future__ import annotations

import email.policy
import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.bots.factories import Bench, same_job
from tests.store.factories import known_diagnosis, unknown_diagnosis
from triage.bots import apprise_client, discord
from triage.bots.apprise_client import ChannelMessage
from triage.bots.channel import ChannelBot
from triage.bots.interface import Undelivered
from triage.bots.work import deliver_due
from triage.settings.loading import load
from triage.settings.notifications import ChannelSettings, Route
from triage.testing.channels import ChannelServer, MailServer
from triage.testing.local import Reply, Request

requests = pytest.importorskip("requests")
pytest.importorskip("apprise")

# A module of apprise imports it, for attachments.
pytestmark = pytest.mark.filterwarnings("ignore:.imghdr.:DeprecationWarning")
ADDRESSES = {
    "discord": "discord://123456789012345678/a-secret-token",
    "pagerduty": "pagerduty://an-api-key@0123456789abcdef0123456789abcdef",
    "opsgenie": "opsgenie://a-secret-key-0123456789",
    "teams": "workflows://flows.example:443/643e69f83c8944/a-secret-signature",
}
BOT_NAME = "discord bot"
EACH = {**ADDRESSES, BOT_NAME: "discordbot://a-secret.token@4711"}
# Their protocols have a key that makes one of two, or list what was sent.
FOLDING = ("pagerduty", "opsgenie", BOT_NAME)


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChannelServer]:
    """A local server that gets all requests of apprise, whatever their host."""
    with ChannelServer() as server:
        send = requests.adapters.HTTPAdapter.send

        def redirect(adapter: object, request: requests.PreparedRequest, **options: object) -> requests.Response:
            parts = urlsplit(request.url)
            request.url = f"{server.url}{parts.path}?{parts.query}"
            return send(adapter, request, **options)

        monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", redirect)
        monkeypatch.setattr(discord, "API", f"{server.url}/api/v10")
        yield server


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with MailServer() as server:
        yield server


def deliver(bench: Bench, address: str, rounds: int = 1, name: str = "team", unsure: str = "repeat") -> None:
    """Deliver with a bot like in a new process; an hour passes between the rounds."""
    settings = ChannelSettings.model_validate({"targets": {name: {"url": address, "unsure": unsure}}, "timeout": 5})
    for _ in range(rounds):
        deliver_due(bench.store, [ChannelBot(settings, "https://triage.example")], clock=lambda: bench.now)
        bench.now += 3600


def dying(is_sent: bool) -> Callable[..., None]:
    """Return a function that ends the process, before or after it sends."""
    send = ChannelBot._send

    def die(*arguments: Any) -> None:
        if is_sent:
            send(*arguments)
        raise SystemExit

    return die


@pytest.fixture
def channel_bench(bench: Bench) -> Bench:
    bench.routing = bench.routing.model_copy(update={"routes": (Route(to="channel:team"),)})
    return bench


@pytest.mark.parametrize("service", EACH)
@pytest.mark.parametrize("failure", ["429", "500", "cut"])
def test_one_message_is_visible_after_failures(
    channel_bench: Bench, receiver: ChannelServer, service: str, failure: str
) -> None:
    """Refused and cut requests are repeated; the message has the headline and the link; ingesting again adds none."""
    receiver.inject_failure(service, failure, times=2)
    stored = channel_bench.ingest(known_diagnosis("a"))
    deliver(channel_bench, EACH[service], rounds=4)
    channel_bench.ingest(known_diagnosis("a"))
    deliver(channel_bench, EACH[service])
    (message,) = receiver.visible
    assert message.service == service
    assert stored.id in str(message.content).replace("\\", "")  # of Markdown
    posted = [request for request in receiver.requests if request.method == "POST"]
    assert len(posted) == (2 if service == BOT_NAME else 3)  # the bot's second request looked, and failed
    assert ("Sent again" in str(message.content)) == (failure == "cut" and service not in FOLDING)
    assert {post.state for post in channel_bench.store.outbox.list_posts()} <= {"sent"}


@pytest.mark.parametrize("service", EACH)
def test_a_lost_answer_makes_no_message_twice_where_there_is_a_key(
    channel_bench: Bench, receiver: ChannelServer, service: str
) -> None:
    """PagerDuty, Opsgenie and a bot of Discord show one; Teams and webhooks of Discord two, and the second says so."""
    receiver.inject_failure(service, "cut after")
    channel_bench.ingest(known_diagnosis("a"))
    deliver(channel_bench, EACH[service], rounds=3)
    assert len(receiver.requests) == 2
    first, *others = receiver.visible
    assert "Sent again" not in str(first.content)
    assert ["Sent again" in str(message.content) for message in others] == ([] if service in FOLDING else [True])


@pytest.mark.parametrize("service", ["teams", "discord"])
@pytest.mark.parametrize("failure", ["cut", "cut after", "504", "kill"])
def test_a_held_message_is_visible_once_at_most(
    channel_bench: Bench, receiver: ChannelServer, monkeypatch: pytest.MonkeyPatch, service: str, failure: str
) -> None:
    """With `unsure = "hold"` a message whose answer was lost is a dead letter that says so; a person sends it."""
    channel_bench.ingest(known_diagnosis("a"))
    with monkeypatch.context() as patch:
        if failure == "kill":
            patch.setattr(ChannelBot, "_send", dying(is_sent=True))
            with pytest.raises(SystemExit):
                deliver(channel_bench, EACH[service], unsure="hold")
        else:
            receiver.inject_failure(service, failure)
            deliver(channel_bench, EACH[service], unsure="hold")
    arrived = 1 if failure in ("cut after", "kill") else 0
    channel_bench.now += 3600
    deliver(channel_bench, EACH[service], rounds=3, unsure="hold")
    assert len(receiver.visible) == arrived
    (post,) = channel_bench.store.outbox.list_posts(state="dead")
    assert "nobody knows whether the message arrived" in (post.error or "")
    assert channel_bench.store.outbox.retry(post.id, now=channel_bench.now)
    deliver(channel_bench, EACH[service], unsure="hold")
    assert len(receiver.visible) == arrived + 1
    assert "Sent again" not in str(receiver.visible[-1].content)


@pytest.mark.parametrize("failure", ["429", "500", "503", "401"])
def test_a_refused_message_is_not_held(channel_bench: Bench, receiver: ChannelServer, failure: str) -> None:
    """A try that was refused did not arrive, so the next one is the first: also after a person mended the address."""
    receiver.inject_failure("teams", failure)
    channel_bench.ingest(known_diagnosis("a"))
    deliver(channel_bench, EACH["teams"], unsure="hold")
    for post in channel_bench.store.outbox.list_posts(state="dead"):
        assert channel_bench.store.outbox.retry(post.id, now=channel_bench.now)
    deliver(channel_bench, EACH["teams"], rounds=2, unsure="hold")
    (message,) = receiver.visible
    assert "Sent again" not in str(message.content)


def test_a_receiver_that_is_not_reached_got_nothing(channel_bench: Bench) -> None:
    """A refused connection leaves the post waiting, also where unsure ones are held."""
    channel_bench.ingest(known_diagnosis("a"))
    deliver(channel_bench, "json://127.0.0.1:1/", rounds=3, unsure="hold")
    (post,) = channel_bench.store.outbox.list_posts()
    assert (post.state, post.error) == ("waiting", "JSON was not reached")


@pytest.mark.parametrize("service", FOLDING)
def test_a_message_that_is_folded_is_not_held(channel_bench: Bench, receiver: ChannelServer, service: str) -> None:
    """Where a repeated delivery shows nothing twice, it is repeated whatever the settings say."""
    receiver.inject_failure(service, "cut after")
    channel_bench.ingest(known_diagnosis("a"))
    deliver(channel_bench, EACH[service], rounds=3, unsure="hold")
    assert len(receiver.visible) == 1
    assert not channel_bench.store.outbox.list_posts(state="dead")


@pytest.mark.parametrize("others", [0, 99, 100, 250])
@pytest.mark.parametrize("failure", ["cut after", "half", "500"])
def test_a_bot_of_discord_finds_its_message(
    channel_bench: Bench, receiver: ChannelServer, others: int, failure: str
) -> None:
    """Also days later, when Discord has forgotten the nonce, among any number of messages and after failed requests."""
    receiver.keeps_nonces = False
    receiver.inject_failure(BOT_NAME, failure)
    receiver.inject_failure(BOT_NAME, "429")
    channel_bench.ingest(known_diagnosis("a"))
    deliver(channel_bench, EACH[BOT_NAME])
    foreign = {"embeds": [{"title": "t"}]}
    for _ in range(others):
        assert receiver.handle(Request("POST", "/api/v10/channels/4711/messages", {}, {}, json.dumps(foreign).encode()))
    deliver(channel_bench, EACH[BOT_NAME], rounds=3)
    shown = [message for message in receiver.visible if message.content["embeds"][0]["title"] != "t"]
    assert len(shown) == 1
    assert {post.state for post in channel_bench.store.outbox.list_posts()} == {"sent"}


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_bot_that_may_not_post_is_a_dead_letter(
    channel_bench: Bench, receiver: ChannelServer, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """The error says what the bot needs, and holds no part of the address; a wrong address is one too."""
    monkeypatch.setattr(receiver, "handle", lambda request: Reply(status, {"message": "no"}))
    channel_bench.ingest(known_diagnosis("a"))
    deliver(channel_bench, EACH[BOT_NAME])
    (post,) = channel_bench.store.outbox.list_posts(state="dead")
    assert f"Discord answered {status}" in (post.error or "")
    assert "secret" not in (post.error or "")
    with pytest.raises(Undelivered) as error:
        discord.post_once("discordbot://a-secret", ChannelMessage("t", "b", "k"), since=0, may_exist=False, timeout=1)
    assert "secret" not in f"{error.value} {error.value.hint}"


@pytest.mark.parametrize("service", EACH)
@pytest.mark.parametrize("is_sent", [False, True])
def test_a_kill_loses_nothing(
    channel_bench: Bench, receiver: ChannelServer, monkeypatch: pytest.MonkeyPatch, service: str, is_sent: bool
) -> None:
    """A process killed before the request leaves one message, as does one killed after it where there is a key."""
    channel_bench.ingest(known_diagnosis("a"))
    with monkeypatch.context() as patch:
        patch.setattr(ChannelBot, "_send", dying(is_sent))
        with pytest.raises(SystemExit):
            deliver(channel_bench, EACH[service])
    channel_bench.now += 3600  # the lease of the killed process ends
    deliver(channel_bench, EACH[service], rounds=2)
    assert len(receiver.visible) == (2 if is_sent and service not in FOLDING else 1)


@pytest.mark.parametrize("service", EACH)
@pytest.mark.parametrize("seconds", [7, 600])
def test_retry_after_is_respected(channel_bench: Bench, receiver: ChannelServer, service: str, seconds: int) -> None:
    """One request gets 429; the next one comes when the receiver said, not before, whatever the library would do."""
    receiver.retry_after = seconds
    receiver.inject_failure(service, "429")
    channel_bench.ingest(known_diagnosis("a"))
    before = channel_bench.now
    deliver(channel_bench, EACH[service])
    (post,) = channel_bench.store.outbox.list_posts()
    assert len(receiver.requests) == 1
    assert post.next_at == before + seconds
    assert "429" in (post.error or "")


@pytest.mark.parametrize(
    ("service", "rate"),
    # As documented for a webhook, a channel of a bot and a routing key, and less than any for the others.
    [
        ("discord", (5, 2.0)),
        (BOT_NAME, (5, 5.0)),
        ("pagerduty", (120, 60.0)),
        ("opsgenie", (3, 10.0)),
        ("teams", (4, 1.0)),
    ],
)
def test_a_burst_of_failures_arrives_whole(
    channel_bench: Bench, receiver: ChannelServer, service: str, rate: tuple[int, float]
) -> None:
    """Thirteen failures at once beyond the rate of the receiver are thirteen messages, each visible once."""
    receiver.rate, receiver.clock = rate, lambda: channel_bench.now
    for number in range(13):
        channel_bench.ingest(known_diagnosis(f"job-{number}", host=f"node{number}"))
    for _ in range(60):
        deliver(channel_bench, EACH[service])
        channel_bench.now += 1 - 3600
    assert len(receiver.visible) == 13
    assert not any("Sent again" in str(message.content) for message in receiver.visible)
    assert {post.state for post in channel_bench.store.outbox.list_posts()} == {"sent"}


@pytest.mark.parametrize("failure", ["451", "cut"])
def test_one_mail_arrives_after_failures(channel_bench: Bench, mail: MailServer, failure: str) -> None:
    """A mail that the server did not accept is repeated until it does."""
    mail.failures = [failure, failure]
    channel_bench.ingest(known_diagnosis("a"))
    deliver(channel_bench, f"mailto://127.0.0.1:{mail.port}?from=a@b.example&to=c@d.example", rounds=4)
    (message,) = mail.messages
    assert re.search(r"^Subject: ", message, re.MULTILINE)
    assert "c@d.example" in message


def test_a_mail_without_a_reply_has_the_same_id(channel_bench: Bench, mail: MailServer) -> None:
    """A repeated mail and the first are one in a mailbox that compares ids; another headline is another mail."""
    address = f"mailto://127.0.0.1:{mail.port}?from=a@b.example&to=c@d.example"
    mail.failures = ["cut after"]
    channel_bench.ingest(unknown_diagnosis("a"))
    deliver(channel_bench, address, rounds=3)
    assert (len(mail.messages), len(mail.visible)) == (2, 1)
    channel_bench.ingest(same_job(unknown_diagnosis("a"), known_diagnosis("a")))
    deliver(channel_bench, address)
    assert (len(mail.messages), len(mail.visible)) == (3, 2)


@pytest.mark.parametrize("is_sent", [False, True])
def test_a_kill_leaves_one_mail(
    channel_bench: Bench, mail: MailServer, monkeypatch: pytest.MonkeyPatch, is_sent: bool
) -> None:
    """A process killed before or after the mail leaves one in the mailbox."""
    address = f"mailto://127.0.0.1:{mail.port}?from=a@b.example&to=c@d.example"
    channel_bench.ingest(known_diagnosis("a"))
    with monkeypatch.context() as patch:
        patch.setattr(ChannelBot, "_send", dying(is_sent))
        with pytest.raises(SystemExit):
            deliver(channel_bench, address)
    channel_bench.now += 3600  # the lease of the killed process ends
    deliver(channel_bench, address, rounds=2)
    assert len(mail.visible) == 1


def test_another_headline_is_another_message(channel_bench: Bench, receiver: ChannelServer) -> None:
    """The channels cannot edit: a changed cause is sent, an equal one is not."""
    channel_bench.ingest(unknown_diagnosis("a"))
    deliver(channel_bench, ADDRESSES["discord"])
    channel_bench.ingest(same_job(unknown_diagnosis("a"), known_diagnosis("a")))
    deliver(channel_bench, ADDRESSES["discord"], rounds=2)
    assert len(receiver.visible) == 2


@pytest.mark.parametrize("service", EACH)
def test_long_reports_are_one_message(channel_bench: Bench, receiver: ChannelServer, service: str) -> None:
    """A report above the service's limit is cut, not split."""
    diagnosis = known_diagnosis("a")
    assert diagnosis.root_cause is not None
    facts = tuple(replace(fact, text="word " * 9000) for fact in diagnosis.root_cause.evidence)
    channel_bench.ingest(
        replace(diagnosis, root_cause=replace(diagnosis.root_cause, why=("word " * 9000,), evidence=facts))
    )
    deliver(channel_bench, EACH[service], rounds=2)
    assert len(receiver.visible) == 1


def test_a_refused_message_and_a_missing_channel_are_dead_letters(
    channel_bench: Bench, receiver: ChannelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The errors say what to do, and hold no part of the address."""
    monkeypatch.setattr(receiver, "handle", lambda request: Reply(401, {"message": "Unauthorized"}))
    channel_bench.ingest(known_diagnosis("a"))
    deliver(channel_bench, ADDRESSES["discord"])
    (post,) = channel_bench.store.outbox.list_posts(state="dead")
    assert "Discord answered 401" in (post.error or "")
    assert "secret" not in (post.error or "")
    assert channel_bench.store.outbox.retry(post.id, now=channel_bench.now)
    deliver(channel_bench, ADDRESSES["discord"], name="another")
    (post,) = channel_bench.store.outbox.list_posts(state="dead")
    assert "[channel.targets.team]" in (post.error or "")


def test_an_address_that_apprise_cannot_read_is_not_shown() -> None:
    """The error names no part of the address, which may hold a secret."""
    with pytest.raises(Undelivered) as error:
        apprise_client.send("nothing://a-secret", ChannelMessage("t", "b", "k"), is_failure=True, timeout=1)
    assert "secret" not in f"{error.value} {error.value.hint}"


def test_addresses_are_in_no_log_and_no_settings(
    channel_bench: Bench, receiver: ChannelServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log lines of triage and of the library, and `triage config show`, hold no secret of an address."""
    caplog.set_level(logging.INFO)
    receiver.inject_failure("discord", "500")
    channel_bench.ingest(known_diagnosis("a"))
    deliver(channel_bench, ADDRESSES["discord"], rounds=2)
    assert "secret" not in caplog.text
    monkeypatch.setenv("TRIAGE_CHANNEL_TARGETS", '{"team": {"url": "' + ADDRESSES["discord"] + '"}}')
    rows = [value for name, value, _ in load().rows() if name == "channel.targets"]
    assert rows
    assert "secret" not in str(rows)


def test_text_of_logs_mentions_nobody(receiver: ChannelServer) -> None:
    """`@everyone` and Markdown links of a log do not work in the message."""
    text = "boom @everyone <@123> [click](https://evil.example)"
    for address in (ADDRESSES["discord"], ADDRESSES["teams"]):
        apprise_client.send(address, ChannelMessage(text, text, "k"), is_failure=True, timeout=5)
    for message in receiver.visible:
        shown = str(message.content)
        assert "boom" in shown
        assert not re.search(r"@everyone|<@123>|\]\(", shown)


def test_a_mail_has_the_whole_headline_as_subject(channel_bench: Bench, mail: MailServer) -> None:
    """A headline longer than a line of the report is neither cut in the subject nor broken off in the text."""
    text = f"ValueError: {'a long reason ' * 7}at the end"
    channel_bench.ingest(unknown_diagnosis("a", text))
    deliver(channel_bench, f"mailto://127.0.0.1:{mail.port}?from=triage@example.org&to=team@example.org")
    (message,) = (email.message_from_string(content, policy=email.policy.default) for content in mail.visible)
    assert message["subject"] == f"a: UNKNOWN FAILURE began on rank 1: {text}"
    assert "UNKNOWN FAILURE  began on rank 1: ValueError" in str(message.get_content())
