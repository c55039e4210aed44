"""A log, diagnoses of each verdict, and a function that runs the command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from triage.model.diagnosis import Diagnosis, Finding, Job, Stats
from triage.model.evidence import Evidence, Origin

ROOT = Path(__file__).resolve().parents[2]
LOG = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 7, in <module>
[rank0]:     main()
[rank0]: ValueError: the number 7 is cursed \N{SNOWMAN}
"""


def diagnosis(verdict: str = "known") -> Diagnosis:
    """Return a small diagnosis with characters beyond ASCII."""
    proof = Evidence(
        "exception", "", "ValueError: 训练失败 ☃", Origin(rank=3, host="node1"), "job.log", 0, line=7, end_line=7
    )
    root = Finding(
        signature="python.cursed" if verdict == "known" else None,
        title="The number is cursed",
        domain="python",
        role="cause",
        severity="fatal",
        confidence=0.9,
        ranks=(3,),
        cluster=None if verdict == "known" else "u-1a2b3c",
        evidence=(proof,),
    )
    clean = verdict == "clean"
    findings = () if clean or verdict == "unknown" else (root,)
    return Diagnosis(
        "0.1.0", "2026.1", Job("j", "job", "."), verdict, None if clean else root, findings, stats=Stats(files=1)
    )  # type: ignore[arg-type]


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    """Run the command in its own process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **options.pop("env", {})}  # type: ignore[dict-item]
    return subprocess.run(
        [sys.executable, "-m", "triage", *arguments], env=environment, timeout=60, **{"capture_output": True, **options}
    )  # type: ignore[call-overload, no-any-return]
