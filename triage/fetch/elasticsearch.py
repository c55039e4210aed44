"""Elasticsearch and OpenSearch: `elasticsearch://HOST:9200/INDEX?q=kubernetes.labels.job-name:train`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from triage.base.errors import InputError, OptionError
from triage.fetch.interface import Piece, SourceQuery, format_line
from triage.fetch.requests import LogRecord, basic_or_bearer, call, page_by_time

SIZE = 5000  # an index gives at most 10,000 hits to one search
EXAMPLE = "elasticsearch://es.example.org:9200/logs-*?q=job:train"
# Where collectors write who wrote a line, the most exact first.
_NAMES = ("kubernetes.pod.name", "kubernetes.pod_name", "log.file.path", "host.name", "hostname", "host")
_TEXTS = ("message", "log", "msg", "body")


def fetch(query: SourceQuery) -> Iterator[Piece]:
    """Yield the messages of all documents; each pod, file or host is a file."""
    if not query.path:
        raise OptionError("the address has no index", hint=f"write it as {EXAMPLE}")
    time_field = query.parameters.get("time", "@timestamp")
    # By default a search of which some shards fail is answered with the hits of the others.
    url = f"{query.base_url}/{quote(query.path, safe='*,/-_.')}/_search?allow_partial_search_results=false"
    headers = _headers(query.scheme)

    def read(start: int) -> list[LogRecord]:
        reply = call(url, headers, _search(query, time_field, start))
        if reply.get("timed_out") or (reply.get("_shards") or {}).get("failed"):
            raise InputError("the index answered without some of its shards", hint="fetch when all shards are there")
        hits = (reply.get("hits") or {}).get("hits") or ()
        return [_record(hit, time_field) for hit in hits]

    for record in page_by_time(read, round(query.since * 1000) * 10**6, SIZE):
        yield Piece(record.name, format_line(record.nanoseconds, record.text))


def _search(query: SourceQuery, time_field: str, start: int) -> dict[str, Any]:
    span = {"gte": start // 10**6, "lte": round(query.until * 1000), "format": "epoch_millis"}
    filters: list[dict[str, Any]] = [{"range": {time_field: span}}]
    if query.parameters.get("q"):
        filters.append({"query_string": {"query": query.parameters["q"]}})
    # The first sort value is the time in milliseconds, whatever form the document writes it in. Lines of one
    # millisecond have the order of their file, where the collector says it (`log.offset` of Filebeat).
    sort = [{time_field: {"order": "asc"}}, {"log.offset": {"order": "asc", "unmapped_type": "long"}}]
    return {"size": SIZE, "sort": sort, "query": {"bool": {"filter": filters}}}


def _headers(scheme: str) -> dict[str, str]:
    prefix = scheme.partition("+")[0].upper()
    key = os.environ.get(f"{prefix}_API_KEY", "")
    return {"Authorization": f"ApiKey {key}"} if key else basic_or_bearer(prefix)


def _record(hit: Mapping[str, Any], time_field: str) -> LogRecord:
    source = hit.get("_source") or {}
    sort = (hit.get("sort") or [None])[0]
    name = next((str(value) for field in _NAMES if isinstance(value := _field(source, field), str)), "documents")
    text = next((str(value) for field in _TEXTS if isinstance(value := _field(source, field), str)), "")
    time = int(sort) * 10**6 if isinstance(sort, int | float) else _parse(str(_field(source, time_field)))
    return LogRecord(time, f"{hit.get('_index')}/{hit.get('_id')}", f"{name}.log", text)


def _field(source: Mapping[str, Any], name: str) -> Any:
    """Return a field that is written with dots, or as objects in each other."""
    if name in source:
        return source[name]
    first, _, rest = name.partition(".")
    inner = source.get(first)
    return _field(inner, rest) if rest and isinstance(inner, Mapping) else None


def _parse(text: str) -> int:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return 0
    return round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000) * 10**6
