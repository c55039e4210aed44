"""A derived pattern matches all the lines that it was made of, and says in captures what differs between them."""

from __future__ import annotations

import re2
from hypothesis import example, given, settings
from hypothesis import strategies as st

from triage.catalog.derive import derive

WORDS = st.sampled_from(
    [
        "shard",
        "17",
        "0x7f",
        "0xdeadbeef",
        "10.0.0.1:29500",
        "/data/x/y.bin",
        "a1b2c3d4e5",
        "failed",
        "rank",
        "3",
        "(",
        ")",
        "[x]",
        "1.5e-3",
        "errno",
        "28",
        "é",
        "  ",
    ]
)
LINES = st.lists(st.lists(WORDS, min_size=1, max_size=12).map(" ".join).filter(str.strip), min_size=1, max_size=6)


def matches(pattern: str, line: str) -> dict[str, str] | None:
    found = re2.search(pattern, line)
    return None if found is None else {name: value for name, value in found.groupdict().items() if value is not None}


@settings(deadline=None)
@given(LINES)
def test_every_line_is_matched(lines: list[str]) -> None:
    """Whatever the lines are, in RE2's dialect."""
    pattern = derive(lines).pattern
    assert [line for line in lines if matches(pattern, line) is None] == []


@settings(deadline=None)
@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), min_size=1, max_size=60).filter(str.strip),
        min_size=1,
        max_size=4,
    )
)
@example(["\U000112f0"])  # a digit to Python, none to RE2
def test_any_text_is_matched(lines: list[str]) -> None:
    """Signs that mean something in a pattern mean themselves."""
    pattern = derive([line.strip() for line in lines]).pattern
    assert [line for line in lines if matches(pattern, line.strip()) is None] == []


def test_what_differs_becomes_a_capture_called_after_the_word_before() -> None:
    """Numbers, addresses and paths are opened, words stay."""
    derived = derive(["ValueError: shard 7 of /data/a/b.bin is bad", "ValueError: shard 123 of /data/c.bin/d is bad"])
    assert derived.pattern == r"^ValueError: shard (?P<shard>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?) of (?P<path>/\S+) is bad"
    assert derived.captures == {"shard": "7", "path": "/data/a/b.bin"}


def test_codes_that_all_lines_share_stay() -> None:
    """Errno 28 is not Errno 5; but of one line nobody knows what is constant."""
    lines = [f"OSError: [Errno 28] No space left on device: '/data/{name}/x.pt'" for name in ("a", "b", "c")]
    pattern = derive(lines).pattern
    assert matches(pattern, lines[0].replace("/data/a/x.pt", "/scratch/y/z")) is not None
    assert matches(pattern, lines[0].replace("28", "5")) is None
    assert matches(derive(lines[:1]).pattern, lines[0].replace("28", "5")) is not None


def test_another_cause_in_the_same_words_is_not_matched() -> None:
    """The words of the members are asked for."""
    pattern = derive([f"NCCL call {number} failed: connection refused" for number in range(5)]).pattern
    assert matches(pattern, "NCCL call 9 failed: no route to host") is None


def test_words_that_only_some_lines_have_are_a_gap() -> None:
    """A version that says more is still the same failure."""
    derived = derive(["tokenizer file is gone", "tokenizer file vocab is gone"])
    assert matches(derived.pattern, "tokenizer file merges is gone") is not None
    assert matches(derived.pattern, "tokenizer is gone") is None
