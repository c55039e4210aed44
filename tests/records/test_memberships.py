"""triage.records.memberships"""

from __future__ import annotations

import pytest

from triage.model.evidence import Origin
from triage.ranks.separate_groups import Membership
from triage.records.memberships import find_memberships, read_membership, remove_own_tags
from triage.records.text import Text


@pytest.mark.parametrize(
    "text",
    [
        "rank 3 of 8 on node1, pid 412",
        "RANK=3 LOCAL_RANK=1 WORLD_SIZE=8 host=node1 PID=412",
        "[init] global_rank=3 local_rank=1 world_size=8 hostname: node1 pid=412",
        "node1: global rank 3 ready, local rank 1, world size 8, pid 412",
    ],
)
def test_a_process_introduces_itself(text: str) -> None:
    """Its rank, the size of its group, its host and its pid stand in one line."""
    assert read_membership(Origin(), text) == Membership(3, 8, "", "node1", 412)


@pytest.mark.parametrize(
    "text",
    ["tensor parallel rank 3 world_size=8", "local rank 3, world_size=8", "comm 0x7f rank 3 nranks 8", "world_size: 8"],
)
def test_a_number_of_a_part_of_the_job_is_no_rank(text: str) -> None:
    """The line says only how many there are."""
    stated = read_membership(Origin(), text)
    assert stated is not None
    assert (stated.rank, stated.size) == (-1, 8)


@pytest.mark.parametrize(
    "text",
    ["AssertionError: expected world_size=8, got rank 0 of 4", "rank 9 of 8", "step 3 of 8", "rank 3 out of memory"],
)
def test_other_lines_say_nothing(text: str) -> None:
    """A comparison, a rank that cannot be, and counters."""
    assert read_membership(Origin(), text) is None


def test_lines_without_a_pid_are_told_apart_by_their_text() -> None:
    """Equal lines have the same form, others have not."""
    forms = [read_membership(Origin(), text) for text in ("rank 0 of 1", "rank 0 of 1", "rank 0 of 1: step 4")]
    first, again, other = (one.form for one in forms if one is not None)
    assert first == again != other


def test_all_lines_at_both_ends_of_a_source_are_read() -> None:
    """With the prefix of the launcher as label, and the time of the line."""
    lines = ["0: 2026-03-01 10:00:00 rank 0 of 2, pid 41", "1: step 1", "1: 2026-03-01 10:00:01 rank 1 of 2, pid 42"]
    data = "\n".join([*lines, *lines[1:2] * 20]).encode() + b"\n"
    text = Text("job.log", lambda offset, length: data[offset : offset + length], len(data), 2026)
    whole = find_memberships(text, b"", data, 0)
    assert [(one.rank, one.label, one.pid, one.offset) for one in whole] == [(0, "0:", 41, 0), (1, "1:", 42, 53)]
    assert find_memberships(text, data[:60], data[60:], 60) == whole[:1]


def test_the_tag_of_torch_is_not_what_the_launcher_writes() -> None:
    """Nor is the stream."""
    assert remove_own_tags("1: [rank0]:") == "1:"
    assert remove_own_tags("[1,3]<stderr>:") == "[1,3]"


@pytest.mark.parametrize(("start", "before"), [("", 0), ("step 1\n", 7)])
def test_any_line_of_a_source_may_say_it(start: str, before: int) -> None:
    """The first one too; several words of a line are one line."""
    data = f"{start}WORLD_SIZE=2 RANK=1 rank 1 of 2\n".encode()
    text = Text("job.log", lambda offset, length: data[offset : offset + length], len(data), 2026)
    [membership] = find_memberships(text, b"", data, 0)
    assert (membership.rank, membership.size, membership.offset) == (1, 2, before)


@pytest.mark.parametrize("pid", [0, 1])
def test_lines_with_a_pid_are_told_apart_by_it(pid: int) -> None:
    """Different lines of one process have the same form."""
    stated = [read_membership(Origin(), f"rank 0 of 1, pid {pid}{text}") for text in ("", ": step 4")]
    assert [(one.pid, one.form) for one in stated if one is not None] == [(pid, 0)] * 2
