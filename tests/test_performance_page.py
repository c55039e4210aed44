"""bench/performance_page.py and bench/flame.py: the page of what a diagnosis costs."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, ModuleType]:
    """The modules of the page and of the picture, which import their neighbours by name."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "bench"), *sys.path])
    return importlib.import_module("performance_page"), importlib.import_module("flame")


def test_the_page_is_written_from_the_stored_rows(modules: tuple[ModuleType, ModuleType]) -> None:
    """docs/performance.md is what its script writes from bench/results."""
    rows = json.loads((ROOT / "bench" / "results" / "performance.json").read_text(encoding="utf-8"))["rows"]
    assert (ROOT / "docs" / "performance.md").read_text(encoding="utf-8") == modules[0].format_page(rows)


def test_each_row_says_when_and_on_what_it_was_measured(modules: tuple[ModuleType, ModuleType]) -> None:
    """Date, commit, machine and load; numbers are in order; what was not measured says how to measure it."""
    row = {"bytes": 2_000_000, "seconds": 0.5, "memory": 9, "date": "2026-11-24", "commit": "abc", "load": 3.5}
    rows = {f"ranks {count}": {**row, "machine": machine} for count, machine in ((100, "A"), (10, "B"))}
    page = modules[0].format_page(rows)
    assert "Machine 1: A.\nMachine 2: B.\n" in page
    ten, hundred = "| 10 | 2 MB | 0.50 | 4 | 9 MB | 2026-11-24, abc, machine 2 | 3.5 |", "| 100 | 2 MB |"
    assert page.index(ten) < page.index(hundred)
    assert "Not measured: `python bench/performance.py again`." in page


def test_a_frame_is_as_wide_as_its_share(modules: tuple[ModuleType, ModuleType]) -> None:
    """Samples are added up over stacks, other lines are skipped, and names are escaped."""
    flame = modules[1]
    root = flame.read_stacks(["main;scan <a> 3", "main;report 1", "no count", "main x"])
    picture = ElementTree.fromstring(flame.draw(root))
    titles = [title.text for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == ["all 100.0%", "main 100.0%", "report 25.0%", "scan <a> 75.0%"]
    widths = [float(frame.get("width", "")) for frame in picture.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert widths == [1199.5, 1199.5, 299.5, 899.5]


def test_no_samples_give_an_empty_picture(modules: tuple[ModuleType, ModuleType]) -> None:
    """A profiler that saw nothing is no error."""
    picture = ElementTree.fromstring(modules[1].draw(modules[1].read_stacks([])))
    assert [part.tag.rpartition("}")[2] for part in picture] == ["rect"]
