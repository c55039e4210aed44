"""triage.render.swimlanes"""

from __future__ import annotations

import dataclasses
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given

from triage.model.diagnosis import Moment, RankState
from triage.render import swimlanes

from .factories import KNOWN, NOON, diagnoses

SVG = "{http://www.w3.org/2000/svg}"


def drawn_lanes(drawing: str) -> list[str]:
    """Return the names of the lanes from the top."""
    tree = ElementTree.fromstring(drawing)
    return [text.text or "" for text in tree.iter(f"{SVG}text") if text.get("class") == "rank"]


def marks(drawing: str, kind: str = "cause") -> list[str]:
    """Return the titles of the dots of a kind."""
    tree = ElementTree.fromstring(drawing)
    return [
        circle.findtext(f"{SVG}title") or ""
        for circle in tree.iter(f"{SVG}circle")
        if kind in (circle.get("class") or "").split()
    ]


def test_the_rank_of_the_root_cause_comes_first() -> None:
    """Its lane is on top, its moment marked as the cause, and the seconds count from there."""
    moments = (
        Moment(NOON + 30, 0, "closed", "gloo.connection-closed-by-peer"),
        Moment(NOON + 26, 1, "killed", "data.worker-killed"),
    )
    drawing = swimlanes.draw(dataclasses.replace(KNOWN, timeline=moments))
    tree = ElementTree.fromstring(drawing)
    assert [name.partition(" ")[2][:1] for name in drawn_lanes(drawing)] == ["1", "0"]
    assert [circle.get("class") for circle in tree.iter(f"{SVG}circle")] == ["cause", "echo"]
    assert (tree.findtext(f"{SVG}desc") or "").startswith("rank 1, +0 s: data.worker-killed; rank 0, +4 s")


def test_ranks_with_the_same_history_share_a_lane() -> None:
    """A thousand ranks that say the same at once are one lane with a count; what differs has a lane of its own."""
    root = Moment(NOON + 26, 1, "killed", "data.worker-killed")
    same = [
        Moment(NOON + 30 + rank / 1_000_000, rank, "lost", "gloo.connection-closed-by-peer") for rank in range(2, 1000)
    ]
    other = Moment(NOON + 30, 0, "lost", "nccl.timeout")
    states = tuple(RankState(rank, None, "failed") for rank in range(1000))
    made = dataclasses.replace(KNOWN, timeline=(root, *same, other), ranks=states)
    assert drawn_lanes(swimlanes.draw(made)) == ["rank 1 F", "rank 0 F", "ranks 2-999 F"]
    late = dataclasses.replace(same[0], time=NOON + 60)
    assert len(drawn_lanes(swimlanes.draw(dataclasses.replace(made, timeline=(root, late, *same[1:], other))))) == 4


