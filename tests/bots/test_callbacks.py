"""Buttons, forms and commands are verified, acknowledged at once, and performed once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from hypothesis import example, given, strategies as st

from tests.bots.factories import CHANNEL, Bench, texts
from tests.store.factories import known_diagnosis
from triage.bots.slack.actions import Actions
from triage.bots.slack.callbacks import Press, handle_request, parse_action
from triage.bots.slack.listen import serve_callbacks
from triage.bots.slack.verify import is_genuine
from triage.render.sanitize import sanitize_line

COMMAND = urlencode(
    {"command": "/triage", "text": "help", "trigger_id": "t1", "response_url": "https://hooks.slack.com/x"}
).encode()


@pytest.fixture
def endpoint(bench: Bench) -> Iterator[str]:
    """The bot's own endpoint, and a message with buttons in the channel."""
    bench.now = time.time()
    bench.incident = bench.ingest(known_diagnosis("a")).id  # type: ignore[attr-defined]
    bench.work()
    actions = Actions(bench.settings, "https://triage.example")
    with serve_callbacks("127.0.0.1", 0, bench.slack.signing_secret, bench.store, actions) as url:
        yield url


def wait_until_done(bench: Bench, done: object) -> None:
    """Wait until the action is performed, then let the bot deliver."""
    until = time.monotonic() + 20
    while not done() and time.monotonic() < until:  # type: ignore[operator]
        time.sleep(0.02)
    assert done()  # type: ignore[operator]
    time.sleep(0.05)
    bench.now = time.time() + 1
    bench.work()


def press(bench: Bench, endpoint: str, action: str, user: str = "ANNA") -> float:
    message = bench.visible()[0]
    answer = bench.slack.click(endpoint, CHANNEL, message["ts"], f"triage.{action}", user=user)
    assert (answer.status, answer.body) == (200, b"")
    return answer.seconds


def test_agree_is_stored_and_shown(bench: Bench, endpoint: str) -> None:
    """It is acknowledged within three seconds; pressing twice counts once."""
    assert press(bench, endpoint, "agree") < 3
    press(bench, endpoint, "agree")
    wait_until_done(bench, bench.store.feedback.list_feedback)
    (entry,) = bench.store.feedback.list_feedback()
    assert (entry.verdict, entry.actor) == ("agree", "anna (slack ANNA)")
    assert "Marked as right by anna (slack ANNA)" in bench.text()
    assert len(bench.visible()) == 1


def test_wrong_asks_for_a_reason(bench: Bench, endpoint: str) -> None:
    """A form opens, and its content becomes the feedback."""
    press(bench, endpoint, "wrong")
    wait_until_done(bench, lambda: bench.slack.views)
    assert bench.store.feedback.list_feedback() == []
    answer = bench.slack.submit(
        endpoint, bench.slack.views[0], {"because": "a <full> disk", "signature": "host.no-space"}
    )
    assert answer.status == 200
    wait_until_done(bench, bench.store.feedback.list_feedback)
    (entry,) = bench.store.feedback.list_feedback()
    assert (entry.verdict, entry.because, entry.signature) == ("wrong", "a <full> disk", "host.no-space")
    assert "Marked as wrong by u1 (slack U1): a &lt;full&gt; disk" in bench.text()


def test_wrong_counts_without_a_form(bench: Bench, endpoint: str) -> None:
    """If Slack cannot open the form, the feedback is stored without a reason."""
    bench.slack.inject_failure("views.open", "500", times=5)
    press(bench, endpoint, "wrong")
    wait_until_done(bench, bench.store.feedback.list_feedback)
    assert bench.store.feedback.list_feedback()[0].because == "no reason given"


