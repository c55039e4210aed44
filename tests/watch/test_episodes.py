"""News of the pace that belong together."""

from __future__ import annotations

from triage.model.watch import Episode, News, NewsKind
from triage.watch.episodes import after


def told(*news: tuple[NewsKind, tuple[int, ...]]) -> list[Episode | None]:
    """The episode after each of the news, a second apart."""
    found: list[Episode | None] = [None]
    for number, (kind, ranks) in enumerate(news):
        found.append(after(found[-1], News(kind, float(number), kind, ranks)))
    return found[1:]


def test_an_episode_lasts_until_nothing_is_wrong() -> None:
    """Two ranks fall silent one after the other and come back, the last together with the steps; then another episode
    begins.
    """
    episodes = told(
        ("silent", (3,)),
        ("silent", (4,)),
        ("stalled", ()),
        ("back", (3,)),
        ("resumed", ()),
        ("back", (4,)),
        ("slow", (1,)),
    )
    wrong = [sorted(episode.wrong) for episode in episodes if episode]
    both = ["silent 3", "silent 4"]
    assert wrong == [["silent 3"], both, [*both, "stalled"], ["silent 4", "stalled"], ["silent 4"], [], ["slow"]]
    assert [episode.began for episode in episodes if episode] == [0.0] * 6 + [6.0]


def test_a_failure_ends_it() -> None:
    """What was out of step is the failure then; what is said of its ranks later begins nothing."""
    *_, failed, later = told(("silent", (3,)), ("failure", (3,)), ("back", (3,)))
    assert failed is later
    assert failed is not None
    assert not failed.wrong
    assert failed.news[-1].kind == "failure"


def test_an_episode_of_days_stays_small() -> None:
    """The first news and the newest are kept, and what is wrong is still known."""
    *_, last = told(("slow", ()), *((kind, (7,)) for _ in range(200) for kind in ("silent", "back")))
    assert last is not None
    assert len(last.news) <= 20
    assert (last.began, last.wrong) == (0.0, {"slow"})


def test_what_is_about_no_episode_changes_none() -> None:
    """A failure of a job that was in step, a rank that is back of which nothing was said."""
    assert told(("failure", ()), ("back", (1,)), ("revised", ())) == [None, None, None]
