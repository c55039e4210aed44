"""Diagnose jobs one by one, each in a process of its own with limits, as the service does.

`Runner` starts a process that has loaded what every job needs, and that forks one process for each job.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from unittest import mock

from triage import pipeline, sources
from triage.base.options import Options
from triage.service.work import analysis, sandbox

ROOT = Path(__file__).resolve().parents[2]
MEMORY = 6 << 30
"""Bytes of address space that a job may take before the kernel refuses more."""
REDUCED = {"max_members": 2000, "ratio_floor_bytes": 8 << 20, "max_ratio": 500, "max_total_bytes": 1 << 30}
"""Limits of what a file may expand to, as far below the real ones as the reduced sizes are below the full ones."""


@dataclass(frozen=True, slots=True)
class Result:
    """How a job ended: `outcome` is that of the sandbox, `answer` the diagnosis, `memory` the growth in MiB."""

    outcome: str
    error: str
    answer: Mapping[str, Any]
    warnings: tuple[str, ...]
    memory: int
    seconds: float


class Runner:
    """The process that diagnoses; use it as a context."""

    def __init__(self, *, is_full: bool = False) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRIAGE_STORE": "off", "TRIAGE_CONFIG": ""}
        command = [sys.executable, "-m", "tests.hostile.runner", "full" if is_full else "reduced"]
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(60)

    def diagnose(self, path: Path, seconds: float) -> Result:
        """Diagnose the job in a directory."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"path": str(path), "seconds": seconds}), file=self._process.stdin, flush=True)
        result = json.loads(self._process.stdout.readline())
        return Result(**{**result, "warnings": tuple(result["warnings"])})


def _diagnose(path: str, seconds: float) -> dict[str, Any]:
    """Diagnose in a process with limits. Returns the fields of a Result."""
    last: dict[str, Any] = {"answer": {}, "warnings": [], "memory": 0}

    def work(report: sandbox.Report) -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        diagnosis = pipeline.ingest([path], Options())
        root = diagnosis.root_cause
        answer = {
            "verdict": diagnosis.verdict,
            "signature": root.signature if root else None,
            "ranks": list(root.ranks) if root else [],
            "evidence": [fact.text[:2000] for fact in root.evidence] if root else [],
        }
        warnings = [f"{w.code}: {w.source} {w.message}"[:1000] for w in diagnosis.warnings][:100]
        peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        report({"stage": "end", "answer": answer, "warnings": warnings, "memory": max(0, peak - before) // 1024})

    def keep(message: Mapping[str, Any] | None) -> bool:
        last.update({key: value for key, value in (message or {}).items() if key in last})
        return True

    started = time.monotonic()
    outcome = _run_to_end(work, seconds, keep)
    error = outcome.error.get("message", "")
    return {**last, "outcome": outcome.kind, "error": error, "seconds": round(time.monotonic() - started, 3)}


def _run_to_end(work: sandbox.Work, seconds: float, keep: sandbox.Heartbeat) -> sandbox.Outcome:
    """Run the work, and hand on its last report, which a quick end could overtake."""
    reader, writer = os.pipe()

    def work_and_report(_: sandbox.Report) -> None:
        work(lambda message: os.writev(writer, [json.dumps(message).encode()]) and None)

    with os.fdopen(reader, "rb") as pipe:
        outcome = sandbox.run_limited(
            work_and_report, memory=MEMORY, seconds=seconds, threads=os.cpu_count() or 1, heartbeat=lambda _: True
        )
        os.close(writer)
        text = pipe.read()
    keep(json.loads(text) if text else None)
    return outcome


def main() -> None:
    """Answer each line of standard input with a line of the result."""
    analysis.warm_up()
    changes = REDUCED if sys.argv[1:] == ["reduced"] else {}
    limits = sources.Limits(**changes)  # type: ignore[arg-type]
    with mock.patch.object(sources, "Limits", return_value=limits):
        for line in sys.stdin:
            print(json.dumps(_diagnose(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
