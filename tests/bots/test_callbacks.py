"""Buttons, the modal and the command: signed, acknowledged at once, done once, seen in the message."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.bots.making import CHANNEL, Bench, texts
from tests.store.making import known
from triage.bots.slack.actions import Actions
from triage.bots.slack.callbacks import Press, receive, understand
from triage.bots.slack.listen import listening
from triage.bots.slack.verify import genuine
from triage.render.safe import safe_line

COMMAND = urlencode(
    {"command": "/triage", "text": "help", "trigger_id": "t1", "response_url": "https://hooks.slack.com/x"}
).encode()


@pytest.fixture
def hook(bench: Bench) -> Iterator[str]:
    """The bot's own endpoint, and a message with buttons in the channel."""
    bench.now = time.time()
    bench.incident = bench.ingest(known("a")).id  # type: ignore[attr-defined]
    bench.work()
    actions = Actions(bench.settings, "https://triage.example")
    with listening("127.0.0.1", 0, bench.slack.signing_secret, bench.store, actions) as url:
        yield url


def settled(bench: Bench, done: object) -> None:
    """Wait until what was asked for is done, then let the bot work."""
    until = time.monotonic() + 20
    while not done() and time.monotonic() < until:  # type: ignore[operator]
        time.sleep(0.02)
    assert done()  # type: ignore[operator]
    time.sleep(0.05)
    bench.now = time.time() + 1
    bench.work()


def press(bench: Bench, hook: str, action: str, user: str = "ANNA") -> float:
    message = bench.visible()[0]
    answer = bench.slack.click(hook, CHANNEL, message["ts"], f"triage.{action}", user=user)
    assert (answer.status, answer.body) == (200, b"")
    return answer.seconds


def test_agree_is_remembered_and_seen(bench: Bench, hook: str) -> None:
    """Acknowledged within three seconds, stored as feedback with who it was, shown in the message; twice is once."""
    assert press(bench, hook, "agree") < 3
    press(bench, hook, "agree")
    settled(bench, bench.store.feedback.listed)
    (said,) = bench.store.feedback.listed()
    assert (said.verdict, said.actor) == ("agree", "anna (slack ANNA)")
    assert "Agreed by anna (slack ANNA)" in bench.text()
    assert len(bench.visible()) == 1


def test_wrong_asks_why(bench: Bench, hook: str) -> None:
    """A modal is opened; what is written there becomes the feedback."""
    press(bench, hook, "wrong")
    settled(bench, lambda: bench.slack.views)
    assert bench.store.feedback.listed() == []
    answer = bench.slack.submit(hook, bench.slack.views[0], {"because": "a <full> disk", "signature": "host.no-space"})
    assert answer.status == 200
    settled(bench, bench.store.feedback.listed)
    (said,) = bench.store.feedback.listed()
    assert (said.verdict, said.because, said.signature) == ("wrong", "a <full> disk", "host.no-space")
    assert "Wrong, say u1 (slack U1): a &lt;full&gt; disk" in bench.text()


def test_wrong_counts_when_slack_lets_nobody_ask(bench: Bench, hook: str) -> None:
    """Without a modal the word itself is kept."""
    bench.slack.trouble("views.open", "500", times=5)
    press(bench, hook, "wrong")
    settled(bench, bench.store.feedback.listed)
    assert bench.store.feedback.listed()[0].because == "no reason given"


def test_mute_keeps_the_cause_out_of_the_channel(bench: Bench, hook: str) -> None:
    """Said in the message, kept in the audit log; another job with the same cause is not told there."""
    press(bench, hook, "mute")
    settled(bench, lambda: bench.store.told.muted("slack", CHANNEL, "cuda.out-of-memory", time.time()))
    assert "Muted here by anna (slack ANNA)" in bench.text()
    assert bench.store.audit.listed()[0].action == "mute"
    bench.ingest(known("b", host="elsewhere"))
    bench.work()
    assert len(bench.visible()) == 1


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("search memory", "cuda.out-of-memory"),
        ("search nothinghasthis", "Nothing has"),
        ("show {id}", "What cuda.out-of-memory says"),
        ("show i-ffff", "That did not work"),
        ("similar {id}", "Nothing is like"),
        ("", "search WORDS"),
        ("<!channel>", "search WORDS"),
    ],
)
def test_the_command_answers(bench: Bench, hook: str, words: str, found: str) -> None:
    """Acknowledged empty and at once; the answer, for the person alone, comes to the response URL."""
    answer = bench.slack.slash(hook, "/triage", words.format(id=bench.incident))  # type: ignore[attr-defined]
    assert (answer.status, answer.body) == (200, b"")
    assert answer.seconds < 3
    settled(bench, lambda: bench.slack.answers)
    (told,) = bench.slack.answers
    assert told["response_type"] == "ephemeral"
    assert found in texts(told["blocks"])
    assert "<!channel>" not in json.dumps(told)


