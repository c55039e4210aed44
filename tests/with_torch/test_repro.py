"""The scripts of `triage repro` hang as the recorded jobs did, and finish with the fix (`make test-torch`)."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import triage
from triage.cli import main

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("TRIAGE_TORCH", "")
SAMPLES = ROOT / "samples" / "flight"
RECORDED = ("hung_skipped_call_dump", "hung_uneven_batches_dump")  # samples/jobs; the truth has other keys there
KINDS = (
    "never_joined",
    "never_in_group",
    "other_call",
    "swapped",
    "rank_zero_only",
    "extra_call",
    "skipped",
    "group_order",
    "other_type",
)

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not PYTHON, reason="TRIAGE_TORCH names no Python with torch; make test-torch does"),
]
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs a sample's script with torchrun and gloo, and returns exit status and output."""

    def call(kind: str, *options: str) -> tuple[int, str]:
        script = tmp_path / "repro.py"
        dumps = sample(kind) / "job" if kind in RECORDED else sample(kind)
        assert main(["repro", str(dumps), "--output", str(script), "--scale", "2"]) == 0
        size = read_truth(kind)["world_size"]
        command = [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size), str(script)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | {
            "OMP_NUM_THREADS": "1"
        }
        for _ in range(3):
            done = subprocess.run(
                [*command, "--backend", "gloo", "--timeout", "6", *options],
                capture_output=True,
                text=True,
                timeout=200,
                env=environment,
                check=False,
            )
            if "EADDRINUSE" not in done.stderr:
                break  # otherwise another program took the launcher's port; try again
        return done.returncode, done.stdout + done.stderr

    return call


def sample(kind: str) -> Path:
    """Return the directory of a sample."""
    return ROOT / "samples" / "jobs" / kind if kind in RECORDED else SAMPLES / kind


def read_truth(kind: str) -> dict[str, Any]:
    """Return the content of TRUTH.yaml."""
    return yaml.safe_load((sample(kind) / "TRUTH.yaml").read_text())


def ranks_at_fault(kind: str) -> str:
    """Return the ranks at fault of a sample as the value of --fix-rank."""
    return ",".join(map(str, read_truth(kind)["root_ranks" if kind in RECORDED else "ranks"]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_output_of_the_script_is_a_log_that_names_the_ranks(run: Run, tmp_path: Path, kind: str) -> None:
    """`ingest` of what the script prints names the ranks at fault, or nobody where its lines do not show them."""
    log = tmp_path / "repro.log"
    log.write_text(run(kind)[1])
    root = triage.ingest(str(log)).root_cause
    is_told = kind not in ("group_order", "other_type")  # the members of the groups, or the types of gloo
    assert (root.ranks if root else ()) == (tuple(read_truth(kind)["ranks"]) if is_told else ())


@pytest.mark.parametrize("kind", [*KINDS, *RECORDED])
def test_a_program_fault_is_reproduced_and_fixed(run: Run, kind: str) -> None:
    """The script hangs or shows the mismatch on gloo; with --fix-rank all ranks finish."""
    status, output = run(kind)
    assert status != 0, output
    assert re.search(r"^REPRODUCED$", output, re.MULTILINE), output
    status, output = run(kind, "--fix-rank", ranks_at_fault(kind))
    assert status == 0, output
    assert re.search(r"^PASSED$", output, re.MULTILINE), output


def test_a_network_fault_is_not_reproduced(run: Run) -> None:
    """A job whose ranks all made the same calls finishes."""
    status, output = run("all_in_one")
    assert (status, "PASSED" in output) == (0, True), output


def test_checksums_of_repeated_reductions(run: Run, tmp_path: Path) -> None:
    """Each rank prints a checksum per step, all equal on a correct device; `ingest` names a rank that differs."""
    status, output = run("healthy", "--check-determinism", "3")
    lines = re.findall(r"\[rank\d\]: step \d checksum 0x[0-9a-f]{16}", output)
    assert (status, len(lines), len({line[-16:] for line in lines})) == (0, 12, 1), output
    log = tmp_path / "check.log"
    log.write_text("\n".join(lines) + "\n")
    assert triage.ingest(str(log)).root_cause is None
    wrong = [re.sub(r"0x.{16}", "0x00000000deadbeef", line) if "[rank1]: step 2" in line else line for line in lines]
    log.write_text("\n".join(wrong) + "\n")
    root = triage.ingest(str(log)).root_cause
    assert root is not None
    assert (root.signature, root.ranks) == ("numeric.rank-divergence", (1,))
