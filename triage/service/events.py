"""A task as server-sent events: one whenever it has changed, a comment now and then so that proxies keep the
connection.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool

from triage.base.errors import TriageError
from triage.store import Store

EVERY = 0.4
QUIET = 15.0
LONGEST = 600.0  # then the browser connects again by itself


async def events(store: Store, task_id: str) -> AsyncIterator[bytes]:
    """Until the task has ended, or for ten minutes."""
    from triage.service.api.answers import task

    before, spoken, began = b"", time.monotonic(), time.monotonic()
    yield b"retry: 2000\n\n"
    while time.monotonic() - began < LONGEST:
        try:
            found = await run_in_threadpool(store.tasks.get, task_id)
        except TriageError:
            return
        said = json.dumps(task(found), separators=(",", ":")).encode()
        if said != before:
            yield b"event: task\ndata: " + said + b"\n\n"
            before, spoken = said, time.monotonic()
        elif time.monotonic() - spoken > QUIET:
            yield b": still here\n\n"
            spoken = time.monotonic()
        if found.ended:
            return
        await asyncio.sleep(EVERY)
