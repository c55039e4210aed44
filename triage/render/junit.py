"""For Jenkins and every other reader of JUnit's XML: one test case for the job, failed unless it is clean, and one for
each further failure.

Only what the common schema of the Jenkins plugin knows is written. XML 1.0 has no way to write most control characters;
they are left out.
"""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from triage.base.lazy_re import lazy_re
from triage.model.diagnosis import Diagnosis, Finding
from triage.render import text, words
from triage.render.safe import clip, safe, safe_line

__all__ = ["name", "render"]

name = "junit"

MESSAGE = 1000
_NOT_XML = lazy_re("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool = False, link: str = "") -> str:
    """A test suite named like the job; the report stands in its output."""
    root = diagnosis.root_cause
    failed = diagnosis.verdict != "clean"
    cases = (
        [_case("root cause", root, words.headline(diagnosis), diagnosis)]
        if failed
        else [_passed("no failure", diagnosis)]
    )
    others = words.others(diagnosis) if failed else []
    cases += [_case(finding.cluster or finding.title, finding, finding.title, diagnosis) for finding in others]
    count = len(others) + 1
    seconds = max((diagnosis.job.last_time or 0) - (diagnosis.job.first_time or 0), 0)
    said = {
        "name": "triage",
        "tests": str(count),
        "failures": str(count if failed else 0),
        "errors": "0",
        "time": f"{seconds:.3f}",
    }
    named = " ".join(f"{key}={_attribute(value)}" for key, value in said.items())
    out = f"<system-out>{_content(text.render(diagnosis))}</system-out>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n<testsuite {named}>\n{"".join(cases)}{out}\n</testsuite>\n</testsuites>\n'


def _case(title: str, finding: Finding | None, headline: str, diagnosis: Diagnosis) -> str:
    kind = (finding.signature or finding.cluster if finding is not None else None) or "unknown"
    said = f"type={_attribute(safe_line(kind))} message={_attribute(clip(safe_line(headline), MESSAGE))}"
    return f"<testcase {_named(title, diagnosis)}>\n<failure {said}>{_content(_body(finding, diagnosis))}</failure>\n</testcase>\n"


def _passed(title: str, diagnosis: Diagnosis) -> str:
    return f"<testcase {_named(title, diagnosis)}/>\n"


def _named(title: str, diagnosis: Diagnosis) -> str:
    suite = clip(safe_line(diagnosis.job.name), 200) or "job"
    return f"classname={_attribute(f'triage.{suite}')} name={_attribute(clip(safe_line(title), 200))}"


def _body(finding: Finding | None, diagnosis: Diagnosis) -> str:
    if finding is None:
        return ""
    lines = [words.who(finding)]
    for item in finding.evidence[:4]:
        lines += [words.place(item, diagnosis), clip(item.text, 4000)]
    lines += [finding.remediation.summary, *finding.remediation.steps]
    return "\n".join(line for line in lines if line)


def _content(written: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", safe(written)))


def _attribute(value: str) -> str:
    return quoteattr(_NOT_XML.sub("\ufffd", value))
