from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalog.factories import GLOO, evidence, shipped, to_evidence, write
from triage.catalog.check import check_files
from triage.catalog.problems import Problem


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return shipped(tmp_path / "shipped", healthy="step 1 loss 2\n" * 5)


def problems(base: Path, text: str, identifier: str = "gloo.peer-closed", severity: str = "error") -> list[Problem]:
    path = write(base, identifier, text)
    return [
        result for result in check_files([path], to_evidence=to_evidence, shipped=base) if result.severity == severity
    ]


def test_a_good_file_has_no_problems(base: Path) -> None:
    """A correct file gives no problems."""
    write(base)
    assert check_files(to_evidence=to_evidence, shipped=base) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "expected_text"),
    [
        ("revision: 1", "revision: 0", 3, "revision"),
        ("title: A peer closed its connection", "title: " + "long " * 20, 4, "at most 80"),
        (
            "summary: Another rank has left. Look at the rank behind {peer} first.",
            "steps: [look]",
            15,
            "remediation.summary is missing",
        ),
        ("{peer} first", "{prey} first", 17, "{prey}, which no pattern captures"),
        ("{peer} first", "{peer first", 17, "braces"),
        ("meaning: The", "blames: rank\nmeaning: The", 14, "`blames` names rank"),
        ("meaning: The", "leads_to: [{signature: gloo.peer-closed}]\nmeaning: The", 14, "cannot lead to itself"),
        ('captures: {peer: "10.0.0.1:29"}', 'captures: {peer: "10.0.0.2"}', 20, "capture peer is '10.0.0.1:29'"),
        ('captures: {peer: "10.0.0.1:29"}', 'captures: {pear: "1"}', 20, "no pattern captures pear"),
        (
            "Connection closed by localRank 1",
            "Read error [x]: Connection reset by peer",
            22,
            "must not match, but it does",
        ),
        ("pair.cc:534 Connection closed", "pair.cc:534 Connection opened", 20, "must match, but it does not"),
        (
            "Connection reset by peer'",
            "Connection reset by peer'\n    - text: 'step \\d+ loss'",
            12,
            "healthy logs contain ",
        ),
        ("Connection reset by peer'", "Connection reset by peer'\n    - text: '\\d+'", 12, "no text of four bytes"),
        ("match:\n  any:", "match:\n  context: true\n  any:", 8, "`context` beside `any` or `all`"),
        ("samples:\n  match:", "samples:\n  no_match: []\n  watch:", 20, "samples.watch: unknown key"),
    ],
)
def test_errors_have_line_and_message(base: Path, old: str, new: str, line: int, expected_text: str) -> None:
    """Each kind of mistake is an error with its line and what is wrong."""
    assert old in GLOO
    result = problems(base, GLOO.replace(old, new))
    assert [(p.line, expected_text in p.message) for p in result if expected_text in p.message] == [(line, True)], (
        result
    )


def test_a_missing_sample_is_an_error(base: Path) -> None:
    """A signature needs a sample that matches."""
    result = problems(base, GLOO[: GLOO.index("samples:")])
    assert any("samples.match is missing" in problem.message for problem in result)


def test_the_path_must_match_the_id(base: Path) -> None:
    """The file's directory and name are the two halves of the id."""
    result = problems(base, GLOO.replace("gloo.peer-closed", "gloo.other"))
    assert any("move the file to gloo/other.yaml" in problem.hint for problem in result)


def test_unknown_edges_are_errors(base: Path) -> None:
    """`leads_to` may name any signature of the whole catalog, also when one file is checked alone."""
    text = GLOO.replace("meaning: The", "leads_to: [{signature: b.two}]\nmeaning: The")
    assert ["no signature has the id b.two" in problem.message for problem in problems(base, text)] == [True]
    write(base, "b.two", GLOO.replace("gloo/transport", "other/transport"))
    assert problems(base, text) == []


