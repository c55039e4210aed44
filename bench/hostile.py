"""Diagnose the hostile corpus at its full size, and write bench/results/hostile.json (`make hostile`).

`python bench/hostile.py [PATTERN]` takes only the classes whose name matches. Needs 4 GB below the temporary directory.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.trust import write_result  # noqa: E402
from tests.hostile.build import CASES, build_job, good_log  # noqa: E402
from tests.hostile.catalogs import CASES as CATALOGS  # noqa: E402
from tests.hostile.model import HostileCase  # noqa: E402
from tests.hostile.requests import CASES as REQUESTS  # noqa: E402
from tests.hostile.runner import Result, Runner  # noqa: E402
from tests.hostile.uploads import SETTINGS, measure_memory, send_corpus  # noqa: E402
from tests.service.server_process import run_server  # noqa: E402


def explain_failure(case: HostileCase, result: Result, expected: Result) -> str:
    """Return what is wrong with a result; "" if nothing is."""
    if result.outcome != "done":
        return f"ended by {result.outcome}: {result.error}"
    if result.answer != expected.answer:
        return f"the good log got another diagnosis: {result.answer}"
    if result.memory > case.memory:
        return f"{result.memory} MiB, more than {case.memory}"
    if case.warning and not any(re.search(case.warning, warning) for warning in result.warnings):
        return f"no warning of what was not read; warnings: {result.warnings[:3]}"
    return ""


def diagnose_good_log(runner: Runner, good: bytes) -> Result:
    """Return the diagnosis that each case must have."""
    alone = HostileCase("nothing hostile", lambda _: None, "", "there is only the good log")
    with build_job(alone, good) as job:
        return runner.diagnose(job, 60)


def send_uploads(cases: Sequence[HostileCase], good: bytes) -> dict[str, Any]:
    """Send the cases, at their reduced size, to a running service. Returns the memory before and after, in MiB."""
    scratch = tempfile.TemporaryDirectory(prefix="triage-served-")
    with scratch as place, run_server(Path(place) / "triage.db", **SETTINGS) as server:
        problems = send_corpus(server, cases[:1], good)
        processes, before = sorted(server.children()), measure_memory(server.process.pid) >> 20
        problems += send_corpus(server, cases[1:], good)
        if sorted(server.children()) != processes:
            problems.append("other processes than before")
        after = measure_memory(server.process.pid) >> 20
    return {"sent": len(cases), "memory_before": before, "memory_after": after, "problems": problems}


def main(arguments: Sequence[str]) -> int:
    """Diagnose the cases and write their numbers. Returns the exit status: 1 if a case failed."""
    cases = [case for case in CASES if not arguments or re.search(arguments[0], case.name)]
    good, rows, failed = good_log(), list[dict[str, Any]](), dict[str, str]()
    with Runner(is_full=True) as runner:
        expected = diagnose_good_log(runner, good)
        for case in cases:
            with build_job(case, good, is_full=True) as job:
                result = runner.diagnose(job, case.seconds)
            rows.append({"name": case.name, "seconds": result.seconds, "memory": result.memory})
            if why := explain_failure(case, result, expected):
                failed[case.name] = why
            print(f"{case.name}: {result.seconds:.1f} s, {result.memory} MiB {failed.get(case.name, '')}", flush=True)
    uploads = send_uploads(cases, good)
    print(f"as uploads: {uploads}")
    if not arguments:
        counts = {"catalogs": len(CATALOGS), "requests": len(REQUESTS)}
        write_result("hostile", {**counts, "cases": rows, "failed": failed, "uploads": uploads})
    return int(bool(failed or uploads["problems"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
