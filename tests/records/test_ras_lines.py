"""triage.records.ras_lines"""

from __future__ import annotations

import pytest

from triage.records import ras_lines

from .factories import block

TRIGGER = "Communicators... ("
TEXT = [
    "NCCL version 2.27.3+cuda12.8 compiled with CUDA 12.8",
    "CUDA runtime version 12080, driver version 12080",
    "",
    "Job summary",
    "===========",
    "",
    "Communicators... (0.004s)",
    "=============",
    "",
    "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors",
    "    #  in group  per comm  per node  per comm  in group",
    "    0         1         1         8         8         8   RUNNING  MISMATCH",
    "",
    "Warnings",
    "========",
    "",
    "#0-0 (27a079b828ff1a75) MISMATCH",
    "  Communicator ranks have different AllReduce operation counts",
    "  7 ranks have launched up to operation 13",
    "  Rank 5 has launched up to operation 9 -- GPU 5 managed by process 4005 on node 10.0.0.1",
]
JSON = ["{", '  "nccl_version": "2.28.3",', '  "communicators_count": 1,', '  "communicators": [', "  ]", "}"]


def report_in(lines: list[str], trigger: str = TRIGGER) -> list[str]:
    """Return the lines of the report around the line with the trigger."""
    result = block("\n".join(lines) + "\n", trigger)
    assert result.form == ras_lines.FORM
    return list(result.lines)


@pytest.mark.parametrize("prefix", ["", "[rank0]: "])
def test_a_report_is_one_block_between_other_lines(prefix: str) -> None:
    """All its lines in their order, up to a line of another form, and nothing of another writer."""
    other = "[rank1]: " + TEXT[4]
    own = [prefix + line for line in TEXT]
    lines = [f"{prefix}step 3", *own[:4], other, *own[4:9], other, *own[9:], f"{prefix}step 4"]
    assert report_in(lines) == TEXT


def test_the_next_report_is_another_block() -> None:
    """It begins with the version of NCCL."""
    assert report_in([*TEXT, *TEXT[:6]]) == TEXT


def test_a_report_in_json_ends_with_its_bracket() -> None:
    """Another object may follow."""
    assert report_in(["step 3", *JSON, *JSON[:2]], ras_lines.TRIGGERS[-1]) == JSON


def test_a_lost_process_is_one_line() -> None:
    """NCCL reports it as an event, whatever stands around it."""
    event = "PEER_DEAD: Process 4005 on node 10.0.0.1"
    assert report_in([*TEXT[12:16], f"[2026-11-21 03:07:45] {event}", *TEXT[16:]], "PEER_DEAD: Process ") == [event]


def test_a_part_of_a_report_may_end_with_its_only_trigger() -> None:
    """As a person pastes it."""
    assert report_in(TEXT[:7]) == TEXT[:7]


def test_a_report_may_reach_farther_than_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search goes on from the last line of the report."""
    monkeypatch.setattr(ras_lines, "REACH", 1 << 8)
    assert report_in([*TEXT[6:], "step 4"]) == TEXT[6:]
