"""Pace events that belong together form one episode."""

from __future__ import annotations

from triage.model.watch import Episode, EventKind, WatchEvent
from triage.watch.episodes import extend


def episodes_after(*events: tuple[EventKind, tuple[int, ...]]) -> list[Episode | None]:
    """Return the episode after each event; the events are a second apart."""
    episodes: list[Episode | None] = [None]
    for number, (kind, ranks) in enumerate(events):
        episodes.append(extend(episodes[-1], WatchEvent(kind, float(number), kind, ranks)))
    return episodes[1:]


def test_an_episode_lasts_until_nothing_is_wrong() -> None:
    """It ends when the last problem ends; the next problem starts another episode."""
    episodes = episodes_after(
        ("silent", (3,)),
        ("silent", (4,)),
        ("stalled", ()),
        ("back", (3,)),
        ("resumed", ()),
        ("back", (4,)),
        ("slow", (1,)),
    )
    wrong = [sorted(episode.problems) for episode in episodes if episode]
    both = ["silent 3", "silent 4"]
    assert wrong == [["silent 3"], both, [*both, "stalled"], ["silent 4", "stalled"], ["silent 4"], [], ["slow"]]
    assert [episode.began_at for episode in episodes if episode] == [0.0] * 6 + [6.0]


def test_a_failure_ends_an_episode() -> None:
    """The failure is its last event, and later events of its ranks start no episode."""
    *_, failed, later = episodes_after(("silent", (3,)), ("failure", (3,)), ("back", (3,)))
    assert failed is later
    assert failed is not None
    assert not failed.problems
    assert failed.events[-1].kind == "failure"


def test_an_episode_of_days_stays_small() -> None:
    """It stores the first event, the newest events and the current problems."""
    *_, last = episodes_after(("slow", ()), *((kind, (7,)) for _ in range(200) for kind in ("silent", "back")))
    assert last is not None
    assert len(last.events) <= 20
    assert (last.began_at, last.problems) == (0.0, {"slow"})


def test_other_events_start_no_episode() -> None:
    """A failure of a healthy job, or the end of a problem that was not reported, starts none."""
    assert episodes_after(("failure", ()), ("back", (1,)), ("revised", ())) == [None, None, None]
