from __future__ import annotations

import re

import pytest

from tests.catalog.factories import signature
from triage.catalog.branches import find_groups, is_bound, list_branches, list_certain_captures
from triage.catalog.load import load
from triage.catalog.match import all_leaves

NESTED = r"""
any:
  - text: 'one (?P<a>x)'
  - all:
      - text: 'two (?P<b>x)(?P<c>y)?'
      - any:
          - text: 'three'
          - {kind: exit, fields: {by: '(?P<d>agent)'}}
"""


def test_branches_are_the_ways_to_hold() -> None:
    """Each part of `any` is a branch, and `all` combines the branches of its parts."""
    branches = list_branches(signature(NESTED).match)
    assert [[leaf.text for leaf in branch] for branch in branches] == [
        ["one (?P<a>x)"],
        ["two (?P<b>x)(?P<c>y)?", "three"],
        ["two (?P<b>x)(?P<c>y)?", None],
    ]
    assert [sorted(list_certain_captures(branch)) for branch in branches] == [["a"], ["b"], ["b", "d"]]
    assert list_branches(None) == []


@pytest.mark.parametrize(
    ("pattern", "certain"),
    [
        (r"(?P<x>a)", "x"),
        (r"(?P<x>a)?", ""),
        (r"(?P<x>a)*(?P<y>b)+", "y"),
        (r"(?P<x>a){0,2}(?P<y>b){1,2}", "y"),
        (r"(?P<x>a)|b", ""),
        (r"(?:(?P<x>a)|(?P<y>b)(?P<z>c))", ""),
        (r"(?:(?P<x>a)c|b(?P<x2>d))(?P<y>e)", "y"),
        (r"(?:(?P<x>a) )?(?P<y>b)", "y"),
        (r"(?i)(?P<x>[)?|]+)\)?", "x"),
        (r"(?P<outer>a(?P<inner>b)c)", "inner outer"),
        (r"(?P<outer>a(?P<inner>b)?c)", "outer"),
        (r"(?!(?P<x>a))b(?=(?P<y>c))", "y"),
        (r"\((?P<x>a)\)\?", "x"),
    ],
)
def test_groups_that_take_part_in_every_match(pattern: str, certain: str) -> None:
    """A group that is optional, or in one alternative only, may capture nothing."""
    assert sorted(find_groups(pattern).certain) == certain.split()


def test_the_groups_of_all_shipped_patterns_are_found() -> None:
    """The names are those that the engine itself finds."""
    for one in load().signatures:
        for leaf in all_leaves(one.match):
            if leaf.text and leaf.engine == "re2":
                assert set(find_groups(leaf.text).inner) == set(re.compile(leaf.text).groupindex)


@pytest.mark.parametrize(
    ("inner", "bound"),
    [("12|13", True), ("bad (?:read|write)s?", True), ("[ab]", True), (r"\d+", False), ("[^:]", False), ("a+", False)],
)
def test_bound_is_what_matches_only_listed_texts(inner: str, bound: bool) -> None:
    """A group of a few texts is bound, one with a repeat or an open class is not."""
    assert is_bound(inner) is bound
