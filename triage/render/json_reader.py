"""Read a saved report: the strict inverse of `json.render`, because a report may come from anywhere."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn, TypeGuard, cast, get_args

from triage.base.errors import ReportError
from triage.model.diagnosis import (
    Diagnosis,
    Finding,
    Job,
    Moment,
    RankState,
    Remediation,
    Role,
    Severity,
    Stats,
    Verdict,
)
from triage.model.evidence import Evidence, Origin, Warning
from triage.render.interface import SCHEMA

STATES = ("failed", "stalled", "killed", "ok", "silent")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HINT = "write the report with `triage ingest PATH --format json -o FILE` and give that file"


def read(text: str, source: str | None = None) -> Diagnosis:
    """Return the diagnosis that `render` wrote. Raises ReportError, which names `source`, for anything else."""
    try:
        return _diagnosis(_load(text))
    except _InvalidReport as error:
        raise ReportError(str(error), hint=error.hint, path=source, line=error.line) from None


class _InvalidReport(Exception):
    def __init__(self, message: str, hint: str = _HINT, line: int | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        self.line = line


def _load(text: str) -> _Object:
    try:
        # A byte order mark is what some editors add; it is not part of the report.
        value = json.loads(text.removeprefix("\ufeff"), parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise _InvalidReport(f"not JSON: {error.msg} in column {error.colno}", line=error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise _InvalidReport(f"not JSON: {type(error).__name__}") from None
    if not isinstance(value, dict) or not isinstance(value.get("schema"), str):
        raise _InvalidReport('not a triage report: the JSON has no "schema"')
    if value["schema"] != SCHEMA:
        message = f'the report has schema "{value["schema"]}", this version of triage reads "{SCHEMA}"'
        raise _InvalidReport(message, "use the version of triage that wrote it, or ingest the logs again")
    return _Object(value, "")


def _constant(name: str) -> NoReturn:
    raise ValueError(name)


class _Object:
    """A JSON object with its path; each method reads one key as one type, or raises with the path of the key."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise _InvalidReport(f"{where or 'the report'} is not an object")
        self.value: dict[str, Any] = value
        self.where = where

    def name(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def wrong(self, key: str, wanted: str) -> NoReturn:
        raise _InvalidReport(f"{self.name(key)} is not {wanted}")

    def text(self, key: str) -> str:
        value = self.value.get(key)
        return value if isinstance(value, str) else self.wrong(key, "a text")

    def maybe_text(self, key: str) -> str | None:
        return None if self.value.get(key) is None else self.text(key)

    def whole(self, key: str) -> int:
        value = self.value.get(key)
        return value if _is_whole(value) else self.wrong(key, "a whole number")

    def maybe_whole(self, key: str) -> int | None:
        return None if self.value.get(key) is None else self.whole(key)

    def number(self, key: str) -> float:
        value = self.value.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.wrong(key, "a number")
        try:
            number = float(value)
        except OverflowError:
            self.wrong(key, "a finite number")
        return number if math.isfinite(number) else self.wrong(key, "a finite number")

    def time(self, key: str) -> float | None:
        text = self.maybe_text(key)
        if text is None:
            return None
        try:
            when = datetime.fromisoformat(text)
        except ValueError:
            self.wrong(key, "a time in ISO 8601")
        if when.tzinfo is None:
            self.wrong(key, "a time with a zone")
        return (when - _EPOCH) / timedelta(microseconds=1) / 1_000_000

    def choice(self, key: str, allowed: tuple[str, ...]) -> str:
        value = self.value.get(key)
        return value if isinstance(value, str) and value in allowed else self.wrong(key, f"one of {', '.join(allowed)}")

    def items(self, key: str) -> list[Any]:
        value = self.value.get(key)
        return value if isinstance(value, list) else self.wrong(key, "a list")

    def objects(self, key: str) -> list[_Object]:
        return [_Object(item, f"{self.name(key)}[{number}]") for number, item in enumerate(self.items(key))]

    def object(self, key: str) -> _Object:
        return _Object(self.value.get(key), self.name(key))

    def texts(self, key: str) -> tuple[str, ...]:
        items = self.items(key)
        return tuple(items) if all(isinstance(item, str) for item in items) else self.wrong(key, "a list of texts")

    def wholes(self, key: str) -> tuple[int, ...]:
        items = self.items(key)
        return tuple(items) if all(map(_is_whole, items)) else self.wrong(key, "a list of whole numbers")

    def text_map(self, key: str) -> dict[str, str]:
        inner = self.object(key)
        return {name: inner.text(name) for name in inner.value}


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _diagnosis(report: _Object) -> Diagnosis:
    tool, stats = report.object("tool"), report.object("stats")
    return Diagnosis(
        tool_version=tool.text("version"),
        catalog_version=tool.text("catalog"),
        job=_job(report.object("job")),
        verdict=cast(Verdict, report.choice("verdict", get_args(Verdict))),
        root_cause=None if report.value.get("root_cause") is None else _finding(report.object("root_cause")),
        findings=tuple(map(_finding, report.objects("findings"))),
        unknown=tuple(map(_unknown, report.objects("unknown"))),
        timeline=tuple(
            Moment(item.time("time"), item.maybe_whole("rank"), item.text("what"), item.maybe_text("signature"))
            for item in report.objects("timeline")
        ),
        ranks=tuple(map(_rank, report.objects("ranks"))),
        warnings=tuple(
            Warning(item.text("code"), item.maybe_text("source"), item.text("message"))
            for item in report.objects("warnings")
        ),
        stats=Stats(
            files=stats.whole("files"),
            bytes=stats.whole("bytes"),
            hits=stats.whole("hits"),
            seconds=stats.number("seconds"),
            peak_memory_bytes=stats.whole("peak_memory_bytes"),
        ),
    )


def _job(job: _Object) -> Job:
    hosts = job.object("hosts")
    return Job(
        id=job.text("id"),
        name=job.text("name"),
        path=job.text("path"),
        world_size=job.maybe_whole("world_size"),
        ranks=job.wholes("ranks"),
        hosts={host: hosts.wholes(host) for host in hosts.value},
        first_time=job.time("first_time"),
        last_time=job.time("last_time"),
        versions=job.text_map("versions"),
    )


def _finding(finding: _Object) -> Finding:
    advice = finding.object("remediation")
    return Finding(
        signature=finding.maybe_text("signature"),
        title=finding.text("title"),
        domain=finding.text("domain"),
        role=cast(Role, finding.choice("role", get_args(Role))),
        severity=cast(Severity, finding.choice("severity", get_args(Severity))),
        confidence=finding.number("confidence"),
        ranks=finding.wholes("ranks"),
        hosts=finding.texts("hosts"),
        count=finding.whole("count"),
        first_time=finding.time("first_time"),
        revision=finding.maybe_whole("revision"),
        fingerprint=finding.maybe_text("fingerprint"),
        cluster=finding.maybe_text("cluster"),
        explained_by=finding.texts("explained_by"),
        why=finding.texts("why"),
        captures=finding.text_map("captures"),
        evidence=tuple(map(_evidence, finding.objects("evidence"))),
        remediation=Remediation(advice.text("summary"), advice.texts("steps"), advice.texts("references")),
    )


def _unknown(finding: _Object) -> Finding:
    """Return an unknown failure; the schema leaves out what is the same for all of them."""
    return Finding(
        signature=None,
        title=finding.text("title"),
        domain="unknown",
        role="cause",
        severity="error",
        confidence=0.0,
        ranks=finding.wholes("ranks"),
        count=finding.whole("count"),
        cluster=finding.maybe_text("cluster"),
        evidence=tuple(map(_evidence, finding.objects("evidence"))),
    )


def _evidence(item: _Object) -> Evidence:
    origin = Origin(
        rank=item.maybe_whole("rank"),
        local_rank=item.maybe_whole("local_rank"),
        host=item.maybe_text("host"),
        time=item.time("time"),
    )
    return Evidence(
        kind=item.text("kind"),
        component="",
        text=item.text("text"),
        origin=origin,
        source=item.text("source"),
        offset=0,
        line=item.maybe_whole("line"),
        end_line=item.maybe_whole("end_line"),
    )


def _rank(item: _Object) -> RankState:
    return RankState(
        rank=item.whole("rank"),
        host=item.maybe_text("host"),
        state=cast(Any, item.choice("state", STATES)),
        last_step=item.maybe_whole("last_step"),
        last_time=item.time("last_time"),
    )
