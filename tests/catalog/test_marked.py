from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.catalog.marked import MAX_DEPTH, parse


def remarks(text: str) -> str:
    return "\n".join(f"{line}:{column}: {message} ({hint})" for (line, column), message, hint in parse(text).remarks)


def test_plain_scalars_stay_text() -> None:
    """no, 1e3, -9 and 12:30 mean what they look like; only null and nothing are None."""
    found = parse("a: no\nb: 1e3\nc: -9\nd: 12:30\ne: ~\nf:\ng: 'null'\nh: 0x1F\n").value
    assert found == {"a": "no", "b": "1e3", "c": "-9", "d": "12:30", "e": None, "f": None, "g": "null", "h": "0x1F"}


def test_places_are_those_of_keys_and_items() -> None:
    """Each path knows line and column, and what does not exist is at what is around it."""
    found = parse("a:\n  b:\n    - x\n    - y: 1\n")
    assert found.place(("a", "b")) == (2, 3)
    assert found.place(("a", "b", 1, "y")) == (4, 7)
    assert found.place(("a", "b", 9, "q")) == (2, 3)
    assert found.place(("zzz",)) == (1, 1)


def test_duplicate_keys_are_each_reported() -> None:
    """Every key that is given twice is named with its place, and reading goes on."""
    found = parse("a: 1\na: 2\nb: {c: 1, c: 2}\n")
    assert [place for place, _, _ in found.remarks] == [(2, 1), (3, 11)]
    assert found.value == {"a": "2", "b": {"c": "2"}}


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a:\n\t- b\n", "2:1", "tabs"),
        ("a: b: c\n", "1:5", "single quotes"),
        ('a: "\\d+"\n', "1:5", "single quotes"),
        ("a: [1, 2\n", "2:1", "quotes"),
        ("a: &x 1\nb: 2\n", "1:4", "anchors"),
        ("a: *x\n", "1:4", "anchors"),
        ("a: !!python/object/apply:os.system ['true']\n", "1:4", "tags"),
        ("a: 1\n---\nb: 2\n", "2:1", "more than one document"),
        ("? [a]\n: 1\n", "1:3", "not a plain text"),
        ("", "1:1", "empty"),
        ("# nothing\n", "2:1", "empty"),
        ("a: \x00\n", "1:", "control"),
    ],
)
def test_errors_have_place_and_remedy(text: str, place: str, words: str) -> None:
    """What cannot be read is reported with line, column and how to mend it."""
    found = remarks(text)
    assert found.startswith(place)
    assert words in found


def test_alias_bombs_are_refused() -> None:
    """A file of nested aliases is refused at its first anchor, at once and in little memory."""
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    found = parse("\n".join(lines))
    assert found.value is None
    assert "anchors and aliases" in found.remarks[0][1]


@pytest.mark.parametrize("text", ["[" * 100_000, "a: " + "{a: " * 5000, "- " * 50_000, "[" * 500 + "]" * 500])
def test_deep_nesting_is_refused(text: str) -> None:
    """However deep a file nests, it is refused by a remark."""
    found = parse(text)
    assert found.value is None
    assert found.remarks


def test_depth_that_signatures_need_is_allowed() -> None:
    """The limits are far from what a signature needs."""
    depth = MAX_DEPTH - 2
    assert parse("a: " + "[" * depth + "]" * depth).remarks == []


@settings(max_examples=300, deadline=None)
@given(st.text("abc:-[]{}&*!|>'\"#%@`\t\n ,?0é\x00\ufeff", max_size=60))
def test_nothing_raises(text: str) -> None:
    """Any text gives a value or a remark, never an exception."""
    found = parse(text)
    assert found.value is not None or found.remarks or text.strip()
