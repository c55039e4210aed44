"""Weights & Biases: `wandb://api.wandb.ai/ENTITY/PROJECT/RUN`, by its GraphQL API; `WANDB_API_KEY` as for its client.

A run has its console as `output.log` or below `logs/`. A job of many processes is a group of runs.
"""

from __future__ import annotations

import codecs
import json
import os
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any

from triage.base.errors import InputError, OptionError
from triage.fetch.interface import Piece, SourceQuery
from triage.fetch.requests import call, read_range

EXAMPLE = "wandb://api.wandb.ai/ENTITY/PROJECT/RUN, or wandb://api.wandb.ai/ENTITY/PROJECT?group=NAME"
PER_PAGE = 50  # the page of its own client
CHUNK = 8 << 20  # bytes of one request for a file
_TEXTS = (".log", ".out", ".err", ".txt")
_FILES = """query Files($entity: String!, $project: String!, $run: String!, $after: String, $first: Int!) {
  project(entityName: $entity, name: $project) { run(name: $run) {
    files(after: $after, first: $first) {
      edges { node { name sizeBytes directUrl } } pageInfo { endCursor hasNextPage } } } } }"""
_RUNS = """query Runs($entity: String!, $project: String!, $filters: JSONString!, $after: String, $first: Int!) {
  project(entityName: $entity, name: $project) {
    runs(filters: $filters, after: $after, first: $first) {
      edges { node { name } } pageInfo { endCursor hasNextPage } } } }"""


def fetch(query: SourceQuery) -> Iterator[Piece]:
    """Yield the text files of a run, or of all runs of a group, each below the name of its run."""
    parts = [part for part in query.path.split("/") if part != "runs"]
    group = query.parameters.get("group", "")
    if len(parts) != (2 if group else 3):
        raise OptionError("the address names no run", hint=f"write it as {EXAMPLE}")
    names = {"entity": parts[0], "project": parts[1]}
    if not group:
        yield from _fetch_run(query, names, parts[2])
        return
    filters = {**names, "filters": json.dumps({"group": group})}
    for run in list(_pages(query, _RUNS, filters, ("runs",))):
        yield from _fetch_run(query, names, str(run["name"]))


def _fetch_run(query: SourceQuery, names: Mapping[str, str], run: str) -> Iterator[Piece]:
    for file in _pages(query, _FILES, {**names, "run": run}, ("run", "files")):
        name, size = str(file["name"]), int(file["sizeBytes"] or 0)
        if not name.endswith(_TEXTS) and not name.startswith("logs/"):
            continue
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for start in range(0, size, CHUNK):
            data = read_range(str(file["directUrl"]), start, min(start + CHUNK, size))
            yield Piece(f"{run}-{name.replace('/', '-')}", decoder.decode(data, start + CHUNK >= size))


def _pages(query: SourceQuery, text: str, variables: Mapping[str, str], path: tuple[str, ...]) -> Iterator[Any]:
    """Yield the nodes of all pages of a list below the project. Raises InputError where it is not there."""
    key = os.environ.get("WANDB_API_KEY", "")
    headers = {"Authorization": "Basic " + b64encode(f"api:{key}".encode()).decode()} if key else {}
    host = "api.wandb.ai" if query.host == "wandb.ai" else query.host
    address = f"{'http' if query.scheme.endswith('+http') else 'https'}://{host}/graphql"
    after: str | None = None
    while True:
        content = {"query": text, "variables": {**variables, "after": after, "first": PER_PAGE}}
        reply = call(address, headers, content)
        listing = (reply.get("data") or {}).get("project")
        for name in path:
            listing = (listing or {}).get(name)
        if listing is None:
            errors = "; ".join(str(error.get("message", "")) for error in reply.get("errors") or ())
            hint = f"check the address ({EXAMPLE}) and WANDB_API_KEY"
            raise InputError(f"W&B has no such run{f': {errors}' if errors else ''}", hint=hint)
        yield from (edge["node"] for edge in listing["edges"])
        if not listing["pageInfo"]["hasNextPage"]:
            return
        after = listing["pageInfo"]["endCursor"]
