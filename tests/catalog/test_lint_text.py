from __future__ import annotations

from dataclasses import replace

import pytest

from tests.catalog.factories import signature
from triage.catalog import build, prose, signature_files
from triage.catalog.lint_text import TextRules
from triage.catalog.load import load
from triage.catalog.match import Matcher, positive_leaves
from triage.catalog.model import Catalog
from triage.catalog.regex import remove_anchors
from triage.evidence import extract_text
from triage.model import Role

LEAST_PROSE = 5000


def messages(match: str, role: Role = "cause", everyday: tuple[str, ...] = ()) -> list[str]:
    one = replace(signature(match), role=role)
    return [message for _, _, message, _ in TextRules(extract_text, everyday).check(one)]


@pytest.mark.parametrize(
    "match",
    [
        "text: 'system not yet initialized'",
        "text: 'OOMKilled'",
        "text: 'loss (?:is|became) nan'",
        "any:\n  - text: 'box [3]: broken'\n  - text: 'Alloc sq cq fail'",
        "text: 'NSYS_DL_dlopen'",
        "any:\n  - {engine: regex, text: 'yet (?=initialized)'}\n  - text: 'Alloc sq cq fail'",
    ],
)
def test_words_without_the_form_of_a_message_match_prose(match: str) -> None:
    """A cause that matches a sentence with its words is an error; a symptom may."""
    assert any(message.startswith("prose matches: ") for message in messages(match))
    assert messages(match, role="symptom") == []


@pytest.mark.parametrize(
    "match",
    [
        "text: 'BOX WARN: system not yet initialized'",
        "{kind: exception, text: 'not yet initialized'}",
        "{component: NCCL, text: 'system not yet initialized'}",
        "all:\n  - text: 'system not yet initialized'\n  - {kind: kernel, text: 'box died'}",
        "text: 'error code is 507035'",
        "text: 'the box of this machine was lost and its owner was told'",
        "{kind: inference, text: 'never joined'}",
    ],
)
def test_messages_with_a_form_are_accepted(match: str) -> None:
    """Punctuation, a kind, a component, a second fact, a code or a long sentence tell a message from prose."""
    assert messages(match) == []


@pytest.mark.parametrize(
    ("match", "line"),
    [
        ("text: 'No route to host'", "No route to host"),
        ("text: 'Errno 98. '", "Address already in use"),
        ("text: '429 Client Error: '", "429"),
        ("text: 'CUDA error: unknown error'", "unknown error"),
    ],
)
def test_a_general_text_is_no_cause(match: str, line: str) -> None:
    """What every program prints for many reasons needs a word of the subject."""
    match = match.replace("Errno 98. ", r"\[Errno 98\] ")
    assert any("a general text is enough" in message for message in messages(match)), line
    assert messages("text: 'NCCL WARN .*No route to host'") == []


def test_everyday_lines_match_no_cause() -> None:
    """A line of a healthy program is quoted in the error."""
    line = "WARNING cache: [box] is (not) there: yet"
    assert messages(r"text: '\[box\] is \(not\) there'", everyday=(line,)) == [
        f"a line of a healthy program matches: {line!r}"
    ]
    assert messages(r"text: '\[box\] is \(not\) here'", everyday=(line,)) == []


def test_anchors_are_those_of_the_message() -> None:
    """A pattern with anchors is tried on lines with a prefix, because the prefix is removed before it is matched."""
    line = "[rank3]: [box] is (not) there"
    assert messages(r"text: '^\[box\] is [^$]*there$'", everyday=(line,)) == [
        f"a line of a healthy program matches: {line!r}"
    ]
    assert messages(r"text: '^is \(not\) there$'", everyday=(line,)) == []


@pytest.mark.parametrize(
    ("pattern", "without"),
    [
        ("^lost$", "(?:)lost(?:)"),
        (r"\Alost [^]^$]+ \$5 \^", r"(?:)lost [^]^$]+ \$5 \^"),
        (r"\\A[\]^]$", r"\\A[\]^](?:)"),
    ],
)
def test_anchors_are_removed_outside_of_classes_and_escapes(pattern: str, without: str) -> None:
    """A pattern without its anchors is found in the middle of a line."""
    assert remove_anchors(pattern) == without


def test_prose_has_the_words_without_punctuation() -> None:
    """Gaps become words, pieces have at most four words, and codes and names of exceptions make no setting."""
    lines = prose.write_prose(r"box (?P<name>\w+): is \[broken\] \(again\)")
    assert "INFO loader: box 7 is broken, skipped" in lines
    assert "box_node_is_broken: true" in lines
    assert not any("broken again" in line and "box" in line for line in lines)
    assert prose.write_prose(r"EI0006: lost") == ()
    assert not any(line.startswith("MemoryError:") for line in prose.write_prose("MemoryError"))


def test_no_prose_is_a_cause_in_the_shipped_catalog() -> None:
    """Thousands of sentences with the words of all causes, and all everyday lines, are no cause of any signature."""
    causes = [one for one in load().signatures if one.role == "cause"]
    patterns = sorted({leaf.text for one in causes for leaf in positive_leaves(one.match) if leaf.text})
    lines = [line for number, text in enumerate(patterns) for line in prose.write_prose(text)[number % 45 :: 45]]
    lines += build.read_everyday_lines(signature_files.find_shipped_directory())
    assert len(lines) >= LEAST_PROSE
    matcher = Matcher(Catalog("", tuple(causes)))
    matched = {line: sorted(matches) for line in lines if (matches := matcher.evaluate(extract_text(line)))}
    assert matched == {}
