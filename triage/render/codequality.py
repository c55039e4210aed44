"""For GitLab's merge request widget: `artifacts:reports:codequality`, a list of issues in the form of Code Climate.

GitLab asks for description, check_name, fingerprint, severity and location.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from triage.model.diagnosis import Diagnosis, Finding
from triage.render import words
from triage.render.safe import clip, safe_line

__all__ = ["name", "render"]

name = "codequality"

DESCRIPTION = 1000
_SEVERITY = {"fatal": "blocker", "error": "critical", "warning": "minor", "info": "info"}


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool = False, link: str = "") -> str:
    """An issue for the root cause and one for each other failure; none for a clean job."""
    root = diagnosis.root_cause
    found = (
        []
        if diagnosis.verdict == "clean"
        else [*([root] if root is not None else []), *words.groups(diagnosis).considered, *words.others(diagnosis)]
    )
    issues = {issue["fingerprint"]: issue for issue in (_issue(finding, diagnosis) for finding in found)}
    return json.dumps(list(issues.values()), ensure_ascii=False, indent=2) + "\n"


def _issue(finding: Finding, diagnosis: Diagnosis) -> dict[str, Any]:
    first = next(iter(finding.evidence), None)
    path = safe_line(words.short(first.source, diagnosis)) if first is not None else ""
    check = safe_line(finding.signature or finding.cluster or "") or "unknown"
    who = words.who(finding)
    return {
        "description": clip(safe_line(finding.title + (f" ({who})" if who else "")), DESCRIPTION),
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
