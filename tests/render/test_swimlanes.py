"""triage.render.swimlanes"""

from __future__ import annotations

import dataclasses
from xml.etree import ElementTree

from hypothesis import given

from triage.model.diagnosis import Moment, RankState
from triage.render import swimlanes

from .factories import KNOWN, NOON, diagnoses

SVG = "{http://www.w3.org/2000/svg}"


def test_the_rank_of_the_root_cause_comes_first() -> None:
    """Its lane is on top, its moment marked as the cause, and the seconds count from there."""
    moments = (
        Moment(NOON + 30, 0, "closed", "gloo.connection-closed-by-peer"),
        Moment(NOON + 26, 1, "killed", "data.worker-killed"),
    )
    made = dataclasses.replace(KNOWN, timeline=moments)
    lanes, left_out = swimlanes.build_lanes(made)
    assert ([lane.rank for lane in lanes], left_out) == ([1, 0], 0)
    tree = ElementTree.fromstring(swimlanes.draw(made))
    assert [circle.get("class") for circle in tree.iter(f"{SVG}circle")] == ["cause", "echo"]
    assert (tree.findtext(f"{SVG}desc") or "").startswith("rank 1, +0 s: data.worker-killed; rank 0, +4 s")


def test_many_ranks_and_moments_stay_small() -> None:
    """A thousand ranks with as many moments give some lanes, and the number of the others."""
    moments = tuple(
        Moment(NOON + rank / 100, rank, "lost", "gloo.connection-closed-by-peer")
        for rank in range(1000)
        for _ in range(3)
    )
    made = dataclasses.replace(
        KNOWN, timeline=moments, ranks=tuple(RankState(rank, None, "failed") for rank in range(1000))
    )
    drawing = swimlanes.draw(made)
    assert len(drawing) < 30_000
    assert f"and {1000 - swimlanes.LANES} more ranks" in drawing


def test_there_is_no_drawing_without_times() -> None:
    """Without times there is no axis."""
    root = dataclasses.replace(KNOWN.root_cause, first_time=None)  # type: ignore[type-var]
    assert swimlanes.draw(dataclasses.replace(KNOWN, timeline=(Moment(None, 1, "x", None),), root_cause=root)) == ""


@given(diagnoses)
def test_any_diagnosis_gives_sound_xml(made: object) -> None:
    """Whatever is in it, the drawing can be parsed."""
    drawing = swimlanes.draw(made)  # type: ignore[arg-type]
    assert not drawing or ElementTree.fromstring(drawing).tag == f"{SVG}svg"
