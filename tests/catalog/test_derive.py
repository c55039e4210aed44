"""A derived pattern matches all the lines it was derived from, and captures what differs between them."""

from __future__ import annotations

import re2
from hypothesis import example, given, settings, strategies as st

from triage.catalog.derive import derive_pattern

PARTS = st.sampled_from(
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
LINES = st.lists(st.lists(PARTS, min_size=1, max_size=12).map(" ".join).filter(str.strip), min_size=1, max_size=6)


def matches(pattern: str, line: str) -> dict[str, str] | None:
    match = re2.search(pattern, line)
    return None if match is None else {name: value for name, value in match.groupdict().items() if value is not None}


@settings(deadline=None)
@given(LINES)
def test_every_line_is_matched(lines: list[str]) -> None:
    """The pattern is in RE2's dialect and matches all lines it was derived from."""
    pattern = derive_pattern(lines)
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
    """Special characters of patterns are escaped."""
    pattern = derive_pattern([line.strip() for line in lines])
    assert [line for line in lines if matches(pattern, line.strip()) is None] == []


def test_variable_tokens_become_captures() -> None:
    """Numbers, addresses and paths become captures named after the word before them; words stay."""
    pattern = derive_pattern(
        ["ValueError: shard 7 of /data/a/b.bin is bad", "ValueError: shard 123 of /data/c.bin/d is bad"]
    )
    assert pattern == r"^ValueError: shard (?P<shard>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?) of (?P<path>/\S+) is bad"
    assert matches(pattern, "ValueError: shard 7 of /data/a/b.bin is bad") == {"shard": "7", "path": "/data/a/b.bin"}


def test_codes_shared_by_all_lines_stay() -> None:
    """Errno 28 is not Errno 5; from a single line it is open what is constant."""
    lines = [f"OSError: [Errno 28] No space left on device: '/data/{name}/x.pt'" for name in ("a", "b", "c")]
    pattern = derive_pattern(lines)
    assert matches(pattern, lines[0].replace("/data/a/x.pt", "/scratch/y/z")) is not None
    assert matches(pattern, lines[0].replace("28", "5")) is None
    assert matches(derive_pattern(lines[:1]), lines[0].replace("28", "5")) is not None


def test_different_words_do_not_match() -> None:
    """The pattern requires the words of the lines."""
    pattern = derive_pattern([f"NCCL call {number} failed: connection refused" for number in range(5)])
    assert matches(pattern, "NCCL call 9 failed: no route to host") is None


def test_words_of_some_lines_become_a_gap() -> None:
    """A line with more words still matches; one without the shared words does not."""
    pattern = derive_pattern(["tokenizer file is gone", "tokenizer file vocab is gone"])
    assert matches(pattern, "tokenizer file merges is gone") is not None
    assert matches(pattern, "tokenizer is gone") is None
