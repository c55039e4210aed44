from __future__ import annotations

import random
import re
import time
from dataclasses import replace
from unittest import mock

import pytest
from hypothesis import given, settings, strategies as st

from tests.catalog.factories import evidence, signature
from triage.catalog import match as match_module
from triage.catalog.literal_selection import assign_literals
from triage.catalog.match import (
    Matcher,
    MatchPlan,
    evaluate_signature,
    explain_clauses,
    find_matcher,
    remember_last,
)
from triage.catalog.model import Catalog, Leaf, Signature


def matcher(*signatures: Signature) -> Matcher:
    equipped, literals, _ = assign_literals(signatures, "")
    return Matcher(Catalog("1", tuple(equipped), literals))


def test_a_leaf_needs_all_its_keys() -> None:
    """kind, component, text, not_text and fields are joined by and."""
    case = signature(
        "kind: exception\ncomponent: Python\ntext: 'out of memory'\nnot_text: 'retried'\n"
        "fields: {type: 'RuntimeError|OOM'}"
    )
    good = evidence("CUDA out of memory", "exception", "Python", type="OOM")
    assert evaluate_signature(case, [good]) is not None
    for bad in (
        evidence("CUDA out of memory", "message", "Python", type="OOM"),
        evidence("CUDA out of memory", "exception", "C++", type="OOM"),
        evidence("CUDA is out", "exception", "Python", type="OOM"),
        evidence("CUDA out of memory, retried", "exception", "Python", type="OOM"),
        evidence("CUDA out of memory", "exception", "Python", type="OOMError"),
        evidence("CUDA out of memory", "exception", "Python"),
    ):
        assert evaluate_signature(case, [bad]) is None


def test_any_is_the_union() -> None:
    """`any` holds with one part, and its evidence is that of all parts in order."""
    case = signature("any:\n  - text: 'alpha'\n  - text: 'beta'")
    match = evaluate_signature(case, [evidence("beta"), evidence("gamma"), evidence("alpha"), evidence("beta")])
    assert match is not None
    assert match.indices == (0, 2, 3)


def test_all_needs_every_part_somewhere() -> None:
    """`all` holds only if each part has a hit in the job, on whatever evidence."""
    case = signature("all:\n  - text: 'alpha'\n  - text: 'beta'")
    assert evaluate_signature(case, [evidence("alpha")]) is None
    match = evaluate_signature(case, [evidence("beta"), evidence("x"), evidence("alpha")])
    assert match is not None
    assert match.indices == (0, 2)


def test_context_must_exist_but_is_no_evidence() -> None:
    """A context leaf is required and captures, but its evidence counts only where another leaf matches it too."""
    case = signature("all:\n  - text: 'alpha'\n  - {text: 'beta (?P<limit>[0-9]+)', context: true}")
    assert evaluate_signature(case, [evidence("alpha")]) is None
    assert evaluate_signature(case, [evidence("beta 7")]) is None
    match = evaluate_signature(case, [evidence("beta 7"), evidence("alpha"), evidence("alpha beta 8")])
    assert match is not None
    assert match.indices == (1, 2)
    assert match.values == {"limit": ("7", "8")}
    assert ("  text /beta (?P<limit>[0-9]+)/, only as context", True, 2) in match.clauses


def test_none_drops_evidence() -> None:
    """Evidence that a `none` leaf matches does not count, neither for `any` nor for a part of `all`."""
    case = signature("any:\n  - text: 'alpha'\nnone:\n  - text: 'harmless'")
    match = evaluate_signature(case, [evidence("alpha harmless"), evidence("alpha")])
    assert match is not None
    assert match.indices == (1,)
    assert evaluate_signature(case, [evidence("alpha harmless")]) is None
    both = signature("all:\n  - text: 'alpha'\n  - text: 'beta'\nnone:\n  - text: 'harmless'")
    assert evaluate_signature(both, [evidence("alpha harmless"), evidence("beta")]) is None


def test_none_beside_a_leaf() -> None:
    """`none` may stand beside the keys of a leaf."""
    case = signature("text: 'alpha'\nnone:\n  - {component: teardown}")
    assert evaluate_signature(case, [evidence("alpha")]) is not None
    assert evaluate_signature(case, [evidence("alpha", component="teardown")]) is None


