"""Slack, GitHub, GitLab, JUnit and SARIF: whatever the logs hold, the limits are kept and nothing in them acts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import Phase, given, settings, strategies as st

from tests.render import factories
from triage.model.diagnosis import Diagnosis, Finding
from triage.render import LINKED, NAMES, codequality, github, gitlab, junit, render, sarif, slack
from triage.testing.slack import find_problem

HOSTILE = (
    "<!channel> <@U1> <!subteam^S1|all> <https://evil.example|click>",
    "```\nfence\n``` ` `` ``` ````",
    "\x00\x07\x1b[31m\x1b]0;title\x07\x9b\x85\x7f",
    "x" * 100_000,
    "&" * 7_000,
    "`" * 7_000,
    "line\n" * 2_000,
    "\u202eevil\u2066\u200f\u2028\u2029\ud800",
    "::error::owned\n::set-output name=x::y\r\n##[error]x",
    "]]> </failure> <![CDATA[ \ufffe\uffff",
    "--> <!-- triage:other --> <script>alert(1)</script> @everyone #1 !1",
    ":tada: *bold* _it_ ~no~ :100:",
    "",
)
hostile = st.sampled_from(HOSTILE) | factories.texts
some = settings(
    max_examples=25, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)  # shrinking texts of 100 kB takes minutes


@st.composite
def diagnoses(draw: st.DrawFn) -> Diagnosis:
    """Any diagnosis, with hostile texts where log text and file names go."""
    diagnosis = draw(factories.diagnoses)
    text, other = draw(hostile), draw(hostile)

    def spoilt(finding: Finding) -> Finding:
        proofs = (factories.evidence(text, 3, source=text[:5000]), *finding.evidence)
        advice = replace(finding.remediation, summary=other, references=(text[:300], "https://example.org/a"))
        return replace(finding, title=other, why=(text,), evidence=proofs, remediation=advice, hosts=(text[:500],))

    root = None if diagnosis.root_cause is None else spoilt(diagnosis.root_cause)
    others = tuple(spoilt(finding) for finding in diagnosis.findings) * draw(st.sampled_from([1, 8]))
    return replace(diagnosis, root_cause=root, findings=others, job=replace(diagnosis.job, name=text, path=text))


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in strings(item)]
    return (
        [text for item in value for text in strings(item)]
        if isinstance(value, list)
        else [value]
        if isinstance(value, str)
        else []
    )


@some
@given(
    diagnosis=diagnoses(),
    link=st.sampled_from(["", "https://triage.example/incidents/i-1", "javascript:alert(1)", "https://a|b>"]),
)
def test_slack_takes_any_message(diagnosis: Diagnosis, link: str) -> None:
    """Within all limits of the local Slack, and under 12,000 characters; nothing pings, closes a fence, or steers a
    terminal.
    """
    for made in (slack.message(diagnosis, link=link, incident="i-4f2a9c"), slack.thread(diagnosis)):
        assert find_problem({"channel": "C1", **made}) == ""
        assert sum(map(slack.size, made["blocks"])) <= slack.TOTAL
        assert made["text"]
        for text in strings(made):
            assert not re.search(r"<(?!https://triage\.example/incidents/i-1\|)", text)
            assert not re.search(r"&(?!amp;|lt;|gt;)", text)
            assert not re.search(
                "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]", text
            )
            assert text.count("```") in (0, 2)
            if "```" in text:
                assert text.endswith("\n```")


@some
@given(diagnosis=diagnoses())
def test_annotations_are_workflow_commands(diagnosis: Diagnosis) -> None:
    """Each line is one command, ten of a level at most; no text starts another command."""
    lines = github.render(diagnosis).split("\n")
    assert lines.pop() == ""
    commands = [re.fullmatch(r"::(error|warning|notice) (?:[A-Za-z]+=[^,:\n]*,?)+::([^\r\n]*)", line) for line in lines]
    assert all(commands)
    kinds = [command[1] for command in commands if command]
    assert max(kinds.count("error"), kinds.count("warning")) <= 10
    assert all(len(line) < 20_000 for line in lines)


@some
@given(diagnosis=diagnoses(), limit=st.sampled_from([2000, 65_536, github.SUMMARY]))
def test_markdown_for_forges_is_cut(diagnosis: Diagnosis, limit: int) -> None:
    """Never longer than the place takes, and no fence stays open; our marker comes first."""
    for text in (github.summary(diagnosis, limit=limit), github.comment(diagnosis, "ci/train", limit=limit)):
        assert len(text.encode()) <= limit
        open_fence = ""
        for line in text.split("\n"):
            mark = re.match("`{3,}", line)
            if mark:
                open_fence = "" if open_fence == mark[0] else open_fence or mark[0]
        assert open_fence == ""
    assert github.comment(diagnosis, "ci/train").startswith("<!-- triage:ci/train -->\n")
    assert len(gitlab.note(diagnosis, "k")) <= 1_000_000


@some
@given(diagnosis=diagnoses())
def test_xml_is_well_formed(diagnosis: Diagnosis) -> None:
    """Any reader of XML takes it, the counts are right, and a clean job has no failure."""
    (suite,) = ElementTree.fromstring(junit.render(diagnosis).encode("utf-8"))
    cases = suite.findall("testcase")
    failures = suite.findall("testcase/failure")
    assert (int(suite.attrib["tests"]), int(suite.attrib["failures"])) == (len(cases), len(failures))
    assert bool(failures) == (diagnosis.verdict != "clean")


@some
@given(diagnosis=diagnoses())
def test_sarif_and_code_quality_follow_their_standards(diagnosis: Diagnosis) -> None:
    """Required properties, rules that exist, levels and severities of the standard, addresses without spaces, no issue
    twice.
    """
    (run,) = json.loads(sarif.render(diagnosis))["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(rules)) == len(rules)
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["message"]["text"]
        assert result["level"] in ("error", "warning", "note")
        for place in result["locations"]:
            physical = place["physicalLocation"]
            assert re.fullmatch(r"[A-Za-z0-9%/!._~-]+", physical["artifactLocation"]["uri"])
            assert (
                1
                <= physical.get("region", {"startLine": 1})["startLine"]
                <= physical.get("region", {"endLine": 1})["endLine"]
            )
    issues = json.loads(codequality.render(diagnosis))
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    for issue in issues:
        assert issue["description"] is not None
        assert issue["check_name"]
        assert issue["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert issue["location"]["path"]
        assert issue["location"]["lines"]["begin"] >= 1


@pytest.mark.parametrize("diagnosis", factories.ALL, ids=lambda diagnosis: diagnosis.verdict)
@pytest.mark.parametrize("name", NAMES)
def test_every_format_writes_every_verdict(diagnosis: Diagnosis, name: str) -> None:
    """Only the formats in `LINKED` show the link."""
    shown = render(diagnosis, name, link="https://triage.example/i")
    assert shown.endswith("\n") or shown == ""
    assert ("https://triage.example/i" in shown) == (name in LINKED)


def test_slack_shows_the_cause_first() -> None:
    """Cause, ranks, time, confidence, advice, link and buttons."""
    made = slack.message(factories.KNOWN, link="https://t.example/i-1", incident="i-1", notes=["Agreed by <@U1>"])
    texts = strings(made["blocks"])
    assert any(":red_circle: *Root cause:* DataLoader worker was killed" in text for text in texts)
    assert any(
        "1 of 2 ranks, rank 1 on node1 at 03:00:26 · high confidence · `data.worker-killed`" in text for text in texts
    )
    assert "*What to do:* Give the job more host memory." in texts
    assert any("<https://t.example/i-1|i-1>" in text for text in texts)
    assert "Agreed by <@U1>" in texts
    assert [button["action_id"] for button in made["blocks"][-1]["elements"]] == [
        "triage.agree",
        "triage.wrong",
        "triage.mute",
    ]


def test_the_tenth_annotation_counts_the_rest() -> None:
    """The runner hides annotations after the tenth."""
    many = tuple(replace(factories.UNKNOWN, cluster=f"u-{number:06}") for number in range(30))
    lines = github.render(replace(factories.UNKNOWN_ROOT, root_cause=many[0], unknown=many)).splitlines()
    errors = [line for line in lines if line.startswith("::error")]
    assert len(errors) == 10
    assert errors[-1].endswith("::+ 21 more, see the step summary")


def test_a_key_cannot_end_its_marker() -> None:
    """Whatever a job is called, the marker is one comment of HTML."""
    assert github.marker("a --> b\n<x>") == "<!-- triage:a-b-x -->"
    assert github.marker("") == "<!-- triage:job -->"
