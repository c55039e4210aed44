"""Measure how much of the packages that read and judge evidence the tests run, and write bench/results/coverage.json.

`python bench/line_coverage.py` (`make coverage`). Needs pytest-cov (the extra `mutate`). All tests but the slow
ones run. Code that only runs in other processes than the tests' own is not counted.
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

from bench.trust import write_result  # noqa: E402

ROOMS = ("ranks", "records", "evidence", "catalog", "diagnose", "store", "artifacts")
LEAST_SHARE = 95


def measure(directory: Path) -> Mapping[str, Any]:
    """Run the tests with coverage of lines and branches; return coverage's own report."""
    report = directory / "coverage.json"
    packages = [f"--cov=triage/{room}" for room in ROOMS]
    options = ["--cov-branch", f"--cov-report=json:{report}", "-q", "-p", "no:cacheprovider"]
    pytest = [sys.executable, "-m", "pytest", "-n", "auto", "-m", "not slow"]
    subprocess.run([*pytest, *options, *packages, "tests"], cwd=ROOT, check=True)
    report_json: Mapping[str, Any] = json.loads(report.read_text("utf-8"))
    return report_json


def summarize(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return `head`, `rows` and `notes` for docs/trust.md, and `low`, the packages below what is asked."""
    rows, low = [], []
    for room in ROOMS:
        files = [item["summary"] for path, item in report["files"].items() if path.startswith(f"triage/{room}/")]
        lines = share(files, "covered_lines", "num_statements")
        branches = share(files, "covered_branches", "num_branches")
        rows.append(
            (f"`{room}`", f"{sum(one['num_statements'] for one in files):,}", f"{lines:.1f} %", f"{branches:.1f} %")
        )
        if min(lines, branches) < LEAST_SHARE:
            low.append(room)
    notes = [f"At least {LEAST_SHARE} % of both are asked of each package."]
    return {"head": ("package", "statements", "lines run", "branches run"), "rows": rows, "notes": notes, "low": low}


def share(files: Sequence[Mapping[str, int]], covered: str, number: str) -> float:
    """Return in percent how much of what the files have is covered."""
    whole = sum(one[number] for one in files)
    return 100 * sum(one[covered] for one in files) / whole if whole else 100.0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="triage-coverage-") as scratch:
        measured = summarize(measure(Path(scratch)))
    write_result("coverage", measured)
    for row in measured["rows"]:
        print(*row)
    sys.exit(int(bool(measured["low"])))
