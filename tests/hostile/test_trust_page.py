"""bench/trust.py: the page of what was tried."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import trust

HOSTILE = {
    "catalogs": 32,
    "requests": 40,
    "cases": [
        {"name": "tar: cut", "seconds": 1.5, "memory": 30},
        {"name": "tar: links", "seconds": 0.4, "memory": 80},
        {"name": "zip: cut", "seconds": 9.0, "memory": 10},
    ],
    "failed": {"zip: cut": "no warning"},
    "uploads": {"sent": 3, "memory_before": 200, "memory_after": 210, "problems": []},
}


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of results of its own."""
    monkeypatch.setattr(trust, "RESULTS", tmp_path)
    return tmp_path


def test_what_was_not_measured_is_named() -> None:
    """A part without a result is on the page, with the command that measures it."""
    page = trust.format_page()
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        f"## {title}" for _, title, _ in trust.SECTIONS
    ]
    assert all(f"Not measured: run `make {part}`." in page for part, _, _ in trust.SECTIONS)


def test_failures_are_on_the_page() -> None:
    """The counts, the slowest and the largest class, and each class that failed."""
    trust.write_result("hostile", HOSTILE)
    page = trust.format_page()
    assert "its diagnosis came out in 2 of 3" in page
    assert "The slowest was “zip: cut” (9 s)" in page
    assert "“tar: links” took most memory (80 MiB" in page
    assert "| tar | 2 | 1.5 s | 80 MiB |" in page
    assert "Failed: zip: cut: no warning" in page


def test_results_of_other_harnesses_are_kept(results: Path) -> None:
    """Fuzzing one harness replaces its counts only; date and commit are those of the last run."""
    counts = {"executions": 1_000_000, "coverage": 97, "seconds": 600, "findings": []}
    trust.write_result("fuzz", {"harnesses": {"elf": counts, "json": counts}}, merge="harnesses")
    trust.write_result("fuzz", {"harnesses": {"elf": {**counts, "executions": 5}}}, merge="harnesses")
    stored = json.loads((results / "fuzz.json").read_text())
    assert [item["executions"] for item in stored["harnesses"].values()] == [5, 1_000_000]
    assert stored["commit"]
    assert "| json | 1,000,000 | 97 | 600 | 0 |" in trust.format_page()
