"""triage.ranks.grammar"""

from __future__ import annotations

import pytest

from triage.ranks.grammar import START_CLASSES, build_table, make_grammar, start_class


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[1] a", "[d"),
        ("[rank1]", "[a"),
        ("[ 1]", "[_"),
        ("[", "[_"),
        ("2026-11-21 a", "date"),
        ("2026/11/21 a", "date"),
        ("2026", "d"),
        ("20260-11", "d"),
        ("2a26-11", "d"),
        ("1: a", "d"),
        ("node1", "a"),
        ("(pid=1)", "("),
        (" a", "_"),
        ("", "_"),
    ],
)
def test_the_class_of_a_start(line: str, expected: str) -> None:
    """By its first characters, also behind a prefix."""
    assert start_class(line, 0) == expected
    assert start_class(f"0: {line}", 3) == expected
    assert expected in START_CLASSES


def test_a_grammar_is_tried_at_its_starts_only() -> None:
    """In the order in which the grammars are written."""
    one = make_grammar("one", "writer", "habit", "d a", "a: x", r"(?P<rank>\w): ")
    two = make_grammar("two", "record", "habit", "a", ("b", "c"), r"(?P<who>(?P<h>\d\d)(?P<z>Z)): ")
    table = build_table((one, two))
    assert (table["d"], table["a"], table["("]) == ((one,), (one, two), ())
    assert (one.is_writer, one.is_record, one.example, one.samples, one.origin_parts) == (
        True,
        False,
        "a: x",
        ("a: x",),
        ("rank",),
    )
    assert (two.is_writer, two.is_record, two.example, two.has_time, two.has_zone, two.has_writer_group) == (
        *(False, True, "b"),
        *(True, True, True),
    )
    assert (one.has_time, one.has_zone, one.has_writer_group) == (False, False, False)
