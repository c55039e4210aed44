from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from triage.catalog.yaml_document import MAX_DEPTH, parse_yaml


def remarks(text: str) -> str:
    return "\n".join(
        f"{line}:{column}: {message} ({hint})" for (line, column), message, hint in parse_yaml(text).remarks
    )


def test_plain_scalars_stay_text() -> None:
    """no, 1e3, -9 and 12:30 are texts; only null and nothing are None."""
    result = parse_yaml("a: no\nb: 1e3\nc: -9\nd: 12:30\ne: ~\nf:\ng: 'null'\nh: 0x1F\n").value
    assert result == {"a": "no", "b": "1e3", "c": "-9", "d": "12:30", "e": None, "f": None, "g": "null", "h": "0x1F"}


def test_positions_are_those_of_keys_and_items() -> None:
    """Each path has line and column; a missing one has those of its parent."""
    result = parse_yaml("a:\n  b:\n    - x\n    - y: 1\n")
    assert result.locate(("a", "b")) == (2, 3)
    assert result.locate(("a", "b", 1, "y")) == (4, 7)
    assert result.locate(("a", "b", 9, "q")) == (2, 3)
    assert result.locate(("zzz",)) == (1, 1)


def test_duplicate_keys_are_each_reported() -> None:
    """Every repeated key is reported with its position, and reading continues."""
    result = parse_yaml("a: 1\na: 2\nb: {c: 1, c: 2}\n")
    assert [place for place, _, _ in result.remarks] == [(2, 1), (3, 11)]
    assert result.value == {"a": "2", "b": {"c": "2"}}


@pytest.mark.parametrize(
    ("text", "place", "expected_text"),
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
def test_errors_have_position_and_hint(text: str, place: str, expected_text: str) -> None:
    """A file that cannot be read is reported with line, column and a hint."""
    result = remarks(text)
    assert result.startswith(place)
    assert expected_text in result


def test_alias_bombs_are_refused() -> None:
    """A file of nested aliases is refused at its first anchor."""
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    result = parse_yaml("\n".join(lines))
    assert result.value is None
    assert "anchors and aliases" in result.remarks[0][1]


@pytest.mark.parametrize("text", ["[" * 100_000, "a: " + "{a: " * 5000, "- " * 50_000, "[" * 500 + "]" * 500])
def test_deep_nesting_is_refused(text: str) -> None:
    """Any depth of nesting is refused by a remark."""
    result = parse_yaml(text)
    assert result.value is None
    assert result.remarks


def test_moderate_depth_is_allowed() -> None:
    """The limits are far from what a signature needs."""
    depth = MAX_DEPTH - 2
    assert parse_yaml("a: " + "[" * depth + "]" * depth).remarks == []


@settings(max_examples=300, deadline=None)
@given(st.text("abc:-[]{}&*!|>'\"#%@`\t\n ,?0é\x00\ufeff", max_size=60))
def test_nothing_raises(text: str) -> None:
    """Any text gives a value or a remark, never an exception."""
    result = parse_yaml(text)
    assert result.value is not None or result.remarks or text.strip()
