"""Routes, quiet hours, digests and repeats decide who is notified when."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from tests.bots.factories import CHANNEL, Bench, texts
from tests.store.factories import DAY, NOW, clean_diagnosis, known_diagnosis, unknown_diagnosis
from triage.bots import digests
from triage.bots.announce import Topic, announce
from triage.bots.routing import RoutingFacts, allowed_time, due_digest, matches_route
from triage.settings.notifications import Route


def route(**more: object) -> Route:
    return Route(to="slack:C1", **more)  # type: ignore[arg-type]


FACTS = RoutingFacts.from_diagnosis(known_diagnosis("llama-7b", host="node17"))


@pytest.mark.parametrize(
    ("rules", "expected"),
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
def test_each_rule_decides(rules: dict[str, object], expected: bool) -> None:
    """A route matches if all its rules match."""
    assert matches_route(route(**rules), FACTS) is expected


def test_clean_jobs_need_their_own_route() -> None:
    """The minimum confidence applies to known causes only."""
    assert not matches_route(route(), RoutingFacts.from_diagnosis(clean_diagnosis("a")))
    assert matches_route(route(verdicts=("clean",)), RoutingFacts.from_diagnosis(clean_diagnosis("a")))
    assert matches_route(route(confidence=1.0), RoutingFacts.from_diagnosis(unknown_diagnosis("a")))


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
def test_quiet_hours_end_in_the_zone_of_the_route(quiet: str, zone: str, now: float, then: float) -> None:
    """A new message waits until the quiet hours end."""
    assert allowed_time(route(quiet=quiet, zone=zone), now) == then


def test_a_digest_covers_the_day_before_it_is_due() -> None:
    """Only the latest due digest is returned."""
    assert due_digest(route(), NOW) is None
    assert due_digest(route(digest="09:00"), at("10:00")) == ("2025-11-21", at("09:00", 20), at("09:00"))
    assert due_digest(route(digest="09:00"), at("08:00")) == ("2025-11-20", at("09:00", 19), at("09:00", 20))


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
def test_invalid_routes_are_refused(bad: dict[str, object]) -> None:
    """Each value is validated when the settings are read."""
    with pytest.raises(ValidationError):
        Route(**{"to": "slack:C1", **bad})  # type: ignore[arg-type]


def test_quiet_hours_delay_a_new_message(bench: Bench) -> None:
    """Nothing is posted at night, one message in the morning."""
    bench.route(quiet="22:00-07:00")
    bench.now = at("03:00")
    bench.ingest(known_diagnosis("a"))
    bench.work(rounds=4)
    assert bench.visible() == []
    bench.work(rounds=2)
    assert len(bench.visible()) == 1


def test_a_route_mentions_its_team(bench: Bench) -> None:
    """Messages of other routes mention nobody."""
    everything, fabric = Route(to="slack:C1"), Route(to="slack:C1", domains=("nccl",), team="S0123")
    bench.routing = bench.routing.model_copy(update={"routes": (everything, fabric)})
    bench.ingest(known_diagnosis("a", host="one"))
    bench.ingest(known_diagnosis("b", "nccl.remote-error", host="two"))
    bench.work()
    assert ["<!subteam^S0123>" in texts(message["blocks"]) for message in bench.visible()] == [False, True]


def test_repeats_are_counted_in_the_thread(bench: Bench) -> None:
    """The same cause on the same host or job edits one reply instead of posting a new message."""
    bench.ingest(known_diagnosis("a", host="node17"))
    bench.work()
    for number in range(1, 4):
        bench.ingest(known_diagnosis(f"b{number}", host="node17", at=NOW + number))
        bench.work()
    assert len(bench.visible()) == 1
    replies = bench.visible(thread=True)
    assert len(replies) == 2
    assert replies[1]["text"] == "The same 3 more times: node17 4 times"
    bench.ingest(known_diagnosis("c", host="node99"))
    bench.work()
    assert len(bench.visible()) == 2


def test_a_late_repeat_is_a_new_message(bench: Bench) -> None:
    """After `repeat_hours` the same failure is posted again."""
    bench.ingest(known_diagnosis("a"))
    bench.work()
    bench.now += 25 * 3600
    bench.ingest(known_diagnosis("b"))
    bench.work()
    assert len(bench.visible()) == 2


def test_a_digest_summarises_the_day(bench: Bench) -> None:
    """It counts jobs, causes and repeated hosts; it is written once, and not for a day without failures."""
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
        bench.ingest(known_diagnosis(f"j{number}", signature, host=host, at=at("04:00") + number))
    bench.ingest(unknown_diagnosis("j5", at=at("05:00")))
    bench.ingest(clean_diagnosis("j6"))
    bench.work()
    assert bench.visible() == []
    for clock in ("08:59", "09:00", "09:01", "12:00"):
        digests.write_due_digests(bench.store, bench.routing, at(clock))
    bench.now = at("09:02")
    bench.work()
    (message,) = bench.visible()
    assert message["text"] == "*2025-11-21:* 5 jobs, 4 causes, node17 twice"
    assert "• 2 × cuda.out-of-memory" in texts(message["blocks"])
    assert digests.write_due_digests(bench.store, bench.routing, at("09:00", 23)) == 0


def test_a_topic_without_an_incident_carries_its_report(bench: Bench) -> None:
    """A watch posts and edits one message without storing an incident."""
    for title in ("first", "second", "third"):
        topic = Topic("watch:/jobs/a/0", None, unknown_diagnosis("a", f"ValueError: {title}"))
        assert announce(bench.store, topic, bench.routing, now=bench.now) == [f"slack:{CHANNEL}"]
        bench.work()
    assert len(bench.visible()) == 1
    assert "ValueError: third" in bench.text()
    assert bench.store.search.count_incidents() == 0


def test_each_attempt_has_a_message(bench: Bench) -> None:
    """Two attempts of a job with different failures give two messages."""
    announce(bench.store, Topic("j-1/0", None, known_diagnosis("a", "cuda.other")), bench.routing, now=bench.now)
    announce(bench.store, Topic("j-1/1", None, known_diagnosis("a", "nccl.other")), bench.routing, now=bench.now)
    bench.work()
    assert len(bench.visible()) == 2


def test_the_clock_of_the_tests_is_a_calendar_day() -> None:
    """NOW lies on 2025-11-21, one day before the 22nd."""
    assert datetime.fromtimestamp(NOW + DAY, UTC).day == 22
