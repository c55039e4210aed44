"""The local servers refuse what the real services refuse."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from triage.testing.forges import GitHubServer, GitLabServer
from triage.testing.local import Reply, Request
from triage.testing.slack import SlackServer, find_problem
from triage.testing.webhook import WebhookServer

sdk = pytest.importorskip("slack_sdk")


def text(count: int, kind: str = "mrkdwn") -> dict[str, str]:
    return {"type": kind, "text": "x" * count}


def section(count: int = 1) -> dict[str, Any]:
    return {"type": "section", "text": text(count)}


def button(**more: Any) -> dict[str, Any]:
    return {"type": "button", "action_id": "a", "text": text(2, "plain_text"), "value": "v", **more}


BAD_MESSAGES: list[tuple[str, dict[str, Any], str]] = [
    ("nothing", {}, "no_text"),
    ("long text", {"text": "x" * 40_001}, "msg_too_long"),
    ("51 blocks", {"blocks": [section()] * 51}, "invalid_blocks"),
    ("long section", {"blocks": [section(3001)]}, "invalid_blocks"),
    ("empty section", {"blocks": [section(0)]}, "invalid_blocks"),
    ("much text", {"blocks": [section(3000)] * 5}, "msg_blocks_too_long"),
    ("unknown block", {"blocks": [{"type": "table"}]}, "invalid_blocks"),
    ("same ids", {"blocks": [{**section(), "block_id": "a"}] * 2}, "invalid_blocks"),
    ("long header", {"blocks": [{"type": "header", "text": text(151, "plain_text")}]}, "invalid_blocks"),
    ("markup in a header", {"blocks": [{"type": "header", "text": text(3)}]}, "invalid_blocks"),
    ("eleven in context", {"blocks": [{"type": "context", "elements": [text(1)] * 11}]}, "invalid_blocks"),
    ("same actions", {"blocks": [{"type": "actions", "elements": [button(), button()]}]}, "invalid_blocks"),
    (
        "long button",
        {"blocks": [{"type": "actions", "elements": [button(text=text(76, "plain_text"))]}]},
        "invalid_blocks",
    ),
    ("long value", {"blocks": [{"type": "actions", "elements": [button(value="v" * 2001)]}]}, "invalid_blocks"),
    ("metadata", {"text": "a", "metadata": {"event_type": "x"}}, "invalid_metadata_format"),
]


@pytest.mark.parametrize(
    ("message_arguments", "error"), [case[1:] for case in BAD_MESSAGES], ids=[case[0] for case in BAD_MESSAGES]
)
def test_messages_beyond_the_limits_are_refused(message_arguments: dict[str, Any], error: str) -> None:
    """Each documented limit gives the error of Slack."""
    assert find_problem(message_arguments) == error


@pytest.fixture
def slack() -> Any:
    with SlackServer() as server:
        server.add_channel("C1")
        yield server


def client(slack: SlackServer, **more: Any) -> Any:
    return sdk.WebClient(**{"token": slack.token, "base_url": f"{slack.url}/api/", "retry_handlers": [], **more})


def expect_error(call: Callable[..., Any], **arguments: Any) -> str:
    with pytest.raises(sdk.errors.SlackApiError) as caught:
        call(**arguments)
    return str(caught.value.response["error"])


def test_slack_posts_updates_and_reads(slack: SlackServer) -> None:
    """Messages are in the channel, replies in their thread, metadata only on request."""
    bot = client(slack)
    metadata = {"event_type": "t", "event_payload": {"key": "k"}}
    ts = bot.chat_postMessage(channel="C1", text="a", blocks=[section()], metadata=metadata)["ts"]
    bot.chat_postMessage(channel="C1", text="reply", thread_ts=ts)
    bot.chat_update(channel="C1", ts=ts, text="b")
    assert [message["text"] for message in slack.visible("C1")] == ["b"]
    assert [message["text"] for message in slack.visible("C1", ts)] == ["reply"]
    (plain,) = bot.conversations_history(channel="C1")["messages"]
    (full,) = bot.conversations_history(channel="C1", include_all_metadata=True)["messages"]
    assert ("metadata" in plain, full["metadata"]) == (False, metadata)
    assert len(bot.conversations_replies(channel="C1", ts=ts)["messages"]) == 2
    for number in range(3):
        bot.chat_postMessage(channel="C1", text=str(number))
    page = bot.conversations_history(channel="C1", limit=2)
    assert [message["text"] for message in page["messages"]] == ["2", "1"]
    assert (
        bot.conversations_history(channel="C1", limit=9, cursor=page["response_metadata"]["next_cursor"])["has_more"]
        is False
    )


def test_slack_refuses_invalid_arguments(slack: SlackServer) -> None:
    """Unknown tokens, channels, messages and triggers give Slack's errors."""
    bot = client(slack)
    slack.post_as_user("C1", "by a person")
    assert expect_error(client(slack, token="no").auth_test) == "invalid_auth"
    assert expect_error(bot.chat_postMessage, channel="C9", text="a") == "channel_not_found"
    assert expect_error(bot.chat_postMessage, channel="C1", text="a", thread_ts="1.0") == "thread_not_found"
    assert expect_error(bot.chat_update, channel="C1", ts="1.0", text="a") == "message_not_found"
    assert (
        expect_error(bot.chat_update, channel="C1", ts=slack.visible("C1")[0]["ts"], text="a") == "cant_update_message"
    )
    assert expect_error(bot.views_open, trigger_id="1", view={"type": "modal"}) == "invalid_trigger_id"
    assert expect_error(bot.api_call, api_method="chat.delete") == "unknown_method"


