"""triage.records.backtraces"""

from __future__ import annotations

import pytest

from tests.records.factories import text_of
from triage.records.backtraces import collect, has_stamp_on_every_line, opens_backtrace, read_heading
from triage.records.text import Line

FRAME = "#{0}  0x00007f9ba2a969fc in f{0} () at a.c:{0}"
SYSTEMD = "#0  0x00007f9ba2a969fc pthread_kill (libc.so.6 + 0x969fc)"


def lines_of(*texts: str) -> list[Line]:
    """Return lines of one source."""
    text = text_of("\n".join(texts) + "\n")
    return list(text.lines_from(0, text.size))


def collect_texts(*texts: str, is_stamped: bool = False) -> list[str]:
    """Return the lines of the backtrace that the first line opens."""
    first, *following = lines_of(*texts)
    return [line.raw for line in collect(first, following, is_stamped)]


def heading_of(*texts: str) -> list[str]:
    """Return the heading of the backtrace that the last line opens."""
    *above, first = lines_of(*texts)
    return [line.raw for line in read_heading(first, above[::-1])]


@pytest.mark.parametrize(
    ("line", "opens"), [(FRAME.format(0), True), (SYSTEMD, True), ("step 3", False), ("#include <a.h>", False)]
)
def test_the_first_line_of_a_backtrace(line: str, opens: bool) -> None:
    """The first frame of a stack is one, a line of a program is none."""
    assert opens_backtrace(lines_of(line)[0]) is opens


def test_a_backtrace_ends_at_a_line_of_the_program() -> None:
    """Its frames belong to it; what the program prints behind does not, nor do frames behind that."""
    frames = [FRAME.format(number) for number in range(3)]
    assert collect_texts(*frames, "step 3", FRAME.format(3)) == frames


@pytest.mark.parametrize(
    ("head", "count"),
    [
        ("Check failed: depth < limit (3 vs. 4) ", 1),
        ("F0000 00:00:1765542112.123456    4411 tree.cc:93] Check failed: depth < limit (3 vs. 4) ", 1),
        ("F0000 00:00:1765542112.123456    4411 tree.cc:93] three lanes are ready", 0),
    ],
)
def test_a_failed_check_heads_its_stack(head: str, count: int) -> None:
    """Also what Abseil prints before it is initialised, with seconds instead of a date."""
    assert len(heading_of(head, "*** Check failure stack trace: ***")) == count


@pytest.mark.parametrize(("indent", "count"), [("  ", 2), (" ", 2), ("", 1)])
def test_a_prefix_may_take_a_space_of_the_indentation(indent: str, count: int) -> None:
    """Frames of faulthandler are indented, behind `[4]<stderr>:` by one space at least."""
    heading = "Thread 0x00007f00a1b2c740 (most recent call first):"
    assert len(collect_texts(heading, f'{indent}File "/w/a.py", line 3 in f')) == count


@pytest.mark.parametrize(("blank", "count"), [(3, 5), (4, 1)])
def test_up_to_three_blank_lines_are_inside(blank: int, count: int) -> None:
    """Between the parts of a dump; blank lines at its end do not belong to it."""
    assert len(collect_texts(FRAME.format(0), *[""] * blank, FRAME.format(1))) == count
    assert collect_texts(FRAME.format(0), "", "") == [FRAME.format(0)]
    parts = [FRAME.format(number) for number in range(3)]
    assert len(collect_texts(parts[0], "", "", parts[1], "", "", parts[2])) == 7
    assert len(collect_texts(parts[0], parts[1], "", "", "", parts[2])) == 6


@pytest.mark.parametrize(("count", "most"), [(4000, 4000), (4001, 4000)])
def test_a_dump_has_at_most_4000_lines(count: int, most: int) -> None:
    """A line more is left out."""
    assert len(collect_texts(*(FRAME.format(number) for number in range(count)))) == most


@pytest.mark.parametrize(("width", "count"), [(399, 2), (400, 1)])
def test_the_end_of_a_broken_frame_belongs_to_it(width: int, count: int) -> None:
    """A frame without its last bracket goes on in the next line, if that is not very long."""
    frame = "frame #1: c10::detail::torchCheckFail(char const*, char const*,"
    assert len(collect_texts(frame, "x" * width)) == count
    assert len(collect_texts(f"{frame} int)", "x")) == 1


