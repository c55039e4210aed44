"""Grafana Loki: `loki://HOST/?query={job="train"}`, by its query_range, the variables as for logcli."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from triage.fetch.interface import Piece, SourceQuery, format_line
from triage.fetch.requests import LogRecord, basic_or_bearer, call, page_by_time

SIZE = 5000  # Loki's default limit of entries
_NAMES = ("pod", "filename", "host", "hostname", "node_name", "instance")
EXAMPLE = 'loki://loki.example.org/?query={job="train"}'


def fetch(query: SourceQuery) -> Iterator[Piece]:
    """Yield the lines of all streams; each stream is a file."""
    expression = query.require("query", EXAMPLE)
    headers = basic_or_bearer("LOKI")
    if os.environ.get("LOKI_ORG_ID"):
        headers["X-Scope-OrgID"] = os.environ["LOKI_ORG_ID"]
    path = f"/{query.path}" if query.path else ""

    def read(start: int) -> list[LogRecord]:
        end = max(round(query.until * 1e9), start + 1)
        span = {"query": expression, "start": start, "end": end, "limit": SIZE, "direction": "forward"}
        reply = call(f"{query.base_url}{path}/loki/api/v1/query_range?{urlencode(span)}", headers)
        streams = (reply.get("data") or {}).get("result") or ()
        records = [record for stream in streams for record in _records(stream)]
        return sorted(records, key=lambda record: record.nanoseconds)

    for record in page_by_time(read, round(query.since * 1e9), SIZE):
        yield Piece(record.name, format_line(record.nanoseconds, record.text))


def _records(stream: Mapping[str, Any]) -> Iterator[LogRecord]:
    labels = {str(name): str(value) for name, value in (stream.get("stream") or {}).items()}
    everything = ",".join(f"{name}={labels[name]}" for name in sorted(labels))
    digest = hashlib.sha256(everything.encode()).hexdigest()[:6]
    readable = "-".join(labels[name] for name in (*_NAMES, "container") if name in labels) or "stream"
    for time, line, *_ in stream.get("values") or ():
        # Equal lines of one nanosecond in one stream are one entry for Loki, too.
        key = hashlib.sha256(f"{everything}\0{line}".encode()).hexdigest()
        yield LogRecord(int(time), key, f"{readable}-{digest}.log", str(line))
