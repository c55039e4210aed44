"""triage.ranks.grammars"""

from __future__ import annotations

import pytest

from triage.ranks.grammars import BY_START, GRAMMARS, Grammar, start_class
from triage.ranks.prefix import parse


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda grammar: grammar.name)
def test_the_example_of_a_grammar_is_recognised_by_it(grammar: Grammar) -> None:
    """The example's first layer is this grammar and no other that is tried before it."""
    assert grammar.example
    assert grammar.since
    assert parse(grammar.example, 2026).layers[0] == grammar.name
    assert parse(grammar.example, 2026).record == grammar.record or len(parse(grammar.example).layers) > 1


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda grammar: grammar.name)
def test_every_sample_of_a_grammar_is_taken_off(grammar: Grammar) -> None:
    """Each sample begins with it, and what its groups say of the writer arrives."""
    assert all(parse(sample, 2026).layers[0] == grammar.name for sample in grammar.samples)
    told = [parse(sample, 2026).origin for sample in grammar.samples]
    assert all(
        any(getattr(origin, key) is not None for origin in told) for key in grammar.says if grammar.name != "slurmstepd"
    )
    assert all(grammar.needs in sample for sample in grammar.samples)


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda grammar: grammar.name)
def test_a_grammar_is_tried_where_its_example_starts(grammar: Grammar) -> None:
    """The start classes name the way the example starts, and only classes that exist."""
    assert start_class(grammar.example, 0) in grammar.starts
    assert set(grammar.starts) <= set(BY_START)


def test_names_of_grammars_are_unique() -> None:
    """A layer is known by its name."""
    assert len({grammar.name for grammar in GRAMMARS}) == len(GRAMMARS)


@pytest.mark.parametrize(
    ("line", "start"),
    [
        ("[3", "[d"),
        ("[r", "[a"),
        ("[ 3", "[_"),
        ("[", "[_"),
        ("3:", "d"),
        ("x", "a"),
        (" 3:", "_"),
        ("", "_"),
        ("<6>", "_"),
    ],
)
def test_lines_are_sorted_by_how_they_start(line: str, start: str) -> None:
    """Brackets are looked into, an empty rest belongs to the others."""
    assert start_class(line, 0) == start
    assert start_class("xy" + line, 2) == start
