"""triage.clusters.lessons: what people decided holds for later failures with the same words."""

from __future__ import annotations

import pytest

from triage.clusters import fingerprint
from triage.clusters.known_key import KnownKey
from triage.clusters.lessons import Lessons
from triage.clusters.model import Assignment
from triage.clusters.rule_engine import RuleEngine
from triage.model.diagnosis import Fingerprint
from triage.model.evidence import Evidence, Origin

RED, BLUE = "SinkError: red writer of the lane lost its lease", "SinkError: blue writer of the lane lost its lease"
RED_PAGE, BLUE_PAGE = "SinkError: red cache of the page was evicted", "SinkError: blue cache of the page was evicted"


def print_of(text: str) -> Fingerprint:
    """Return the fingerprint of an exception."""
    return fingerprint(Evidence("exception", "Python", text, Origin(), "x.log", 0))


def place(text: str, known: dict[str, str], *, merged: str = "", apart: tuple[str, ...] = ()) -> Assignment:
    """Place a failure among `known` (text: cluster), of which a person merged one, or keeps two apart."""
    entries = [(cluster, print_of(each)) for each, cluster in known.items()]
    moved = {print_of(merged).key: "ann"} if merged else {}
    pairs = [frozenset(print_of(each).key for each in apart)] if apart else []
    return RuleEngine().place(print_of(text), entries, pairs, moved)


def test_words_of_merged_headlines_mean_the_same() -> None:
    """After red was merged with blue, another failure of red is that of blue, and says who decided."""
    known = {RED: "u-1", BLUE: "u-1", BLUE_PAGE: "u-2"}
    assert place(RED_PAGE, known).how == "new"
    taught = place(RED_PAGE, known, merged=BLUE)
    assert (taught.how, taught.cluster) == ("taught", "u-2")
    assert "as ann merged such failures: here red, there blue" in taught.why[0]
    assert taught.joins == ()


def test_a_lesson_holds_in_both_directions_and_with_words_added() -> None:
    """Whichever of the two was merged into the other."""
    known = {RED: "u-1", BLUE: "u-1", RED_PAGE: "u-2"}
    assert place(f"{BLUE_PAGE} again", known, merged=BLUE).cluster == "u-2"
    assert place(BLUE_PAGE, known, merged=RED).cluster == "u-2"


@pytest.mark.parametrize(
    "text", ["SinkError: green cache of the page was evicted", "CacheError: cuda error 7 at red cache of the page"]
)
def test_a_lesson_is_of_its_words_and_its_guard(text: str) -> None:
    """Another word, or other codes, are not what the person merged."""
    assert place(text, {RED: "u-1", BLUE: "u-1", BLUE_PAGE: "u-2"}, merged=BLUE).how == "new"


def test_what_is_kept_apart_is_not_taught() -> None:
    """A decision about the two failures themselves comes before what another one teaches."""
    known = {RED: "u-1", BLUE: "u-1", BLUE_PAGE: "u-2"}
    assert place(RED_PAGE, known, merged=BLUE, apart=(RED_PAGE, BLUE_PAGE)).how == "new"


def test_words_that_separate_headlines_tell_later_ones_apart() -> None:
    """A word more would be a release's; after a split by it, it is another failure, also of another headline."""
    known = {RED: "u-1", f"{RED} remotely": "u-2", BLUE: "u-3"}
    assert place(f"{BLUE} remotely", known).cluster == "u-3"
    assert place(f"{BLUE} remotely", known, apart=(RED, f"{RED} remotely")).how == "new"
    assert place(f"{BLUE} today", known, apart=(RED, f"{RED} remotely")).cluster == "u-3"


@pytest.mark.parametrize(("colour", "is_taught"), [("one two red", True), ("one two three red", False)])
def test_more_than_three_words_are_another_sentence(colour: str, is_taught: bool) -> None:
    """Of two sentences no word stands for another."""
    texts = (f"SinkError: {each} writer of the lane lost its lease" for each in (colour, "blue"))
    known = [KnownKey.of("u-1", print_of(text)) for text in texts]
    lessons = Lessons(known, {known[0].key: "ann"}, ())
    new = KnownKey.of("", print_of(f"SinkError: {colour} cache of the page was evicted"))
    assert bool(list(lessons.apply(new))) is is_taught


@pytest.mark.parametrize(("text", "is_lesson"), [("lane lost lease", True), ("lane lost", False)])
def test_three_words_must_be_the_same(text: str, is_lesson: bool) -> None:
    """Two short headlines may be merged for a reason that no word shows."""
    known = [KnownKey("u-1", key, "", frozenset((*text.split(), key)), frozenset()) for key in ("red", "blue")]
    new = KnownKey("", "n", "", frozenset(("red", "page")), frozenset())
    assert bool(list(Lessons(known, {"red": "ann"}, ()).apply(new))) is is_lesson


def test_the_nearest_headline_teaches() -> None:
    """A cluster may have several; only the one that differs in least words was meant."""
    far = "SinkError: green reader of the lane lost its lease"
    known = [KnownKey.of("u-1", print_of(text)) for text in (RED, BLUE, far)]
    new = KnownKey.of("", print_of(RED_PAGE))
    lessons = [lesson for lesson, _ in Lessons(known, {known[0].key: "ann"}, ()).apply(new)]
    assert [(set(one.here), set(one.there), one.actor) for one in lessons] == [({"red"}, {"blue"}, "ann")]
