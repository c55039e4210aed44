"""Find the lines of a training step in a large text, with a few reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from triage.base.lazy_dataclass import dataclass
from triage.compare.log_steps import read_step
from triage.compare.quantities import CompleteOrigin, RankValue, extract_values
from triage.model.evidence import Source
from triage.records.text import Text
from triage.scan.interface import ScanResult

WINDOW = 1 << 13
AROUND = 1 << 16
_MAX_ROWS = 256


@dataclass(frozen=True, slots=True)
class StepFinder:
    """Reads steps in one text. Only plain files can be read at any offset; other texts give nothing."""

    source: Source
    scan: ScanResult
    read: Callable[[int, int], bytes]
    text: Text
    complete_origin: CompleteOrigin

    def read_step(self, key: str, step: int) -> list[RankValue]:
        """The values of `key` that ranks print at a step; none where steps do not ascend."""
        base, data = self._read_around(key, step)
        rows = [(start, end) for start, end, number in _find_steps(data, key) if number == step]
        values = (value for start, end in rows[:_MAX_ROWS] for value in self._extract(data[start:end], base + start))
        return [value for value in values if value.step == step and value.key == key]

    def find_nearest_step(self, key: str, step: int, low: int, high: int) -> int | None:
        """The logged step between `low` and `high` that is nearest to `step`: not every step is logged."""
        _, data = self._read_around(key, step)
        steps = {number for _, _, number in _find_steps(data, key) if low < number < high}
        return min(steps, key=lambda number: (abs(number - step), number), default=None)

    def _extract(self, data: bytes, base: int) -> list[RankValue]:
        return extract_values(self.text, self.source, data, base, self.complete_origin, most=1, last=False)

    def _read_around(self, key: str, step: int) -> tuple[int, bytes]:
        """(offset, bytes) around the expected place of a step, from the start of a line."""
        if self.source.path is None:
            return 0, b""
        low, high = 0, self.scan.size
        while high - low > WINDOW:
            middle = (low + high) // 2
            line = next(_find_steps(self.read(middle, WINDOW), key), None)
            if line is None or line[2] >= step:
                high = middle
            else:
                low = middle
        start = max(0, low - AROUND // 2)
        data = self.read(start, AROUND)
        cut = data.find(b"\n") + 1 if start else 0
        return start + cut, data[cut:]


def _find_steps(data: bytes, key: str) -> Iterator[tuple[int, int, int]]:
    """(start, end, step) of the lines that contain the quantity and a step."""
    name = key.encode()
    place = data.find(name)
    while place >= 0:
        start = data.rfind(b"\n", 0, place) + 1
        end = data.find(b"\n", place)
        end = end if end >= 0 else len(data)
        step = read_step(data[start:end].decode("utf-8", "replace"))
        if step is not None:
            yield start, end, step
        place = data.find(name, end)