def test_nesting() -> None:
    """any and all nest."""
    case = signature("all:\n  - text: 'alpha'\n  - any:\n      - text: 'beta'\n      - text: 'gamma'")
    assert evaluate_signature(case, [evidence("alpha"), evidence("gamma")]) is not None
    assert evaluate_signature(case, [evidence("gamma"), evidence("beta")]) is None


def test_the_first_capture_wins() -> None:
    """captures has the first value in the order of the evidence, values all different ones."""
    case = signature(r"any:" "\n" r"  - text: 'peer (?P<peer>\d+)(?: port (?P<port>\d+))?'")
    match = evaluate_signature(case, [evidence("peer 3"), evidence("peer 1 port 7"), evidence("peer 3")])
    assert match is not None
    assert match.captures == {"peer": "3", "port": "7"}
    assert match.values == {"peer": ("3", "1"), "port": ("7",)}


def test_fields_capture_too() -> None:
    """Named groups of field patterns are captures, and a field must match as a whole."""
    case = signature(r"kind: exit" "\n" r"fields: {exitcode: '-(?P<signal>\d+)'}")
    match = evaluate_signature(case, [evidence("", "exit", exitcode="-9")])
    assert match is not None
    assert match.captures == {"signal": "9"}
    assert evaluate_signature(case, [evidence("", "exit", exitcode="x-9")]) is None


def test_clauses_show_what_held() -> None:
    """Each part has a line with whether it held and how often; equal evidence counts each time."""
    case = signature("any:\n  - text: 'alpha'\n  - text: 'beta'\nnone:\n  - text: 'harmless'")
    match = evaluate_signature(case, [evidence("alpha"), evidence("alpha"), evidence("alpha harmless")])
    assert match is not None
    assert match.clauses == (
        ("at least one of these 2", True, 2),
        ("  text /alpha/", True, 3),
        ("  text /beta/", False, 0),
        ("  none: text /harmless/", False, 1),
    )
    assert explain_clauses(case, [evidence("x")])[0] == ("at least one of these 2", False, 0)


def test_guides_and_deprecated_signatures_do_not_match() -> None:
    """A Matcher leaves deprecated signatures and guides alone; evaluate answers for any."""
    old = signature("text: 'alpha'", status="deprecated")
    guide = Signature("test.guide", 1, "A guide", "stable", "guide", "info", None)
    assert matcher(old, guide).evaluate([evidence("alpha")]) == {}
    assert evaluate_signature(old, [evidence("alpha")]) is not None
    assert evaluate_signature(guide, [evidence("alpha")]) is None
    assert explain_clauses(guide, [evidence("alpha")]) == ()


def test_invalid_unicode_is_matched() -> None:
    """Surrogates and NUL in a text neither raise nor hide a match."""
    case = signature("text: 'alpha (?P<rest>.+)'")
    match = matcher(case).evaluate([evidence("\udcff\x00 alpha \ud800é")])["test.case"]
    assert match.captures == {"rest": "?é"}


def test_hostile_texts_do_not_hang() -> None:
    """A pattern that would backtrack for years is matched at once."""
    case = signature("text: '(x+x+)+y abcd'")
    start = time.perf_counter()
    assert evaluate_signature(case, [evidence("x" * 100_000)]) is None
    assert time.perf_counter() - start < 2


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text("abcdeé \n", max_size=30), max_size=12))
def test_the_matcher_agrees_with_evaluate(texts: list[str]) -> None:
    """Testing only leaves whose literals occur gives the same as testing all leaves."""
    cases = [
        signature("any:\n  - text: 'abcd'\n  - text: 'e{2}.*é é'", "test.one"),
        signature("all:\n  - text: 'a+bc d'\n  - text: '(dead|beef|café)'", "test.two"),
        signature("any:\n  - text: 'bcde'\nnone:\n  - text: 'a'", "test.three"),
    ]
    given_evidence = [evidence(text) for text in texts]
    expected = {
        case.id: result
        for case in sorted(cases, key=lambda c: c.id)
        if (result := evaluate_signature(case, given_evidence))
    }
    assert matcher(*cases).evaluate(given_evidence) == expected


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.text("abé(.[*\\", min_size=1, max_size=4), min_size=1, max_size=8, unique=True),
    st.text("abé(.[*\\ ", max_size=40),
)
def test_the_automaton_finds_all_literals(literals: list[str], text: str) -> None:
    """The leaves whose literal occurs in the text are found, and no others, before and after the automaton is built."""
    leaves = tuple(
        Signature(f"t.s{n}", 1, "", "stable", "either", "error", Leaf(text="x", literals=(lit,)))
        for n, lit in enumerate(literals)
    )
    from triage.catalog.distinct_evidence import group_evidence

    masked = group_evidence([evidence(text)])[0].bytes
    with mock.patch.object(match_module, "TEXTS_BEFORE_AUTOMATON", 2):
        plan = MatchPlan(leaves)
        for _ in range(3):
            result = plan._candidates(masked, "message")
            assert result == {number for number, literal in enumerate(literals) if literal in text}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text("a127 ", max_size=12), max_size=10))
