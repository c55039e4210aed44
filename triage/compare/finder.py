"""The lines of one step in a large file, found by bisecting its bytes: steps ascend, so some twenty small reads are
enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from triage.compare.quantities import Complete, Value, observe
from triage.model.evidence import Source
from triage.ranks.last import STEP
from triage.ranks.text import Text
from triage.scan.interface import Scanned

WINDOW = 1 << 13
AROUND = 1 << 16
_MOST = 256


@dataclass(frozen=True, slots=True)
class Finder:
    """Reads in one text. Only plain files can be read at any place; of others the head and the tail are all there is."""

    source: Source
    scan: Scanned
    read: Callable[[int, int], bytes]
    text: Text
    complete: Complete

    def at(self, key: str, step: int) -> list[Value]:
        """The values of `key` at a step, of all ranks that tell them around that place; none where steps do not ascend."""
        base, data = self._around(key, step)
        rows = [(start, end) for start, end, found in _steps(data, key) if found == step]
        told = (value for start, end in rows[:_MOST] for value in self._values(data[start:end], base + start))
        return [value for value in told if value.step == step and value.key == key]

    def nearest(self, key: str, step: int, right: int, wrong: int) -> int | None:
        """The step nearest to `step` and between two others that the text tells: not every step is logged."""
        _, data = self._around(key, step)
        steps = {found for _, _, found in _steps(data, key) if right < found < wrong}
        return min(steps, key=lambda found: (abs(found - step), found), default=None)

    def _values(self, data: bytes, base: int) -> list[Value]:
        return observe(self.text, self.source, data, base, self.complete, most=1, last=False)

    def _around(self, key: str, step: int) -> tuple[int, bytes]:
        """The bytes around the place where a step must be, from the start of a line."""
        if self.source.path is None:
            return 0, b""
        low, high = 0, self.scan.size
        while high - low > WINDOW:
            middle = (low + high) // 2
            met = next(_steps(self.read(middle, WINDOW), key), None)
            if met is None or met[2] >= step:
                high = middle
            else:
                low = middle
        start = max(0, low - AROUND // 2)
        data = self.read(start, AROUND)
        cut = data.find(b"\n") + 1 if start else 0
        return start + cut, data[cut:]


def _steps(data: bytes, key: str) -> Iterator[tuple[int, int, int]]:
    """(start, end, step) of the lines that name the quantity and a step."""
    name = key.encode()
    place = data.find(name)
    while place >= 0:
        start = data.rfind(b"\n", 0, place) + 1
        end = data.find(b"\n", place)
        end = end if end >= 0 else len(data)
        told = STEP.search(data[start:end].decode("utf-8", "replace"))
        if told is not None:
            yield start, end, int(told[1])
        place = data.find(name, end)