def test_acknowledged_while_the_work_is_slow(bench: Bench, hook: str) -> None:
    """Slack never waits for the work: here the answer takes longer than Slack would wait."""
    bench.slack.slowness = 3.5
    bench.slack.trouble("/response/", "slow")
    assert bench.slack.slash(hook, "/triage", "help").seconds < 3
    assert bench.slack.slash(hook, "/triage", "help").seconds < 3


def test_only_slack_is_heard(bench: Bench, hook: str) -> None:
    """Wrong, missing and malformed signatures, stale and future stamps, replays: 401 and nothing is done."""
    send = bench.slack.send
    now = int(time.time())
    assert send(hook, COMMAND, headers={"X-Slack-Signature": "v0=" + "0" * 64}).status == 401
    assert send(hook, COMMAND, headers={"X-Slack-Signature": ""}).status == 401
    assert send(hook, COMMAND, headers={"X-Slack-Signature": "v0=\xe9"}).status == 401
    assert send(hook, COMMAND, headers={"X-Slack-Request-Timestamp": ""}).status == 401
    assert send(hook, COMMAND, headers={"X-Slack-Request-Timestamp": "now"}).status == 401
    assert send(hook, COMMAND, headers={"X-Slack-Request-Timestamp": "1" * 400}).status == 401
    assert send(hook, COMMAND, at=now - 301).status == 401
    assert send(hook, COMMAND, at=now + 320).status == 401
    assert send(hook, b"\xff\xfe\x00").status == 400
    assert send(hook, COMMAND, at=now - 30).status == 200
    assert send(hook, COMMAND, at=now - 30).status == 401
    assert bench.store.feedback.listed() == []


def test_a_retry_is_acknowledged_and_not_done_again(bench: Bench, hook: str) -> None:
    """Slack asks again, with a new stamp and its retry headers: the same press is one press."""
    body = COMMAND.replace(
        b"https%3A%2F%2Fhooks.slack.com%2Fx", bench.slack._response_url().replace(":", "%3A").encode()
    )
    assert bench.slack.send(hook, body, at=time.time() - 20).status == 200
    for number in range(3):
        retry = {"X-Slack-Retry-Num": str(number + 1), "X-Slack-Retry-Reason": "http_timeout"}
        assert bench.slack.send(hook, body, headers=retry, at=time.time() - 10 + number).status == 200
    settled(bench, lambda: bench.slack.answers)
    assert len(bench.slack.answers) == 1


def test_answers_go_to_slack_alone(bench: Bench) -> None:
    """An address that is not below those of the settings gets nothing, however well the request is signed."""
    settings = bench.settings.model_copy(update={"answer_urls": ("https://hooks.slack.com/",)})
    work = understand(
        COMMAND.replace(
            b"https%3A%2F%2Fhooks.slack.com%2Fx", f"{bench.slack.url}/response/1".replace(":", "%3A").encode()
        )
    )
    assert work is not None
    Actions(settings).perform(work, bench.store)
    assert [request for request in bench.slack.requests if request.path.startswith("/response/")] == []


def test_other_pages_and_lengths_are_refused(bench: Bench, hook: str) -> None:
    """One path, a length that is said, and not too long."""
    assert bench.slack.send(hook + "x", COMMAND).status == 404
    assert bench.slack.send(hook, b"x" * ((1 << 20) + 1)).status == 413


