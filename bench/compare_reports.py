"""Compare the JSON reports of two versions of triage, leaving out texts that may be reworded.

    python bench/compare_reports.py record CHECKOUT REPORTS.json JOBS_DIR [JOBS_DIR ...]
    python bench/compare_reports.py compare BEFORE.json AFTER.json

`record` runs `triage ingest --format json` of the checkout on every `JOBS_DIR/*/job` and keeps the reports in one file.
`compare` prints each difference as its path in the report, and exits with 1 where there is one. Titles, reasons,
advice, messages and sentences that triage itself wrote are not compared, nor are times and memory; quoted log lines
are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REWORDED = frozenset({"title", "why", "remediation", "what", "message", "schema", "tool", "stats"})
Reports = dict[str, dict[str, Any]]


def record(checkout: Path, jobs_directories: list[Path]) -> Reports:
    """Return the report of every job under the directories, by the path of the job."""
    jobs = sorted(job for directory in jobs_directories for job in directory.resolve().glob("*/job"))
    return {str(job): report_of(checkout, job) for job in jobs}


def report_of(checkout: Path, job: Path) -> dict[str, Any]:
    """Diagnose one job with the code and the catalog of the checkout."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = os.environ | {"PYTHONPATH": str(checkout.resolve()), "TRIAGE_STORE": f"{scratch}/kb.db"}
        command = [sys.executable, "-m", "triage", "ingest", str(job), "--format", "json"]
        run = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True, check=False)
    return dict(json.loads(run.stdout)) if run.stdout else {"exit": run.returncode, "stderr": run.stderr}


def comparable(value: Any) -> Any:
    """Return the report without what may be reworded. A finding made by reasoning quotes triage's own sentence, so its
    text goes too.
    """
    if isinstance(value, dict):
        reworded = REWORDED | ({"text"} if value.get("kind") == "inference" else set())
        return {key: comparable(item) for key, item in value.items() if key not in reworded}
    return [comparable(item) for item in value] if isinstance(value, list) else value


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield one line for each place at which two reports differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            yield from differences(before.get(key), after.get(key), f"{path}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, pair in enumerate(zip(before, after, strict=True)):
            yield from differences(*pair, f"{path}[{index}]")
    elif before != after:
        yield f"{path}: {json.dumps(before)[:200]} → {json.dumps(after)[:200]}"


def compare(before: Reports, after: Reports) -> int:
    """Print what differs between two recordings and return how many jobs differ."""
    differing = 0
    for job in sorted(before.keys() | after.keys()):
        lines = list(differences(comparable(before.get(job)), comparable(after.get(job))))
        differing += bool(lines)
        for line in lines:
            print(f"{job}{line}")
    print(f"{len(before.keys() | after.keys())} jobs, {differing} differ")
    return differing


def main(arguments: list[str]) -> int:
    """Run the command that the first argument names."""
    match arguments:
        case ["record", checkout, output, *directories] if directories:
            Path(output).write_text(
                json.dumps(record(Path(checkout), [Path(directory) for directory in directories]), indent=1)
            )
            return 0
        case ["compare", before, after]:
            return int(compare(json.loads(Path(before).read_text()), json.loads(Path(after).read_text())) > 0)
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
