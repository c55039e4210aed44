"""The room as a whole: pasted text becomes facts, and shapes are bounded."""

from __future__ import annotations

from hypothesis import given, strategies as st

from triage.evidence import EXTRACTORS, TRIGGERS, extract_text, message
from triage.evidence.extractor import EXCERPT_LINES, TEXT_CHARACTERS, shorten

PIECES = st.sampled_from(
    [
        "Traceback (most recent call last):",
        '  File "/w/a.py", line 3, in f',
        "ValueError: bad",
        "During handling of the above exception, another exception occurred:",
        "  + Exception Group Traceback (most recent call last):",
        "  | ",
        "  +-+---------------- 1 ----------------",
        "    +------------------------------------",
        "exitcode  : -9 (pid: 3)  (SIGKILL)",
        "  rank      : 3 (local_rank: 1)",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "  traceback : Traceback (most recent call last):",
        "=" * 60,
        "[0]:",
        "[rank3]: x",
        "[default1]:[rank1]: Traceback (most recent call last):",
        "terminate called after throwing an instance of 'x'",
        "Fatal Python error: Segmentation fault",
        "node1:1:2 [0] x.cc:1 NCCL WARN a",
        "srun: error: node1: tasks 0-1: Killed",
        "EI0002: x",
        "",
        "\r",
    ]
)


@given(st.lists(PIECES | st.text(max_size=40), max_size=30))
def test_no_text_is_too_odd(lines: list[str]) -> None:
    """Pieces of failures in any order and any text between them give facts, with offsets inside the text, and never an
    error.
    """
    text = "\n".join(lines)
    size = len(text.encode("utf-8", "replace"))
    for fact in extract_text(text):
        assert 0 <= fact.offset <= fact.end <= size
        assert fact.kind
        assert fact.component
        assert fact.count >= 1


@given(st.lists(PIECES, min_size=1, max_size=12))
def test_from_text_gives_the_same_facts_again(lines: list[str]) -> None:
    """The facts of a text are those of the same text, and what they say stands in it."""
    text = "\n".join(lines)
    assert extract_text(text) == extract_text(text)
    parts = set(text.split())
    for fact in extract_text(text):
        if fact.kind == "message" and len(fact.text.splitlines()) == 1:
            assert set(fact.text.split()) <= parts


def test_the_last_speaker_takes_whatever_is_left() -> None:
    """Every line that was asked for becomes a fact: the list ends with the speaker that refuses nothing."""
    assert EXTRACTORS[-1] is message.extract
    assert extract_text("nobody knows this line")[0].component == "app"


def test_triggers_can_be_scanned_for() -> None:
    """Each is at least four bytes, ASCII and there once, so that the scan can look for it."""
    assert len(set(TRIGGERS)) == len(TRIGGERS)
    assert all(trigger.isascii() and len(trigger) >= 4 for trigger in TRIGGERS)


def test_texts_are_bounded() -> None:
    """A message of a megabyte is cut, and a long excerpt keeps its two ends."""
    (fact,) = extract_text(
        "[rank0]: Traceback (most recent call last):\n" + "[rank0]: ValueError: " + "x" * 1_000_000 + "\n"
    )
    assert len(fact.text) <= TEXT_CHARACTERS
    shown = shorten(tuple(f"line {n}" for n in range(1000)))
    assert len(shown) <= EXCERPT_LINES
    assert (shown[0], shown[-1]) == ("line 0", "line 999")
