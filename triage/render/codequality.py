"""The report for GitLab's merge request widget (`artifacts:reports:codequality`): issues in the form of Code Climate.

GitLab requires description, check_name, fingerprint, severity and location.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from triage.model.diagnosis import Diagnosis, Finding
from triage.render import inconclusive, phrases
from triage.render.sanitize import clip, sanitize_line

__all__ = ["name", "render"]

name = "codequality"

DESCRIPTION = 1000
_SEVERITY = {"fatal": "blocker", "error": "critical", "warning": "minor", "info": "info"}


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool = False, link: str = "") -> str:
    """Return an issue for the root cause and one for each other failure; none for a clean job, a minor one for an
    inconclusive one.
    """
    root = diagnosis.root_cause
    groups = phrases.group_findings(diagnosis)
    others = [*groups.considered, *groups.aftermath, *phrases.other_unknowns(diagnosis)]
    findings = [] if diagnosis.verdict == "clean" else [*([root] if root is not None else []), *others]
    findings = [inconclusive.as_finding(diagnosis)] if diagnosis.verdict == "inconclusive" else findings
    issues = {issue["fingerprint"]: issue for issue in (_issue(finding, diagnosis) for finding in findings)}
    return json.dumps(list(issues.values()), ensure_ascii=False, indent=2) + "\n"


def _issue(finding: Finding, diagnosis: Diagnosis) -> dict[str, Any]:
    first = next(iter(finding.evidence), None)
    path = sanitize_line(phrases.relative_source(first.source, diagnosis)) if first is not None else ""
    check = sanitize_line(finding.signature or finding.cluster or "") or "unknown"
    location = phrases.describe_location(finding)
    return {
        "description": clip(sanitize_line(finding.title + (f" ({location})" if location else "")), DESCRIPTION),
        "check_name": check,
        "fingerprint": hashlib.sha256(
            f"{check}\0{path}\0{first.line if first else ''}".encode(errors="replace")
        ).hexdigest()[:40],
        "severity": _SEVERITY[finding.severity],
        "location": {
            "path": path or "unknown",
            "lines": {"begin": max(first.line or 1, 1) if first is not None else 1},
        },
    }
