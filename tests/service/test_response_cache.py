"""triage.service.response_cache: responses are as new as the store, and a little older only under load."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.service.event_loop import run_in_own_loop
from triage.service import response_cache
from triage.service.access import LOCAL
from triage.service.response_cache import BUSY_RESPONSES, BUSY_SECONDS, POPULAR_REQUESTS, Popularity, ResponseCache
from triage.store.service_data import Changes

Ask = Callable[..., Awaitable[str]]


class CountingApp:
    """Answers each request with the number of requests so far; those to /slow wait for `finish`."""

    def __init__(self) -> None:
        self.count, self.finish = 0, asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.count += 1
        body = str(self.count).encode()
        if scope["path"].startswith("/slow"):
            await self.finish.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})


class Version:
    """The counts of changes that the test sets."""

    changes = Changes(1, 1)

    async def get(self) -> tuple[tuple[object, ...], Changes]:
        return (), self.changes


def ask_with(test: Callable[[Ask, Version, CountingApp], Awaitable[None]]) -> None:
    """Run a test with a function that asks for a path and returns the body."""

    async def run() -> None:
        app, version = CountingApp(), Version()
        cache = ResponseCache(app, SimpleNamespace(version=version))  # type: ignore[arg-type]

        async def ask(path: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> str:
            sent: list[Any] = []

            async def send(message: Any) -> None:
                sent.append(message)

            scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers}
            await cache({**scope, "triage.principal": LOCAL}, None, send)  # type: ignore[arg-type]
            return str(sent[1]["body"].decode())

        await test(ask, version, app)

    run_in_own_loop(run())


def change_under_load(busy: int, after: Changes, wait: float = 0.0) -> tuple[str, str]:
    """Return the response before and after a change, while `busy` other responses are being made."""
    answers: list[str] = []

    async def test(ask: Ask, version: Version, app: CountingApp) -> None:
        answers.append(await ask("/list"))
        others = [asyncio.create_task(ask(f"/slow/{number}")) for number in range(busy)]
        await asyncio.sleep(wait)
        version.changes = after
        await asyncio.sleep(0)
        answers.append(await ask("/list"))
        app.finish.set()
        await asyncio.gather(*others)

    ask_with(test)
    return answers[0], answers[1]


def test_the_same_until_something_changes() -> None:
    """A response is kept while the store stays, and made again after any change."""

    async def test(ask: Ask, version: Version, app: CountingApp) -> None:
        assert await ask("/list") == await ask("/list") == "1"
        version.changes = Changes(2, 1)
        assert await ask("/list") == "2"

    ask_with(test)


@pytest.mark.parametrize(("busy", "is_old"), [(BUSY_RESPONSES - 1, False), (BUSY_RESPONSES, True)])
def test_under_load_a_response_may_lack_the_last_diagnoses(busy: int, is_old: bool) -> None:
    """From so many responses at once on, one that lacks a new diagnosis is good enough."""
    before, after = change_under_load(busy, Changes(2, 1))
    assert (before == after) == is_old


def test_a_decision_shows_at_once() -> None:
    """Under load, too, what a person has decided is in the next response."""
    before, after = change_under_load(BUSY_RESPONSES, Changes(2, 2))
    assert before != after


def test_a_response_under_load_is_not_older_than_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the limit it is made again."""
    monkeypatch.setattr(response_cache, "BUSY_SECONDS", 0.05)
    before, after = change_under_load(BUSY_RESPONSES, Changes(2, 1), wait=0.1)
    assert before != after


def ask_often(times: int, after: Changes, headers: tuple[tuple[bytes, bytes], ...] = ()) -> tuple[str, str]:
    """Return the responses to the last request before a change and to the one after it, of so many in all."""
    answers: list[str] = []

    async def test(ask: Ask, version: Version, app: CountingApp) -> None:
        answers.extend([await ask("/list") for _ in range(times - 1)])
        version.changes = after
        answers.append(await ask("/list", headers))

    ask_with(test)
    return answers[-2], answers[-1]


@pytest.mark.parametrize(("times", "is_old"), [(POPULAR_REQUESTS - 1, False), (POPULAR_REQUESTS, True)])
def test_a_popular_response_may_lack_the_last_diagnoses(times: int, is_old: bool) -> None:
    """From so many requests in a short time on, a response is shared although a diagnosis came."""
    before, after = ask_often(times, Changes(2, 1))
    assert (before == after) == is_old


def test_a_popular_response_has_all_that_people_decided() -> None:
    """A decision is in the next response, however many ask for it."""
    before, after = ask_often(POPULAR_REQUESTS, Changes(2, 2))
    assert before != after


def test_whoever_wants_no_cached_response_gets_all() -> None:
    """With `Cache-Control: no-cache` a popular response has the last diagnosis."""
    before, after = ask_often(POPULAR_REQUESTS, Changes(2, 1), ((b"cache-control", b"no-cache"),))
    assert before != after


def test_requests_far_apart_make_nothing_popular() -> None:
    """Only requests within the limit of time count, and only those for the same response."""
    popularity = Popularity()
    times = [number * BUSY_SECONDS / (POPULAR_REQUESTS - 1) for number in range(POPULAR_REQUESTS)]
    assert [popularity.count(("/list",), now) for now in times][-1]
    assert not popularity.count(("/other",), times[-1])
    assert not any(popularity.count(("/slow",), 1.01 * now) for now in times)
