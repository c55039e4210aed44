"""Writers one after another in one file are found by bisection; mixed ones are left to other means."""

from __future__ import annotations

import pytest

from triage.ranks.layouts import detect_layout
from triage.records import sections
from triage.records.activity import Activity
from triage.records.sections import CHUNK, read_section_ends

LINES = 600  # of a writer: more than CHUNK bytes


def read_ends(lines: list[str]) -> list[Activity]:
    data = "".join(f"{line}\n" for line in lines).encode()
    return read_section_ends(lambda at, size: data[at : at + size], len(data), 2026, detect_layout(data))


def steps(writer: str, count: int) -> list[str]:
    return [f"[pod/{writer}/main] step {number} loss 0.5" for number in range(count)]


def test_each_writer_but_the_last_has_its_last_step() -> None:
    """The sections differ in length, and one is shorter than a chunk."""
    counts = {"job-0": LINES, "job-1": 40, "job-2": 3 * LINES, "job-3": LINES // 2, "job-4": LINES}
    assert len("".join(steps("job-1", 40))) < CHUNK
    ends = read_ends([line for writer, count in counts.items() for line in steps(writer, count)])
    last = {activity.origin.host: activity.step for activity in ends}
    assert last == {writer: count - 1 for writer, count in list(counts.items())[:-1]}


@pytest.mark.parametrize("writers", [1, 5])
def test_one_writer_and_mixed_writers_have_no_sections(writers: int) -> None:
    """Lines of five writers in turns have none, and neither has the file of one."""
    columns = [steps(f"job-{writer}", 2 * LINES) for writer in range(writers)]
    assert read_ends([line for row in zip(*columns, strict=True) for line in row]) == []


@pytest.mark.parametrize(("lines", "has_sections"), [(1, False), (2, True)])
def test_hundreds_of_writers_in_turns_have_no_sections(lines: int, *, has_sections: bool) -> None:
    """Where no writer writes two lines, each step of a job is printed by all ranks in their order."""
    assert bool(read_ends([line for n in range(800) for line in steps(f"job-{n}", lines)])) is has_sections


def test_a_small_file_is_not_searched() -> None:
    """What fits into a chunk is read as a whole elsewhere."""
    assert read_ends([*steps("job-0", 20), *steps("job-1", 20)]) == []


@pytest.mark.parametrize(("probes", "is_read"), [(100, True), (3, False)])
def test_after_too_many_probes_nothing_is_claimed(probes: int, is_read: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose parts differ everywhere would be read as a whole."""
    monkeypatch.setattr(sections, "_MOST_PROBES", probes)
    assert bool(read_ends([line for number in range(6) for line in steps(f"job-{number}", LINES)])) is is_read
