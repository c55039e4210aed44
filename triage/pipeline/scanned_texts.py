"""Read the scanned texts again around hits, and give reported evidence its line numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from triage import sources
from triage.base.forks import LocalProcesses, WorkSharer
from triage.evidence.extracted import ExtractedJob
from triage.evidence.extraction import source_text
from triage.model import Deviation, Evidence, Explanation, Finding, LastLine, Source, Warning
from triage.records.activity import Activity
from triage.records.saved_cells import SavedCells
from triage.records.text import LONGEST, Text
from triage.scan.edges import HeldEdges
from triage.scan.interface import ScanResult
from triage.sources.opened_file import why_unreadable

_MOST_BYTES = 1 << 10  # of a last line
_WithEvidence = TypeVar("_WithEvidence", Finding, Deviation, Explanation)


class ScannedTexts:
    """The texts of a job after their scan: read around hits, count lines only for what is reported."""

    def __init__(
        self,
        scanned: Sequence[tuple[Source, ScanResult]],
        sharer: WorkSharer = LocalProcesses(),
        find_lines: Callable[[str | None], Mapping[int, int]] = lambda path: {},
    ) -> None:
        """`find_lines` returns the lines of some offsets in the file at a path that are known from an earlier run."""
        self._sharer = sharer
        self._by_name = {source.name: (source, scan) for source, scan in scanned}
        self._windows: dict[str, SavedCells] = {}
        self._lines: dict[tuple[str, int], int] = {
            (source.name, offset): line for source, _ in scanned for offset, line in find_lines(source.path).items()
        }
        self._files = sources.FileReader()

    def __enter__(self) -> ScannedTexts:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def read_of(self, source: Source, scan: ScanResult) -> Callable[[int, int], bytes]:
        """Return a function that reads bytes of the source by offset and length."""
        if isinstance(scan.edges, HeldEdges) and len(whole := scan.edges.tail) == scan.size:
            return lambda offset, length: whole[offset : offset + length]
        if source.path is not None:
            path = source.path
            return lambda offset, length: self._files.read_at(path, offset, length)
        return self._window(source.name, scan).read

    @property
    def scanned(self) -> list[tuple[Source, ScanResult]]:
        """The sources with their scans, sorted by name."""
        return list(self._by_name.values())

    def last_lines(self, extracted: ExtractedJob) -> list[LastLine]:
        """Return the last line of each rank: the latest by its timestamp, within a source the last by its offset."""
        job, texts = extracted.job, dict[str, Text]()
        best: dict[int, tuple[tuple[float, str, int], str, Activity]] = {}
        for name, activity in extracted.activity:
            origin = job.with_corrected_time(job.complete(name, activity.origin))
            if origin.rank is None or name not in self._by_name:
                continue
            before = best.get(origin.rank)
            time = origin.time
            if time is None:
                time = before[0][0] if before and before[1] == name else float("-inf")
            key = (time, name, activity.offset)
            if before is None or key >= before[0]:
                best[origin.rank] = key, name, activity
        lines = []
        for rank, ((time, _, _), name, activity) in sorted(best.items()):
            read = self.read_of(*self._by_name[name])
            text = texts[name] = texts.get(name) or source_text(*self._by_name[name], read, extracted)
            parts = text.parse_line(read(activity.offset, LONGEST).split(b"\n", 1)[0], activity.offset)
            line = parts[-1].parsed.text[:_MOST_BYTES].rstrip() if parts else ""
            shown_time = time if time != float("-inf") else None
            lines.append(LastLine(rank, shown_time, activity.step, line, name, activity.offset))
        return lines

    def _window(self, name: str, scan: ScanResult) -> SavedCells:
        window = self._windows.get(name)
        if window is None:
            window = self._windows[name] = SavedCells(scan)
        return window

    def with_unreadable(self, warnings: Sequence[Warning]) -> tuple[Warning, ...]:
        """Return the warnings with one more for each text that went away or became shorter after its scan."""
        reported = {warning.source for warning in warnings if warning.code == "unreadable"}
        problems = (
            (name, why_unreadable(source.path, scan.size))
            for name, (source, scan) in self._by_name.items()
            if source.path and name not in reported
        )
        message = (
            "went away or changed during the diagnosis ({}): evidence may be missing and line numbers may be wrong"
        )
        lost = (Warning("unreadable", name, message.format(problem)) for name, problem in problems if problem)
        return tuple(
            sorted((*warnings, *lost), key=lambda warning: (warning.source or "", warning.code, warning.message))
        )

    def count_lines(self, facts: Iterable[Evidence]) -> None:
        """Look up the line numbers of all these facts, reading each source once."""
        wanted: dict[str, set[int]] = {}
        for fact in facts:
            if fact.source in self._by_name:
                offsets = {fact.offset, max(fact.offset, fact.end)}
                wanted.setdefault(fact.source, set()).update(
                    offset for offset in offsets if (fact.source, offset) not in self._lines
                )
        paths = {name: source.path for name in wanted if (source := self._by_name[name][0]).path is not None}
        plain = sources.find_line_numbers({path: wanted[name] for name, path in paths.items()}, self._sharer)
        for name, offsets in wanted.items():
            source, scan = self._by_name[name]
            window = None if source.path is not None else self._window(name, scan)
            for offset in offsets:
                self._lines[name, offset] = window.line_number(offset) if window else plain[paths[name]][offset]

    def lines_by_path(self) -> dict[str, dict[int, int]]:
        """Return the lines of offsets that were looked up, by the path of the file."""
        lines: dict[str, dict[int, int]] = {}
        for (name, offset), line in self._lines.items():
            path = self._by_name[name][0].path
            if path is not None:
                lines.setdefault(path, {})[offset] = line
        return lines

    def with_lines(self, finding: _WithEvidence) -> _WithEvidence:
        """Return the finding, deviation or explanation with the line numbers of its evidence."""
        return replace(finding, evidence=self.number_lines(finding.evidence))

    def number_final_lines(self, facts: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
        """Return facts near the ends of sources with their line numbers; without one where a stream is too long."""
        numbered = []
        for fact in facts:
            source, scan = self._by_name.get(fact.source, (None, None))
            if source is None or scan is None or (source.path is None and scan.size > len(scan.tail)):
                numbered.append(fact)
            elif source.path is None:
                numbered.append(replace(fact, line=scan.tail[: fact.offset].count(b"\n") + 1))
            else:
                numbered.extend(self.number_lines((fact,)))
        return tuple(numbered)

    def number_lines(self, facts: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
        """Return the facts with their line numbers."""
        self.count_lines(facts)
        return tuple(
            replace(
                fact,
                line=self._lines.get((fact.source, fact.offset), fact.line or 1),
                end_line=self._lines.get((fact.source, max(fact.offset, fact.end)), fact.end_line or 1),
            )
            for fact in facts
        )
