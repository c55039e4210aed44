"""The diagnosis as JSON, schema "triage.diagnosis/2" of docs/json.md: keys in its order, times in ISO 8601 with Z.

Equal diagnoses give equal bytes. `read` is the inverse, for a saved report. What the schema does not name (offsets,
components, process ids) is not written; `local_rank`, `cluster` and `alongside` are written only where the schema wants
them.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from triage.base.lazy_re import lazy_re
from triage.model import Diagnosis, Evidence, FinalLine, Finding, Inconclusive, Job, Moment, RankState, Stats
from triage.render.interface import SCHEMA
from triage.render.phrases import to_datetime

__all__ = ["document", "dump_json", "evidence", "name", "read", "render"]

name = "json"

# Inside a JSON string these are legal, and on a terminal they act: written as escapes, they are the same string.
_ACTIVE = lazy_re(
    "[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_SURROGATES = lazy_re(r"[\ud800-\udfff]")


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool = False) -> str:
    """Return one JSON object; a lone surrogate, which no JSON reader accepts, becomes U+FFFD."""
    return dump_json(document(diagnosis))


def read(text: str, source: str | None = None) -> Diagnosis:
    """Return the diagnosis that `render` wrote, see `json_reader`."""
    from triage.render import json_reader

    return json_reader.read(text, source)


def dump_json(value: object, indent: int = 2) -> str:
    """Return a JSON document without characters that act on a terminal or break a strict reader."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    return _ACTIVE.sub(_escape, _SURROGATES.sub("\ufffd", text)) + "\n"


def document(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the report as plain dicts and lists."""
    root = diagnosis.root_cause
    return {
        "schema": SCHEMA,
        "tool": {"version": diagnosis.tool_version, "catalog": diagnosis.catalog_version},
        "job": _job(diagnosis.job),
        "verdict": diagnosis.verdict,
        "root_cause": None if root is None else _finding(root),
        "inconclusive": None if diagnosis.inconclusive is None else _inconclusive(diagnosis.inconclusive),
        "findings": [_finding(finding) for finding in diagnosis.findings],
        "unknown": [_unknown(finding) for finding in diagnosis.unknown],
        "timeline": list(map(_moment, diagnosis.timeline)),
        "ranks": list(map(_rank, diagnosis.ranks)),
        "warnings": [{"code": w.code, "source": w.source, "message": w.message} for w in diagnosis.warnings],
        "stats": _stats(diagnosis.stats),
    }


def _stats(stats: Stats) -> dict[str, Any]:
    row: dict[str, Any] = {
        "files": stats.files,
        "bytes": stats.bytes,
        "hits": stats.hits,
        "seconds": _number(stats.seconds),
        "peak_memory_bytes": stats.peak_memory_bytes,
    }
    if stats.remote is not None:
        row["remote"] = {
            "requests": stats.remote.requests,
            "retries": stats.remote.retries,
            "bytes": stats.remote.bytes,
        }
    return row


def _inconclusive(known: Inconclusive) -> dict[str, Any]:
    return {
        "why": list(known.why),
        "last_lines": list(map(_final_line, known.last_lines)),
        "unusual_lines": list(map(_final_line, known.unusual_lines)),
        "looked_for": list(known.looked_for),
        "next_steps": list(known.next_steps),
    }


def _final_line(line: FinalLine) -> dict[str, Any]:
    return {
        "rank": line.rank,
        "source": line.source,
        "line": line.line,
        "time": _time(line.time),
        "text": line.text,
    }


def _moment(moment: Moment) -> dict[str, Any]:
    or_later = {"or_later": True} if moment.or_later else {}
    return {
        "time": _time(moment.time),
        **or_later,
        "rank": moment.rank,
        "what": moment.what,
        "signature": moment.signature,
    }


def _rank(state: RankState) -> dict[str, Any]:
    return {
        "rank": state.rank,
        "host": state.host,
        "state": state.state,
        "last_step": state.last_step,
        "last_time": _time(state.last_time),
    }


def _job(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "name": job.name,
        "path": job.path,
        "world_size": job.world_size,
        "ranks": list(job.ranks),
        "hosts": {host: list(ranks) for host, ranks in job.hosts.items()},
        "first_time": _time(job.first_time),
        "last_time": _time(job.last_time),
        "versions": dict(job.versions),
        **({"facts": {name: list(values) for name, values in job.facts.items()}} if job.facts else {}),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    cluster = {} if finding.cluster is None else {"cluster": finding.cluster}
    alongside = {"alongside": list(finding.alongside)} if finding.alongside else {}
    return {
        "signature": finding.signature,
        **cluster,
        "revision": finding.revision,
        "fingerprint": finding.fingerprint,
        "title": finding.title,
        "domain": finding.domain,
        "role": finding.role,
        "severity": finding.severity,
        "confidence": _number(finding.confidence),
        "ranks": list(finding.ranks),
        "hosts": list(finding.hosts),
        "count": finding.count,
        "first_time": _time(finding.first_time),
        "explained_by": list(finding.explained_by),
        **alongside,
        "why": list(finding.why),
        "captures": dict(finding.captures),
        "evidence": [evidence(item) for item in finding.evidence],
        "remediation": {
            "summary": finding.remediation.summary,
            "steps": list(finding.remediation.steps),
            "references": list(finding.remediation.references),
        },
    }


def _unknown(finding: Finding) -> dict[str, Any]:
    return {
        "cluster": finding.cluster,
        "title": finding.title,
        "ranks": list(finding.ranks),
        "count": finding.count,
        "evidence": [evidence(item) for item in finding.evidence],
        "similar": list(finding.similar),
    }


def evidence(item: Evidence) -> dict[str, Any]:
    """Return one evidence as its JSON object."""
    origin = item.origin
    local = {} if origin.rank is not None or origin.local_rank is None else {"local_rank": origin.local_rank}
    return {
        "source": item.source,
        "line": item.line,
        "end_line": item.end_line,
        "rank": origin.rank,
        **local,
        "host": origin.host,
        "time": _time(origin.time),
        "kind": item.kind,
        "text": item.text,
    }


def _time(seconds: float | None) -> str | None:
    when = to_datetime(seconds)
    return None if when is None else when.replace(tzinfo=None).isoformat() + "Z"


def _number(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _escape(match: re.Match[str]) -> str:
    return json.dumps(match.group())[1:-1]
