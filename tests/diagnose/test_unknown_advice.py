"""triage.diagnose.unknown_advice"""

from __future__ import annotations

import pytest

from tests.diagnose.factories import exited, fact, raised
from triage.diagnose.unknown_advice import advise_unknown
from triage.model import Evidence

SAVED = "Keep the output of every rank"


@pytest.mark.parametrize(
    ("facts", "ranks", "summary"),
    [
        (
            [raised("ValueError: x", 0, file="a.py", line="3", function="f")],
            [0],
            "Read a.py:3 (f), where rank 0 failed.",
        ),
        ([raised("ValueError: x", 0, file="a.py", line="3")], [0, 1], "Read a.py:3, where ranks 0-1 failed."),
        (
            [raised("ValueError: x", 0, file="a.py")],
            [0],
            "No signature knows this line; read what rank 0 did before it.",
        ),
        (
            [raised("ValueError: x", 0, line="3")],
            [],
            "No signature knows this line; read what the process did before it.",
        ),
        ([exited(0, 1)], [0], "Find out why rank 0 ended: the files show how, and no line says why."),
        (
            [exited(0, 1), fact("x", 0)],
            [0],
            "No signature knows this line; read what rank 0 did before it.",
        ),
    ],
)
def test_the_summary_says_where_to_begin(facts: list[Evidence], ranks: list[int], summary: str) -> None:
    """At the line of code that failed, if one is known."""
    assert advise_unknown(facts, ranks, None).summary == summary


@pytest.mark.parametrize(
    ("kinds", "step"),
    [
        (["exit"], SAVED),
        (["crash"], "Allow core files"),
        (["exit", "core"], "Allow core files"),
        (["terminate"], "Allow core files"),
        (["ending"], "run the same step alone"),
        (["message"], ""),
        (["ending", "message"], ""),
    ],
)
def test_what_to_collect_depends_on_what_there_is(kinds: list[str], step: str) -> None:
    """Output where nothing says why, a core file of a crash; a message needs nothing more."""
    _, *steps = advise_unknown([fact("x", 0, kind=kind) for kind in kinds], [0], None).steps
    assert (step in " ".join(steps)) if step else not steps


def test_the_kernel_log_is_that_of_the_first_host() -> None:
    """`its host` if none is known."""
    named = advise_unknown([exited(1, 1, host="n2"), exited(0, 1, host="n1"), exited(2, 1)], [0], None)
    assert "Read the kernel log of n1 " in " ".join(named.steps)
    assert "Read the kernel log of its host " in " ".join(advise_unknown([exited(0, 1)], [0], None).steps)


def test_the_files_are_named() -> None:
    """The first one, and how many more there are."""
    facts = [fact("x", 0, source=source) for source in ("a.log", "b.log", "b.log", "c.log")]
    assert "in a.log and 2 more;" in advise_unknown(facts, [0], None).steps[0]
    assert "in a.log;" in advise_unknown(facts[:1], [0], None).steps[0]


def test_a_cluster_is_named_where_there_is_one() -> None:
    """It shows similar failures."""
    assert "`triage clusters show c1`" in advise_unknown([fact("x", 0)], [0], "c1").steps[-1]
    assert not any("clusters" in step for step in advise_unknown([fact("x", 0)], [0], None).steps)
