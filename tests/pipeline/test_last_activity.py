"""What the report says of the last line of a rank for which others waited."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage import pipeline
from triage.model import Finding
from triage.pipeline import Options

WATCHDOG = (
    "[E ProcessGroupNCCL.cpp:821] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1523, "
    "OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1802000 milliseconds before timing out.\n"
)
STACK = (
    "Timeout (0:05:00)!\nThread 0x00007f3d11c5b740 (most recent call first):\n"
    '  File "/app/io.py", line 77 in read_shard\n  File "/app/main.py", line 19 in <module>\n'
)


def diagnose(folder: Path, end: str, missing: tuple[int, ...] = (2,)) -> Finding:
    """Return the root cause where all ranks but these wait, and the files of these end so."""
    for rank in range(9):
        text = f"2026-11-20 04:00:00 INFO step 30 loss 2.1\n{end if rank in missing else WATCHDOG.format(rank=rank)}"
        (folder / f"rank{rank}.log").write_text(text)
    root = pipeline.ingest([str(folder)], Options()).root_cause
    assert root is not None
    assert (root.signature, root.ranks) == ("torch.rank-never-joined", missing)
    return root


def last_lines(root: Finding) -> list[str]:
    """Return the reasons that show a last line."""
    return [reason for reason in root.why if "wrote last" in reason]


@pytest.mark.parametrize("after", ["", "\n", "[PG 0 Rank 2] Exception thrown when waiting\n"])
def test_the_last_line_of_the_missing_rank_is_shown(tmp_path: Path, after: str) -> None:
    """It is the last one of the program itself, and the call of the others is named by its number."""
    root = diagnose(tmp_path, f"2026-11-20 04:01:31 INFO opening shard 17\n{after}")
    assert last_lines(root) == ["Rank 2 wrote last in rank2.log: INFO opening shard 17"]
    assert "timed out in ALLREDUCE #1523 of the process group; rank 2" in root.evidence[0].text


@pytest.mark.parametrize(("missing", "count"), [((1, 2, 3), 3), ((1, 2, 3, 4), 0)])
def test_the_last_lines_of_many_ranks_are_left_out(tmp_path: Path, missing: tuple[int, ...], count: int) -> None:
    """Three ranks are few enough to show each."""
    assert len(last_lines(diagnose(tmp_path, "2026-11-20 04:01:31 INFO opening shard\n", missing))) == count


def test_a_stack_says_more_than_a_last_line(tmp_path: Path) -> None:
    """The stack in the log of the missing rank says where it is."""
    root = diagnose(tmp_path, STACK)
    assert last_lines(root) == []
    assert root.evidence[0].text.endswith("; by its stack, rank 2 is in read_shard at io.py:77")


def test_the_root_is_listed_as_itself(tmp_path: Path) -> None:
    """The finding with the last line is the root also among all findings."""
    diagnose(tmp_path, "2026-11-20 04:01:31 INFO opening shard 17\n")
    diagnosis = pipeline.ingest([str(tmp_path)], Options())
    same = [one for one in diagnosis.findings if one.signature == "torch.rank-never-joined"]
    assert same == [diagnosis.root_cause]
