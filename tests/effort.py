"""How much the tests try: `make test` a part of what is drawn or varied, `make test-thorough` all of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import TypeVar

_Item = TypeVar("_Item")
EXAMPLES = 30  # of a property test that does not say how many it needs
THOROUGH_EXAMPLES = 100


def is_thorough() -> bool:
    """Whether the tests try everything, as `make test-thorough` asks."""
    return os.environ.get("TRIAGE_TESTS") == "thorough"


def choose_some(items: Sequence[_Item], count: int, key: str) -> list[_Item]:
    """Return `count` of the items, the same ones in every run, spread over the keys; all if the tests are thorough."""
    if is_thorough():
        return list(items)
    numbers = sorted(range(len(items)), key=lambda number: hashlib.sha256(f"{key} {number}".encode()).digest())
    return [items[number] for number in sorted(numbers[:count])]