def test_mute_hides_a_cause_in_the_channel(bench: Bench, endpoint: str) -> None:
    """The message and the audit log show it; another job with the same cause is not posted."""
    press(bench, endpoint, "mute")
    wait_until_done(
        bench, lambda: bench.store.notifications.get_mute("slack", CHANNEL, "cuda.out-of-memory", time.time())
    )
    assert "Muted here by anna (slack ANNA)" in bench.text()
    assert bench.store.audit.list_entries()[0].action == "mute"
    bench.ingest(known_diagnosis("b", host="elsewhere"))
    bench.work()
    assert len(bench.visible()) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("search memory", "cuda.out-of-memory"),
        ("search nothinghasthis", "No incident contains"),
        ("show {id}", "What cuda.out-of-memory says"),
        ("show i-ffff", "That did not work"),
        ("similar {id}", "No incident is similar to"),
        ("", "search TEXT"),
        ("<!channel>", "search TEXT"),
    ],
)
def test_the_command_answers(bench: Bench, endpoint: str, text: str, expected: str) -> None:
    """It is acknowledged at once; the answer goes to the response URL, for the person only."""
    answer = bench.slack.slash(endpoint, "/triage", text.format(id=bench.incident))  # type: ignore[attr-defined]
    assert (answer.status, answer.body) == (200, b"")
    assert answer.seconds < 3
    wait_until_done(bench, lambda: bench.slack.answers)
    (reply,) = bench.slack.answers
    assert reply["response_type"] == "ephemeral"
    assert expected in texts(reply["blocks"])
    assert "<!channel>" not in json.dumps(reply)


def test_requests_are_acknowledged_while_an_action_is_slow(bench: Bench, endpoint: str) -> None:
    """Slack does not wait for the action, which here takes longer than Slack's limit."""
    bench.slack.delay = 3.5
    bench.slack.inject_failure("/response/", "slow")
    assert bench.slack.slash(endpoint, "/triage", "help").seconds < 3
    assert bench.slack.slash(endpoint, "/triage", "help").seconds < 3


def test_only_requests_of_slack_are_accepted(bench: Bench, endpoint: str) -> None:
    """Wrong, missing and malformed signatures, old and future timestamps and replays give 401."""
    send = bench.slack.send
    now = int(time.time())
    assert send(endpoint, COMMAND, headers={"X-Slack-Signature": "v0=" + "0" * 64}).status == 401
    assert send(endpoint, COMMAND, headers={"X-Slack-Signature": ""}).status == 401
    assert send(endpoint, COMMAND, headers={"X-Slack-Signature": "v0=\xe9"}).status == 401
    assert send(endpoint, COMMAND, headers={"X-Slack-Request-Timestamp": ""}).status == 401
    assert send(endpoint, COMMAND, headers={"X-Slack-Request-Timestamp": "now"}).status == 401
    assert send(endpoint, COMMAND, headers={"X-Slack-Request-Timestamp": "1" * 400}).status == 401
    assert send(endpoint, COMMAND, at=now - 301).status == 401
    assert send(endpoint, COMMAND, at=now + 320).status == 401
    assert send(endpoint, b"\xff\xfe\x00").status == 400
    assert send(endpoint, COMMAND, at=now - 30).status == 200
    assert send(endpoint, COMMAND, at=now - 30).status == 401
    assert bench.store.feedback.list_feedback() == []


def test_a_retry_is_acknowledged_and_not_performed_again(bench: Bench, endpoint: str) -> None:
    """A retry of Slack has a new signature but the same trigger."""
    body = COMMAND.replace(
        b"https%3A%2F%2Fhooks.slack.com%2Fx", bench.slack._new_response_url().replace(":", "%3A").encode()
    )
    assert bench.slack.send(endpoint, body, at=time.time() - 20).status == 200
    for number in range(3):
        retry = {"X-Slack-Retry-Num": str(number + 1), "X-Slack-Retry-Reason": "http_timeout"}
        assert bench.slack.send(endpoint, body, headers=retry, at=time.time() - 10 + number).status == 200
    wait_until_done(bench, lambda: bench.slack.answers)
    assert len(bench.slack.answers) == 1


def test_answers_go_only_to_allowed_addresses(bench: Bench) -> None:
    """A signed request cannot send an answer elsewhere."""
    settings = bench.settings.model_copy(update={"answer_urls": ("https://hooks.slack.com/",)})
    action = parse_action(
        COMMAND.replace(
            b"https%3A%2F%2Fhooks.slack.com%2Fx", f"{bench.slack.url}/response/1".replace(":", "%3A").encode()
        )
    )
    assert action is not None
    Actions(settings).perform(action, bench.store)
    assert [request for request in bench.slack.requests if request.path.startswith("/response/")] == []


