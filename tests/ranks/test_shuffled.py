"""triage.ranks.shuffled, and the lines that it takes apart"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import triage
from tests.ranks.reading import block, blocks, text_of
from triage.ranks.shuffled import is_torn, may_be, unshuffled

MESSAGES = [
    "RuntimeError: NCCL error in: /w/ProcessGroupNCCL.cpp:1333, unhandled system error",
    "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:219, invalid usage",
    '  File "/w/train.py", line 88, in <module>',
    "Traceback (most recent call last):",
]


@settings(max_examples=80)
@given(st.data(), st.sampled_from(MESSAGES))
def test_what_two_wrote_word_by_word_is_told_or_left(data: st.DataObject, message: str) -> None:
    """Of any order of the pieces the very text comes back, twice, or nothing."""
    pieces = data.draw(
        st.sampled_from([r"\w+|\W+", r".{1,7}", r"\S+ *| +"]).map(lambda form: re.findall(form, message))
    )
    queues = [list(pieces), list(pieces)]
    order = data.draw(st.permutations([0, 1] * len(pieces)))
    mixed = "".join(queues[writer].pop(0) for writer in order)
    assert unshuffled(mixed) in ((message, 2), ("", 0))
    assert may_be(mixed.encode())


@pytest.mark.parametrize("message", MESSAGES)
def test_words_in_turn_are_taken_apart(message: str) -> None:
    """The common case, two writers who take turns, and whole texts one behind the other by up to eight."""
    words = re.findall(r"\w+|\W+", message)
    assert unshuffled("".join(word * 2 for word in words)) == (message, 2)
    for writers in range(2, 9):
        assert unshuffled(message * writers) == (message, writers)


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
def test_what_is_no_such_text_is_left(text: str) -> None:
    """Rulers, rows of the same word, and texts that differ."""
    assert unshuffled(text) == ("", 0)


def test_a_traceback_written_into_itself_comes_out_once_for_each_writer() -> None:
    """Every line holds both writers' words: the traceback is told, twice, and nobody is named."""
    lines = [
        MESSAGES[3],
        MESSAGES[2],
        "    loss.backward(retain_graph)",
        "RuntimeError: CUDA error: device-side assert triggered",
    ]
    glued = "".join("".join(word * 2 for word in re.findall(r"\w+|\W+", line)) + "\n\n" for line in lines)
    found = block("step 3\n" + glued + "step 4\n", "Traceback", "RuntimeError")
    assert found.lines == tuple(lines)
    assert (found.writers, found.origin.rank, found.ambiguous) == (2, None, False)


def test_a_line_that_two_ranks_share_is_both_ones() -> None:
    """The second's prefix stands in the first's words, and behind it the rest of both."""
    text = text_of(
        "[rank0]: Trace[rank1]: Traceback (most recent call last):back (most recent call last):\n[rank0]: other[rank1]: Traceback\n"
    )
    told = [(line.parsed.origin.rank, line.parsed.text) for line in text.lines_from(0, 1 << 10)]
    assert told == [(0, MESSAGES[3]), (1, MESSAGES[3]), (0, "other"), (1, "Traceback")]


def test_words_that_nothing_takes_apart_are_said_to_be_ambiguous() -> None:
    """Two writers whose texts differ: the line stays as it stands."""
    line = "RuntimeErrorRuntimeError: : rank 3rank 4 failed"
    [found] = blocks(line + "\n", "RuntimeError")
    assert (found.lines, found.ambiguous) == ((line,), True)
    assert is_torn("torch.OutOfMemoryErrortorch.OutOfMemoryError: : x")
    assert not is_torn("RuntimeError: RuntimeError: boom")
    assert [found.ambiguous for found in blocks("RuntimeError: boom\n", "RuntimeError")] == [False]


def test_a_failure_that_the_words_of_another_hide_is_found(tmp_path: Path) -> None:
    """Nothing that is sought stands in the line as it is."""
    message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    (tmp_path / "job.log").write_text(
        "step 3\n" + "".join(word * 2 for word in re.findall(r"\w+|\W", message)) + "\n\n"
    )
    root = triage.ingest([str(tmp_path)]).root_cause
    assert root is not None
    assert (root.signature, root.count, root.ranks) == ("cuda.out-of-memory", 2, ())
