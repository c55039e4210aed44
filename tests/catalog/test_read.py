from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.catalog.helpers import GLOO, signature
from triage.catalog import read
from triage.catalog.model import Clause, Edge, Leaf


def said(text: str) -> list[str]:
    return [str(problem) for problem in read.parse(text, "f.yaml")[1]]


def test_a_good_file_becomes_a_signature() -> None:
    """All parts of the file arrive in the dataclass."""
    extra = "blames: peer\nleads_to:\n  - {signature: torch.collective-timeout, scope: other-ranks}\napplies_to: {torch: '>=2.0, <3'}\n"
    found, problems = read.parse(GLOO + extra, "signatures/gloo/peer-closed.yaml")
    assert problems == []
    assert found is not None
    assert found.domain == "gloo"
    assert found.leads_to == (Edge("torch.collective-timeout", "other-ranks"),)
    assert found.applies_to == {"torch": ">=2.0, <3"}
    assert found.summary == "Look at the rank behind {peer} first."
    assert found.samples_match[0].captures == {"peer": "10.0.0.1:2345"}
    assert found.samples_no_match[0].why == "NCCL says so when it is torn down"
    assert isinstance(found.match, Clause)
    assert found.match.op == "any"
    assert found.match.none == (Leaf(text="during shutdown"),)
    assert len(found.fingerprint) == 12


def test_all_errors_are_collected() -> None:
    """One reading reports everything that is wrong, in the order of the file, with line and column."""
    text = (
        GLOO.replace("revision: 1", "revision: x")
        .replace("status: stable", "status: stabel")
        .replace("title:", "titel:")
    )
    text = text.replace("action: fix-code", "action: pray").replace("'during shutdown'", "'(?!x)y'")
    found, problems = read.parse(text, "f.yaml")
    assert found is None
    assert [(p.line, p.message.partition(":")[0]) for p in problems] == [
        (2, "title"),
        (3, "revision"),
        (4, "titel"),
        (5, "status"),
        (13, "match.none.0.text"),
        (16, "remediation.action"),
    ]


def test_a_misspelled_key_is_recognised() -> None:
    """An unknown key is refused with the nearest known one."""
    assert any(
        "unknown key (did you mean `remediation`?)" in line
        for line in said(GLOO.replace("remediation:", "remedation:"))
    )


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("(?=foo)bar", "look-ahead"),
        ("(?!foo)bar", "negative look-ahead"),
        ("(?<=foo)bar", "look-behind"),
        ("(?<!foo)bar", "negative look-behind"),
        (r"(a)\1", "back-reference"),
        ("(?P<a>x)(?P=a)", "back-reference"),
        ("(?>ab)", "atomic group"),
        ("ab++", "possessive"),
        ("(a)?(?(1)b|c)", "conditional"),
        ("(?#why)ab", "comment group"),
        ("(?x) a b", "verbose flag"),
        (r"ab\Z", r"\Z"),
        ("[[:alpha:]]", "POSIX class"),
        ("(?<name>a)", "(?P<name>"),
        (r"\pN+", "Unicode class"),
        (r"ab\z", r"\z"),
        ("a{,3}", "{0,n}"),
        ("a{2000}", "RE2 refuses"),
        ("[a", "RE2 refuses"),
        ("x" * 3000, "3000 characters"),
        ("", "empty"),
    ],
)
def test_foreign_constructs_are_refused_by_name(pattern: str, name: str) -> None:
    """A pattern outside the common dialect is refused, and the message names the construct."""
    lines = said(GLOO.replace("'during shutdown'", f"'{pattern}'"))
    assert len(lines) == 1
    assert name in lines[0]
    assert lines[0].startswith("f.yaml:13:")


@pytest.mark.parametrize(
    "pattern", [r"\(\?=x\)", r"[(?=]x", r"a\\1b", r"C\+\+ what", r"100%\+\+", "x{2,}", r"\[\[:", "[+*]+"]
)
def test_harmless_look_alikes_pass(pattern: str) -> None:
    """Escaped and bracketed text that only looks like a foreign construct is accepted."""
    assert said(GLOO.replace("'during shutdown'", f"'{pattern}'")) == []


