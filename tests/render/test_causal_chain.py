"""What led to what, drawn: every finding that the cause explains is a box behind it, also in words."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import triage
from triage.model.diagnosis import Diagnosis, Finding, Job
from triage.render import causal_chain

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "jobs"


def test_the_cause_is_left_of_its_consequences() -> None:
    """One box for each finding, the cause in the first column, no style in the drawing."""
    diagnosis = triage.ingest(SAMPLES / "exception_one_rank_tee" / "job")
    boxes = causal_chain.build_boxes(diagnosis)
    assert boxes[0].column == 0
    assert all(box.column > 0 and box.causes for box in boxes[1:])
    drawn = causal_chain.draw(diagnosis, {"gloo.connection-closed-by-peer": "#e2"})
    tree = ET.fromstring(drawn)
    assert len(list(tree.iter("{http://www.w3.org/2000/svg}rect"))) == len(boxes)
    assert 'href="#e2"' in drawn
    assert "style" not in drawn
    assert all(box.finding.title in drawn for box in boxes[1:2])


def test_a_circle_ends_and_markup_is_text() -> None:
    """Findings that explain each other are drawn once, and a title is never markup."""
    root = Finding("a.a", "<b>&", "a", "cause", "fatal", 0.9)
    one = Finding("b.b", "one", "b", "symptom", "fatal", 0.9, explained_by=("a.a", "c.c"))
    two = Finding("c.c", "two", "c", "symptom", "fatal", 0.9, explained_by=("b.b",))
    diagnosis = Diagnosis("1", "1", Job("j-1", "", ""), "known", root, (root, one, two))
    drawn = causal_chain.draw(diagnosis)
    assert ET.fromstring(drawn) is not None
    assert len(causal_chain.build_boxes(diagnosis)) == 3


def test_a_cause_without_consequences_has_no_drawing() -> None:
    """One box is no chain."""
    root = Finding("a.a", "a", "a", "cause", "fatal", 0.9)
    assert causal_chain.draw(Diagnosis("1", "1", Job("j-1", "", ""), "known", root, (root,))) == ""
