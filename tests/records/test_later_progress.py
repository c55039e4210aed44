"""triage.records.later_progress"""

from __future__ import annotations

import pytest

from tests.records.factories import HEADER, text_of
from triage.model.evidence import Origin
from triage.records.later_progress import Sequel, read_sequel

TRACE = [f"{HEADER}:", '  File "a.py", line 1, in f', "RuntimeError: boom"]


def sequel_of(*after: str, prefix: str = "", before: tuple[str, ...] = ()) -> Sequel:
    """Return what follows a traceback of the writer with a prefix, between other lines."""
    lines = [*before, *(prefix + line for line in TRACE), *after]
    text = text_of("\n".join(lines) + "\n")
    trace = list(text.lines_from(0, text.size))[len(before) : len(before) + 3]
    return read_sequel(text, trace, trace[0].parsed.origin, trace[0].parsed.writer)


def steps(count: int, *, start: int = 4, prefix: str = "") -> list[str]:
    """Return lines of so many steps."""
    return [f"{prefix}step {start + number}" for number in range(count)]


@pytest.mark.parametrize(
    ("after", "sequel"),
    [
        ([], Sequel(ends_writer=True)),
        (["[rank2]: step 4"], Sequel(ends_writer=True)),
        (["[rank1]: cleaning up"], Sequel()),
        (["[rank1]: step 4"], Sequel(continued=True)),
        (["[rank1]: Training finished"], Sequel(continued=True)),
        (["[rank1]: trainer-1 exited with code 0"], Sequel()),
    ],
)
def test_a_rank_continues_or_ends(after: list[str], sequel: Sequel) -> None:
    """One step or the end of training show that it continued; without a further line it has ended."""
    assert sequel_of(*after, prefix="[rank1]: ") == sequel


def test_a_writer_that_writes_behind_another_label_has_not_ended() -> None:
    """`[default1]:` alone is the same process as `[default1]:[rank1]:`."""
    assert not sequel_of("[default1]:bye", prefix="[default1]:[rank1]: ").ends_writer
    assert sequel_of("[default2]:bye", prefix="[default1]:[rank1]: ").ends_writer


@pytest.mark.parametrize(
    ("before", "ends_writer"),
    [([], True), (["step 3"], True), (["2026-07-24T20:50:12Z ERROR step 3"], False)],
)
def test_an_earlier_time_ends_a_log_unless_the_lines_before_have_it_too(before: list[str], ends_writer: bool) -> None:
    """A log at an earlier time is another log; a collector may be hours ahead of the lines that it collects."""
    stamp = "2026-07-25T03:50:13Z "
    after = ["2026-07-24T20:50:13Z ERROR step 4"]
    text = text_of("\n".join([*before, *(stamp + line for line in TRACE), *after]) + "\n")
    trace = list(text.lines_from(0, text.size))[len(before) : len(before) + 3]
    assert read_sequel(text, trace, trace[0].parsed.origin, "").ends_writer is ends_writer


@pytest.mark.parametrize(("count", "continued"), [(5, True), (4, False)])
def test_five_steps_without_a_writer_are_progress(count: int, continued: bool) -> None:
    """Other ranks take fewer before they wait for the failed one. A step that several ranks print is one."""
    assert sequel_of(*steps(count)).continued is continued
    assert sequel_of(*(step for step in steps(count) for _ in range(4))).continued is continued


@pytest.mark.parametrize(("count", "continued"), [(20, True), (19, False)])
def test_twenty_lines_of_progress_without_a_writer_are_progress(count: int, continued: bool) -> None:
    """Progress bars without the number of a step are counted by line."""
    assert sequel_of(*["10%|#| 3.2it/s"] * count).continued is continued


@pytest.mark.parametrize(("last", "continued"), [(3, True), (4, False), (9, False)])
def test_steps_up_to_the_last_one_before_are_of_another_log(last: int, continued: bool) -> None:
    """Where lines name no writer, the log of another rank may follow and repeat the steps."""
    assert sequel_of(*steps(5), before=(f"step {last}",)).continued is continued