def test_patterns_with_digits_match_only_their_own(texts: list[str]) -> None:
    """Texts that differ only in digits share their tests, except for patterns with literal digits."""
    cases = [
        signature("text: 'a1 a\\d'", "test.one"),
        signature("any:\n  - text: 'a2(?P<rest>.*)'\n  - text: '7a a'", "test.three"),
        signature("text: 'a\\d\\da'", "test.two"),
    ]
    given_evidence = [evidence(text) for text in texts]
    expected = {case.id: result for case in cases if (result := evaluate_signature(case, given_evidence))}
    assert matcher(*cases).evaluate(given_evidence) == expected
    assert {index for result in expected.values() for index in result.indices} == {
        index for index, text in enumerate(texts) if re.search(r"a1 a\d|a2|7a a|a\d\da", text)
    }


def test_matching_works_without_the_automaton(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the literals do not fit into RE2's memory, matching is slower with the same result."""
    case = signature("any:\n  - text: 'alpha é'\n  - text: 'beta'")
    monkeypatch.setattr(match_module, "LITERAL_MEMORY", 1)
    monkeypatch.setattr(match_module, "TEXTS_BEFORE_AUTOMATON", 1)
    result = matcher(case).evaluate([evidence("x"), evidence("alpha é"), evidence("beta")])
    assert result["test.case"].indices == (1, 2)


def test_matching_is_fast() -> None:
    """5,000 pieces of evidence over 300 signatures take less than 1.5 seconds."""
    cases = [
        signature(
            f"any:\n  - text: 'failure {n:03d} of part (?P<part>\\d+)'\n  - text: 'refused by unit {n:03d}'",
            f"test.s{n}",
        )
        for n in range(300)
    ]
    ready = matcher(*cases)
    choose = random.Random(1).randrange
    items = [evidence(f"node{i}: failure {choose(400):03d} of part {i} " + "context " * 20) for i in range(5000)]
    start = time.process_time()
    result = ready.evaluate(items)
    assert time.process_time() - start < 1.5
    assert len(result) > 250


def test_the_last_result_is_remembered() -> None:
    """An equal argument gives the same object without a call; another one is built, and takes its place."""
    calls: list[tuple[str, ...]] = []

    def build(argument: tuple[str, ...]) -> list[str]:
        calls.append(argument)
        return list(argument)

    build_once = remember_last(build)
    first = build_once(("a", "b"))
    assert build_once(tuple("ab")) is first
    assert build_once(("a",)) == ["a"]
    assert build_once(("a", "b")) == first
    assert calls == [("a", "b"), ("a",), ("a", "b")]


def test_a_changed_catalog_has_another_matcher() -> None:
    """The matcher of a catalog serves an equal one; one changed pattern is enough for a new one."""
    one, other = (Catalog("", (signature(f"text: {text}"),)) for text in ("alpha", "beta"))
    assert find_matcher(one) is find_matcher(replace(one))
    assert find_matcher(other).evaluate([evidence("alpha"), evidence("beta")])["test.case"].indices == (1,)
    assert find_matcher(one).evaluate([evidence("alpha"), evidence("beta")])["test.case"].indices == (0,)
