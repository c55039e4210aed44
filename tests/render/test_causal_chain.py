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


def test_a_long_chain_is_folded() -> None:
    """Of more columns than fit a desktop the boxes stand below each other; of fewer they do if that is asked for."""
    for links, folded in ((causal_chain.FIT, False), (causal_chain.FIT + 1, True)):
        diagnosis = make_chain(links)
        assert causal_chain.is_folded(diagnosis) is folded
        for is_stated in (False, True):
            tree = ET.fromstring(causal_chain.draw(diagnosis, folded=is_stated))
            places = {(box.get("x"), box.get("y")) for box in tree.iter("{http://www.w3.org/2000/svg}rect")}
            assert len({y for _, y in places}) == (links if folded or is_stated else 1)
            assert len(places) == links


def test_a_folded_chain_fits_a_phone() -> None:
    """However long the chain is, the folded drawing is narrower than a phone."""
    tree = ET.fromstring(causal_chain.draw(make_chain(20), folded=True))
    assert int(tree.get("width") or 0) <= 360


def test_a_place_with_many_names_is_counted() -> None:
    """Where the names of ranks and hosts do not fit into a box, it shows how many they are."""
    hosts = tuple(f"hgx-h100-{number:03}" for number in range(4))
    root = Finding("a.a", "a", "a", "cause", "fatal", 0.9, ranks=(4,), hosts=("node1",))
    effect = Finding("b.b", "b", "b", "symptom", "fatal", 0.9, (0, 3, 5, 8), hosts, 8, explained_by=("a.a",))
    drawn = causal_chain.draw(Diagnosis("1", "1", Job("j-1", "", ""), "known", root, (root, effect)))
    assert ">rank 4 on node1</text>" in drawn
    assert ">4 ranks on 4 hosts ×8</text>" in drawn


def make_chain(links: int) -> Diagnosis:
    """Return a diagnosis in which each finding is caused by the one before it."""
    names = [f"a.b{number}" for number in range(links)]
    findings = tuple(
        Finding(name, name, "a", "cause", "fatal", 0.9, explained_by=tuple(names[max(0, number - 1) : number]))
        for number, name in enumerate(names)
    )
    return Diagnosis("1", "1", Job("j-1", "", ""), "known", findings[0], findings)
