"""Collectives of a recording as drawings: the fault is in sight, and every row is also said in words."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from triage.artifacts.flight.analyse import analyse
from triage.artifacts.flight.dump_files import read_dump_files
from triage.artifacts.flight.view import view
from triage.render import flight, flight_matrix

SVG = "{http://www.w3.org/2000/svg}"
SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "flight"


def document(name: str) -> dict[str, object]:
    import json

    recording, _ = read_dump_files([str(SAMPLES / name)], lambda done, total: None)
    document: dict[str, object] = json.loads(flight.as_json(view(recording, analyse(recording))))
    return document


def test_the_group_with_the_fault_comes_first() -> None:
    """The group with the fault comes first, and its number is marked."""
    drawn = flight_matrix.draw(document("never_joined"))
    tree = ET.fromstring(drawn[0].svg)
    assert "#10" in [text.text for text in tree.iter(f"{SVG}text")]
    assert any("not entered" in line and line.startswith("rank 2") for line in drawn[0].text)
    assert "style" not in drawn[0].svg


def test_a_long_recording_shows_what_lies_around_its_end() -> None:
    """Of thousands of calls those around the fault, or the last, are drawn."""
    rows = [
        {"ranks": [0, 1], "runs": [[0, 4990, "done"]]},
        {"ranks": [2], "runs": [[0, 4989, "done"], [4990, 4990, "missing"]]},
    ]
    fault = {"group": "g", "seq": 4990}
    (drawn,) = flight_matrix.draw({"faults": [fault], "groups": [{"group": "g", "members": [0, 1, 2], "rows": rows}]})
    assert "#4950" in drawn.svg
    assert ">#0<" not in drawn.svg
    assert drawn.text[0] == "rank 2: #0 to #4989 done, #4990 not entered"


def test_the_fault_is_red_and_every_row_has_a_name_on_a_phone() -> None:
    """The call of the fault has a red frame in its row alone, unless the fault follows from another; 350 pixels fit."""
    rows = [
        {"ranks": list(range(0, 90, 2)), "runs": [[1, 9, "done"], [10, 10, "open"]]},
        {"ranks": [5], "runs": [[1, 9, "done"], [10, 10, "missing"]]},
    ]
    groups = [{"group": "g", "members": list(range(90)), "rows": rows}]
    fault = {"group": "g", "seq": 10, "ranks": [5], "explained_by": ""}
    (drawn,) = flight_matrix.draw({"faults": [fault], "groups": groups})
    for drawing in (drawn.svg, drawn.narrow):
        tree = ET.fromstring(drawing)
        (name,) = (item for item in tree.iter(f"{SVG}text") if item.get("class") == "end root")
        (frame,) = (item for item in tree.iter(f"{SVG}rect") if item.get("class") == "root")
        assert (name.text, float(name.get("y", 0)) - 12) == ("rank 5", float(frame.get("y", 0)))
        assert "45 ranks" in [item.text for item in tree.iter(f"{SVG}text")]
    assert float(ET.fromstring(drawn.narrow).get("width", 999)) <= 350
    (other,) = flight_matrix.draw({"faults": [{**fault, "explained_by": "another"}], "groups": groups})
    assert 'class="root"' not in other.svg