headers = st.dictionaries(
    st.sampled_from(["x-slack-signature", "x-slack-request-timestamp", "X-Slack-Signature"]),
    st.text(max_size=80) | st.sampled_from(["1763700000", "٣", "-1"]),
)


@given(headers=headers, body=st.binary(max_size=200))
def test_no_header_is_an_error(headers: dict[str, str], body: bytes) -> None:
    """Whatever they hold, the answer is no."""
    assert not genuine("secret", headers, body, 1_763_700_000.0)
    assert not genuine("", headers, body, 1_763_700_000.0)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda of: (
        st.lists(of, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "user",
                    "actions",
                    "action_id",
                    "value",
                    "view",
                    "state",
                    "values",
                    "message",
                    "channel",
                    "id",
                    "private_metadata",
                    "callback_id",
                ]
            ),
            of | st.sampled_from(["block_actions", "view_submission", "triage.agree", "triage.wrong"]),
            max_size=6,
        )
    ),
    max_leaves=20,
)


@given(payload=json_values)
def test_no_payload_is_an_error(payload: object) -> None:
    """What is not understood is None."""
    assert understand(urlencode({"payload": json.dumps(payload)}).encode()) is None
    assert understand(json.dumps(payload).encode()) is None


words = st.text(st.characters(codec=None, exclude_categories=()), max_size=20)


@example("\ud800", "C1", "1.2", "anna", "agree")
@given(words, words, words, words, st.sampled_from(["agree", "wrong", "mute"]))
def test_what_is_pressed_is_what_is_heard(incident: str, channel: str, ts: str, user: str, verb: str) -> None:
    """Every text of a press comes through as it was; one that no store can hold is not understood."""
    action = {"action_id": f"triage.{verb}", "value": incident, "action_ts": ts}
    payload = {
        "type": "block_actions",
        "user": {"id": "U1", "name": user},
        "actions": [action],
        "message": {"ts": ts},
        "channel": {"id": channel},
    }
    heard = understand(urlencode({"payload": json.dumps(payload)}).encode())
    if any("\ud800" <= char <= "\udfff" for char in incident + channel + ts + user):
        assert heard is None
        return
    assert isinstance(heard, Press)
    assert (heard.action, heard.incident, heard.channel, heard.ts) == (verb, incident, channel, ts)
    assert heard.user.endswith("slack U1)" if safe_line(user) else "slack U1")
    assert heard.once == f"slack:press:{ts}:triage.{verb}:{heard.user}:{ts}"


def test_the_service_hears_too(bench: Bench, tmp_path: Path) -> None:
    """`triage serve` takes the same calls at the same path, with the same answers."""
    pytest.importorskip("fastapi")
    from starlette.testclient import TestClient

    from triage.service.app import create_app
    from triage.settings import Settings
    from triage.settings.store import Store as Place

    bench.now = time.time()
    bench.ingest(known("a"))
    bench.work()
    app = create_app(Settings(slack=bench.settings, store=Place(path=tmp_path / "triage.db")), bench.store)
    with TestClient(app, base_url="http://127.0.0.1:8321") as client:
        stamp = str(int(time.time()))
        body = COMMAND.replace(
            b"https%3A%2F%2Fhooks.slack.com%2Fx", bench.slack._response_url().replace(":", "%3A").encode()
        )
        signed = {"X-Slack-Request-Timestamp": stamp, "Content-Type": "application/x-www-form-urlencoded"}
        assert (
            client.post("/hooks/slack", content=body, headers={**signed, "X-Slack-Signature": "v0=no"}).status_code
            == 401
        )
        signed["X-Slack-Signature"] = bench.slack.signature(stamp, body)
        assert client.post("/hooks/slack", content=body, headers=signed).status_code == 200
        assert client.post("/hooks/slack", content=body, headers=signed).status_code == 401
    assert len(bench.slack.answers) == 1


def test_nothing_is_heard_without_a_secret(bench: Bench) -> None:
    """A bot without a signing secret refuses everything."""
    stamp = str(int(time.time()))
    signed = {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": bench.slack.signature(stamp, COMMAND)}
    assert receive("", signed, COMMAND, bench.store, time.time()).status == 401
    assert receive(bench.slack.signing_secret, signed, COMMAND, bench.store, time.time()).status == 200
