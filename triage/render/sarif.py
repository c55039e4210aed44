"""The report as SARIF 2.1.0 for code scanning and editors: a rule for each signature, a result for each finding.

The required properties come from the OASIS standard; GitHub shows `message.text` and the location, and identifies a
result by `partialFingerprints`.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from triage.model import Diagnosis, Evidence, Finding
from triage.render import inconclusive, phrases
from triage.render.sanitize import clip, sanitize, sanitize_line
from triage.render.slack import address

__all__ = ["name", "render"]

name = "sarif"

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
UNKNOWN = "unknown.failure"
MESSAGE = 4000
PLACES = 10
_LEVEL = {"fatal": "error", "error": "error", "warning": "warning", "info": "note"}


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool = False, link: str = "") -> str:
    """Return one run; a clean job has no results."""
    findings = _reported(diagnosis)
    rules: dict[str, dict[str, Any]] = {}
    for finding in findings:
        rules.setdefault(_rule_id(finding), _rule(finding))
    numbers = {name: number for number, name in enumerate(rules)}
    driver = {
        "name": "triage",
        "version": sanitize_line(diagnosis.tool_version),
        "rules": list(rules.values()),
    }
    notes = [
        {"level": "note", "message": {"text": clip(sanitize_line(item.message), MESSAGE) or "-"}}
        for item in diagnosis.warnings[:100]
    ]
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
        "results": [_result(finding, diagnosis, numbers) for finding in findings],
        "columnKind": "unicodeCodePoints",
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, ensure_ascii=True, indent=2) + "\n"


def _reported(diagnosis: Diagnosis) -> list[Finding]:
    """Return the root cause, the other candidates, then their consequences, without noise."""
    if diagnosis.verdict == "clean":
        return []
    if diagnosis.verdict == "inconclusive":
        return [inconclusive.as_finding(diagnosis)]
    groups = phrases.group_findings(diagnosis)
    root = diagnosis.root_cause
    return [
        *([root] if root is not None else []),
        *groups.considered,
        *groups.aftermath,
        *phrases.other_unknowns(diagnosis),
        *groups.caused,
        *groups.confirmed,
    ]


def _rule_id(finding: Finding) -> str:
    return finding.signature or UNKNOWN


def _rule(finding: Finding) -> dict[str, Any]:
    known = finding.signature is not None
    rule: dict[str, Any] = {
        "id": _rule_id(finding),
        "shortDescription": {
            "text": clip(sanitize_line(finding.title), 200) or "-" if known else "A failure without a signature"
        },
        "defaultConfiguration": {"level": _LEVEL[finding.severity]},
    }
    advice = finding.remediation
    if known and (advice.summary or advice.steps):
        rule["help"] = {"text": clip(sanitize("\n".join([advice.summary, *advice.steps])), MESSAGE)}
    if known and advice.references and address(advice.references[0]):
        rule["helpUri"] = advice.references[0]
    return rule


def _result(finding: Finding, diagnosis: Diagnosis, numbers: dict[str, int]) -> dict[str, Any]:
    is_root = finding is diagnosis.root_cause
    extent = phrases.describe_extent(diagnosis) if is_root else phrases.describe_location(finding)
    parts = [
        finding.title + (f" ({extent})" if extent else ""),
        "".join(item.text for item in finding.evidence[:1] if not phrases.repeats_title(item, finding)),
        finding.remediation.summary,
    ]
    name = finding.signature or finding.cluster or finding.title
    rule = _rule_id(finding)
    return {
        "ruleId": rule,
        "ruleIndex": numbers[rule],
        "level": _LEVEL[finding.severity] if is_root or not finding.explained_by else "note",
        "message": {"text": clip(sanitize("\n".join(part for part in parts if part)), MESSAGE) or "-"},
        "locations": [_location(item, diagnosis) for item in finding.evidence[:PLACES]],
        "partialFingerprints": {"triage/v1": hashlib.sha256(name.encode(errors="replace")).hexdigest()[:32]},
        "properties": {
            "rootCause": is_root,
            "confidence": round(finding.confidence, 3),
            "ranks": list(finding.ranks[:1000]),
        },
    }


def _location(item: Evidence, diagnosis: Diagnosis) -> dict[str, Any]:
    source = sanitize_line(phrases.relative_source(item.source, diagnosis)) or "unknown"
    place: dict[str, Any] = {"artifactLocation": {"uri": _quoted(source.lstrip("/")) or "."}}
    if item.line is not None and item.line > 0:
        place["region"] = {"startLine": item.line, "endLine": max(item.end_line or item.line, item.line)}
    return {"physicalLocation": place}


def _quoted(path: str) -> str:
    """Return the path as an address: all but letters, digits and `/!._-~` percent-encoded as UTF-8 (RFC 3986)."""
    return re.sub(
        rb"[^A-Za-z0-9/!._~-]", lambda sign: f"%{sign[0][0]:02X}".encode(), path.encode("utf-8", "replace")
    ).decode("ascii")
