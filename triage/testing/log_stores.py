"""Local servers that answer like Loki, Elasticsearch, CloudWatch and W&B, with their documented limits.

with LokiServer() as loki:
    loki.push({"pod": "trainer-0"}, [(1_763_700_000_000_000_000, "step 1")])
    …loki+http://127.0.0.1:PORT/?query={pod=~".+"}…
"""

from __future__ import annotations

import fnmatch
import json
from base64 import b64encode
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
    """_search of Elasticsearch and OpenSearch: at most 10,000 hits. Documents have `@timestamp` in milliseconds.

    A search without some shards has fewer hits, or is refused if it asks for that (`refuses_partial`).
    """

    max_hits = 10_000

    def __init__(self) -> None:
        super().__init__()
        self.key = "es-key"
        self.failed_shards = 0
        self.refuses_partial = True
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
        if self.failed_shards and self.refuses_partial and request.query.get("allow_partial_search_results") == "false":
            return Reply(
                503, {"error": {"type": "search_phase_execution_exception", "reason": "Partial shards failure"}}
            )
        filters = content["query"]["bool"]["filter"]
        span = filters[0]["range"]["@timestamp"]
        text = filters[1]["query_string"]["query"] if len(filters) > 1 else ""
        hits: list[dict[str, Any]] = [
            {"_index": index, "_id": str(number), "_source": source, "sort": self._sort_values(content, time, source)}
            for number, (index, time, source) in enumerate(self._documents)
            if fnmatch.fnmatch(index, pattern) and span["gte"] <= time <= span["lte"] and text in str(source)
        ]
        hits.sort(key=lambda hit: hit["sort"])
        shards = {"total": 3, "successful": 3 - self.failed_shards, "failed": self.failed_shards}
        returned = hits[: content["size"]] if not self.failed_shards else []
        return Reply(200, {"took": 1, "timed_out": False, "_shards": shards, "hits": {"hits": returned}})

    @staticmethod
    def _sort_values(content: dict[str, Any], time: int, source: dict[str, Any]) -> list[int]:
        """Return the time and the other fields of the sort; a document without a field is behind those with it."""
        others = [next(iter(item)) for item in content["sort"][1:]]
        return [time, *(source.get(name, 2**63 - 1) for name in others)]


class CloudWatchServer(LocalServer):
    """FilterLogEvents of CloudWatch Logs: up to 10,000 events a page, the next one by its token.

    Some pages are empty though others follow, as on the real service.
    """

    page_events = 10_000

    def __init__(self) -> None:
        super().__init__()
        self._events: dict[str, list[dict[str, Any]]] = {}

    def put(self, group: str, stream: str, events: Iterable[tuple[int, str]]) -> None:
        """Add events of a stream, with their milliseconds since 1970."""
        stored = self._events.setdefault(group, [])
        stored += [{"logStreamName": stream, "timestamp": time, "message": text} for time, text in events]
        stored.sort(key=lambda event: event["timestamp"])

    def request_name(self, request: Request) -> str:
        """Return the operation."""
        return request.headers.get("x-amz-target", "").rpartition(".")[2]

    def rate_limit_reply(self, seconds: int) -> Reply:
        """Return the error of too many requests: status 400, without a time."""
        return Reply(400, {"__type": "ThrottlingException", "message": "Rate exceeded"})

    def handle(self, request: Request) -> Reply:
        """Answer a request for events."""
        if "AWS4-HMAC-SHA256" not in request.headers.get("authorization", ""):
            return Reply(400, {"__type": "MissingAuthenticationTokenException", "message": "not signed"})
        content = request.json()
        group = content.get("logGroupName", "")
        if group not in self._events:
            return Reply(400, {"__type": "ResourceNotFoundException", "message": "The log group does not exist."})
        prefix, token = content.get("logStreamNamePrefix", ""), int(content.get("nextToken", 0))
        chosen = [
            event
            for event in self._events[group]
            if content["startTime"] <= event["timestamp"] < content["endTime"]
            and event["logStreamName"].startswith(prefix)
        ]
        begin = token // 2 * self.page_events  # odd tokens are those of empty pages
        page = [] if token % 2 else chosen[begin : begin + self.page_events]
        more = {"nextToken": str(token + 1)} if begin + self.page_events < len(chosen) else {}
        return Reply(200, {"events": page, "searchedLogStreams": [], **more})


class WandbServer(LocalServer):
    """GraphQL of W&B and the bucket of its files. Pages go by cursors, too many requests say when the quota resets."""

    def __init__(self) -> None:
        super().__init__()
        self.key = "wandb-key"
        self._runs: dict[tuple[str, str], tuple[str, dict[str, bytes]]] = {}

    def add_run(self, project: str, run: str, files: Mapping[str, bytes], group: str = "") -> None:
        """Add a run of the project `ENTITY/PROJECT`."""
        self._runs[project, run] = (group, dict(files))

    def rate_limit_reply(self, seconds: int) -> Reply:
        """Return 429 with the seconds until the quota resets."""
        return Reply(429, {"error": "rate limit"}, {"RateLimit-Remaining": "0", "RateLimit-Reset": str(seconds)})

    def handle(self, request: Request) -> Reply:
        """Answer a query, or give a range of a file to whoever has its address."""
        if request.path.startswith("/bucket/"):
            return self._give_range(request)
        expected = "Basic " + b64encode(f"api:{self.key}".encode()).decode()
        if request.path != "/graphql" or request.headers.get("authorization") != expected:
            return Reply(401, {"errors": [{"message": "invalid api key"}]})
        variables = request.json()["variables"]
        project = f"{variables['entity']}/{variables['project']}"
        if "run" in variables:
            _, files = self._runs.get((project, variables["run"]), ("", None))
            if files is None:
                return Reply(200, {"data": {"project": {"run": None}}})
            where = f"{self.url}/bucket/{project}/{variables['run']}"
            nodes = [
                {"name": name, "sizeBytes": str(len(data)), "directUrl": f"{where}/{name}"}
                for name, data in files.items()
            ]
            return Reply(200, {"data": {"project": {"run": {"files": _page(nodes, variables)}}}})
        group = json.loads(variables["filters"])["group"]
        runs = [{"name": run} for (own, run), (one, _) in self._runs.items() if own == project and one == group]
        return Reply(200, {"data": {"project": {"runs": _page(runs, variables)}}})

    def _give_range(self, request: Request) -> Reply:
        if "authorization" in request.headers:  # a signed address takes no other credentials
            return Reply(400, b"Only one auth mechanism allowed")
        entity, project, run, name = request.path.removeprefix("/bucket/").split("/", 3)
        data = self._runs[f"{entity}/{project}", run][1][name]
        start, end = map(int, request.headers["range"].removeprefix("bytes=").split("-"))
        return Reply(206, data[start : end + 1])


def _page(nodes: list[dict[str, str]], variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return a page of a list after the cursor of the page before."""
    start = int(variables["after"] or 0)
    end = start + int(variables["first"])
    edges = [{"node": node} for node in nodes[start:end]]
    return {"edges": edges, "pageInfo": {"endCursor": str(end), "hasNextPage": end < len(nodes)}}
