"""Silent ranks, slow steps and stalls of a job that is watched: told while it lasts, edited in place, taken back."""

from __future__ import annotations

import json

import pytest

from tests.bots.making import CHANNEL, Bench, texts
from tests.bots.test_routing import at
from triage.bots.announce import announce_pace
from triage.bots.pace import Pace
from triage.bots.webhook import WebhookBot
from triage.bots.work import work
from triage.model.watch import Episode, News, NewsKind
from triage.settings.routing import Route
from triage.settings.webhook import Webhook
from triage.testing.webhook import WebhookServer
from triage.watch.episodes import after


def tell(bench: Bench, *news: tuple[NewsKind, tuple[int, ...]], job: str = "run-42") -> None:
    """What was said of a job so far, as one episode."""
    episode: Episode | None = None
    for number, (kind, ranks) in enumerate(news):
        said = f"<!channel> rank {ranks} is {kind}"
        episode = after(
            episode, News(kind, bench.now + number, said, ranks, hosts=tuple(f"node{rank}" for rank in ranks))
        )
    assert episode is not None
    name = f"watch:{job}:{news[0][1]}/pace"
    announce_pace(bench.store, name, Pace(job, f"/jobs/{job}", episode), bench.routing, now=bench.now)


def test_one_message_edited_and_taken_back(bench: Bench) -> None:
    """Silent, another one silent, both back: one message all the time, which says at last that it is over. Told twice
    it is not edited.
    """
    said: list[tuple[NewsKind, tuple[int, ...]]] = [("silent", (3,)), ("silent", (4,)), ("back", (3, 4))]
    for number in range(1, 4):
        for _ in range(2):
            tell(bench, *said[:number])
            bench.work()
            bench.now -= 3600
    (message,) = bench.visible()
    assert message["text"].startswith("Back: &lt;!channel&gt; rank (3, 4) is back")
    assert "Silent: &lt;!channel&gt; rank (3,)" in bench.text()
    assert "<!" not in bench.text()
    assert "triage collect" not in bench.text()
    assert bench.visible(thread=True) == []


def test_a_failure_ends_the_message(bench: Bench) -> None:
    """It says what the job failed of; the failure has a message of its own."""
    tell(bench, ("stalled", ()))
    bench.work()
    assert "triage collect" in bench.text()
    tell(bench, ("stalled", ()), ("failure", (9,)))
    bench.work()
    assert ":red_circle: *Failed:*" in bench.text()


def test_what_is_over_before_anybody_was_told_is_not_told(bench: Bench) -> None:
    """In quiet hours, or while Slack is down: in the morning there is nothing to say any more; what lasts is said then."""
    bench.route(quiet="22:00-07:00")
    bench.now = at("03:00")
    tell(bench, ("silent", (3,)))
    tell(bench, ("slow", (5,)))
    bench.work()
    tell(bench, ("silent", (3,)), ("back", (3,)))
    bench.work(rounds=2)
    assert bench.visible() == []
    bench.work(rounds=2)
    assert "rank (5,) is slow" in bench.text()
    assert len(bench.visible()) == 1


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        ({}, 1),
        ({"verdicts": ("known", "unknown")}, 0),
        ({"hosts": ("node3",)}, 1),
        ({"hosts": ("node9",)}, 0),
        ({"jobs": ("run-*",)}, 1),
        ({"signatures": ("pace.silent",)}, 1),
        ({"signatures": ("pace.stalled", "cuda.*")}, 0),
        ({"domains": ("cuda",)}, 0),
    ],
)
def test_routes_decide(bench: Bench, rules: dict[str, object], wanted: int) -> None:
    """By verdict, hosts, job, and the kind of news in the place of a signature."""
    bench.route(**rules)
    tell(bench, ("silent", (3,)))
    bench.work()
    assert len(bench.visible()) == wanted


def test_the_same_rank_again_is_counted(bench: Bench) -> None:
    """A rank that falls silent once more is a line in the thread; another rank of the same job is news."""
    for job in ("run-42", "run-42b"):
        tell(bench, ("silent", (3,)), job=job)
        bench.work()
        bench.now -= 3600
    assert len(bench.visible()) == 1
    assert "The same 1 more time" in texts(bench.visible(thread=True)[0]["blocks"])
    tell(bench, ("silent", (44,)))
    bench.work()
    assert len(bench.visible()) == 2


def test_a_webhook_gets_each_state_once(bench: Bench) -> None:
    """The episode as JSON under the same topic, no diagnosis."""
    bench.routing = bench.routing.model_copy(update={"routes": (Route(to="webhook:pager"),)})
    with WebhookServer("s3cret") as hook:
        settings = Webhook.model_validate(
            {"targets": {"pager": {"url": f"{hook.url}/x", "secret": "s3cret"}}, "timeout": 5}
        )
        said: list[tuple[NewsKind, tuple[int, ...]]] = [("silent", (3,)), ("back", (3,))]
        for number in (1, 1, 2):
            tell(bench, *said[:number])
            work(bench.store, [WebhookBot(settings)], clock=lambda: bench.now)
        first, second = hook.accepted
    assert (first["diagnosis"], first["topic"]) == (None, second["topic"])
    assert [item["pace"]["wrong"] for item in (first, second)] == [["silent 3"], []]
    assert [news["event"] for news in second["pace"]["news"]] == ["silent", "back"]


def test_a_report_that_cannot_be_read_is_a_dead_letter(bench: Bench) -> None:
    """It does not stop the others."""
    tell(bench, ("silent", (3,)))
    with bench.store.connections.write() as db:
        db.execute("UPDATE told SET report = ?", (json.dumps({"news": [], "wrong": []}),))
    bench.work()
    (post,) = bench.store.outbox.listed(state="dead")
    assert "cannot be read" in (post.error or "")
    assert bench.slack.visible(CHANNEL) == []
