"""triage.ranks.grammars"""

from __future__ import annotations

import pytest

from triage.ranks.grammar import Grammar, start_class
from triage.ranks.grammars import BY_START, GRAMMARS
from triage.ranks.prefix import parse_prefix


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda grammar: grammar.name)
def test_the_example_of_a_grammar_is_parsed_by_it(grammar: Grammar) -> None:
    """The example's first layer is this grammar, not one that is tried before it."""
    assert grammar.example
    assert grammar.since
    assert parse_prefix(grammar.example, 2026).layers[0] == grammar.name
    assert (
        parse_prefix(grammar.example, 2026).opens_record == grammar.is_record
        or len(parse_prefix(grammar.example).layers) > 1
    )


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda grammar: grammar.name)
def test_every_sample_of_a_grammar_is_parsed(grammar: Grammar) -> None:
    """Each sample begins with it, and the parts of its groups are in the origin."""
    assert all(parse_prefix(sample, 2026).layers[0] == grammar.name for sample in grammar.samples)
    origins = [parse_prefix(sample, 2026).origin for sample in grammar.samples]
    assert all(
        any(getattr(origin, key) is not None for origin in origins)
        for key in grammar.origin_parts
        if grammar.name != "slurmstepd"
    )
    assert all(grammar.required_text in sample for sample in grammar.samples)


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda grammar: grammar.name)
def test_a_grammar_is_tried_where_its_example_starts(grammar: Grammar) -> None:
    """Its start classes include that of its example, and all of them exist."""
    assert start_class(grammar.example, 0) in grammar.start_classes
    assert set(grammar.start_classes) <= set(BY_START)


def test_names_of_grammars_are_unique() -> None:
    """A layer is identified by its name."""
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
def test_start_classes(line: str, start: str) -> None:
    """Brackets depend on the next character, and an empty rest is `_`."""
    assert start_class(line, 0) == start
    assert start_class("xy" + line, 2) == start
