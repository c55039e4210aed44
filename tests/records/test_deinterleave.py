"""triage.records.deinterleave, and the lines that it separates"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

import triage
from tests.records.factories import HEADER, block, blocks, text_of
from triage.records.deinterleave import (
    SharedTraceback,
    deinterleave_text,
    deinterleave_tracebacks,
    find_interleaved_lines,
    has_repeated_exception_name,
    may_be_interleaved,
)
from triage.records.tracebacks import CHAINS, is_exception

MESSAGES = [
    "RuntimeError: NCCL error in: /w/ProcessGroupNCCL.cpp:1333, unhandled system error",
    "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:219, invalid usage",
    '  File "/w/train.py", line 88, in <module>',
    "Traceback (most recent call last):",
]


@settings(max_examples=80)
@given(st.data(), st.sampled_from(MESSAGES))
def test_interleaved_text_is_separated_or_left(data: st.DataObject, message: str) -> None:
    """For any order of the pieces the exact text comes out, for two writers, or nothing."""
    pieces = data.draw(
        st.sampled_from([r"\w+|\W+", r".{1,7}", r"\S+ *| +"]).map(lambda form: re.findall(form, message))
    )
    queues = [list(pieces), list(pieces)]
    order = data.draw(st.permutations([0, 1] * len(pieces)))
    mixed = "".join(queues[writer].pop(0) for writer in order)
    assert deinterleave_text(mixed) in ((message, 2), ("", 0))
    assert may_be_interleaved(mixed.encode())


@pytest.mark.parametrize("message", MESSAGES)
def test_alternating_words_are_separated(message: str) -> None:
    """Two writers that alternate, and up to eight whole texts one after the other."""
    pieces = re.findall(r"\w+|\W+", message)
    assert deinterleave_text("".join(piece * 2 for piece in pieces)) == (message, 2)
    for writers in range(2, 9):
        assert deinterleave_text(message * writers) == (message, writers)


@pytest.mark.parametrize(
    "text",
    [
        "=" * 60,
        "nan " * 16,
        "step 3 loss 2.5",
        "RuntimeErrorRuntimeError: : rank 3rank 4 failed",
        "abcabcabcabc" * 2,
        "",
    ],
)
def test_other_text_is_left(text: str) -> None:
    """Rulers, rows of one word, and texts that differ."""
    assert deinterleave_text(text) == ("", 0)


def test_a_traceback_written_by_two_at_once_is_separated() -> None:
    """Every line holds the text of both writers: the traceback counts two writers and has no rank."""
    lines = [
        MESSAGES[3],
        MESSAGES[2],
        "    loss.backward(retain_graph)",
        "RuntimeError: CUDA error: device-side assert triggered",
    ]
    interleaved = "".join("".join(piece * 2 for piece in re.findall(r"\w+|\W+", line)) + "\n\n" for line in lines)
    result = block("step 3\n" + interleaved + "step 4\n", "Traceback", "RuntimeError")
    assert result.lines == tuple(lines)
    assert (result.writers, result.origin.rank, result.ambiguous) == (2, None, False)


def test_a_line_of_two_ranks_is_two_lines() -> None:
    """The second prefix is inside the text of the first, and the rest of both is behind it."""
    text = text_of(
        "[rank0]: Trace[rank1]: Traceback (most recent call last):back (most recent call last):\n[rank0]: "
        "other[rank1]: Traceback\n"
    )
    parsed = [(line.parsed.origin.rank, line.parsed.text) for line in text.lines_from(0, 1 << 10)]
    assert parsed == [(0, MESSAGES[3]), (1, MESSAGES[3]), (0, "other"), (1, "Traceback")]


def test_text_that_cannot_be_separated_is_ambiguous() -> None:
    """If the texts of two writers differ, the line stays as it is."""
    line = "RuntimeErrorRuntimeError: : rank 3rank 4 failed"
    [result] = blocks(line + "\n", "RuntimeError")
    assert (result.lines, result.ambiguous) == ((line,), True)
    assert has_repeated_exception_name("torch.OutOfMemoryErrortorch.OutOfMemoryError: : x")
    assert not has_repeated_exception_name("RuntimeError: RuntimeError: boom")
    assert [result.ambiguous for result in blocks("RuntimeError: boom\n", "RuntimeError")] == [False]


def test_a_failure_in_interleaved_text_is_diagnosed(tmp_path: Path) -> None:
    """No literal is in the line as it is."""
    message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    (tmp_path / "job.log").write_text(
        "step 3\n" + "".join(piece * 2 for piece in re.findall(r"\w+|\W", message)) + "\n\n"
    )
    root = triage.ingest([str(tmp_path)]).root_cause
    assert root is not None
    assert (root.signature, root.count, root.ranks) == ("cuda.out-of-memory", 2, ())


def test_three_writers_are_separated() -> None:
    """Each of them may be anywhere behind the first."""
    assert deinterleave_text("".join(piece * 3 for piece in ("Trace", "back", " (most", " recent)"))) == (
        "Traceback (most recent)",
        3,
    )


@pytest.mark.parametrize("writers", [2, 3, 5, 7, 8])
def test_the_quick_check_lets_any_number_of_writers_pass(writers: int) -> None:
    """One of the primes divides it; a line of one writer does not pass."""
    assert may_be_interleaved(MESSAGES[3].encode() * writers)
    assert not may_be_interleaved(MESSAGES[3].encode())
    assert not may_be_interleaved(MESSAGES[3].encode() * 11)


@pytest.mark.parametrize(
    ("text", "is_separated"),
    [
        ("abcdefghijkl", True),
        ("abcdefghijk", False),
        ("abcdef 12345", True),
        ("abcde 123456", False),
        ("abcd abcd 12", True),
        ("abc abc ab 1", False),
        ("abcdefghijklmno" * 40, True),
        ("abcdefghijklmno" * 40 + "z", False),
    ],
)
def test_only_specific_text_is_separated(text: str, is_separated: bool) -> None:
    """Twelve characters, six letters, four different ones; 1,200 characters with those of all writers."""
    assert (deinterleave_text(text * 2)[1] > 0) is is_separated


@pytest.mark.parametrize(
    ("length", "may_be"), [(23, False), (24, True), (4800, True), (4801, False)], ids=["23", "24", "4800", "4801"]
)
def test_lines_of_other_lengths_are_not_looked_at(length: int, may_be: bool) -> None:
    """Two writers of twelve characters are the least; four bytes for each of 1,200 characters are the most."""
    assert may_be_interleaved(b"x" * length) is may_be


CHAIN = [
    "Traceback (most recent call last):",
    '  File "a.py", line 1, in f',
    "    run(1)",
    "KeyError: a",
    "During handling of the above exception, another exception occurred:",
    "Traceback (most recent call last):",
    '  File "b.py", line 2, in g',
    "    run(2)",
    "ValueError: b",
]


def count_chains(lines: list[str]) -> list[tuple[int, bool]]:
    """Return of each traceback in mixed lines how many wrote it, and whether it is ambiguous."""
    return [(result.writers, result.ambiguous) for result in blocks("\n".join(lines) + "\n", "Traceback (most")]


@pytest.mark.parametrize(
    ("lines", "is_chain"),
    [
        ([line for line in CHAIN for _ in range(2)], True),
        ([line for line in CHAIN for _ in range(3)], True),
        ([*CHAIN[:1], *(line for line in CHAIN for _ in range(2))], False),
        ([line for line in [*CHAIN[:3], *CHAIN[4:5], *CHAIN[3:4], *CHAIN[5:]] for _ in range(2)], False),
        ([*CHAIN[:2], *CHAIN[6:7] * 2, *CHAIN[:6], *CHAIN[2:6], *CHAIN[7:] * 2], False),
        ([*CHAIN, *CHAIN[:6], *CHAIN[7:]], False),
        ([line for line in [*CHAIN, "OSError: c"] for _ in range(2)], False),
    ],
    ids=["two", "three", "a third header", "link first", "frame before link", "a frame less", "third end"],
)
def test_a_chain_of_several_writers_needs_its_order(lines: list[str], is_chain: bool) -> None:
    """Each line as often as there are writers, and all of them possible in the order of one traceback."""
    [*chains] = count_chains(lines)
    assert (any(writers > 1 and not ambiguous for writers, ambiguous in chains)) is is_chain


def deinterleave(lines: list[str]) -> list[SharedTraceback]:
    """Return the tracebacks in mixed lines."""
    return deinterleave_tracebacks(lines, lambda text: HEADER in text, is_exception, CHAINS)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_chain_spans_from_its_first_line_to_its_last(count: int) -> None:
    """Of the lines up to the link the first occurrences, of those behind it the last ones, with their headers."""
    first, last = range(0, 5 * count, count), range(6 * count - 1, 9 * count, count)
    assert deinterleave([line for line in CHAIN for _ in range(count)]) == [
        SharedTraceback((*first, *last), 9 * count - 1, count, True)
    ]


def test_a_frame_without_a_certain_place_is_left_out() -> None:
    """The second traceback has both frames, but which is above is not known: the first stays, and it is incomplete."""
    above, below = CHAIN[1], CHAIN[6]
    lines = [CHAIN[0], CHAIN[0], above, "KeyError: a", below, above, "ValueError: b"]
    assert deinterleave(lines) == [
        SharedTraceback((0, 2, 3), 3, 1, True),
        SharedTraceback((0, 2, 6), 6, 1, False),
    ]


def test_code_without_its_frame_is_left_out() -> None:
    """Both tracebacks have the same line of code, but nothing says which of the two frames is whose."""
    lines = [CHAIN[0], CHAIN[0], CHAIN[1], CHAIN[6], CHAIN[2], CHAIN[2], "KeyError: a", "ValueError: b"]
    assert deinterleave(lines) == [SharedTraceback((0, 6), 6, 1, False), SharedTraceback((0, 7), 7, 1, False)]


@pytest.mark.parametrize(("copies", "writers"), [(8, 8), (9, 3)])
def test_more_than_eight_writers_are_not_looked_for(copies: int, writers: int) -> None:
    """Nine texts come out as those of three writers who wrote it three times."""
    text = MESSAGES[3]
    assert deinterleave_text(text * copies) == (text * (copies // writers), writers)


def test_interleaved_lines_have_their_place() -> None:
    """Start and end are those of the line in the source, the first line included."""
    mixed = MESSAGES[3] * 2
    data = f"{mixed}\nstep 3\n{mixed}\n".encode()
    lines = list(find_interleaved_lines(data))
    assert [(data[start:end].decode(), text, shown) for start, end, text, shown in lines] == [
        (mixed, MESSAGES[3], [mixed])
    ] * 2
    assert [start for start, *_ in lines] == [0, len(mixed) + len("\nstep 3\n")]
