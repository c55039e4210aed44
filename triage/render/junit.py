"""The report as JUnit XML for Jenkins and others: a case for the job, failed unless clean, and for each other failure.

Only elements of the common schema of the Jenkins plugin are written. XML 1.0 cannot hold most control characters; they
are left out.
"""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from triage.base.lazy_re import lazy_re
from triage.model.diagnosis import Diagnosis, Finding
from triage.render import inconclusive, phrases, text
from triage.render.sanitize import clip, sanitize, sanitize_line

__all__ = ["name", "render"]

name = "junit"

MESSAGE = 1000
_NOT_XML = lazy_re("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool = False, link: str = "") -> str:
    """Return a test suite with the text report as its output."""
    is_inconclusive = diagnosis.verdict == "inconclusive"
    root = inconclusive.as_finding(diagnosis) if is_inconclusive else diagnosis.root_cause
    failed = diagnosis.verdict != "clean"
    title = "proof of a good end" if is_inconclusive else "root cause"
    cases = (
        [_case(title, root, phrases.headline(diagnosis), diagnosis)]
        if failed
        else [f"<testcase {_case_name('no failure', diagnosis)}/>\n"]
    )
    others = phrases.other_unknowns(diagnosis) if failed else []
    cases += [_case(finding.cluster or finding.title, finding, finding.title, diagnosis) for finding in others]
    count = len(others) + 1
    seconds = max((diagnosis.job.last_time or 0) - (diagnosis.job.first_time or 0), 0)
    attributes = {
        "name": "triage",
        "tests": str(count),
        "failures": str(count if failed else 0),
        "errors": "0",
        "time": f"{seconds:.3f}",
    }
    head = " ".join(f"{key}={_attribute(value)}" for key, value in attributes.items())
    out = f"<system-out>{_content(text.render(diagnosis))}</system-out>"
    suite = f"<testsuite {head}>\n{''.join(cases)}{out}\n</testsuite>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{suite}\n</testsuites>\n'


def _case(title: str, finding: Finding | None, headline: str, diagnosis: Diagnosis) -> str:
    kind = (finding.signature or finding.cluster if finding is not None else None) or "unknown"
    head = f"type={_attribute(sanitize_line(kind))} message={_attribute(clip(sanitize_line(headline), MESSAGE))}"
    failure = f"<failure {head}>{_content(_body(finding, diagnosis))}</failure>"
    return f"<testcase {_case_name(title, diagnosis)}>\n{failure}\n</testcase>\n"


def _case_name(title: str, diagnosis: Diagnosis) -> str:
    suite = clip(sanitize_line(diagnosis.job.name), 200) or "job"
    return f"classname={_attribute(f'triage.{suite}')} name={_attribute(clip(sanitize_line(title), 200))}"


def _body(finding: Finding | None, diagnosis: Diagnosis) -> str:
    if finding is None:
        return ""
    lines = [phrases.describe_location(finding)]
    for item in phrases.distinct_evidence(finding)[:4]:
        lines += [phrases.format_place(item, diagnosis), clip(item.text, 4000)]
    lines += [finding.remediation.summary, *finding.remediation.steps]
    return "\n".join(line for line in lines if line)


def _content(written: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", sanitize(written)))


def _attribute(value: str) -> str:
    return quoteattr(_NOT_XML.sub("\ufffd", value))
