from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, strategies as st

from triage.render.sanitize import clip, sanitize, sanitize_line

from .factories import texts

BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
any_text = st.one_of(texts, st.text(), st.text(st.characters(categories=["Cs", "Cc", "Cf"])))


@given(any_text)
def test_no_terminal_control_is_left(text: str) -> None:
    """No control but the line end, no bidirectional control, no surrogate survives."""
    for character in sanitize(text):
        assert character == "\n" or unicodedata.category(character) not in ("Cc", "Cs")
        assert character not in BIDI


@given(any_text)
def test_safe_text_stays_as_it_is(text: str) -> None:
    """Cleaning twice is cleaning once."""
    assert sanitize(sanitize(text)) == sanitize(text)
    assert sanitize_line(sanitize_line(text)) == sanitize_line(text)


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_plain_text_is_untouched(text: str) -> None:
    """Printable ASCII comes out byte for byte."""
    assert sanitize(text) == text


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]52;c;ZXZpbA==\x1b\\after", "after"),
        ("\x1b]8;;https://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jx", "x"),
        ("\x1bPq data\x1b\\x", "x"),
        ("a\tb", "a    b"),
        ("10%\r20%\r\ndone", "10%\n20%\ndone"),
        ("open \x1b]0;never closed\nnext line", "open \nnext line"),
        ("a\u202eb", "ab"),
        ("\ud800", "\ufffd"),
        ("训练失败", "训练失败"),
    ],
)
def test_known_attacks(raw: str, cleaned: str) -> None:
    """Colours, titles, clipboard writes, hyperlinks, clearing, reordering are taken out and the words stay."""
    assert sanitize(raw) == cleaned


def test_a_hostile_megabyte_is_quick() -> None:
    """Openings of sequences that never close take linear time."""
    assert sanitize("\x1b]" * 500_000) == ""
    assert sanitize("\x1b[" + "0;" * 500_000) == ""


@given(texts, st.integers(0, 80))
def test_clipped_text_fits(text: str, limit: int) -> None:
    """No result is longer than the limit, and short text is not changed."""
    assert len(clip(text, limit)) <= limit
    assert clip(text, len(text)) == text


@given(st.integers(100, 5000), st.integers(60, 99))
def test_the_count_of_a_clip_is_true(length: int, limit: int) -> None:
    """What is shown and the count of what is not make up the whole."""
    text = "x" * length
    short = clip(text, limit)
    match = re.search(r"(\d+) more characters", short)
    assert match
    assert short.count("x") + int(match[1]) == length
