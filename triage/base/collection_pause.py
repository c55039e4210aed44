"""Pause the garbage collector of Python for work that makes many objects and hardly any reference cycles."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused_collection() -> Iterator[None]:
    """Pause the garbage collector: searching for cycles among many objects takes longer than the cycles are worth.

    It runs again at the end if it ran before. Threads may pause it at the same time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