def test_a_narrow_drawing_fits_a_phone() -> None:
    """All of its texts and marks are inside of 350 pixels, and its texts are those of the wide one."""
    root = dataclasses.replace(KNOWN.root_cause, first_time=None)  # type: ignore[type-var]
    moments = (Moment(NOON, 10000, "closed", "a.b"), Moment(NOON + 3, None, "stopped", "c.d"))
    for made in (KNOWN, dataclasses.replace(KNOWN, timeline=moments, root_cause=root)):
        wide, narrow = swimlanes.draw(made), swimlanes.draw(made, narrow=True)
        assert drawn_lanes(narrow) == drawn_lanes(wide)
        assert marks(narrow) == marks(wide)
        tree = ElementTree.fromstring(narrow)
        assert tree.get("width") == str(swimlanes.NARROW)
        for text in tree.iter(f"{SVG}text"):
            length, x = round(6.7 * len(text.text or "")), int(text.get("x") or 0)
            begin = {"rank": x - length, "tick": x - length // 2}.get(text.get("class") or "", x)
            assert 0 <= begin <= begin + length <= swimlanes.NARROW
    assert set(re.findall(r'id="([^"]+)"', narrow)).isdisjoint(re.findall(r'id="([^"]+)"', wide))


def test_a_root_cause_without_a_time_stands_beside_the_axis() -> None:
    """Its mark is hollow and not on the axis, and no red line marks a time for it."""
    root = dataclasses.replace(KNOWN.root_cause, first_time=None)  # type: ignore[type-var]
    moments = (Moment(NOON, 0, "closed", "a.b"), Moment(NOON + 3, None, "stopped", "c.d"))
    drawing = swimlanes.draw(dataclasses.replace(KNOWN, timeline=moments, root_cause=root))
    assert marks(drawing) == [f"{root.title} (no time)"]  # type: ignore[union-attr]
    assert ">no time</text>" in drawing
    assert 'class="first"' not in drawing


def test_a_root_cause_is_drawn_where_others_filled_the_timeline() -> None:
    """The timeline keeps only the first moments; the root cause has its red mark at its own time all the same."""
    moments = tuple(Moment(NOON + rank / 10, rank, "lost", "a.b") for rank in range(200))
    drawing = swimlanes.draw(dataclasses.replace(KNOWN, timeline=moments))
    assert marks(drawing) == [f"{KNOWN.root_cause.signature}: {KNOWN.root_cause.title}"]  # type: ignore[union-attr]


def test_a_borrowed_time_is_a_hollow_mark() -> None:
    """A line without a time of its own happened then or later, and the mark says so."""
    moments = (
        Moment(NOON + 26, 1, "killed", "data.worker-killed"),
        Moment(NOON + 20, 0, "closed", "a.b", or_later=True),
    )
    assert marks(swimlanes.draw(dataclasses.replace(KNOWN, timeline=moments)), "later") == [
        "a.b: closed (then or later)"
    ]


def test_the_silence_of_the_root_is_drawn() -> None:
    """From the last line of a rank to the time at which it failed there is a red line; not if it wrote until then."""
    moments = (Moment(NOON + 26, 1, "killed", "data.worker-killed"), Moment(NOON + 30, 0, "closed", "a.b"))
    for last, gaps in ((NOON, 1), (NOON + 26, 0)):
        states = (RankState(0, None, "failed"), RankState(1, None, "stalled", last_time=last))
        drawing = swimlanes.draw(dataclasses.replace(KNOWN, timeline=moments, ranks=states))
        assert drawing.count('class="gap"') == gaps


def test_one_moment_is_no_timeline() -> None:
    """A single mark on an axis shows nothing."""
    root = Moment(NOON + 26, 1, "killed", "data.worker-killed")
    assert swimlanes.draw(dataclasses.replace(KNOWN, timeline=(root,))) == ""
    assert swimlanes.draw(dataclasses.replace(KNOWN, timeline=(root, Moment(NOON, 0, "x", "a.b"))))


def test_many_ranks_and_moments_stay_small() -> None:
    """A thousand ranks with moments at other times give some lanes, and the number of the others."""
    moments = tuple(
        Moment(NOON + rank * 2, rank, "lost", "gloo.connection-closed-by-peer")
        for rank in range(1000)
        for _ in range(3)
    )
    made = dataclasses.replace(
        KNOWN, timeline=moments, ranks=tuple(RankState(rank, None, "failed") for rank in range(1000))
    )
    drawing = swimlanes.draw(made)
    assert len(drawing) < 30_000
    assert len(drawn_lanes(drawing)) == swimlanes.LANES
    assert " more ranks</text>" in drawing


def test_there_is_no_drawing_without_times() -> None:
    """Without times there is no axis."""
    root = dataclasses.replace(KNOWN.root_cause, first_time=None)  # type: ignore[type-var]
    assert swimlanes.draw(dataclasses.replace(KNOWN, timeline=(Moment(None, 1, "x", None),), root_cause=root)) == ""


@given(diagnoses)
def test_any_diagnosis_gives_sound_xml(made: object) -> None:
    """Whatever is in it, the drawing can be parsed."""
    drawing = swimlanes.draw(made)  # type: ignore[arg-type]
    assert not drawing or ElementTree.fromstring(drawing).tag == f"{SVG}svg"


@pytest.mark.parametrize(
    ("ranks", "state", "last", "expected"),
    [
        (range(900), "stalled", 30.0, ["rank 900 F", "ranks 0-899 S"]),
        (range(900), "stalled", 0.0, ["rank 900 F", "ranks 0-199 S"]),  # another last line
        (range(900), "killed", 30.0, ["rank 900 F", "ranks 0-199 S"]),
        (range(200), "stalled", 30.0, ["rank 900 F", "ranks 0-199 S"]),  # the finding does not name them
    ],
)
def test_ranks_that_a_timeline_leaves_out_join_their_lane(
    ranks: range, state: Any, last: float, expected: list[str]
) -> None:
    """A timeline holds some hundred moments; the lane has all ranks of its finding that end as those it shows."""
    assert KNOWN.root_cause is not None
    echo = dataclasses.replace(KNOWN.findings[1], signature="a.b", ranks=tuple(ranks))
    root = dataclasses.replace(KNOWN.root_cause, ranks=(900,))
    moments = (Moment(NOON, 900, "x", root.signature), *(Moment(NOON + 30, rank, "x", "a.b") for rank in range(200)))
    states = [RankState(rank, None, "stalled", last_time=NOON + 30) for rank in range(200)]
    states += [RankState(rank, None, state, last_time=NOON + last) for rank in range(200, 900)]
    made = dataclasses.replace(
        KNOWN,
        root_cause=root,
        findings=(root, echo),
        timeline=moments,
        ranks=(*states, RankState(900, None, "failed")),
    )
    drawing = swimlanes.draw(made)
    assert drawn_lanes(drawing) == expected
    assert ("and 700 more ranks</text>" in drawing) == (expected[1] == "ranks 0-199 S")