@pytest.mark.parametrize(("between", "continued"), [(198, False), (200, True)])
def test_the_last_step_is_looked_for_in_200_lines(between: int, continued: bool) -> None:
    """A step farther above says nothing."""
    assert sequel_of(*steps(5), before=("step 9", *["loading"] * between)).continued is continued


@pytest.mark.parametrize(("lines", "continued"), [(1999, True), (2000, False)])
def test_progress_is_looked_for_in_2000_lines(lines: int, continued: bool) -> None:
    """A step farther below is too late to belong to it."""
    assert sequel_of(*["[rank1]: x"] * lines, "[rank1]: step 4", prefix="[rank1]: ").continued is continued


@pytest.mark.parametrize(("steps_of_others", "continued"), [(8, True), (7, False)])
def test_ranks_may_go_on_after_an_error_of_another_process(steps_of_others: int, continued: bool) -> None:
    """Eight different steps of ranks, behind an error of a controller that prints none itself."""
    others = [line for line in steps(steps_of_others, prefix="[rank0]: ") for _ in range(2)]
    controller = "(Controller pid=71) "
    assert sequel_of(*others, prefix=controller).continued is continued
    assert sequel_of(f"{controller}waits", *others, prefix=controller).continued is continued
    assert not sequel_of(*others, prefix=controller, before=(f"{controller}step 3",)).continued
    assert not sequel_of(*others, prefix="[rank1]: ").continued
    assert not sequel_of(*others, prefix="[default1]:").continued


def test_steps_older_than_the_error_are_no_progress() -> None:
    """A collector may deliver lines late."""
    controller = "(Controller pid=71) 2026-11-21 03:07:45 "
    older = [f"[rank0]: 2026-11-21 03:07:44 {step}" for step in steps(8)]
    newer = [line.replace(":44", ":46") for line in older]
    lines = [f"{controller}ERROR x", *("(Controller pid=71) " + line for line in TRACE)]
    for others, continued in ((older, False), (newer, True)):
        text = text_of("\n".join([*lines, *others]) + "\n")
        trace = list(text.lines_from(0, text.size))[:4]
        assert read_sequel(text, trace, trace[0].parsed.origin, trace[0].parsed.writer).continued is continued


@pytest.mark.parametrize(("caught", "enough"), [(True, 3), (False, 5)])
def test_fewer_steps_show_that_a_caught_exception_ended_nothing(caught: bool, enough: int) -> None:
    """Where lines name no writer, other ranks may still take a few steps after an exception."""
    for count in (enough - 1, enough):
        text = text_of("\n".join(["step 3", *TRACE, *steps(count)]) + "\n")
        trace = list(text.lines_from(0, text.size))[1:4]
        assert read_sequel(text, trace, trace[0].parsed.origin, "", caught).continued is (count == enough)


@pytest.mark.parametrize(("others", "continued"), [(4000, True), (4001, False)])
def test_4000_lines_of_others_in_a_row_may_stand_before_progress(others: int, continued: bool) -> None:
    """After more of them the log of a rank counts as ended."""
    sequel = sequel_of(*["[rank2]: waits"] * others, "[rank1]: step 4", prefix="[rank1]: ")
    assert sequel == Sequel(continued=continued, ends_writer=not continued)


def test_the_rank_of_a_record_goes_on_in_lines_without_a_rank() -> None:
    """`logging.exception` writes the rank in its record only; the lines behind have the same prefix: none."""
    text = text_of("\n".join([*TRACE, "[rank2]: step 4", "step 4"]) + "\n")
    trace = list(text.lines_from(0, text.size))[:3]
    assert read_sequel(text, trace, Origin(rank=1), "").continued
    without = text_of("\n".join([*TRACE, "[rank2]: step 4"]) + "\n")
    assert not read_sequel(without, trace, Origin(rank=1), "").continued


def test_steps_of_another_writer_before_do_not_count() -> None:
    """What a rank with a prefix reached says nothing about lines without one."""
    assert sequel_of(*steps(5), before=("[rank2]: step 9",)).continued
