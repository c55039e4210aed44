"""Local servers that answer like Loki and Elasticsearch, with their documented limits.

with LokiServer() as loki:
    loki.push({"pod": "trainer-0"}, [(1_763_700_000_000_000_000, "step 1")])
    …loki+http://127.0.0.1:PORT/?query={pod=~".+"}…
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Any

from triage.testing.local import LocalServer, Reply, Request


class LokiServer(LocalServer):
    """query_range of Loki: at most 5000 entries, `start` included and `end` not. `token` must be the bearer token."""

    max_entries = 5000

    def __init__(self) -> None:
        super().__init__()
        self.token = "loki-token"
        self._entries: list[tuple[int, Mapping[str, str], str]] = []

    def push(self, labels: Mapping[str, str], entries: Iterable[tuple[int, str]]) -> None:
        """Add lines of a stream, with their nanoseconds since 1970."""
        self._entries += [(time, labels, line) for time, line in entries]
        self._entries.sort(key=lambda entry: entry[0])

    def handle(self, request: Request) -> Reply:
        """Answer a query."""
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return Reply(401, b"no credentials provided\n")
        if request.path != "/loki/api/v1/query_range":
            return Reply(404, b"404 page not found\n")
        query = request.query
        if not query.get("query", "").startswith("{"):
            return Reply(400, b"parse error at line 1, col 1: syntax error\n")
        limit = int(query.get("limit", 100))
        if limit > self.max_entries:
            return Reply(400, f"max entries limit per query exceeded, limit > max_entries_limit ({limit})\n".encode())
        start, end = int(query["start"]), int(query["end"])
        chosen = [entry for entry in self._entries if start <= entry[0] < end][:limit]
        streams: dict[str, dict[str, Any]] = {}
        for time, labels, line in chosen:
            stream = streams.setdefault(str(sorted(labels.items())), {"stream": dict(labels), "values": []})
            stream["values"].append([str(time), line])
        return Reply(200, {"status": "success", "data": {"resultType": "streams", "result": list(streams.values())}})


class SearchServer(LocalServer):
    """_search of Elasticsearch and OpenSearch: at most 10,000 hits. Documents have `@timestamp` in milliseconds."""

    max_hits = 10_000

    def __init__(self) -> None:
        super().__init__()
        self.key = "es-key"
        self._documents: list[tuple[str, int, dict[str, Any]]] = []

    def add(self, index: str, milliseconds: int, **source: Any) -> None:
        """Add a document."""
        self._documents.append((index, milliseconds, source))
        self._documents.sort(key=lambda document: document[1])

    def handle(self, request: Request) -> Reply:
        """Answer a search by time."""
        if request.headers.get("authorization") != f"ApiKey {self.key}":
            return Reply(401, {"error": {"type": "security_exception", "reason": "missing authentication credentials"}})
        pattern, _, action = request.path.strip("/").partition("/")
        content = request.json()
        if action != "_search" or not isinstance(content, dict):
            return Reply(404, {"error": {"type": "index_not_found_exception"}})
        if content["size"] > self.max_hits:
            return Reply(400, {"error": {"reason": "Result window is too large"}})
        filters = content["query"]["bool"]["filter"]
        span = filters[0]["range"]["@timestamp"]
        text = filters[1]["query_string"]["query"] if len(filters) > 1 else ""
        hits = [
            {"_index": index, "_id": str(number), "_source": source, "sort": [time]}
            for number, (index, time, source) in enumerate(self._documents)
            if fnmatch.fnmatch(index, pattern) and span["gte"] <= time <= span["lte"] and text in str(source)
        ]
        return Reply(200, {"took": 1, "timed_out": False, "hits": {"hits": hits[: content["size"]]}})
