from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalog.helpers import GLOO, evidence, shipped, to_evidence, write
from triage.catalog.check import check
from triage.catalog.problems import Problem


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return shipped(tmp_path / "shipped", healthy="step 1 loss 2\n" * 5)


def problems(base: Path, text: str, identifier: str = "gloo.peer-closed", severity: str = "error") -> list[Problem]:
    path = write(base, identifier, text)
    return [found for found in check([path], to_evidence=to_evidence, shipped=base) if found.severity == severity]


def test_a_good_file_has_no_problems(base: Path) -> None:
    """Nothing is said about a file that is right."""
    write(base)
    assert check(to_evidence=to_evidence, shipped=base) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("revision: 1", "revision: 0", 3, "revision"),
        ("title: A peer closed its connection", "title: " + "long " * 20, 4, "at most 80"),
        ("summary: Look at the rank behind {peer} first.", "steps: [look]", 15, "no remediation.summary"),
        ("{peer} first", "{prey} first", 17, "{prey}, which nothing captures"),
        ("{peer} first", "{peer first", 17, "braces"),
        ("meaning: The", "blames: rank\nmeaning: The", 14, "`blames` names rank"),
        ("meaning: The", "leads_to: [{signature: gloo.peer-closed}]\nmeaning: The", 14, "does not lead to itself"),
        ('captures: {peer: "10.0.0.1:2345"}', 'captures: {peer: "10.0.0.2"}', 20, "capture peer is '10.0.0.1:2345'"),
        ('captures: {peer: "10.0.0.1:2345"}', 'captures: {pear: "1"}', 20, "nothing captures pear"),
        ("Connection closed by localRank 1", "Read error [x]: Connection reset by peer", 22, "must not match"),
        ("pair.cc:534 Connection closed", "pair.cc:534 Connection opened", 20, "must match, and does not"),
        (
            "Connection reset by peer'",
            "Connection reset by peer'\n    - text: 'step \\d+ loss'",
            12,
            "healthy logs have ",
        ),
        ("Connection reset by peer'", "Connection reset by peer'\n    - text: '\\d+'", 12, "no literal of four bytes"),
        ("samples:\n  match:", "samples:\n  no_match: []\n  watch:", 20, "samples.watch: unknown key"),
    ],
)
def test_errors_are_found_at_their_place(base: Path, old: str, new: str, line: int, words: str) -> None:
    """Each kind of mistake is an error with its line, and says what is wrong."""
    assert old in GLOO
    found = problems(base, GLOO.replace(old, new))
    assert [(p.line, words in p.message) for p in found if words in p.message] == [(line, True)], found


def test_missing_samples(base: Path) -> None:
    """A signature without a sample that matches is not proven."""
    found = problems(base, GLOO[: GLOO.index("samples:")])
    assert any("no samples.match" in problem.message for problem in found)


def test_the_place_must_fit_the_id(base: Path) -> None:
    """The file's directory and name are the two halves of the id."""
    found = problems(base, GLOO.replace("gloo.peer-closed", "gloo.other"))
    assert any("gloo/other.yaml is its place" in problem.hint for problem in found)


def test_unknown_edges_are_warnings_and_known_ones_are_fine(base: Path) -> None:
    """leads_to may name any signature of the whole catalog, also when one file is checked alone."""
    text = GLOO.replace("meaning: The", "leads_to: [{signature: b.two}]\nmeaning: The")
    assert [
        "there is no signature b.two" in problem.message for problem in problems(base, text, severity="warning")
    ] == [True]
    write(base, "b.two", GLOO.replace("gloo/transport", "other/transport"))
    assert problems(base, text, severity="warning") == []