def test_other_pages_and_lengths_are_refused(bench: Bench, endpoint: str) -> None:
    """Only one path is served, and the body has a maximum length."""
    assert bench.slack.send(endpoint + "x", COMMAND).status == 404
    assert bench.slack.send(endpoint, b"x" * ((1 << 20) + 1)).status == 413


headers = st.dictionaries(
    st.sampled_from(["x-slack-signature", "x-slack-request-timestamp", "X-Slack-Signature"]),
    st.text(max_size=80) | st.sampled_from(["1763700000", "٣", "-1"]),
)


@given(headers=headers, body=st.binary(max_size=200))
def test_no_header_raises_an_error(headers: dict[str, str], body: bytes) -> None:
    """Arbitrary headers are not genuine."""
    assert not is_genuine("secret", headers, body, 1_763_700_000.0)
    assert not is_genuine("", headers, body, 1_763_700_000.0)


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
def test_no_payload_raises_an_error(payload: object) -> None:
    """An unknown payload is parsed as None."""
    assert parse_action(urlencode({"payload": json.dumps(payload)}).encode()) is None
    assert parse_action(json.dumps(payload).encode()) is None


text = st.text(st.characters(codec=None, exclude_categories=()), max_size=20)


@example("\ud800", "C1", "1.2", "anna", "agree")
@given(text, text, text, text, st.sampled_from(["agree", "wrong", "mute"]))
def test_a_press_is_parsed_unchanged(incident: str, channel: str, ts: str, user: str, verb: str) -> None:
    """All its texts stay the same; one that cannot be stored is refused."""
    action = {"action_id": f"triage.{verb}", "value": incident, "action_ts": ts}
    payload = {
        "type": "block_actions",
        "user": {"id": "U1", "name": user},
        "actions": [action],
        "message": {"ts": ts},
        "channel": {"id": channel},
    }
    parsed = parse_action(urlencode({"payload": json.dumps(payload)}).encode())
    if any("\ud800" <= char <= "\udfff" for char in incident + channel + ts + user):
        assert parsed is None
        return
    assert isinstance(parsed, Press)
    assert (parsed.action, parsed.incident, parsed.channel, parsed.ts) == (verb, incident, channel, ts)
    assert parsed.user.endswith("slack U1)" if sanitize_line(user) else "slack U1")
    assert parsed.once == f"slack:press:{ts}:triage.{verb}:{parsed.user}:{ts}"


def test_the_service_accepts_the_same_requests(bench: Bench, tmp_path: Path) -> None:
    """`triage serve` handles them at the same path with the same responses."""
    pytest.importorskip("fastapi")
    from starlette.testclient import TestClient

    from triage.service.app import create_app
    from triage.settings import Settings
    from triage.settings.sections import StoreSettings

    bench.now = time.time()
    bench.ingest(known_diagnosis("a"))
    bench.work()
    app = create_app(Settings(slack=bench.settings, store=StoreSettings(path=tmp_path / "triage.db")), bench.store)
    with TestClient(app, base_url="http://127.0.0.1:8321") as client:
        timestamp = str(int(time.time()))
        body = COMMAND.replace(
            b"https%3A%2F%2Fhooks.slack.com%2Fx", bench.slack._new_response_url().replace(":", "%3A").encode()
        )
        signed = {"X-Slack-Request-Timestamp": timestamp, "Content-Type": "application/x-www-form-urlencoded"}
        assert (
            client.post("/hooks/slack", content=body, headers={**signed, "X-Slack-Signature": "v0=no"}).status_code
            == 401
        )
        signed["X-Slack-Signature"] = bench.slack.signature(timestamp, body)
        assert client.post("/hooks/slack", content=body, headers=signed).status_code == 200
        assert client.post("/hooks/slack", content=body, headers=signed).status_code == 401
    assert len(bench.slack.answers) == 1


def test_without_a_secret_everything_is_refused(bench: Bench) -> None:
    """A bot without a signing secret accepts no request."""
    timestamp = str(int(time.time()))
    signed = {"X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": bench.slack.signature(timestamp, COMMAND)}
    assert handle_request("", signed, COMMAND, bench.store, time.time()).status == 401
    assert handle_request(bench.slack.signing_secret, signed, COMMAND, bench.store, time.time()).status == 200
