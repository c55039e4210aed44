"""Who is told what, and when: routes, quiet hours, digests, repeats."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from tests.bots.making import CHANNEL, Bench, texts
from tests.store.making import DAY, NOW, clean, known, unknown
from triage.bots import digests
from triage.bots.announce import Topic, announce
from triage.bots.routing import Facts, digest_of, wants, when
from triage.settings.routing import Route


def route(**more: object) -> Route:
    return Route(to="slack:C1", **more)  # type: ignore[arg-type]


FACTS = Facts.of(known("llama-7b", host="node17"))


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        ({}, True),
        ({"verdicts": ("unknown",)}, False),
        ({"domains": ("cuda", "gpu")}, True),
        ({"domains": ("gpu",)}, False),
        ({"signatures": ("cuda.*",)}, True),
        ({"signatures": ("nccl.*",)}, False),
        ({"hosts": ("node1?",)}, True),
        ({"hosts": ("gpu-*",)}, False),
        ({"jobs": ("llama-*",)}, True),
        ({"jobs": ("/jobs/llama*",)}, True),
        ({"jobs": ("bert",)}, False),
        ({"confidence": 0.9}, True),
        ({"confidence": 0.95}, False),
    ],
)
def test_each_rule_decides(rules: dict[str, object], wanted: bool) -> None:
    """A diagnosis goes to a route that wants all of it."""
    assert wants(route(**rules), FACTS) is wanted


def test_clean_is_silent_unless_asked_for() -> None:
    """The least confidence is for known causes only."""
    assert not wants(route(), Facts.of(clean("a")))
    assert wants(route(verdicts=("clean",)), Facts.of(clean("a")))
    assert wants(route(confidence=1.0), Facts.of(unknown("a")))


def at(clock: str, day: int = 21) -> float:
    return datetime.fromisoformat(f"2025-11-{day}T{clock}:00+00:00").timestamp()


@pytest.mark.parametrize(
    ("quiet", "zone", "now", "then"),
    [
        ("", "UTC", at("03:00"), at("03:00")),
        ("22:00-07:00", "UTC", at("03:00"), at("07:00")),
        ("22:00-07:00", "UTC", at("23:30"), at("07:00", 22)),
        ("22:00-07:00", "UTC", at("07:00"), at("07:00")),
        ("22:00-07:00", "UTC", at("12:00"), at("12:00")),
        ("12:00-13:00", "UTC", at("12:30"), at("13:00")),
        ("22:00-07:00", "Europe/Berlin", at("05:30"), at("06:00")),
        ("22:00-07:00", "Asia/Tokyo", at("23:00"), at("23:00")),
    ],
)
def test_quiet_hours_end(quiet: str, zone: str, now: float, then: float) -> None:
    """What is new waits until the hours end, in the zone of the route."""
    assert when(route(quiet=quiet, zone=zone), now) == then


def test_the_day_of_a_digest() -> None:
    """The latest that is due, from the one before it."""
    assert digest_of(route(), NOW) is None
    assert digest_of(route(digest="09:00"), at("10:00")) == ("2025-11-21", at("09:00", 20), at("09:00"))
    assert digest_of(route(digest="09:00"), at("08:00")) == ("2025-11-20", at("09:00", 19), at("09:00", 20))


@pytest.mark.parametrize(
    "bad",
    [
        {"to": "mail:x"},
        {"quiet": "25:00-07:00"},
        {"digest": "9"},
        {"zone": "Mars/X"},
        {"confidence": 2},
        {"verdict": "known"},
        {"team": "S1><!channel"},
    ],
)
def test_settings_that_cannot_be_are_refused(bad: dict[str, object]) -> None:
    """With the name of what is wrong."""
    with pytest.raises(ValidationError):
        Route(**{"to": "slack:C1", **bad})  # type: ignore[arg-type]


def test_quiet_hours_hold_back_what_is_new(bench: Bench) -> None:
    """Nothing at night, one message in the morning."""
    bench.route(quiet="22:00-07:00")
    bench.now = at("03:00")
    bench.ingest(known("a"))
    bench.work(rounds=4)
    assert bench.visible() == []
    bench.work(rounds=2)
    assert len(bench.visible()) == 1


def test_a_team_is_called_where_its_route_wants_it(bench: Bench) -> None:
    """By its id, in the message; a message for everybody else calls nobody, and no log text ever does."""
    everything, fabric = Route(to="slack:C1"), Route(to="slack:C1", domains=("nccl",), team="S0123")
    bench.routing = bench.routing.model_copy(update={"routes": (everything, fabric)})
    bench.ingest(known("a", host="one"))
    bench.ingest(known("b", "nccl.remote-error", host="two"))
    bench.work()
    assert ["<!subteam^S0123>" in texts(message["blocks"]) for message in bench.visible()] == [False, True]


def test_the_same_again_is_counted_in_the_thread(bench: Bench) -> None:
    """No second message for the same cause on the same host or job; the count is one reply, edited."""
    bench.ingest(known("a", host="node17"))
    bench.work()
    for number in range(1, 4):
        bench.ingest(known(f"b{number}", host="node17", at=NOW + number))
        bench.work()
    assert len(bench.visible()) == 1
    replies = bench.visible(thread=True)
    assert len(replies) == 2
    assert replies[1]["text"] == "The same 3 more times: node17 4 times"
    bench.ingest(known("c", host="node99"))
    bench.work()
    assert len(bench.visible()) == 2


def test_a_repeat_after_its_time_is_news(bench: Bench) -> None:
    """After the hours of the settings the same is told again."""
    bench.ingest(known("a"))
    bench.work()
    bench.now += 25 * 3600
    bench.ingest(known("b"))
    bench.work()
    assert len(bench.visible()) == 2


def test_a_digest_counts_the_day(bench: Bench) -> None:
    """One message: jobs, causes, hosts that came twice. Written once, and not on a day without failures."""
    bench.route(digest="09:00", only_digest=True)
    bench.now = at("08:00")
    for number, (signature, host) in enumerate(
        [
            ("cuda.out-of-memory", "node17"),
            ("cuda.out-of-memory", "node3"),
            ("nccl.remote-error", "node17"),
            ("host.oom", "node4"),
        ]
    ):
        bench.ingest(known(f"j{number}", signature, host=host, at=at("04:00") + number))
    bench.ingest(unknown("j5", at=at("05:00")))
    bench.ingest(clean("j6"))
    bench.work()
    assert bench.visible() == []
    for clock in ("08:59", "09:00", "09:01", "12:00"):
        digests.due(bench.store, bench.routing, at(clock))
    bench.now = at("09:02")
    bench.work()
    (told,) = bench.visible()
    assert told["text"] == "*2025-11-21:* 5 jobs, 4 causes, node17 twice"
    assert "• 2 × cuda.out-of-memory" in texts(told["blocks"])
    assert digests.due(bench.store, bench.routing, at("09:00", 23)) == 0


def test_a_topic_without_an_incident_carries_its_report(bench: Bench) -> None:
    """What watches a job that still runs tells it without storing it, and revises the same message."""
    for title in ("first", "second", "third"):
        about = Topic("watch:/jobs/a/0", None, unknown("a", f"ValueError: {title}"))
        assert announce(bench.store, about, bench.routing, now=bench.now) == [f"slack:{CHANNEL}"]
        bench.work()
    assert len(bench.visible()) == 1
    assert "ValueError: third" in bench.text()
    assert bench.store.search.count() == 0


def test_a_message_per_attempt(bench: Bench) -> None:
    """Another attempt of the same job that fails otherwise is another message."""
    announce(bench.store, Topic("j-1/0", None, known("a", "cuda.other")), bench.routing, now=bench.now)
    announce(bench.store, Topic("j-1/1", None, known("a", "nccl.other")), bench.routing, now=bench.now)
    bench.work()
    assert len(bench.visible()) == 2


def test_days_are_of_the_calendar() -> None:
    """The tests' clock is what it says."""
    assert datetime.fromtimestamp(NOW + DAY, UTC).day == 22