def test_a_record_ends_a_backtrace_unless_every_line_is_one() -> None:
    """A timestamp opens a record of the program; where a collector stamps every line it does not."""
    stamped = [f"2026-11-21 03:07:45 {FRAME.format(number)}" for number in range(3)]
    assert collect_texts(*stamped) == stamped[:1]
    assert collect_texts(*stamped, is_stamped=True) == stamped


@pytest.mark.parametrize(("others", "stamped"), [(11, True), (12, False)])
def test_stamps_inside_a_stack_are_those_of_a_collector(others: int, stamped: bool) -> None:
    """Of the next twelve lines one inside a stack must have the stamp of the first."""
    stamp = "2026-11-21 03:07:45 "
    first, *following = lines_of(f"{stamp}{FRAME.format(0)}", *[f"{stamp}step"] * others, f"{stamp}{FRAME.format(1)}")
    assert has_stamp_on_every_line(first, following) is stamped
    assert not has_stamp_on_every_line(*(lambda lines: (lines[0], lines[1:]))(lines_of(first.raw, FRAME.format(1))))
    assert not has_stamp_on_every_line(*(lambda lines: (lines[0], lines[1:]))(lines_of(FRAME.format(0), first.raw)))


def test_the_heading_stands_directly_above() -> None:
    """Lines that say what happened, in their order, up to the first other line."""
    heading = ["Program terminated with signal SIGSEGV, Segmentation fault.", "[Current thread is 1]"]
    assert heading_of("warning: a", "step 3", *heading, FRAME.format(0)) == heading
    assert heading_of("step 3", FRAME.format(0)) == []


@pytest.mark.parametrize(("count", "most"), [(6, 6), (7, 6)])
def test_a_heading_has_at_most_six_lines(count: int, most: int) -> None:
    """The nearest ones."""
    above = [f"warning: {number}" for number in range(count)]
    assert heading_of(*above, FRAME.format(0)) == above[-most:]


def test_the_heading_is_of_the_same_writer() -> None:
    """A line of another rank between does not end it, and is no part of it."""
    heading = heading_of("[rank1]:Aborted", "[rank0]:Aborted", "[rank1]:warning: a", f"[rank1]:{FRAME.format(0)}")
    assert heading == ["[rank1]:Aborted", "[rank1]:warning: a"]


def test_the_heading_of_systemd_has_its_useful_lines() -> None:
    """The process and its signal, not the list of modules between."""
    process = "Process 4711 (python) of user 1000 dumped core."
    modules = ["Module libc.so.6 without build-id.", "", "ELF object binary architecture: AMD x86-64"]
    assert heading_of("step 3", process, *modules, SYSTEMD) == [process]
    assert heading_of(process, "step 3", *modules, SYSTEMD) == []


@pytest.mark.parametrize(("modules", "count"), [(399, 1), (400, 0)])
def test_400_modules_are_skipped(modules: int, count: int) -> None:
    """Above a longer list the heading is not looked for."""
    process = "Process 4711 (python) of user 1000 dumped core."
    assert len(heading_of(process, *["Module libc.so.6 without build-id."] * modules, SYSTEMD)) == count


def test_the_journal_names_systemd_only_once() -> None:
    """Its prefix is before the first line only; a line of another program between is skipped."""
    journal = "Nov 21 03:07:45 n1 systemd-coredump[812]: Process 4711 (python) of user 1000 dumped core."
    other = "Nov 21 03:07:45 n1 sshd[9]: Process 1 (sshd)"
    assert heading_of(journal, other, "Module libc.so.6 without build-id.", SYSTEMD) == [journal]
    assert heading_of(journal.replace("systemd-coredump", "sshd"), SYSTEMD) == []


PY_SPY = ("Process 70: python train.py", "Python v3.11.7 (/usr/bin/python3.11)", "", 'Thread 70 (idle): "MainThread"')


@pytest.mark.parametrize(
    ("above", "count"),
    [
        (("## Rank 2", "", "```"), 3),
        (("**Rank 2** waits", "```text"), 2),
        (("Rank 2 writes nothing. `py-spy dump` there:", "", "```"), 3),
        (("rank 2: step 40 loss 2.0",), 0),
        (("step 40 loss 2.0", "## Rank 2"), 1),
    ],
)
def test_what_a_person_writes_above_a_dump(above: tuple[str, ...], count: int) -> None:
    """A title with a rank, or a sentence with a rank and the tool, belongs to the dump; a program's line does not."""
    assert heading_of(*above, *PY_SPY) == [*above[len(above) - count :], *PY_SPY[:-1]]
