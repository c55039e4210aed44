"""All prefix grammars treat all digits alike: that is why a prefix is found once for lines that differ in digits."""

from __future__ import annotations

import re
import re._constants as constants
import re._parser as parser
from typing import Any

import pytest

from triage.ranks import file_prefixes, grammars
from triage.ranks.grammar import Grammar

DIGITS = frozenset(range(ord("0"), ord("9") + 1))


def decides_by_digit(node: Any) -> bool:
    """Whether a parsed pattern tells one digit from another."""
    return any(_item_decides(kind, value) for kind, value in node)


def _item_decides(kind: Any, value: Any) -> bool:
    if kind in (constants.LITERAL, constants.NOT_LITERAL):
        return value in DIGITS
    if kind is constants.IN:
        members = {code for item in value for code in _members(*item)} & DIGITS
        return bool(members) and members != DIGITS
    if kind in (constants.GROUPREF, constants.GROUPREF_EXISTS):
        return kind is constants.GROUPREF
    parts = value if isinstance(value, (tuple, list)) else (value,)
    return any(_part_decides(part) for part in parts)


def _part_decides(part: Any) -> bool:
    if isinstance(part, parser.SubPattern):
        return decides_by_digit(part)
    return isinstance(part, (tuple, list)) and any(_part_decides(inner) for inner in part)


def _members(kind: Any, value: Any) -> set[int]:
    if kind is constants.LITERAL:
        return {value}
    if kind is constants.RANGE:
        return set(range(value[0], value[1] + 1))
    return set(DIGITS) if (kind is constants.CATEGORY and "DIGIT" in str(value)) or "WORD" in str(value) else set()


ALL: tuple[Grammar, ...] = (
    *grammars.GRAMMARS,
    *(entry.grammar for entry in (*file_prefixes.FILE_PREFIXES, *file_prefixes.PROGRAM_TAGS)),
)


@pytest.mark.parametrize("grammar", ALL, ids=lambda grammar: grammar.name)
def test_no_grammar_tells_digits_apart(grammar: Grammar) -> None:
    """Neither the pattern nor the quick check of a grammar names a digit."""
    assert not decides_by_digit(parser.parse(grammar.pattern.pattern))
    assert not re.search(r"\d", grammar.required_text)


@pytest.mark.parametrize("pattern", [r"rank 0", r"[0-3]\d", r"(\d)x\1", r"(?:a|(?=1))", r"[^5]", r"x{2}7", r"(?!9)a"])
def test_a_digit_in_a_pattern_is_seen(pattern: str) -> None:
    """A literal digit, a part of the digits and a repetition of a group are noticed wherever they stand."""
    assert decides_by_digit(parser.parse(pattern))


@pytest.mark.parametrize("pattern", [r"rank \d{1,18}", r"[\w.-]+", r"[0-9a-f]", r"[^\s:]", r"a{2,3}", r"(?P<a>x)?"])
def test_all_digits_alike_are_no_digit(pattern: str) -> None:
    """Classes with all digits, counts and groups tell no digits apart."""
    assert not decides_by_digit(parser.parse(pattern))
