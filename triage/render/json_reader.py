"""Read a saved report: the strict inverse of `json.render`, because a report may come from anywhere.

msgspec checks every key of docs/json.md against the tables below. What may be null may also be missing. Keys that are
not listed are ignored.
"""
# ruff: noqa: UP013 - a table of keys and types per object, as docs/json.md has them

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NoReturn, NotRequired, TypedDict

import msgspec

from triage.base.errors import ReportError
from triage.base.shared_types import share_type
from triage.model import (
    Diagnosis,
    Evidence,
    FinalLine,
    Finding,
    Inconclusive,
    Job,
    Moment,
    Origin,
    RankState,
    Remediation,
    Role,
    Severity,
    Stats,
    Verdict,
    Warning,
)
from triage.model.diagnosis import RemoteCost
from triage.render.interface import READABLE

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HINT = "write the report with `triage ingest PATH --format json -o FILE` and give that file"

_Number = Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
_Time = Annotated[datetime, msgspec.Meta(tz=True)]
_Evidence = TypedDict(
    "_Evidence",
    {
        "source": str,
        "line": NotRequired[int | None],
        "end_line": NotRequired[int | None],
        "rank": NotRequired[int | None],
        "local_rank": NotRequired[int | None],
        "host": NotRequired[str | None],
        "time": NotRequired[_Time | None],
        "kind": str,
        "text": str,
    },
)
_Remediation = TypedDict("_Remediation", {"summary": str, "steps": tuple[str, ...], "references": tuple[str, ...]})
_Finding = TypedDict(
    "_Finding",
    {
        "signature": NotRequired[str | None],
        "cluster": NotRequired[str | None],
        "revision": NotRequired[int | None],
        "fingerprint": NotRequired[str | None],
        "title": str,
        "domain": str,
        "role": Role,
        "severity": Severity,
        "confidence": _Number,
        "ranks": tuple[int, ...],
        "hosts": tuple[str, ...],
        "count": int,
        "first_time": NotRequired[_Time | None],
        "explained_by": tuple[str, ...],
        "alongside": NotRequired[tuple[str, ...]],
        "why": tuple[str, ...],
        "captures": dict[str, str],
        "evidence": list[_Evidence],
        "remediation": _Remediation,
    },
)
_Unknown = TypedDict(
    "_Unknown",
    {
        "cluster": NotRequired[str | None],
        "title": str,
        "ranks": tuple[int, ...],
        "count": int,
        "evidence": list[_Evidence],
        "similar": tuple[str, ...],
    },
)
_Moment = TypedDict(
    "_Moment",
    {
        "time": NotRequired[_Time | None],
        "rank": NotRequired[int | None],
        "what": str,
        "signature": NotRequired[str | None],
        "or_later": NotRequired[bool],
    },
)
_Rank = TypedDict(
    "_Rank",
    {
        "rank": int,
        "host": NotRequired[str | None],
        "state": Literal["failed", "stalled", "killed", "ok", "silent", "unclear"],
        "last_step": NotRequired[int | None],
        "last_time": NotRequired[_Time | None],
    },
)
_Job = TypedDict(
    "_Job",
    {
        "id": str,
        "name": str,
        "path": str,
        "world_size": NotRequired[int | None],
        "ranks": tuple[int, ...],
        "hosts": dict[str, tuple[int, ...]],
        "first_time": NotRequired[_Time | None],
        "last_time": NotRequired[_Time | None],
        "versions": dict[str, str],
        "facts": NotRequired[dict[str, tuple[str, ...]]],
    },
)
_Warning = TypedDict("_Warning", {"code": str, "source": NotRequired[str | None], "message": str})
_FinalLine = TypedDict(
    "_FinalLine",
    {
        "rank": NotRequired[int | None],
        "source": str,
        "line": NotRequired[int | None],
        "time": NotRequired[_Time | None],
        "text": str,
    },
)
_Inconclusive = TypedDict(
    "_Inconclusive",
    {
        "why": tuple[str, ...],
        "last_lines": list[_FinalLine],
        "unusual_lines": list[_FinalLine],
        "looked_for": tuple[str, ...],
        "next_steps": tuple[str, ...],
    },
)
_Tool = TypedDict("_Tool", {"version": str, "catalog": str})
_Remote = TypedDict("_Remote", {"requests": int, "retries": int, "bytes": int})
_Stats = TypedDict(
    "_Stats",
    {
        "files": int,
        "bytes": int,
        "hits": int,
        "seconds": _Number,
        "peak_memory_bytes": int,
        "remote": NotRequired[_Remote],
    },
)
_Report = TypedDict(
    "_Report",
    {
        "tool": _Tool,
        "job": _Job,
        "verdict": Verdict,
        "root_cause": NotRequired[_Finding | None],
        "findings": list[_Finding],
        "unknown": list[_Unknown],
        "timeline": list[_Moment],
        "ranks": list[_Rank],
        "warnings": list[_Warning],
        "stats": _Stats,
        "inconclusive": NotRequired[_Inconclusive | None],
    },
)