@pytest.mark.parametrize(
    ("match", "words"),
    [
        ("{}", "no condition"),
        ("{component: NCCL}", "no condition"),
        ("{not_text: 'x'}", "no condition"),
        ("{text: 'abcd', any: [{text: 'x'}]}", "side by side"),
        ("{any: [{text: 'a'}], all: [{text: 'x'}]}", "side by side"),
        ("{any: []}", "at least 1 item"),
        ("{any: [{text: 'a'}], none: [{}]}", "no condition"),
        ("[{text: 'a'}]", "a list stands here"),
        ("{text: [a]}", "a list stands here"),
        ("{text: }", ""),
        ("{fields: {'a b': x}}", "right form"),
    ],
)
def test_conditions_have_one_form(match: str, words: str) -> None:
    """A condition that says nothing, or two things at once, is refused."""
    head = GLOO[: GLOO.index("match:")]
    lines = said(head + f"match: {match}\n")
    assert lines
    assert any(words in line for line in lines)


def test_guides_have_no_match() -> None:
    """A guide must not match, everything else must."""
    head = GLOO[: GLOO.index("match:")]
    assert any("`match` is missing" in line for line in said(head))
    assert said(head.replace("role: symptom", "role: guide")) == []
    assert any("a guide has no" in line for line in said(GLOO.replace("role: symptom", "role: guide")))


def test_numbers_are_texts() -> None:
    """A capture or field that looks like a number needs no quotes."""
    found = signature("kind: exit\nfields: {exitcode: -9}")
    assert isinstance(found.match, Leaf)
    assert found.match.fields == {"exitcode": "-9"}


def test_the_fingerprint_follows_match_only() -> None:
    """Key order and everything outside `match` leave the fingerprint alone; a changed pattern does not."""
    one = signature("kind: message\ntext: 'abcd'")
    assert one.fingerprint == signature("text: 'abcd'\nkind: message", meaning="else").fingerprint
    assert one.fingerprint != signature("kind: message\ntext: 'abce'").fingerprint


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """Missing, large, binary and odd files are reported, not raised; a pipe does not block."""
    (tmp_path / "large.yaml").write_text("a: " + "x" * 300_000, encoding="utf-8")
    (tmp_path / "binary.yaml").write_bytes(b"id: \xff\xfe")
    (tmp_path / "list.yaml").write_text("- a\n", encoding="utf-8")
    (tmp_path / "bom.yaml").write_text("\ufeff" + GLOO, encoding="utf-8")
    os.mkfifo(tmp_path / "pipe.yaml")
    words = {
        "missing": "No such file",
        "large": "larger than",
        "binary": "not UTF-8",
        "list": "not a mapping",
        "pipe": "not a regular file",
    }
    for name, expected in words.items():
        found, problems = read.read(tmp_path / f"{name}.yaml")
        assert found is None
        assert expected in str(problems[0]), name
    assert read.read(tmp_path / "bom.yaml")[0] is not None
    assert "cannot be read" in str(read.read(tmp_path)[1][0])


@pytest.mark.parametrize(("written", "seconds"), [("90s", 90.0), ("30m", 1800.0), ("2h", 7200.0), ("1d", 86400.0)])
def test_windows_of_edges(written: str, seconds: float) -> None:
    """A window is a number with a unit; without one there is none."""
    found, _ = read.parse(GLOO + f"leads_to: [{{signature: a.b, window: {written}}}, {{signature: c.d}}]\n", "f.yaml")
    assert found is not None
    assert [edge.window for edge in found.leads_to] == [seconds, None]


@pytest.mark.parametrize("written", ["30", "0m", "1.5h", "-3s", "30 minutes"])
def test_windows_of_another_form(written: str) -> None:
    """What is no window is refused with the form that is one."""
    _, problems = read.parse(GLOO + f"leads_to: [{{signature: a.b, window: '{written}'}}]\n", "f.yaml")
    assert [problem.hint for problem in problems] == ["write a number and a unit, such as 90s, 30m, 2h or 1d"]


def test_only_deprecated_signatures_are_replaced() -> None:
    """`replaced_by` says where to go from a deprecated signature; on another one it is an error."""
    _, problems = read.parse(GLOO + "replaced_by: gloo.other\n", "f.yaml")
    assert ["only a deprecated signature is replaced" in problem.message for problem in problems] == [True]
    found, _ = read.parse(GLOO.replace("status: stable", "status: deprecated") + "replaced_by: gloo.other\n", "f.yaml")
    assert found is not None
    assert found.replaced_by == "gloo.other"
