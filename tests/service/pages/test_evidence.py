"""The evidence on the page of an incident: whose line it is, and what is quoted of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from triage.model import Diagnosis, Evidence, Finding, Job, Origin
from triage.service.pages.evidence import MAX_LINES, Fact, list_facts

TRACEBACK = ("Traceback (most recent call last):", '  File "a.py", line 3, in step', "KeyError: 'x'")


def facts_of(*evidence: Evidence, lines: tuple[str, ...] = ()) -> tuple[Fact, ...]:
    """Return what the page shows of a root cause with this evidence, where the file `log` has these lines."""
    root = Finding("a.b", "a", "a", "cause", "fatal", 0.9, ranks=(6,), evidence=evidence)
    excerpts: dict[str, list[dict[str, Any]]] = {"log": [{"line": 1, "lines": list(lines)}]} if lines else {}
    return list_facts(Diagnosis("1", "1", Job("j-1", "", ""), "known", root, (root,)), excerpts)


def make_evidence(kind: str, text: str, line: int, **fields: Any) -> Evidence:
    """Return evidence of rank 6 in the file `log`."""
    return Evidence(kind, "python", text, Origin(rank=6), "log", 0, line=line, end_line=line, **fields)


@pytest.mark.parametrize("prefix", ["", "[rank6]: "])
def test_a_traceback_is_marked_among_its_lines(prefix: str) -> None:
    """All its lines are marked where they stand, so the page quotes them once; a line of another rank is not."""
    lines = (f"{prefix}step 1", *(prefix + line for line in TRACEBACK[:2]), "[rank7]: step 1", prefix + TRACEBACK[2])
    (fact,) = facts_of(make_evidence("exception", "\n".join(TRACEBACK), 5), lines=lines)
    assert fact.in_context
    assert [row.own for row in fact.around] == [False, True, True, False, True]


def test_the_lines_around_begin_with_the_traceback() -> None:
    """One longer than the lines that are shown before a fact is marked there, so the page quotes it once."""
    text = [TRACEBACK[0], *(f'  File "a.py", line {number}, in step' for number in range(15)), TRACEBACK[2]]
    (fact,) = facts_of(make_evidence("exception", "\n".join(text), 22), lines=(*["step"] * 5, *text, "step"))
    assert fact.in_context
    assert [row.number for row in fact.around if row.own] == list(range(6, 23))
    assert fact.around[0].number == 6


def test_a_traceback_that_is_not_there_in_full_is_quoted() -> None:
    """Where a line is missing around it, the text stands above the lines."""
    (fact,) = facts_of(make_evidence("exception", "\n".join(TRACEBACK), 2), lines=("step 1", TRACEBACK[2]))
    assert not fact.in_context
    assert fact.text.startswith("Traceback")


def test_an_inference_names_no_writer() -> None:
    """The line below it may be of another rank, so the page shows the sentence and what it rests on."""
    lines = ("[rank0]: Watchdog caught collective operation timeout",)
    (fact,) = facts_of(make_evidence("inference", "Rank 6 did not join", 1, excerpt=lines[0]), lines=lines)
    assert (fact.rank, fact.inferred, fact.quote, fact.text) == (
        None,
        True,
        "Rank 6 did not join",
        "Rank 6 did not join",
    )
    assert facts_of(make_evidence("message", "timeout", 1))[0].rank == 6


def test_the_same_line_is_quoted_once() -> None:
    """Inferences for several ranks that rest on one line are one fact."""
    assert len(facts_of(*[make_evidence("inference", "Ranks 6 and 7 did not join", 1)] * 5)) == 1


@pytest.mark.parametrize(
    ("text", "shown"), [("}q\x01\x02X\x07", False), ("\ufffd\ufffdX", False), ("a\x1b[1mb\x07", True)]
)
def test_bytes_are_not_shown_as_lines(text: str, shown: bool) -> None:
    """The lines around the evidence are shown of logs, not of dumps; colours and a bell are still a log."""
    (fact,) = facts_of(make_evidence("message", "x", 1), lines=(text,))
    assert bool(fact.around) is shown


@pytest.mark.parametrize(("lines", "shown"), [(MAX_LINES, True), (MAX_LINES + 1, False)])
def test_a_document_is_not_quoted_as_a_line(lines: int, shown: bool) -> None:
    """Of an inference from a whole document the page shows the sentence; what a dump was compared to is short."""
    text = json.dumps(list(range(lines - 2)), indent=0)
    fact = Evidence("inference", "x", "Rank 6 is ahead", Origin(), "log", 0, line=1, end_line=lines, excerpt=text)
    (made,) = facts_of(fact, lines=tuple(text.split("\n")))
    assert bool(made.around) is shown
    assert (made.text == "Rank 6 is ahead") is not shown
    assert made.quote == "Rank 6 is ahead"


def test_lines_that_an_earlier_fact_shows_are_not_shown_again() -> None:
    """A fact among the lines of another leads there; one of the same block is not quoted again; others have lines."""
    lines = tuple(f"line {number}" for number in range(1, 41))
    numbers = (5, 10, 17, 18)
    facts = facts_of(*(make_evidence("message", f"line {number}", number) for number in numbers), lines=lines)
    assert [(fact.above, bool(fact.around), fact.is_repeated) for fact in facts] == [
        ("", True, False),
        ("e1", False, False),
        ("e1", False, False),
        ("", True, False),
    ]
    root = Finding("a.b", "a", "a", "cause", "fatal", 0.9, evidence=(make_evidence("message", "line 5", 5),))
    other = Finding("a.c", "a", "a", "cause", "fatal", 0.9, evidence=root.evidence, explained_by=("a.b",))
    made = Diagnosis("1", "1", Job("j-1", "", ""), "known", root, (root, other))
    assert [(fact.above, fact.is_repeated) for fact in list_facts(made, {})] == [("", False), ("e1", True)]
