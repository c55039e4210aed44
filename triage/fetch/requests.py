"""Requests to log stores: JSON over HTTP, repeated after temporary failures, and paging by time."""

from __future__ import annotations

import json
import os
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from triage.base.errors import InputError
from triage.bots.http import Response, send_request
from triage.bots.interface import RetryLater, Undelivered

TRIES = 6
MAX_WAIT = 120.0
TIMEOUT = 60.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record of a log store. `key` tells records of one nanosecond apart."""

    nanoseconds: int
    key: str
    name: str
    text: str


def call(url: str, headers: Mapping[str, str], content: Mapping[str, Any] | None = None) -> Any:
    """Return the JSON of a response: of GET, or of POST with a content. Raises InputError."""
    body = json.dumps(content).encode() if content is not None else None
    all_headers = {"Accept": "application/json", "Content-Type": "application/json", **headers}

    def ask() -> Any:
        response = send_request("POST" if body else "GET", url, headers=all_headers, body=body, timeout=TIMEOUT)
        _check(response)
        return response.json()

    return repeat(ask)


def read_range(url: str, start: int, end: int) -> bytes:
    """Return the bytes of a file from `start` to before `end`; a part that was cut is read again. Raises InputError."""

    def ask() -> bytes:
        response = send_request("GET", url, headers={"Range": f"bytes={start}-{end - 1}"}, timeout=TIMEOUT)
        _check(response)
        body = response.body if response.status == 206 else response.body[start:end]
        if len(body) != end - start:
            raise RetryLater(f"{len(body)} bytes came instead of {end - start}")
        return body

    return repeat(ask)


def repeat(ask: Callable[[], T]) -> T:
    """Return the answer, after temporary failures. Raises InputError."""
    for attempt in range(TRIES):
        try:
            return ask()
        except RetryLater as error:
            if attempt == TRIES - 1 or (error.wait or 0.0) > MAX_WAIT:
                hint = "try again later, or fetch a shorter span with --since"
                raise InputError(f"the log store gave no answer: {error.message}", hint=hint) from None
            time.sleep(error.wait if error.wait is not None else 0.5 * 2.0**attempt)
        except Undelivered as error:
            raise InputError(error.message, hint=error.hint) from None
    raise AssertionError("unreachable")


def _check(response: Response) -> None:
    if 200 <= response.status < 300:
        return
    hints = {
        400: "read the response; mostly the query is wrong",
        401: "set the variables with the token or the password; docs/fetching.md names them",
        403: "the token may not read this",
        404: "check host, index and path of the address",
    }
    text = " ".join(response.body[:300].decode("utf-8", "replace").split())
    raise InputError(
        f"the log store answered {response.status}: {text}", hint=hints.get(response.status, "read the response")
    )


def page_by_time(read: Callable[[int], Sequence[LogRecord]], start: int, size: int) -> Iterator[LogRecord]:
    """Yield all records from `start` (nanoseconds) on, in the order of their times, each once.

    `read` returns up to `size` records from a time on, the earliest first. A page begins at the last time of the page
    before, so that a repeated request loses and doubles nothing. Raises InputError where one time fills a page.
    """
    at_start: set[str] = set()
    while True:
        page = read(start)
        yield from (record for record in page if record.nanoseconds > start or record.key not in at_start)
        if len(page) < size:
            return
        last = max(record.nanoseconds for record in page)
        if last <= start and at_start >= {record.key for record in page}:
            raise InputError(
                f"more than {size} records have the same time", hint="narrow the query, for example to one pod"
            )
        keys = {record.key for record in page if record.nanoseconds == last}
        at_start = keys | at_start if last == start else keys
        start = last


def basic_or_bearer(prefix: str) -> dict[str, str]:
    """Return the header from PREFIX_BEARER_TOKEN, or from PREFIX_USERNAME and PREFIX_PASSWORD."""
    token, user = os.environ.get(f"{prefix}_BEARER_TOKEN", ""), os.environ.get(f"{prefix}_USERNAME", "")
    if token:
        return {"Authorization": f"Bearer {token}"}
    if not user:
        return {}
    password = os.environ.get(f"{prefix}_PASSWORD", "")
    return {"Authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}
