"""Types that several threads decode with msgspec.

msgspec reads the fields of a class when it first decodes one, and stores what it has read so far on the class. A second
thread that decodes the same class meanwhile uses the incomplete description, and the process dies by SIGSEGV.
"""

from __future__ import annotations

import threading
from typing import TypeVar

import msgspec

T = TypeVar("T")
_lock = threading.Lock()
_described: set[object] = set()


def share_type(kind: type[T]) -> type[T]:
    """Return the type, after one thread has let msgspec read its fields and those of the types in it."""
    if kind not in _described:
        with _lock:
            msgspec.json.Decoder(kind)
            _described.add(kind)
    return kind