def test_slack_limits_the_rate() -> None:
    """Too many posts give 429 with Retry-After, and the SDK's handler waits."""
    with SlackServer(per_second=5) as slack:
        slack.add_channel("C1")
        bot = client(slack)
        bot.chat_postMessage(channel="C1", text="a")
        with pytest.raises(sdk.errors.SlackApiError) as caught:
            bot.chat_postMessage(channel="C1", text="b")
        assert caught.value.response.status_code == 429
        assert caught.value.response.headers["Retry-After"] == "1"
        patient = client(
            slack, retry_handlers=[sdk.http_retry.builtin_handlers.RateLimitErrorRetryHandler(max_retry_count=1)]
        )
        time.sleep(0.21)
        patient.chat_postMessage(channel="C1", text="b")
        assert [message["text"] for message in slack.visible("C1")] == ["a", "b"]


@pytest.mark.parametrize(("kind", "visible"), [("500", 0), ("cut", 0), ("cut after", 1), ("half", 1)])
def test_an_injected_failure_may_come_after_the_post(slack: SlackServer, kind: str, visible: int) -> None:
    """The connection breaks before or after the message exists; the bot cannot see which."""
    slack.inject_failure("chat.postMessage", kind)
    with pytest.raises((OSError, sdk.errors.SlackApiError, Exception)):
        client(slack).chat_postMessage(channel="C1", text="a")
    assert len(slack.visible("C1")) == visible
    client(slack).chat_postMessage(channel="C1", text="b")
    assert len(slack.visible("C1")) == visible + 1


def ask(url: str, method: str = "GET", body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, named, method=method), timeout=10) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_github_checks_tokens_sizes_and_owners() -> None:
    """Requests that GitHub refuses are refused."""
    with GitHubServer() as github:
        github.add_pull_request("team/repo", 7)
        url, token = f"{github.url}/repos/team/repo/issues", f"Bearer {github.token}"
        assert ask(f"{url}/7/comments")[0] == 401
        assert ask(f"{url}/8/comments", Authorization=token)[0] == 404
        assert ask(f"{url}/7/comments", "POST", b'{"body": ""}', Authorization=token)[0] == 422
        assert ask(f"{url}/7/comments", "POST", b'{"body": "%s"}' % (b"x" * 65_537), Authorization=token)[0] == 422
        github.post_as_user("team/repo", 7, "mine")
        other = github.comments("team/repo", 7)[0]["id"]
        assert ask(f"{url}/comments/{other}", "PATCH", b'{"body": "x"}', Authorization=token)[0] == 403
        assert ask(f"{url}/7/comments", "POST", b'{"body": "a"}', Authorization=token)[0] == 201
        assert len(github.comments("team/repo", 7)) == 2


def test_gitlab_checks_tokens_and_sizes() -> None:
    """Requests that GitLab refuses are refused, and notes can be edited."""
    with GitLabServer() as gitlab:
        gitlab.add_merge_request("team%2Frepo", 3)
        url = f"{gitlab.url}/projects/team%2Frepo/merge_requests/3/notes"
        json_ = {"PRIVATE_TOKEN": gitlab.token, "Content_Type": "application/json"}
        assert ask(url)[0] == 401
        assert ask(url, "POST", b'{"body": "%s"}' % (b"x" * 1_000_001), **json_)[0] == 400
        assert ask(url, "POST", b'{"body": "a"}', **json_)[0] == 201
        number = gitlab.notes("team%2Frepo", 3)[0]["id"]
        assert ask(f"{url}/{number}", "PUT", b'{"body": "b"}', **json_)[0] == 200
        assert [note["body"] for note in gitlab.notes("team%2Frepo", 3)] == ["b"]


def test_the_webhook_receiver_checks_signatures() -> None:
    """A bad signature and an old timestamp give 401."""
    with WebhookServer("s") as hook:
        request = Request("POST", "/", {}, {"x-triage-timestamp": "1", "x-triage-signature": "sha256=0"}, b"{}")
        assert hook.handle(request).status == 401
        now = str(int(time.time()))
        assert (
            hook.handle(Request("POST", "/", {}, {"x-triage-timestamp": now, "x-triage-signature": "é"}, b"{}")).status
            == 401
        )
    assert Reply(200, {"a": 1}).data() == b'{"a": 1}'


def test_a_server_keeps_its_rate() -> None:
    """Two requests in ten seconds are handled, the third is told when there is room again, and is handled then."""
    now = [100.0]
    with GitHubServer() as github:
        github.add_pull_request("team/repo", 7)
        github.rate, github.clock = (2, 10.0), lambda: now[0]
        url, token = f"{github.url}/repos/team/repo/issues/7/comments", f"Bearer {github.token}"
        statuses = []
        for moment in (100.0, 104.0, 105.0, 109.9, 110.0):
            now[0] = moment
            statuses.append(ask(url, Authorization=token)[0])
    assert statuses == [200, 200, 429, 429, 200]