def read(text: str, source: str | None = None) -> Diagnosis:
    """Return the diagnosis that `render` wrote. Raises ReportError, which names `source`, for anything else."""
    value = _parse(text, source)
    schema = value.get("schema") if isinstance(value, dict) else None
    if not isinstance(schema, str):
        raise ReportError('not a triage report: the JSON has no "schema"', hint=_HINT, path=source)
    if schema not in READABLE:
        schemas = " and ".join(f'"{name}"' for name in READABLE)
        message = f'the report has schema "{schema}", this version of triage reads {schemas}'
        hint = "use the version of triage that wrote it, or ingest the logs again"
        raise ReportError(message, hint=hint, path=source)
    try:
        return _diagnosis(msgspec.convert(value, share_type(_Report)))
    except msgspec.ValidationError as error:
        raise ReportError(f"invalid report: {error}", hint=_HINT, path=source) from None


def _parse(text: str, source: str | None) -> Any:
    try:
        # A byte order mark is what some editors add; it is not part of the report.
        return json.loads(text.removeprefix("\ufeff"), parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg} in column {error.colno}"
        raise ReportError(message, hint=_HINT, path=source, line=error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise ReportError(f"not JSON: {type(error).__name__}", hint=_HINT, path=source) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _stats(row: _Stats) -> Stats:
    remote = row.get("remote")
    return Stats(
        row["files"],
        row["bytes"],
        row["hits"],
        row["seconds"],
        row["peak_memory_bytes"],
        RemoteCost(**remote) if remote is not None else None,
    )


def _diagnosis(report: _Report) -> Diagnosis:
    root = report.get("root_cause")
    return Diagnosis(
        tool_version=report["tool"]["version"],
        catalog_version=report["tool"]["catalog"],
        job=_job(report["job"]),
        verdict=report["verdict"],
        root_cause=None if root is None else _finding(root),
        findings=tuple(map(_finding, report["findings"])),
        unknown=tuple(map(_unknown, report["unknown"])),
        timeline=tuple(map(_moment, report["timeline"])),
        ranks=tuple(map(_rank, report["ranks"])),
        warnings=tuple(Warning(item["code"], item.get("source"), item["message"]) for item in report["warnings"]),
        stats=_stats(report["stats"]),
        inconclusive=_inconclusive(report.get("inconclusive")),
    )


def _inconclusive(known: _Inconclusive | None) -> Inconclusive | None:
    if known is None:
        return None
    return Inconclusive(
        why=known["why"],
        last_lines=tuple(map(_final_line, known["last_lines"])),
        unusual_lines=tuple(map(_final_line, known["unusual_lines"])),
        looked_for=known["looked_for"],
        next_steps=known["next_steps"],
    )


def _final_line(line: _FinalLine) -> FinalLine:
    return FinalLine(line.get("rank"), line["source"], line.get("line"), _seconds(line.get("time")), line["text"])


def _job(job: _Job) -> Job:
    return Job(
        id=job["id"],
        name=job["name"],
        path=job["path"],
        world_size=job.get("world_size"),
        ranks=job["ranks"],
        hosts=job["hosts"],
        first_time=_seconds(job.get("first_time")),
        last_time=_seconds(job.get("last_time")),
        versions=job["versions"],
        facts=job.get("facts", {}),
    )


def _finding(finding: _Finding) -> Finding:
    return Finding(
        signature=finding.get("signature"),
        title=finding["title"],
        domain=finding["domain"],
        role=finding["role"],
        severity=finding["severity"],
        confidence=finding["confidence"],
        ranks=finding["ranks"],
        hosts=finding["hosts"],
        count=finding["count"],
        first_time=_seconds(finding.get("first_time")),
        revision=finding.get("revision"),
        fingerprint=finding.get("fingerprint"),
        cluster=finding.get("cluster"),
        explained_by=finding["explained_by"],
        alongside=finding.get("alongside", ()),
        why=finding["why"],
        captures=finding["captures"],
        evidence=tuple(map(_evidence, finding["evidence"])),
        remediation=Remediation(**finding["remediation"]),
    )


def _unknown(finding: _Unknown) -> Finding:
    """Return an unknown failure; the schema leaves out what is the same for all of them."""
    return Finding(
        signature=None,
        title=finding["title"],
        domain="unknown",
        role="cause",
        severity="error",
        confidence=0.0,
        ranks=finding["ranks"],
        count=finding["count"],
        cluster=finding.get("cluster"),
        evidence=tuple(map(_evidence, finding["evidence"])),
        similar=finding["similar"],
    )


def _evidence(item: _Evidence) -> Evidence:
    return Evidence(
        kind=item["kind"],
        component="",
        text=item["text"],
        origin=Origin(
            rank=item.get("rank"),
            local_rank=item.get("local_rank"),
            host=item.get("host"),
            time=_seconds(item.get("time")),
        ),
        source=item["source"],
        offset=0,
        line=item.get("line"),
        end_line=item.get("end_line"),
    )


def _moment(item: _Moment) -> Moment:
    return Moment(
        _seconds(item.get("time")), item.get("rank"), item["what"], item.get("signature"), item.get("or_later", False)
    )


def _rank(item: _Rank) -> RankState:
    return RankState(
        item["rank"], item.get("host"), item["state"], item.get("last_step"), _seconds(item.get("last_time"))
    )


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else (time - _EPOCH) / timedelta(microseconds=1) / 1_000_000
