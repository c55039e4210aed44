"""Patterns that remember the masks of texts in which they find nothing."""

from __future__ import annotations

import importlib
import pkgutil
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.effort import choose_some
from triage.base.digit_masks import mask_text
from triage.base.masked_re import MaskedPattern, MaskedPatterns, masked_re, widen_digits

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("compare", "diagnose", "evidence", "pipeline", "ranks", "records")


def list_patterns() -> dict[str, MaskedPattern]:
    """Return all such patterns of the rooms that read lines, by their place."""
    patterns: dict[str, MaskedPattern] = {}
    for room in ROOMS:
        package = importlib.import_module(f"triage.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"triage.{room}."):
            values = vars(importlib.import_module(module.name))
            patterns.update((f"{module.name}.{name}", one) for name, value in values.items() for one in _inside(value))
    return patterns


def _inside(value: Any) -> Iterator[MaskedPattern]:
    if isinstance(value, MaskedPattern):
        yield value
    elif isinstance(value, tuple):
        for one in value:
            yield from _inside(one)


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """Return lines of every sample, and the same with other digits."""
    draw = random.Random(1)
    chosen: dict[str, None] = {}
    for path in sorted((ROOT / "samples" / "jobs").rglob("*")):
        if path.is_file() and b"\0" not in (data := path.read_bytes()[: 1 << 18]):
            every = data.decode("utf-8", "replace").split("\n")
            chosen.update(dict.fromkeys(draw.sample(every, min(40, len(every)))))
    changed = [re.sub(r"\d", lambda _: draw.choice("0123456789"), line) for line in chosen]
    assert len(chosen) > 2000
    return [*chosen, *changed]


def test_no_pattern_of_a_line_is_missed(lines: list[str]) -> None:
    """Whatever a pattern finds in a line of the samples, with its own digits or others, its mask may match."""
    patterns = list_patterns()
    assert len(patterns) > 40
    matches = 0
    for name, pattern in patterns.items():
        exact = re.compile(pattern.pattern, pattern._flags)
        for line in choose_some(lines, len(lines) // 3, name):
            match = exact.search(line)
            same = pattern.search(line)
            assert (match and match.span()) == (same and same.span()), (name, line)
            matches += match is not None
    assert matches > 300


@given(st.from_regex(r"[a-cx0-3]{0,12}", fullmatch=True), st.data())
def test_a_wide_pattern_finds_what_the_pattern_finds(text: str, data: st.DataObject) -> None:
    """For patterns drawn from pieces with digits, sets, groups, assertions and repetitions."""
    pieces = ("1", "a", "0x", "[12]", "[^2]", "[^0-9]", r"\d{1,2}", "(?:0|b)", "c?")
    assertions = ("(?!2)", "(?<!1)", "(?!a)", "(?<=3)", "(?=0)", "(?!0x)", "(?<=x)")
    parts = data.draw(st.lists(st.sampled_from(pieces + assertions), max_size=6))
    pattern = r"(\d)" + "".join(parts) + data.draw(st.sampled_from(("", r"\1", r"(?!\1)", "[]0]")))
    assert re.search(pattern, text) is None or re.search(widen_digits(pattern), mask_text(text)) is not None


@pytest.mark.parametrize(
    ("pattern", "wide"),
    [
        (r"\bXid \d{1,18}\b", r"\bXid \d{1,18}\b"),
        (r"status 0\b", r"status \d\b"),
        (r"[1-9][\da-f][]3]", r"[\d1-9][\da-f][]3\d]"),
        (r"a(?!(?:0|no)[1-9])b(?!c)", r"ab(?!c)"),
        (r"(?P<n1>x)(?P=n1)\x41{1,2}(?i:7)", r"(?P<n1>x)(?s:.*)\x41{1,2}(?i:\d)"),
        (r"(\d)/\1(?!\1)(?<=1)(?<=b)", r"(\d)/(?s:.*)(?<=b)"),
        (r"[^,1]", r"(?s:.)"),
    ],
)
def test_digits_become_any_digit(pattern: str, wide: str) -> None:
    """Digits and sets of some are widened; counts, names and escapes stay; assertions that forbid digits go."""
    assert widen_digits(pattern) == wide


def test_equal_digits_may_have_different_masks() -> None:
    """A back-reference finds digits that their places mask in different ways."""
    assert mask_text("00x") == "10x"
    assert masked_re(r"(\d)\1").search("00x")


def test_a_long_text_is_searched_itself() -> None:
    """Texts of more than 2 KiB are not remembered, and found in all the same."""
    pattern = masked_re("no 7")
    assert [pattern.search(end.rjust(2048)) is None for end in ("no 7", "no 8")] == [False, True]
    assert len(pattern._answers) == 1
    assert [pattern.search(end.rjust(2049)) is None for end in ("no 7", "no 8")] == [False, True]
    assert len(pattern._answers) == 1


def test_all_methods_find_the_same() -> None:
    """`finditer`, `findall` and `sub` find what `re` finds, where there is something and where there is nothing."""
    pattern, exact = masked_re(r"rank (\d)"), re.compile(r"rank (\d)")
    for text in ("rank 3, rank 4", "node 3"):
        assert [match.span() for match in pattern.finditer(text)] == [match.span() for match in exact.finditer(text)]
        assert pattern.findall(text) == exact.findall(text)
        assert pattern.sub("r", text) == exact.sub("r", text)


@pytest.mark.parametrize("length", [2048, 2049])
def test_several_patterns_are_asked_at_once(length: int) -> None:
    """Those that are found come in order with their matches, in texts that are remembered and in longer ones."""
    patterns = MaskedPatterns([masked_re("rank 3"), masked_re("node"), masked_re(r"rank \d")])
    for end, numbers in (("rank 3", [0, 2]), ("rank 4", [2]), ("node 3", [1]), ("x", [])):
        assert [number for number, _ in patterns.search(end.rjust(length))] == numbers
        assert [match.group() in end for _, match in patterns.search(end.rjust(length))] == [True] * len(numbers)


def test_candidates_are_the_patterns_that_other_digits_may_match() -> None:
    """They come in order; in a text that is too long to remember all are candidates."""
    patterns = [masked_re("rank 3"), masked_re("node"), masked_re(r"rank \d")]
    several = MaskedPatterns(patterns)
    assert several.list_candidates("rank 4") == [patterns[0], patterns[2]]
    assert several.list_candidates("x") == []
    assert several.list_candidates("x" * 2049) == patterns
