"""bench/trust.py and bench/line_coverage.py: the page of what was tried."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import trust
from bench.line_coverage import ROOMS, count_covered, merge_packages, summarize

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


def test_results_of_other_harnesses_are_kept(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fuzzing one harness replaces its counts only; each has the commit that it was fuzzed at."""
    counts = {"executions": 1_000_000, "coverage": 97, "seconds": 600, "findings": []}
    monkeypatch.setattr(trust, "read_commit", lambda: "aaa1111")
    trust.write_result("fuzz", {"harnesses": {"elf": counts, "json": counts}}, merge="harnesses")
    monkeypatch.setattr(trust, "read_commit", lambda: "bbb2222")
    trust.write_result("fuzz", {"harnesses": {"elf": {**counts, "executions": 5}}}, merge="harnesses")
    stored = json.loads((results / "fuzz.json").read_text())
    assert [item["executions"] for item in stored["harnesses"].values()] == [5, 1_000_000]
    page = trust.format_page()
    assert "| json | 1,000,000 | 97 | 600 | 0 | aaa1111 |" in page
    assert "| elf | 5 | 97 | 600 | 0 | bbb2222 |" in page


@pytest.mark.parametrize(("branches", "low"), [(95, []), (94, ["ranks"])])
def test_a_package_below_what_is_asked_is_named(branches: int, low: list[str]) -> None:
    """Lines and branches are counted for all files of a package together."""
    full = {"num_statements": 10, "covered_lines": 10, "num_branches": 0, "covered_branches": 0}
    partial = {**full, "num_branches": 100, "covered_branches": branches}
    files = {f"triage/{room}/a.py": {"summary": full} for room in ROOMS} | {"triage/ranks/b.py": {"summary": partial}}
    counts = summarize(merge_packages(count_covered({"files": files}, ()), "aaa1111"))
    assert counts["rows"][0] == ("`ranks`", "20", "100.0 %", f"{branches:.1f} %", "all", "aaa1111")
    assert counts["low"] == low


def test_a_package_that_is_measured_alone_leaves_the_others() -> None:
    """Coverage by its own tests replaces the result of that package only, and says which tests ran."""
    files = {
        f"triage/{room}/a.py": {
            "summary": {"num_statements": 10, "covered_lines": 10, "num_branches": 0, "covered_branches": 0}
        }
        for room in ROOMS
    }
    trust.write_result("coverage", summarize(merge_packages(count_covered({"files": files}, ()), "aaa1111")))
    rows = summarize(merge_packages(count_covered({"files": files}, ["store"]), "bbb2222"))["rows"]
    assert [row[0] for row in rows] == [f"`{room}`" for room in ROOMS]
    assert {row[0]: row[-2:] for row in rows}["`store`"] == ("its own", "bbb2222")
    assert {row[-2:] for row in rows if row[0] != "`store`"} == {("all", "aaa1111")}
