"""SARIF 2.1.0, for code scanning and every editor that reads it: a rule a signature, a result a finding.

What is required comes from the OASIS standard; GitHub shows `message.text`, the location, and tells results apart by
`partialFingerprints`.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from triage.model.diagnosis import Diagnosis, Finding
from triage.model.evidence import Evidence
from triage.render import words
from triage.render.safe import clip, safe, safe_line
from triage.render.slack import address

__all__ = ["name", "render"]

name = "sarif"

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
UNKNOWN = "unknown.failure"
MESSAGE = 4000
PLACES = 10
_LEVEL = {"fatal": "error", "error": "error", "warning": "warning", "info": "note"}


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool = False, link: str = "") -> str:
    """One run; a clean job has no results."""
    found = _found(diagnosis)
    rules: dict[str, dict[str, Any]] = {}
    for finding in found:
        rules.setdefault(_rule(finding), _described(finding))
    numbers = {name: number for number, name in enumerate(rules)}
    driver = {
        "name": "triage",
        "version": safe_line(diagnosis.tool_version),
        "rules": list(rules.values()),
    }
    notes = [
        {"level": "note", "message": {"text": clip(safe_line(item.message), MESSAGE) or "-"}}
        for item in diagnosis.warnings[:100]
    ]
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
        "results": [_result(finding, diagnosis, numbers) for finding in found],
        "columnKind": "unicodeCodePoints",
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, ensure_ascii=True, indent=2) + "\n"


def _found(diagnosis: Diagnosis) -> list[Finding]:
    """The root cause first, then what is to blame beside it, then what followed; noise is left out."""
    if diagnosis.verdict == "clean":
        return []
    groups = words.groups(diagnosis)
    root = diagnosis.root_cause
    return [
        *([root] if root is not None else []),
        *groups.considered,
        *words.others(diagnosis),
        *groups.caused,
        *groups.confirmed,
    ]


def _rule(finding: Finding) -> str:
    return finding.signature or UNKNOWN


def _described(finding: Finding) -> dict[str, Any]:
    known = finding.signature is not None
    rule: dict[str, Any] = {
        "id": _rule(finding),
        "shortDescription": {
            "text": clip(safe_line(finding.title), 200) or "-" if known else "A failure that no signature knows"
        },
        "defaultConfiguration": {"level": _LEVEL[finding.severity]},
    }
    advice = finding.remediation
    if known and (advice.summary or advice.steps):
        rule["help"] = {"text": clip(safe("\n".join([advice.summary, *advice.steps])), MESSAGE)}
    if known and advice.references and address(advice.references[0]):
        rule["helpUri"] = advice.references[0]
    return rule


def _result(finding: Finding, diagnosis: Diagnosis, numbers: dict[str, int]) -> dict[str, Any]:
    is_root = finding is diagnosis.root_cause
    who = words.radius(diagnosis) if is_root else words.who(finding)
    told = [
        finding.title + (f" ({who})" if who else ""),
        finding.evidence[0].text if finding.evidence else "",
        finding.remediation.summary,
    ]
    name = finding.signature or finding.cluster or finding.title
    rule = _rule(finding)
    return {
        "ruleId": rule,
        "ruleIndex": numbers[rule],
        "level": _LEVEL[finding.severity] if is_root or not finding.explained_by else "note",
        "message": {"text": clip(safe("\n".join(part for part in told if part)), MESSAGE) or "-"},
        "locations": [_location(item, diagnosis) for item in finding.evidence[:PLACES]],
        "partialFingerprints": {"triage/v1": hashlib.sha256(name.encode(errors="replace")).hexdigest()[:32]},
        "properties": {
            "rootCause": is_root,
            "confidence": round(finding.confidence, 3),
            "ranks": list(finding.ranks[:1000]),
        },
    }


def _location(item: Evidence, diagnosis: Diagnosis) -> dict[str, Any]:
    source = safe_line(words.short(item.source, diagnosis)) or "unknown"
    place: dict[str, Any] = {"artifactLocation": {"uri": _quoted(source.lstrip("/"))}}
    if item.line is not None and item.line > 0:
        place["region"] = {"startLine": item.line, "endLine": max(item.end_line or item.line, item.line)}
    return {"physicalLocation": place}


def _quoted(path: str) -> str:
    """The path as an address: everything but letters, digits and `/!._-~` as the percent signs of its UTF-8 (RFC 3986)."""
    return re.sub(
        rb"[^A-Za-z0-9/!._~-]", lambda sign: f"%{sign[0][0]:02X}".encode(), path.encode("utf-8", "replace")
    ).decode("ascii")
