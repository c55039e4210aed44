from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable

import pytest

import triage.pipeline
from triage.model.diagnosis import Explanation
from triage.model.evidence import Evidence, Origin

Command = Callable[..., tuple[int, str, str]]
PROOF = Evidence("message", "app", "it \x1b[31mburns", Origin(rank=2), "job.log", 0, line=4)
MATCHED = Explanation("a.b", "A title", True, "root cause", (("text /burns/", True, 3),), (PROOF,))
MISSED = Explanation(
    "a.b",
    "A title",
    False,
    "not matched, because nothing burns",
    (("text /burns/", False, 0),),
    (),
    tuple((f"job.log:{n}", "smoke") for n in range(5)),
)


@pytest.fixture
def set_answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[Explanation], None]:
    """Return a function that sets the explanation of the pipeline."""
    return lambda explanation: monkeypatch.setattr(
        triage.pipeline, "explain", lambda paths, signature, options: explanation
    )


def test_a_match_shows_its_clauses_and_evidence(command: Command, set_answer: Callable[[Explanation], None]) -> None:
    """The outcome comes first, then the clauses, then the line without escapes."""
    set_answer(MATCHED)
    status, out, err = command("explain", "x", "-s", "a.b")
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "MATCHED      a.b: A title"
    assert "holds (3 facts): text /burns/" in out
    assert "job.log:4 (rank 2)\n    | it burns" in out


def test_parts_of_a_clause_are_indented(command: Command, set_answer: Callable[[Explanation], None]) -> None:
    """The number of parts is said in words, a count is that of facts, and a part that failed has none."""
    clauses = (("at least one of these 2", True, 3), ("  text /burns/", True, 3), ("  text /smokes/", False, 0))
    set_answer(dataclasses.replace(MATCHED, clauses=clauses))
    out = command("explain", "x", "-s", "a.b")[1]
    assert "- holds (3 facts): at least one of these 2\n" in out
    assert "               - holds (3 facts): text /burns/\n               - fails: text /smokes/\n" in out


def test_a_miss_shows_near_misses(command: Command, set_answer: Callable[[Explanation], None]) -> None:
    """Three near misses are shown, and the number of others."""
    set_answer(MISSED)
    out = command("explain", "x", "--signature", "a.b")[1]
    assert out.startswith("NOT MATCHED")
    assert out.count("| smoke") == 3
    assert "and 2 more" in out


def test_as_json(command: Command, set_answer: Callable[[Explanation], None]) -> None:
    """JSON has clauses and evidence."""
    set_answer(MATCHED)
    document = json.loads(command("explain", "x", "-s", "a.b", "--format", "json")[1])
    assert document["clauses"] == [{"text": "text /burns/", "held": True, "hits": 3}]
    assert document["evidence"][0]["text"] == PROOF.text


def test_the_signature_is_required(command: Command) -> None:
    """The error names --signature."""
    status, _, err = command("explain", "x")
    assert status == 2
    assert "--signature" in err
