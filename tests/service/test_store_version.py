"""triage.service.store_version: every request learns of what was written before it came."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from tests.service.event_loop import run_in_own_loop
from tests.store.factories import known_diagnosis
from triage.service.store_version import SharedRead, StoreVersion
from triage.store import Store


def test_a_caller_gets_a_read_that_began_after_it_asked() -> None:
    """Whoever asks while a read runs gets the result of the next one, and all of them share it."""
    begun, go_on, reads = threading.Semaphore(0), threading.Semaphore(0), list[int]()

    def read() -> int:
        reads.append(len(reads))
        begun.release()
        go_on.acquire()
        return reads[-1]

    async def ask() -> tuple[int, list[int]]:
        shared = SharedRead(read)
        first = asyncio.create_task(shared.get())
        await asyncio.to_thread(begun.acquire)
        later = [asyncio.create_task(shared.get()) for _ in range(20)]
        await asyncio.sleep(0)
        go_on.release(2)
        return await first, await asyncio.gather(*later)

    assert run_in_own_loop(ask()) == (0, [1] * 20)
    assert reads == [0, 1]


def test_an_error_reaches_everybody_who_waits_and_nobody_else() -> None:
    """All who share a failed read get its error; the next one reads again."""
    answers = iter([ValueError("away"), 7])

    def read() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask() -> None:
        shared = SharedRead(read)
        errors = await asyncio.gather(shared.get(), shared.get(), return_exceptions=True)
        assert [str(error) for error in errors] == ["away", "away"]
        assert await shared.get() == 7

    run_in_own_loop(ask())


def test_a_caller_that_leaves_does_not_end_the_read_of_others() -> None:
    """A request that is cancelled while it waits costs the others nothing."""

    async def ask() -> int:
        shared = SharedRead(lambda: 7)
        leaves, stays = asyncio.create_task(shared.get()), asyncio.create_task(shared.get())
        await asyncio.sleep(0)
        leaves.cancel()
        return await stays

    assert run_in_own_loop(ask()) == 7


def test_incidents_and_decisions_are_counted(tmp_path: Path) -> None:
    """An ingest raises the generation, a decision of a person also the number of the last entry."""

    async def ask(store: Store) -> None:
        version = StoreVersion(store.connections)
        _, before = await version.get()
        with Store.open(tmp_path / "triage.db") as other:
            stored = other.incidents.add(known_diagnosis("a"))
            _, after = await version.get()
            assert after.generation > before.generation
            assert after.decision == before.decision
            other.feedback.add(stored.id, "agree", actor="ann")
        assert (await version.get())[1].decision > after.decision

    with Store.open(tmp_path / "triage.db") as store:
        run_in_own_loop(ask(store))


@pytest.mark.parametrize("is_remote", [False, True])
def test_only_a_server_is_asked_by_another_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_remote: bool
) -> None:
    """The event loop's thread reads a file itself, and never waits for a server."""
    threads: list[str] = []
    with Store.open(tmp_path / "triage.db") as store:
        version = StoreVersion(store.connections)
    monkeypatch.setattr(version, "_read", lambda: threads.append(threading.current_thread().name))
    if is_remote:
        monkeypatch.setattr(version, "_shared", SharedRead(version._read))
    run_in_own_loop(version.get())
    assert threads[0].startswith("store-version" if is_remote else "loop")
