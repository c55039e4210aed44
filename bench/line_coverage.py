"""Measure how much of the packages that read and judge evidence the tests run, and write bench/results/coverage.json.

`python bench/line_coverage.py [PACKAGE ...]` (`make coverage`). Without a package all tests but the slow ones run.
Each package that is named is measured with its own tests only, in minutes, and the others keep their results. Needs
pytest-cov (the extra `mutate`). Code that only runs in other processes than the tests' own is not counted.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench import trust  # noqa: E402

ROOMS = ("ranks", "records", "evidence", "catalog", "diagnose", "store", "artifacts")
LEAST_SHARE = 95
HEAD = ("package", "statements", "lines run", "branches run", "tests", "commit")


def measure(directory: Path, rooms: Sequence[str]) -> Mapping[str, Any]:
    """Run the tests, or those of these packages, with coverage of lines and branches; return coverage's own report."""
    report = directory / "coverage.json"
    packages = [f"--cov=triage/{room}" for room in rooms or ROOMS]
    options = ["--cov-branch", f"--cov-report=json:{report}", "-q", "-p", "no:cacheprovider"]
    pytest = [sys.executable, "-m", "pytest", "-n", "auto", "-m", "not slow"]
    tests = [f"tests/{room}" for room in rooms] or ["tests"]
    subprocess.run([*pytest, *options, *packages, *tests], cwd=ROOT, check=True)
    report_json: Mapping[str, Any] = json.loads(report.read_text("utf-8"))
    return report_json


def count_covered(report: Mapping[str, Any], rooms: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the statements of each package, and in percent how many lines and branches ran."""
    packages = {}
    for room in rooms or ROOMS:
        files = [item["summary"] for path, item in report["files"].items() if path.startswith(f"triage/{room}/")]
        packages[room] = {
            "statements": sum(one["num_statements"] for one in files),
            "lines": share(files, "covered_lines", "num_statements"),
            "branches": share(files, "covered_branches", "num_branches"),
            "tests": "its own" if rooms else "all",
        }
    return packages


def summarize(packages: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return `head`, `rows` and `notes` for docs/trust.md, and `low`, the packages below what is asked."""
    rows = [
        (
            f"`{name}`",
            f"{one['statements']:,}",
            f"{one['lines']:.1f} %",
            f"{one['branches']:.1f} %",
            one["tests"],
            one["commit"],
        )
        for name, one in packages.items()
    ]
    low = [name for name, one in packages.items() if min(one["lines"], one["branches"]) < LEAST_SHARE]
    notes = [f"At least {LEAST_SHARE} % of both are asked of each package."]
    return {"head": HEAD, "rows": rows, "notes": notes, "low": low, "packages": packages}


def share(files: Sequence[Mapping[str, int]], covered: str, number: str) -> float:
    """Return in percent how much of what the files have is covered."""
    whole = sum(one[number] for one in files)
    return 100 * sum(one[covered] for one in files) / whole if whole else 100.0


def merge_packages(measured: Mapping[str, Mapping[str, Any]], commit: str) -> dict[str, Mapping[str, Any]]:
    """Return what was measured, and the earlier results of the other packages."""
    stored = trust.RESULTS / "coverage.json"
    earlier = json.loads(stored.read_text(encoding="utf-8"))["packages"] if stored.exists() else {}
    merged = {**earlier, **{name: {**one, "commit": commit} for name, one in measured.items()}}
    return {room: merged[room] for room in ROOMS if room in merged}


def main(rooms: Sequence[str]) -> int:
    """Measure, write the result and print it. Returns 1 if a package is below what is asked."""
    if unknown := set(rooms) - set(ROOMS):
        sys.exit(f"line_coverage: no package {', '.join(sorted(unknown))}; choose from {', '.join(ROOMS)}")
    with tempfile.TemporaryDirectory(prefix="triage-coverage-") as scratch:
        measured = count_covered(measure(Path(scratch), rooms), rooms)
    result = summarize(merge_packages(measured, trust.read_commit()))
    trust.write_result("coverage", result)
    for row in result["rows"]:
        print(*row)
    return int(bool(result["low"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