def test_cycles_are_errors_unless_one_edge_leaves_the_rank(base: Path) -> None:
    """Signatures that explain each other are errors; allowed is one edge on the rank, and one to other ranks."""
    edge = "leads_to: [{signature: %s%s}]\nmeaning: The"
    write(
        base,
        "b.two",
        GLOO.replace("gloo/transport", "b/transport").replace(
            "meaning: The", edge % ("gloo.peer-closed", ", scope: same-rank")
        ),
    )
    circle = GLOO.replace("meaning: The", edge % ("b.two", ""))
    assert any(
        "explains itself: gloo.peer-closed -> b.two -> gloo.peer-closed" in problem.message
        for problem in problems(base, circle)
    )
    other = GLOO.replace("meaning: The", edge % ("b.two", ", scope: same-host"))
    assert any("explains itself" in problem.message for problem in problems(base, other))
    echo = GLOO.replace("meaning: The", edge % ("b.two", ", scope: other-ranks"))
    assert problems(base, echo) == []


def test_duplicates_are_warnings(base: Path) -> None:
    """Two signatures that match exactly the same give a warning."""
    write(base, "aaa.first")
    assert any(
        "aaa.first matches exactly the same" in problem.message for problem in problems(base, GLOO, severity="warning")
    )


def test_other_matches_must_be_declared(base: Path) -> None:
    """A sample declares exactly the other signatures that match it."""
    write(base, "a.other", GLOO.replace("gloo/transport.*Connection", "Connection"))
    result = problems(base, GLOO)
    assert [problem.message for problem in result] == ["samples.match.0 is also matched by a.other"]
    declared = GLOO.replace('captures: {peer: "10.0.0.1:29"}}', 'captures: {peer: "10.0.0.1:29"}, also: [a.other]}')
    assert problems(base, declared) == []
    wrong = [
        problem.message for problem in problems(base, declared.replace("also: [a.other]", "also: [a.other, a.third]"))
    ]
    assert wrong == ["samples.match.0 is not matched by a.third, although `also` names it"]


def test_duplicate_ids_are_errors(base: Path) -> None:
    """The second file with an id names the first."""
    write(base, "a.one")
    write(base, "a.two", GLOO.replace("gloo.peer-closed", "a.one"))
    assert any(
        "already uses the id a.one" in problem.message for problem in check_files(to_evidence=to_evidence, shipped=base)
    )


def test_replacing_a_shipped_signature_is_reported(base: Path, tmp_path: Path) -> None:
    """A user's file with a shipped id is allowed, and the report names the replaced file."""
    write(base)
    mine = write(tmp_path / "mine")
    assert [
        (p.severity, p.message.startswith("replaces "))
        for p in check_files([mine], to_evidence=to_evidence, shipped=base)
    ] == [("info", True)]


def test_a_sample_with_a_kind_is_evidence(base: Path) -> None:
    """A fact that no text can show is written as kind, component and fields."""
    text = GLOO.replace("  any:\n", "  any:\n    - {kind: inference, fields: {rule: never-joined}}\n", 1)
    text = text.replace(
        "  match:\n    - {text",
        "  match:\n    - {text: rank 3, kind: inference, fields: {rule: never-joined}}\n    - {text",
    )
    text = text.replace("behind {peer} first", "that has left first")
    assert problems(base, text) == []


def test_a_failing_extractor_does_not_stop_the_check(base: Path) -> None:
    """A sample that breaks the extractors is an error of that sample; the others are still checked."""

    def fail(text: str) -> list[object]:
        raise RuntimeError("no")

    path = write(base)
    result = check_files([path], to_evidence=fail, shipped=base)  # type: ignore[arg-type]
    assert [problem.line for problem in result if "cannot be read as a log" in problem.message] == [20, 22]


def test_one_piece_of_evidence_is_enough(base: Path) -> None:
    """A sample may be a whole log: it matches when one piece of its evidence does."""
    path = write(base)
    assert check_files([path], to_evidence=lambda text: [evidence("x"), evidence(text)], shipped=base) == []


def test_a_missing_path_is_an_error(base: Path) -> None:
    """A path that does not exist is reported."""
    assert [problem.message for problem in check_files([base / "nothing"], to_evidence=to_evidence, shipped=base)] == [
        "does not exist"
    ]


def test_problems_have_compiler_format() -> None:
    """The format is path:line:column: severity: message (hint)."""
    assert str(Problem("error", "a.yaml", 3, 7, "is wrong", "fix it")) == "a.yaml:3:7: error: is wrong (fix it)"
    assert str(Problem("info", "a.yaml", None, None, "is so")) == "a.yaml: info: is so"
