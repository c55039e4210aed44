"""`triage run -- torchrun …` with real torch: failures of real jobs are named, and torchrun's exit status is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from triage.render.json_reader import read

PYTHON = os.environ.get("TRIAGE_TORCH", "")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not PYTHON, reason="TRIAGE_TORCH names no Python with torch; make test-torch does"),
]
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import datetime, os, signal, sys, time
import torch, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=8))
rank = dist.get_rank()
for step in range(6):
    if step == 3 and rank == 1:
        if sys.argv[1] == "raise":
            {}["tokens"]
        if sys.argv[1] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if sys.argv[1] == "hang":
            time.sleep(60)
    dist.all_reduce(torch.ones(4))
    print(f"[rank {rank}] step {step} loss 1.0", flush=True)
"""


def run_job(where: Path, fault: str, *options: str) -> tuple[int, str, str]:
    """Run the job under `triage run`: (status, what reached standard error, the report as JSON)."""
    (where / "train.py").write_text(PROGRAM)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "TRIAGE_STORE": str(where / "store.db")}
    torchrun = [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3", *options]
    command = [sys.executable, "-m", "triage", "run", "-o", "run", "--logs", "logs", "--", "env", "-u", "PYTHONPATH"]
    (where / "logs").mkdir()
    ended = subprocess.run(
        [*command, *torchrun, "train.py", fault],
        cwd=where,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    shown = subprocess.run(
        [sys.executable, "-m", "triage", "ingest", "--no-store", "--format", "json", "run", "logs"],
        cwd=where,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return ended.returncode, ended.stderr, shown.stdout


@pytest.mark.parametrize("redirects", [False, True])
@pytest.mark.parametrize(
    ("fault", "signatures"),
    [
        ("raise", {None}),
        ("kill", {"host.sigkill"}),
        ("hang", {"torch.rank-never-joined", "gloo.timeout", None}),
    ],
)
def test_torchrun_is_diagnosed(tmp_path: Path, fault: str, signatures: set[str | None], redirects: bool) -> None:
    """The report names rank 1 and what happened to it, and the exit status is torchrun's."""
    options = ("--redirects", "3", "--log-dir", "logs") if redirects else ()
    status, errors, report = run_job(tmp_path, fault, *options)
    root = read(report).root_cause
    assert status == 1
    assert root is not None, errors
    assert (root.signature in signatures, root.ranks) == (True, (1,)), errors
    assert "What to do" in errors or "Next time" in errors
