from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.catalog.factories import GLOO, parse_signature, signature
from triage.catalog import read
from triage.catalog.model import CausalEdge, Clause, Leaf


def messages(text: str) -> list[str]:
    return [str(problem) for problem in parse_signature(text, "f.yaml")[1]]


def test_a_good_file_becomes_a_signature() -> None:
    """All parts of the file arrive in the dataclass."""
    extra = "blames: peer\nleads_to:\n  - {signature: torch.collective-timeout, scope: other-ranks}\n"
    extra += "applies_to: {torch: '>=2.0, <3'}\n"
    result, problems = parse_signature(GLOO + extra, "signatures/gloo/peer-closed.yaml")
    assert problems == []
    assert result is not None
    assert result.domain == "gloo"
    assert result.causal_edges == (CausalEdge("torch.collective-timeout", "other-ranks"),)
    assert result.applies_to == {"torch": ">=2.0, <3"}
    assert result.summary == "Another rank has left. Look at the rank behind {peer} first."
    assert result.samples_match[0].captures == {"peer": "10.0.0.1:29"}
    assert result.samples_no_match[0].why == "NCCL says so when it is torn down"
    assert isinstance(result.match, Clause)
    assert result.match.op == "any"
    assert result.match.none == (Leaf(text="during shutdown"),)
    assert len(result.fingerprint) == 12


def test_all_errors_are_collected() -> None:
    """One reading reports all errors in the order of the file, with line and column."""
    text = (
        GLOO.replace("revision: 1", "revision: x")
        .replace("status: stable", "status: stabel")
        .replace("title:", "titel:")
    )
    text = text.replace("action: fix-code", "action: pray").replace("'during shutdown'", "'(?!x)y'")
    result, problems = parse_signature(text, "f.yaml")
    assert result is None
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
        for line in messages(GLOO.replace("remediation:", "remedation:"))
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
def test_unsupported_constructs_are_refused_by_name(pattern: str, name: str) -> None:
    """A pattern outside the common dialect is refused, and the message names the construct."""
    lines = messages(GLOO.replace("'during shutdown'", f"'{pattern}'"))
    assert len(lines) == 1
    assert name in lines[0]
    assert lines[0].startswith("f.yaml:13:")


@pytest.mark.parametrize(
    "pattern", [r"\(\?=x\)", r"[(?=]x", r"a\\1b", r"C\+\+ what", r"100%\+\+", "x{2,}", r"\[\[:", "[+*]+"]
)
def test_escaped_look_alikes_are_accepted(pattern: str) -> None:
    """Escaped or bracketed text that looks like an unsupported construct is accepted."""
    assert messages(GLOO.replace("'during shutdown'", f"'{pattern}'")) == []


@pytest.mark.parametrize(
    ("match", "expected_text"),
    [
        ("{}", "no condition"),
        ("{component: NCCL}", "no condition"),
        ("{not_text: 'x'}", "no condition"),
        ("{text: 'abcd', any: [{text: 'x'}]}", "side by side"),
        ("{any: [{text: 'a'}], all: [{text: 'x'}]}", "side by side"),
        ("{any: []}", "at least 1 item"),
        ("{any: [{text: 'a'}], none: [{}]}", "no condition"),
        ("[{text: 'a'}]", "found a list"),
        ("{text: [a]}", "found a list"),
        ("{text: }", ""),
        ("{fields: {'a b': x}}", "right form"),
    ],
)
def test_conditions_have_one_form(match: str, expected_text: str) -> None:
    """An empty condition, or two forms at once, is refused."""
    head = GLOO[: GLOO.index("match:")]
    lines = messages(head + f"match: {match}\n")
    assert lines
    assert any(expected_text in line for line in lines)


def test_guides_have_no_match() -> None:
    """A guide must not match, everything else must."""
    head = GLOO[: GLOO.index("match:")]
    assert any("`match` is missing" in line for line in messages(head))
    assert messages(head.replace("role: symptom", "role: guide")) == []
    assert any("a guide must not have" in line for line in messages(GLOO.replace("role: symptom", "role: guide")))


def test_numbers_are_texts() -> None:
    """A capture or field that looks like a number needs no quotes."""
    result = signature("kind: exit\nfields: {exitcode: -9}")
    assert isinstance(result.match, Leaf)
    assert result.match.fields == {"exitcode": "-9"}


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
    expected_text = {
        "missing": "No such file",
        "large": "larger than",
        "binary": "not UTF-8",
        "list": "not a mapping",
        "pipe": "not a regular file",
    }
    for name, expected in expected_text.items():
        result, problems = read.read_signature(tmp_path / f"{name}.yaml")
        assert result is None
        assert expected in str(problems[0]), name
    assert read.read_signature(tmp_path / "bom.yaml")[0] is not None
    assert "cannot be read" in str(read.read_signature(tmp_path)[1][0])


@pytest.mark.parametrize(("written", "seconds"), [("90s", 90.0), ("30m", 1800.0), ("2h", 7200.0), ("1d", 86400.0)])
def test_windows_of_edges(written: str, seconds: float) -> None:
    """A window is a number with a unit; it may be missing."""
    result, _ = parse_signature(
        GLOO + f"leads_to: [{{signature: a.b, window: {written}}}, {{signature: c.d}}]\n", "f.yaml"
    )
    assert result is not None
    assert [edge.window for edge in result.causal_edges] == [seconds, None]


@pytest.mark.parametrize("written", ["30", "0m", "1.5h", "-3s", "30 minutes"])
def test_invalid_windows_are_refused(written: str) -> None:
    """The hint shows the form of a window."""
    _, problems = parse_signature(GLOO + f"leads_to: [{{signature: a.b, window: '{written}'}}]\n", "f.yaml")
    assert [problem.hint for problem in problems] == ["write a number and a unit, such as 90s, 30m, 2h or 1d"]


def test_only_deprecated_signatures_are_replaced() -> None:
    """`replaced_by` names the successor of a deprecated signature; otherwise it is an error."""
    _, problems = parse_signature(GLOO + "replaced_by: gloo.other\n", "f.yaml")
    assert ["only a deprecated signature can have" in problem.message for problem in problems] == [True]
    result, _ = parse_signature(
        GLOO.replace("status: stable", "status: deprecated") + "replaced_by: gloo.other\n", "f.yaml"
    )
    assert result is not None
    assert result.replaced_by == "gloo.other"
