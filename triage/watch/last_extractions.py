"""Reuse, in the next diagnosis of a running job, the evidence of files that did not grow since the last one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triage.evidence.extracted import ExtractedSource
from triage.pipeline.earlier_readings import EarlierReadings

Stamp = Sequence[object]
"""What the evidence of a file depends on: compared by identity, or by value for numbers."""


class LastExtractions(EarlierReadings):
    """The evidence and the line numbers of the last diagnosis, in memory only."""

    def __init__(self) -> None:
        super().__init__()
        self._stamps: dict[str, Stamp] = {}
        self._extracted: dict[str, tuple[str, ExtractedSource]] = {}
        self._known_lines: dict[str, Mapping[int, int]] = {}

    def forget_changed(self, stamps: Mapping[str, Stamp]) -> None:
        """Forget the evidence of files, by path, that now have another stamp; and lines, of those that were replaced.

        The first item of a stamp stays the same object while the file only grows.
        """
        for path in list(self._stamps):
            before, now = self._stamps[path], stamps.get(path, ())
            if not now or now[0] is not before[0]:
                self._known_lines.pop(path, None)
            if len(now) != len(before) or any(
                one is not other and not (isinstance(one, int) and one == other)
                for one, other in zip(now, before, strict=True)
            ):
                self._extracted.pop(path, None)
        self._stamps = dict(stamps)

    def find_extracted(self, path: str | None, conditions: str) -> ExtractedSource | None:
        """Return the evidence of a file that did not change."""
        known, extracted = self._extracted.get(path or "", ("", None))
        return extracted if known == conditions else None

    def add_extracted(self, path: str | None, conditions: str, extracted: ExtractedSource) -> None:
        """Remember the evidence of a file."""
        if path is not None:
            self._extracted[path] = conditions, extracted

    def find_lines(self, path: str | None) -> Mapping[int, int]:
        """Return the known lines of offsets in a file."""
        return self._known_lines.get(path or "", {})

    def save(self, lines: Mapping[str, Mapping[int, int]]) -> None:
        """Remember lines by path."""
        self._known_lines.update(lines)
