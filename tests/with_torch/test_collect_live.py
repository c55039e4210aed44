"""`triage collect` on a hanging job of four ranks under real torch (`make test-torch`)."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import triage
from triage.collect import collect

PYTHON = os.environ.get("TRIAGE_TORCH", "")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not PYTHON, reason="TRIAGE_TORCH names no Python with torch; make test-torch does"),
]
PROGRAM = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
def save_checkpoint(path):
    with open(path, "wb") as file:
        while True:
            file.write(bytes(65536))
for step in range(100):
    if step == 3 and rank == 2:
        save_checkpoint("ckpt.pt")
    dist.all_reduce(torch.ones(4))
    print(f"[rank {rank}] step {step} loss 1.0", flush=True)
"""


@pytest.fixture
def hung_pids(tmp_path: Path) -> Iterator[list[int]]:
    """Run a job in which rank 2 writes to a full pipe and the others wait for it; give the pids of its ranks."""
    (tmp_path / "train.py").write_text(PROGRAM)
    os.mkfifo(tmp_path / "ckpt.pt")
    reader = os.open(tmp_path / "ckpt.pt", os.O_RDONLY | os.O_NONBLOCK)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | {
        "OMP_NUM_THREADS": "1"
    }
    command = [
        PYTHON,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "4",
        "--log-dir",
        "logs",
        "--redirects",
        "3",
        "train.py",
    ]
    with (tmp_path / "agent.log").open("wb") as log:
        agent = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.monotonic() + 150
        while sum("step 2" in path.read_text() for path in tmp_path.glob("logs/*/attempt_0/*/stdout.log")) < 4:
            assert time.monotonic() < deadline, (tmp_path / "agent.log").read_text()
            time.sleep(0.5)
        time.sleep(3)
        yield [int(pid) for pid in Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()]
    finally:
        os.killpg(agent.pid, signal.SIGTERM)
        try:
            agent.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(agent.pid, signal.SIGKILL)
            agent.wait()
        os.close(reader)


def test_a_bundle_of_a_hung_job_names_the_rank(hung_pids: list[int], tmp_path: Path) -> None:
    """The diagnosis says that rank 2 never joined, with its function and the file it writes to."""
    assert len(hung_pids) == 4
    done = collect(tmp_path / "node.tar.zst", hung_pids, seconds=300)
    assert sum(name.endswith("py-spy.txt") for name in done.names) == 4, done.missing
    root = triage.ingest(tmp_path / "node.tar.zst").root_cause
    assert root is not None
    assert (root.signature, root.ranks) == ("torch.rank-never-joined", (2,))
    text = root.evidence[0].text
    assert "Rank 2 is in save_checkpoint" in text
    assert "ckpt.pt" in text
    assert "ranks 0-1, 3 are in all_reduce" in text
