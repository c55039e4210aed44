"""The end that a launcher reports without a rank, joined with the ranks that complain of a lost peer."""

from __future__ import annotations

from pathlib import Path

import pytest

import triage

END = (
    "[2026-11-22 06:40:02,924] [ERROR] [launch.py:259:sigkill_handler] ['python3', '-u', 'train.py', '--local_rank=2'] "
    "exits with return code = 3\n"
)


def _lost(rank: int) -> str:
    trace = (
        "Traceback (most recent call last):",
        '  File "train.py", line 14, in <module>',
        "RuntimeError: [third_party/gloo/gloo/transport/tcp/pair.cc:537] Read error [10.0.0.1]:2947: Connection reset "
        "by peer",
    )
    return "".join(f"[rank{rank}]: {line}\n" for line in trace)


@pytest.mark.parametrize(("losing", "ranks"), [((0, 2), (1,)), ((0,), ())])
def test_the_reported_end_is_that_of_the_only_rank_without_a_complaint(
    losing: tuple[int, ...], ranks: tuple[int, ...], tmp_path: Path
) -> None:
    """The command in the line is the launcher's last one, so the local rank in it says nothing."""
    steps = "".join(f"[rank{rank}]: step {step}\n" for step in range(4) for rank in range(3))
    (tmp_path / "console.log").write_text(steps + "".join(map(_lost, losing)) + END, encoding="utf-8")
    root = triage.ingest(tmp_path).root_cause
    assert root is not None
    assert root.signature == "launch.deepspeed-return-code"
    assert root.ranks == ranks