def test_circles_of_edges_are_errors_unless_they_cross_ranks(base: Path) -> None:
    """Signatures that explain each other on one rank are an error on both; with other-ranks they are echoes."""
    edge = "leads_to: [{signature: %s%s}]\nmeaning: The"
    write(
        base,
        "b.two",
        GLOO.replace("gloo/transport", "b/transport").replace("meaning: The", edge % ("gloo.peer-closed", "")),
    )
    circle = GLOO.replace("meaning: The", edge % ("b.two", ""))
    assert any(
        "explains itself: gloo.peer-closed -> b.two -> gloo.peer-closed" in problem.message
        for problem in problems(base, circle)
    )
    echo = GLOO.replace("meaning: The", edge % ("b.two", ", scope: other-ranks"))
    assert problems(base, echo) == []


def test_twins_are_warned_about(base: Path) -> None:
    """Two signatures that match exactly the same are told apart or merged."""
    write(base, "aaa.first")
    assert any(
        "aaa.first matches exactly the same" in problem.message for problem in problems(base, GLOO, severity="warning")
    )


def test_the_cross_table(base: Path) -> None:
    """A sample that another signature matches too must say so, and may not say so of one that does not."""
    write(base, "a.other", GLOO.replace("gloo/transport.*Connection", "Connection"))
    found = problems(base, GLOO)
    assert [problem.message for problem in found] == ["samples.match.0 is also matched by a.other"]
    declared = GLOO.replace('captures: {peer: "10.0.0.1:2345"}}', 'captures: {peer: "10.0.0.1:2345"}, also: [a.other]}')
    assert problems(base, declared) == []
    wrong = [
        problem.message for problem in problems(base, declared.replace("also: [a.other]", "also: [a.other, a.third]"))
    ]
    assert wrong == ["samples.match.0 is not matched by a.third, as `also` says"]


def test_duplicate_ids_are_errors(base: Path) -> None:
    """The second file with an id names the first."""
    write(base, "a.one")
    write(base, "a.two", GLOO.replace("gloo.peer-closed", "a.one"))
    assert any("already given by" in problem.message for problem in check(to_evidence=to_evidence, shipped=base))


def test_taking_the_place_of_a_shipped_signature_is_said(base: Path, tmp_path: Path) -> None:
    """A user's file with a shipped id is fine, and the report says what it replaces."""
    write(base)
    mine = write(tmp_path / "mine")
    assert [
        (p.severity, "takes the place of" in p.message) for p in check([mine], to_evidence=to_evidence, shipped=base)
    ] == [("info", True)]


def test_samples_with_a_kind_are_evidence_as_given(base: Path) -> None:
    """A fact that no text can show is given by kind, component and fields, past the readers."""
    text = GLOO.replace("  any:\n", "  any:\n    - {kind: inference, fields: {rule: never-joined}}\n", 1)
    text = text.replace(
        "  match:\n    - {text",
        "  match:\n    - {text: rank 3, kind: inference, fields: {rule: never-joined}}\n    - {text",
    )
    assert problems(base, text) == []


def test_readers_that_fail_do_not_stop_the_check(base: Path) -> None:
    """A sample that breaks the readers is an error of that sample, and the others are still checked."""

    def fail(text: str) -> list[object]:
        raise RuntimeError("no")

    path = write(base)
    found = check([path], to_evidence=fail, shipped=base)  # type: ignore[arg-type]
    assert [problem.line for problem in found if "cannot be read as a log" in problem.message] == [20, 22]


def test_several_evidences_of_one_text(base: Path) -> None:
    """A sample may be a whole log: it matches when one of its evidences does."""
    path = write(base)
    assert check([path], to_evidence=lambda text: [evidence("x"), evidence(text)], shipped=base) == []


def test_a_missing_path_is_an_error(base: Path) -> None:
    """A path that does not exist is reported."""
    assert [problem.message for problem in check([base / "nothing"], to_evidence=to_evidence, shipped=base)] == [
        "is not there"
    ]


def test_problems_read_like_a_compiler() -> None:
    """path:line:column: severity: message (hint)."""
    assert str(Problem("error", "a.yaml", 3, 7, "is wrong", "mend it")) == "a.yaml:3:7: error: is wrong (mend it)"
    assert str(Problem("info", "a.yaml", None, None, "is so")) == "a.yaml: info: is so"
