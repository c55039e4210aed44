"""Lines by which a program ends, wherever others went on to write."""

from __future__ import annotations

from pathlib import Path

import pytest

import triage
from tests.shared_catalog import OPTIONS
from triage.evidence.endings.extraction import find_stated_exits
from triage.scan.edges import HeldEdges
from triage.scan.interface import ScanResult


def scanned(tail: bytes, before: int = 0) -> ScanResult:
    return ScanResult((), before + len(tail), HeldEdges(b"", tail))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"agentd[81]: rank 3: exiting with code 81", True),
        (b"exiting with status 3.", True),
        (b'{"level": "fatal", "msg": "cannot load manifest"}', True),
        (b'ts=2026-09-28T05:59:17Z level=fatal comp=sentinel msg="run stopped"', True),
        (b"mode=fatal comp=sentinel", False),
        (b"exiting with code 0", False),
        (b"exiting with code 81 is what it did", False),
        (b'{"level": "error", "mode": "fatal"}', False),
    ],
)
def test_which_lines_end_a_program(line: bytes, expected: bool) -> None:
    """A code other than 0 at the end of the line, or the fatal level of a record."""
    assert find_stated_exits(scanned(b"step 1\n" + line + b"\nstep 2\n", 100)) == ([107] if expected else [])


def test_the_reason_before_it_is_the_cause_although_others_went_on(tmp_path: Path) -> None:
    """One rank of a shared file ends; the tracebacks of the others, which lost it, follow."""
    lost = "RuntimeError: [pair.cc:534] Connection closed by peer [10.0.0.7]:41250"
    lines = [f"[rank {rank}] step {step} loss 2.1" for step in range(30) for rank in range(4)]
    lines += [
        "[agent/boot] host=n7 rank=2 FATAL: plan digest is not known",
        "[agent/boot] host=n7 rank=2 exiting with code 81",
    ]
    lines += [
        f"[rank{rank}]: {text}"
        for rank in (0, 1, 3)
        for text in ("Traceback (most recent call last):", '  File "/job/train.py", line 3, in step', lost)
    ]
    path = tmp_path / "n7.log"
    path.write_text("\n".join(lines) + "\n")
    root = triage.ingest(path, options=OPTIONS).root_cause
    assert root is not None
    assert root.cluster is not None
    assert "plan digest is not known" in root.title


@pytest.mark.parametrize("steps", [30, 3000])
@pytest.mark.parametrize("is_reported", [True, False])
def test_the_reason_before_a_reported_exit_counts_although_another_launcher_follows(
    tmp_path: Path, steps: int, is_reported: bool
) -> None:
    """Of two joined outputs of torchrun the first says why; without its report the second shows that it went on."""
    usual = [f"[default{rank}]:step {step} loss 2.1" for step in range(steps) for rank in range(2)]
    stamp = "E0928 11:44:18.030000 69 torch/distributed/elastic/multiprocessing/api.py:882] "
    report = f"{stamp}failed (exitcode: 70) local_rank: 0 (pid: 81) of binary: /usr/bin/python"
    lines = [*usual, "[default0]:sentinel: FATAL: below the floor of 9 tokens", *([report] if is_reported else [])]
    path = tmp_path / "pods.log"
    path.write_text("\n".join([*lines, *usual]) + "\n")
    root = triage.ingest(path, options=OPTIONS).root_cause
    assert (root is not None and "floor of 9 tokens" in root.title) is is_reported
