"""Pace problems of a watched job are one message: posted, edited while they last, and closed."""

from __future__ import annotations

import json

import pytest

from tests.bots.factories import CHANNEL, Bench, texts
from tests.bots.test_routing import at
from triage.bots.announce import announce_pace
from triage.bots.pace import PaceReport
from triage.bots.webhook import WebhookBot
from triage.bots.work import deliver_due
from triage.model.watch import Episode, EventKind, WatchEvent
from triage.settings.notifications import Route, WebhookSettings
from triage.testing.webhook import WebhookServer
from triage.watch.episodes import extend


def announce_events(bench: Bench, *events: tuple[EventKind, tuple[int, ...]], job: str = "run-42") -> None:
    """Announce these events of a job as one episode."""
    episode: Episode | None = None
    for number, (kind, ranks) in enumerate(events):
        text, hosts = f"<!channel> rank {ranks} is {kind}", tuple(f"node{rank}" for rank in ranks)
        episode = extend(episode, WatchEvent(kind, bench.now + number, text, ranks, hosts=hosts))
    assert episode is not None
    name = f"watch:{job}:{events[0][1]}/pace"
    announce_pace(bench.store, name, PaceReport(job, f"/jobs/{job}", episode), bench.routing, now=bench.now)


def test_an_episode_is_one_edited_message(bench: Bench) -> None:
    """The last edit says that all ranks are back; an unchanged episode edits nothing."""
    events: list[tuple[EventKind, tuple[int, ...]]] = [("silent", (3,)), ("silent", (4,)), ("back", (3, 4))]
    for number in range(1, 4):
        for _ in range(2):
            announce_events(bench, *events[:number])
            bench.work()
            bench.now -= 3600
    (message,) = bench.visible()
    assert message["text"].startswith("Back: &lt;!channel&gt; rank (3, 4) is back")
    assert "Silent: &lt;!channel&gt; rank (3,)" in bench.text()
    assert "<!" not in bench.text()
    assert "triage collect" not in bench.text()
    assert bench.visible(thread=True) == []


def test_a_failure_ends_the_message(bench: Bench) -> None:
    """It then shows the failure, which also has a message of its own."""
    announce_events(bench, ("stalled", ()))
    bench.work()
    assert "triage collect" in bench.text()
    announce_events(bench, ("stalled", ()), ("failure", (9,)))
    bench.work()
    assert ":red_circle: *Failed:*" in bench.text()


def test_an_episode_that_ends_before_its_delivery_is_not_posted(bench: Bench) -> None:
    """After quiet hours only problems that still last are posted."""
    bench.route(quiet="22:00-07:00")
    bench.now = at("03:00")
    announce_events(bench, ("silent", (3,)))
    announce_events(bench, ("slow", (5,)))
    bench.work()
    announce_events(bench, ("silent", (3,)), ("back", (3,)))
    bench.work(rounds=2)
    assert bench.visible() == []
    bench.work(rounds=2)
    assert "rank (5,) is slow" in bench.text()
    assert len(bench.visible()) == 1


@pytest.mark.parametrize(
    ("rules", "expected"),
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
def test_routes_decide(bench: Bench, rules: dict[str, object], expected: int) -> None:
    """They match verdict, hosts and job; the kind of problem takes the place of the signature."""
    bench.route(**rules)
    announce_events(bench, ("silent", (3,)))
    bench.work()
    assert len(bench.visible()) == expected


def test_the_same_rank_again_is_counted(bench: Bench) -> None:
    """A rank that falls silent again is a line in the thread; another rank is a new message."""
    for job in ("run-42", "run-42b"):
        announce_events(bench, ("silent", (3,)), job=job)
        bench.work()
        bench.now -= 3600
    assert len(bench.visible()) == 1
    assert "The same 1 more time" in texts(bench.visible(thread=True)[0]["blocks"])
    announce_events(bench, ("silent", (44,)))
    bench.work()
    assert len(bench.visible()) == 2


def test_a_webhook_gets_each_state_once(bench: Bench) -> None:
    """The body has the episode, the same topic and no diagnosis."""
    bench.routing = bench.routing.model_copy(update={"routes": (Route(to="webhook:pager"),)})
    with WebhookServer("s3cret") as hook:
        settings = WebhookSettings.model_validate(
            {"targets": {"pager": {"url": f"{hook.url}/x", "secret": "s3cret"}}, "timeout": 5}
        )
        events: list[tuple[EventKind, tuple[int, ...]]] = [("silent", (3,)), ("back", (3,))]
        for number in (1, 1, 2):
            announce_events(bench, *events[:number])
            deliver_due(bench.store, [WebhookBot(settings)], clock=lambda: bench.now)
        first, second = hook.accepted
    assert (first["diagnosis"], first["topic"]) == (None, second["topic"])
    assert [item["pace"]["wrong"] for item in (first, second)] == [["silent 3"], []]
    assert [events["event"] for events in second["pace"]["news"]] == ["silent", "back"]


def test_an_unreadable_report_is_a_dead_letter(bench: Bench) -> None:
    """It does not stop other posts."""
    announce_events(bench, ("silent", (3,)))
    with bench.store.connections.write() as db:
        db.execute("UPDATE told SET report = ?", (json.dumps({"news": [], "wrong": []}),))
    bench.work()
    (post,) = bench.store.outbox.list_posts(state="dead")
    assert "cannot be read" in (post.error or "")
    assert bench.slack.visible(CHANNEL) == []
