"""Run a coroutine in an event loop of its own, also where a browser's test has left one running."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_in_own_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of the coroutine, which ran in a thread of its own."""
    with ThreadPoolExecutor(1, thread_name_prefix="loop") as threads:
        return threads.submit(asyncio.run, coroutine).result()
