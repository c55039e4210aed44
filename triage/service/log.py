"""The service's log and its request counts: one JSON object per line on standard error, and numbers for Prometheus."""

from __future__ import annotations

import json
import logging
import mmap
import secrets
import struct
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from triage.service.errors import ServiceError, error_response

# Monitoring asks for these all the time: only failures are logged.
QUIET_PATHS = frozenset({"/api/v1/health", "/api/v1/ready", "/api/v1/metrics", "/metrics"})
STATUS_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx", "none")
TIME_BOUNDS = (0.005, 0.02, 0.05, 0.15, 0.5, 1.0, 5.0)
# Responses by status class, responses by time with one bucket above the last bound, and the sum of seconds.
_ROW = struct.Struct(f"{len(STATUS_CLASSES) + len(TIME_BOUNDS) + 2}d")


def write_event(event: str, **fields: Any) -> None:
    """Write one event. JSON escapes control characters, so no client can forge a line."""
    timestamp = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = json.dumps({"time": timestamp, "event": event, **fields}, ensure_ascii=True, default=str)
    with suppress(OSError, ValueError):  # nobody reads standard error
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


class LibraryLogHandler(logging.Handler):
    """Writes what libraries log as events."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        more = {"trace": self.format(record)[-4000:]} if record.exc_info else {}
        message = record.getMessage()[:2000]
        write_event("log", level=record.levelname.lower(), logger=record.name, message=message, **more)


class ResponseCounts:
    """Counts of the responses of all processes, in shared memory: one row per process, summed on request.

    Made before the processes are forked; each process sets its own `process_index`.
    """

    def __init__(self, processes: int = 1) -> None:
        self._memory = mmap.mmap(-1, processes * _ROW.size)
        self._processes = processes
        self.process_index = 0

    def count(self, status: int, seconds: float) -> None:
        """Count one response; status 0: the client disconnected first. Call from one thread per process only."""
        column = min(status // 100, 5) - 1 if status >= 100 else len(STATUS_CLASSES) - 1
        bucket = next((index for index, bound in enumerate(TIME_BOUNDS) if seconds <= bound), len(TIME_BOUNDS))
        row = list(_ROW.unpack_from(self._memory, self.process_index * _ROW.size))
        row[column] += 1
        row[len(STATUS_CLASSES) + bucket] += 1
        row[-1] += seconds
        _ROW.pack_into(self._memory, self.process_index * _ROW.size, *row)

    def metrics(self) -> Iterator[str]:
        """Yield the sums as lines of Prometheus' text format."""
        rows = [_ROW.unpack_from(self._memory, index * _ROW.size) for index in range(self._processes)]
        sums = [sum(values) for values in zip(*rows, strict=True)]
        yield "# HELP triage_http_responses_total Responses by status class; none: the client disconnected first."
        yield "# TYPE triage_http_responses_total counter"
        for name, count in zip(STATUS_CLASSES, sums, strict=False):
            yield f'triage_http_responses_total{{status="{name}"}} {count:.17g}'
        yield "# HELP triage_http_response_seconds Time of responses, streams until their end."
        yield "# TYPE triage_http_response_seconds histogram"
        total = 0.0
        for bound, count in zip((*map(str, TIME_BOUNDS), "+Inf"), sums[len(STATUS_CLASSES) :], strict=False):
            total += count
            yield f'triage_http_response_seconds_bucket{{le="{bound}"}} {total:.17g}'
        yield f"triage_http_response_seconds_sum {sums[-1]:.17g}"
        yield f"triage_http_response_seconds_count {total:.17g}"


class RequestLog:
    """Middleware that gives each request an id, logs and counts its response, and answers a bug with 500."""

    def __init__(self, app: ASGIApp, counts: ResponseCounts, log_requests: bool = True) -> None:
        self._app = app
        self._counts = counts
        self._log_requests = log_requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = secrets.token_hex(8)
        status, started = 0, time.perf_counter()

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except Exception as error:
            trace = "".join(traceback.format_exception(error))[-8000:]
            write_event("bug", request=request_id, error=f"{type(error).__name__}: {error}"[:500], trace=trace)
            if status:
                raise  # half of the response is out: the connection must break
            hint = f"this is a bug in triage; its log has the request {request_id}"
            bug = ServiceError(500, "an unexpected error occurred", hint=hint)
            await error_response(Request(scope), bug)(scope, receive, send_with_id)
        finally:
            seconds = time.perf_counter() - started
            self._counts.count(status, seconds)
            if self._log_requests and (scope["path"] not in QUIET_PATHS or status >= 400):
                _write_request(scope, request_id, status, seconds)


def _write_request(scope: Scope, request_id: str, status: int, seconds: float) -> None:
    user = scope.get("triage.principal")
    write_event(
        "request",
        request=request_id,
        method=scope["method"],
        path=scope["path"][:500],
        status=status,
        ms=round(seconds * 1000, 1),
        address=scope.get("triage.address"),
        who=user.name if user is not None else None,
    )
