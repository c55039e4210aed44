"""One log record in the JSON shape of each logging library.

A form is called with (level, message, exception_text, rank, number) and returns one line without a newline.
`level` is one of debug, info, warning, error, critical; `exception_text` is what the runtime prints (a traceback, or
any other text) or None; `number` is the number of the record: times, pids and lines follow from it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

Render = Callable[[str, str, str | None, int, int], str]


_START = datetime(2026, 3, 2, 4, 0, 0, tzinfo=UTC)
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<name>.+))?$')
_LAST = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: (?P<value>.*))?$", re.DOTALL)


def _time(number: int) -> datetime:
    return _START + timedelta(seconds=2 * number, microseconds=118231 + 37 * number % 700000)


def _iso(number: int, digits: int = 6) -> str:
    stamp = _time(number).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return stamp[: len(stamp) - (6 - digits)] + "Z"


def _pid(rank: int) -> int:
    return 31120 + rank


def _name(rank: int) -> str:
    return f"gpu{7 + rank // 8:02d}"


def _dump(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False)


def _compact(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def _split(exception_text: str) -> tuple[str, str, list[dict[str, Any]]]:
    """Return type, value and frames of an exception; the value is the whole text unless it is one plain traceback."""
    text = exception_text.rstrip("\n")
    lines = text.splitlines()
    frames = []
    for line in lines:
        match = _FRAME.match(line)
        if match:
            frames.append(
                {"filename": match["file"], "lineno": int(match["line"]), "name": match["name"] or "<module>"}
            )
    last = _LAST.match(lines[-1]) if lines else None
    is_one_traceback = lines[:1] == ["Traceback (most recent call last):"] and lines.count(lines[0]) == 1
    if last is None or not is_one_traceback:
        return "RuntimeError", text, frames
    return last["type"].rpartition(".")[2], last["value"] or "", frames


def structlog_string(level: str, message: str, exception_text: str | None, rank: int, number: int) -> str:
    """Return a record of structlog string."""
    record: dict[str, Any] = {"step": number, "rank": rank, "event": message, "level": level, "timestamp": _iso(number)}
    if exception_text is not None:
        record["exception"] = exception_text.rstrip("\n")
    return _dump(record)


def structlog_dicts(level: str, message: str, exception_text: str | None, rank: int, number: int) -> str:
    """Return a record of structlog dicts."""
    record: dict[str, Any] = {
        "event": message,
        "rank": rank,
        "logger": "trainer.loop",
        "level": level,
        "timestamp": _iso(number),
    }
    if exception_text is not None:
        kind, value, frames = _split(exception_text)
        record["exception"] = [
            {
                "exc_type": kind,
                "exc_value": value,
                "exc_notes": [],
                "syntax_error": None,
                "is_cause": False,
                "frames": [
                    {**frame, "line": "", "locals": {"step": str(number), "rank": str(rank)}} for frame in frames
                ],
                "is_group": False,
                "exceptions": [],
            }
        ]
    return _dump(record)


def python_json_logger(level: str, message: str, exception_text: str | None, rank: int, number: int) -> str:
    """Return a record of python json logger."""
    stamp = _time(number).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
    record: dict[str, Any] = {
        "asctime": stamp,
        "levelname": level.upper(),
        "name": "trainer",
        "message": message,
        "rank": rank,
    }
    if exception_text is not None:
        record["exc_info"] = exception_text.rstrip("\n")
    return _dump(record)


def loguru_serialize(level: str, message: str, exception_text: str | None, rank: int, number: int) -> str:
    """Return a record of loguru serialize."""
    numbers = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
    icons = {"debug": "🐞", "info": "ℹ️", "warning": "⚠️", "error": "❌", "critical": "☠️"}
    stamp = _time(number)
    text = f"{stamp:%Y-%m-%d %H:%M:%S.%f}"[:-3] + f" | {level.upper():<8} | trainer.loop:run:211 - {message}\n"
    exception = None
    if exception_text is not None:
        kind, value, _frames = _split(exception_text)
        exception = {"type": kind, "value": value, "traceback": True}
        text += exception_text.rstrip("\n") + "\n"
    record = {
        "text": text,
        "record": {
            "elapsed": {
                "repr": f"0:{2 * number // 60 % 60:02d}:{2 * number % 60:02d}.118231",
                "seconds": 2 * number + 0.118231,
            },
            "exception": exception,
            "extra": {"rank": rank},
            "file": {"name": "loop.py", "path": "/srv/trainer/loop.py"},
            "function": "run",
            "level": {"icon": icons.get(level, ""), "name": level.upper(), "no": numbers.get(level, 20)},
            "line": 211,
            "message": message,
            "module": "loop",
            "name": "trainer.loop",
            "process": {"id": _pid(rank), "name": "MainProcess"},
            "thread": {"id": 140120311000, "name": "MainThread"},
            "time": {"repr": stamp.isoformat(sep=" "), "timestamp": stamp.timestamp()},
        },
    }
    return _dump(record)


def opentelemetry(level: str, message: str, exception_text: str | None, rank: int, number: int) -> str:
    """Return a record of opentelemetry."""
    severities = {"debug": 5, "info": 9, "warning": 13, "error": 17, "critical": 21}
    texts = {"debug": "DEBUG", "info": "INFO", "warning": "WARN", "error": "ERROR", "critical": "FATAL"}
    attributes: dict[str, Any] = {"rank": rank, "code.function": "run", "code.lineno": 211}
    if exception_text is not None:
        kind, value, _frames = _split(exception_text)
        attributes |= {"exception.type": kind, "exception.message": value, "exception.stacktrace": exception_text}
    record = {
        "Timestamp": str(int(_time(number).timestamp()) * 10**9 + 118231000),
        "SeverityText": texts.get(level, "INFO"),
        "SeverityNumber": severities.get(level, 9),
        "Body": message,
        "Attributes": attributes,
        "Resource": {"service.name": "trainer", "host.name": _name(rank), "process.pid": _pid(rank)},
        "TraceId": "",
        "SpanId": "",
    }
    return _compact(record)


def ecs(level: str, message: str, exception_text: str | None, rank: int, number: int) -> str:
    """Return a record of ecs."""
    record: dict[str, Any] = {
        "@timestamp": _iso(number, 3),
        "log.level": level,
        "message": message,
        "ecs": {"version": "1.6.0"},
        "log": {
            "logger": "trainer",
            "origin": {"file": {"line": 211, "name": "loop.py"}, "function": "run"},
            "original": message,
        },
        "process": {"name": "MainProcess", "pid": _pid(rank), "thread": {"id": 140120311000, "name": "MainThread"}},
        "labels": {"rank": str(rank)},
    }
    if exception_text is not None:
        kind, value, _frames = _split(exception_text)
        record["error"] = {"type": kind, "message": value, "stack_trace": exception_text.rstrip("\n")}
    return _compact(record)


def pino(level: str, message: str, exception_text: str | None, rank: int, number: int) -> str:
    """Return a record of pino."""
    levels = {"debug": 20, "info": 30, "warning": 40, "error": 50, "critical": 60}
    record: dict[str, Any] = {
        "level": levels.get(level, 30),
        "time": int(_time(number).timestamp() * 1000),
        "pid": _pid(rank),
        "hostname": _name(rank),
        "rank": rank,
    }
    if exception_text is not None:
        kind, value, _frames = _split(exception_text)
        record["err"] = {"type": kind, "message": value, "stack": exception_text.rstrip("\n")}
    record["msg"] = message
    return _compact(record)


def zap(level: str, message: str, exception_text: str | None, rank: int, number: int) -> str:
    """Return a record of zap."""
    levels = {"warning": "warn", "critical": "fatal"}
    record: dict[str, Any] = {
        "level": levels.get(level, level),
        "ts": round(_time(number).timestamp(), 6),
        "caller": f"agent/loop.go:{88 + number % 7}",
        "msg": message,
        "rank": rank,
    }
    if exception_text is not None:
        kind, value, _frames = _split(exception_text)
        record["error"] = value or kind
        record["stacktrace"] = exception_text.rstrip("\n")
    return _compact(record)


def zerolog(level: str, message: str, exception_text: str | None, rank: int, number: int) -> str:
    """Return a record of zerolog."""
    levels = {"warning": "warn", "critical": "fatal"}
    record: dict[str, Any] = {"level": levels.get(level, level), "rank": rank}
    if exception_text is not None:
        kind, value, frames = _split(exception_text)
        record["error"] = value or kind
        record["stack"] = [
            {"func": frame["name"], "line": str(frame["lineno"]), "source": frame["filename"].rpartition("/")[2]}
            for frame in frames
        ]
    record |= {"time": _time(number).strftime("%Y-%m-%dT%H:%M:%SZ"), "message": message}
    return _compact(record)


def bunyan(level: str, message: str, exception_text: str | None, rank: int, number: int) -> str:
    """Return a record of bunyan."""
    levels = {"debug": 20, "info": 30, "warning": 40, "error": 50, "critical": 60}
    record: dict[str, Any] = {
        "name": "feeder",
        "hostname": _name(rank),
        "pid": _pid(rank),
        "rank": rank,
        "level": levels.get(level, 30),
    }
    if exception_text is not None:
        kind, value, _frames = _split(exception_text)
        record["err"] = {"message": value, "name": kind, "stack": exception_text.rstrip("\n")}
    record |= {"msg": message, "time": _iso(number, 3), "v": 0}
    return _compact(record)


def gelf(level: str, message: str, exception_text: str | None, rank: int, number: int) -> str:
    """Return a record of gelf."""
    levels = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 2}
    record: dict[str, Any] = {
        "version": "1.1",
        "host": _name(rank),
        "short_message": message,
        "timestamp": round(_time(number).timestamp(), 3),
        "level": levels.get(level, 6),
        "_rank": rank,
        "_pid": _pid(rank),
        "_logger": "trainer",
    }
    if exception_text is not None:
        record["full_message"] = exception_text.rstrip("\n")
    return _compact(record)


def ray_json(level: str, message: str, exception_text: str | None, rank: int, number: int) -> str:
    """Return a record of ray json."""
    record: dict[str, Any] = {
        "asctime": _time(number).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3],
        "levelname": level.upper(),
        "message": message,
        "filename": "loop.py",
        "lineno": 211,
        "job_id": "02000000",
        "worker_id": f"a{rank:055x}",
        "node_id": f"c{rank // 8:055x}",
        "actor_id": f"e{rank:031x}",
        "timestamp_ns": int(_time(number).timestamp()) * 10**9 + 118231000,
        "rank": rank,
    }
    if exception_text is not None:
        record["exc_text"] = exception_text.rstrip("\n")
    return _dump(record)


def slog_json(level: str, message: str, exception_text: str | None, rank: int, number: int) -> str:
    """Return a record of slog json."""
    levels = {"warning": "WARN", "critical": "ERROR+4"}
    record: dict[str, Any] = {
        "time": _iso(number),
        "level": levels.get(level, level.upper()),
        "msg": message,
        "rank": rank,
    }
    if exception_text is not None:
        kind, value, _frames = _split(exception_text)
        record["err"] = {"msg": value or kind, "trace": exception_text.rstrip("\n").splitlines()}
    return _compact(record)


def serilog_compact(level: str, message: str, exception_text: str | None, rank: int, number: int) -> str:
    """Return a record of serilog compact."""
    levels = {"debug": "Debug", "warning": "Warning", "error": "Error", "critical": "Fatal"}
    record: dict[str, Any] = {"@t": _iso(number), "@mt": message}
    if level in levels:
        record["@l"] = levels[level]
    if exception_text is not None:
        record["@x"] = exception_text.rstrip("\n")
    record |= {"Rank": rank, "SourceContext": "Acme.Feed.Reader"}
    return _compact(record)


def tracing_subscriber(level: str, message: str, exception_text: str | None, rank: int, number: int) -> str:
    """Return a record of tracing subscriber."""
    levels = {"warning": "WARN", "critical": "ERROR"}
    fields: dict[str, Any] = {"message": message}
    if exception_text is not None:
        fields["error"] = exception_text.rstrip("\n")
    record = {
        "timestamp": _iso(number),
        "level": levels.get(level, level.upper()),
        "fields": fields,
        "target": "segd::writer",
        "span": {"rank": rank, "name": "train"},
        "spans": [{"rank": rank, "name": "train"}],
    }
    return _compact(record)


def logstash_logback(level: str, message: str, exception_text: str | None, rank: int, number: int) -> str:
    """Return a record of logstash logback."""
    levels = {
        "warning": ("WARN", 30000),
        "critical": ("ERROR", 40000),
        "debug": ("DEBUG", 10000),
        "error": ("ERROR", 40000),
    }
    name, value = levels.get(level, ("INFO", 20000))
    record: dict[str, Any] = {
        "@timestamp": _iso(number, 3),
        "@version": "1",
        "message": message,
        "logger_name": "acme.feed.Puller",
        "thread_name": "main",
        "level": name,
        "level_value": value,
    }
    if exception_text is not None:
        record["stack_trace"] = exception_text.rstrip("\n") + "\n"
    record["rank"] = str(rank)
    return _compact(record)


def google_cloud(level: str, message: str, exception_text: str | None, rank: int, number: int) -> str:
    """Return a record of google cloud."""
    levels = {"warning": "WARNING", "critical": "CRITICAL"}
    text = message if exception_text is None else f"{message}\n{exception_text.rstrip(chr(10))}"
    record = {
        "insertId": f"1q{number:08d}",
        "jsonPayload": {"message": text, "python_logger": "trainer", "rank": rank},
        "logName": "projects/lab/logs/trainer",
        "severity": levels.get(level, level.upper()),
        "timestamp": _iso(number),
    }
    return _dump(record)


def datadog_nested(level: str, message: str, exception_text: str | None, rank: int, number: int) -> str:
    """Return a record of datadog nested."""
    levels = {"warning": "warn", "critical": "emergency"}
    record: dict[str, Any] = {
        "date": _iso(number, 3),
        "status": levels.get(level, level),
        "service": "trainer",
        "attributes": {"rank": rank, "logger": {"name": "trainer.loop", "thread_name": "MainThread"}},
        "message": message,
    }
    if exception_text is not None:
        kind, value, _frames = _split(exception_text)
        record["attributes"]["error"] = {"kind": kind, "message": value, "stack": exception_text.rstrip("\n")}
    return _compact(record)


JSON_FORMS: dict[str, Render] = {
    "structlog-string": structlog_string,
    "structlog-dicts": structlog_dicts,
    "python-json-logger": python_json_logger,
    "loguru-serialize": loguru_serialize,
    "opentelemetry": opentelemetry,
    "ecs": ecs,
    "pino": pino,
    "zap": zap,
    "zerolog": zerolog,
    "bunyan": bunyan,
    "ray-json": ray_json,
    "gelf": gelf,
    "slog-json": slog_json,
    "serilog-compact": serilog_compact,
    "tracing-subscriber": tracing_subscriber,
    "logstash-logback": logstash_logback,
    "google-cloud": google_cloud,
    "datadog-nested": datadog_nested,
}
