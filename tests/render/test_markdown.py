from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from triage.model.diagnosis import Diagnosis
from triage.render import json, markdown
from triage.render.sanitize import sanitize, sanitize_line

from .factories import CAUSE, KNOWN, diagnoses, evidence, texts

markdown_it = pytest.importorskip("markdown_it")
PARSER = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"])
forge = st.one_of(texts, st.text(st.sampled_from("@#!&`*_<>[]()|~-+=.1 ab\\:/\"'$%\n"), max_size=40))


def tokens(source: str) -> list[object]:
    """All tokens of the document, with those inside of lines."""
    tokens_of = []
    for token in PARSER.parse(source):
        tokens_of.append(token)
        tokens_of.extend(token.children or [])
    return tokens_of


@given(forge)
def test_inline_text_stays_text(text: str) -> None:
    """It parses as one paragraph of plain text that reads as the original."""
    line = sanitize_line(text)
    if not line:
        return
    paragraph = PARSER.parse(markdown.inline(text))
    assert [token.type for token in paragraph] == ["paragraph_open", "inline", "paragraph_close"]
    children = paragraph[1].children or []
    assert {token.type for token in children} <= {"text", "text_special", "softbreak"}
    assert "".join(token.content for token in children).replace("\u200b", "") == line


@given(forge)
def test_code_spans_hold(text: str) -> None:
    """The text is inside one code span, whatever backticks it has."""
    line = sanitize_line(text)
    if not line:
        return
    children = PARSER.parse("x " + markdown.code(text))[1].children or []
    assert [token.type for token in children] == ["text", "code_inline"]
    assert children[1].content == line


@given(forge)
def test_fences_hold(text: str) -> None:
    """The text is inside one fence, whatever backticks it has."""
    parsed = PARSER.parse(markdown.fence(text))
    assert [token.type for token in parsed] == ["fence"]
    assert parsed[0].content.strip("\n") == sanitize(text).strip("\n")


@given(diagnoses)
def test_a_report_holds_no_html_image_or_foreign_link(diagnosis: Diagnosis) -> None:
    """Only addresses of the catalog become links; nothing becomes HTML."""
    allowed = {link for finding in [diagnosis.root_cause] if finding for link in finding.remediation.references}
    for token in tokens(markdown.render(diagnosis)):
        assert token.type not in ("html_block", "html_inline", "image")  # type: ignore[attr-defined]
        if token.type == "link_open":  # type: ignore[attr-defined]
            assert token.attrs["href"] in allowed  # type: ignore[attr-defined]


@given(diagnoses)
def test_a_saved_report_shows_the_same(diagnosis: Diagnosis) -> None:
    """Markdown needs nothing that the JSON does not carry."""
    assert markdown.render(json.read(json.render(diagnosis))) == markdown.render(diagnosis)


@pytest.mark.parametrize(
    "text",
    [
        "@everyone",
        "see #12",
        "!34",
        "https://github.com/o/r/issues/1",
        "www.evil.example",
        "GH-7",
        "a@b.example",
        "http://x",
    ],
)
def test_mentions_references_and_addresses_are_broken(text: str) -> None:
    """A zero-width space stands in each thing that a forge would link or notify."""
    assert "&#8203;" in markdown.inline(text)


def test_fence_is_longer_than_the_backticks_of_the_log() -> None:
    """A log that closes a fence does not close ours."""
    assert markdown.fence("a\n````\nb").startswith("`````text\n")


def test_references_to_issues_leave_no_note_there() -> None:
    """An issue of GitHub is linked through a host that leaves no note there; other text is code."""
    assert markdown.link("https://github.com/a/b/issues/1").endswith("(<https://redirect.github.com/a/b/issues/1>)")
    assert markdown.link("javascript:alert(1)") == "`javascript:alert(1)`"
    assert markdown.link("https://x.example/)[a](b") == "`https://x.example/)[a](b`"


def test_the_report_of_a_known_failure_has_all_parts() -> None:
    """The same headings as the text, in the same order."""
    written = markdown.render(KNOWN)
    headings = re.findall(r"^(?:### |\*\*)([A-Z][a-z ]+)", written, re.MULTILINE)
    assert headings == [
        "Root cause",
        "What to do",
        "It caused",
        "Why",
        "Considered",
        "Unknown",
        "In order",
        "Ranks",
        "Ignored",
        "Warnings",
    ]
    assert written.startswith(
        "### Root cause: DataLoader worker was killed\n\n`data.worker-killed`, confidence high (0.9), rank 1 on node1,"
        " at 03:00:26, `job.log:61`"
    )


def test_many_long_findings_stay_short() -> None:
    """A report with a thousand long findings fits into a comment of 64 KiB."""
    root = replace(CAUSE, why=("w" * 500,) * 3, evidence=(evidence("x" * 9000 + "\n" * 500),))
    many = tuple(replace(CAUSE, signature=f"a.b{number}", title="t" * 5000) for number in range(1000))
    assert len(markdown.render(replace(KNOWN, root_cause=root, findings=(root, *many)))) < 60_000
