"""Extract the settings that logs state, from the start of every text, where programs print them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from triage.evidence.extracted import ExtractedJob
from triage.evidence.extraction import source_text
from triage.evidence.settings import (
    NCCL_HINT,
    count_start_bytes,
    may_state_settings,
    setting_pattern,
    settings_in_line,
)
from triage.model.evidence import Evidence, Origin, Source
from triage.records.text import Line, Text
from triage.scan.interface import ScanResult

ReadBytes = Callable[[int, int], bytes]

MAX_LINES = 4096  # of one text


def extract_logged_settings(
    texts: Sequence[tuple[Source, ScanResult]],
    read_of: Callable[[Source, ScanResult], ReadBytes],
    extracted: ExtractedJob,
) -> list[Evidence]:
    """One piece of evidence of kind `environment` for each writer in each text that states settings."""
    share = count_start_bytes(len(texts))
    facts: list[Evidence] = []
    for source, scan in texts:
        if source.name not in extracted.sources_with_settings:
            continue
        data = scan.head
        read = read_of(source, scan)
        if source.path is not None and len(data) < min(share, scan.size):
            data = read(0, share)
        if may_state_settings(data):
            facts += _settings_by_writer(source, data, source_text(source, scan, read, extracted))
    return facts


def _settings_by_writer(source: Source, data: bytes, text: Text) -> Iterator[Evidence]:
    writers: dict[Origin, dict[str, tuple[str, int]]] = {}
    for origin, offset, pairs in (*_settings_by_nccl(data, text), *_other_settings(data, text)):
        settings = writers.setdefault(Origin(origin.rank, origin.local_rank, origin.host, origin.pid), {})
        for name, value in pairs:
            settings.setdefault(name, (value, offset))
    for origin, settings in writers.items():
        yield Evidence(
            kind="environment",
            component="log",
            text=f"{len(settings)} settings",
            origin=origin,
            source=source.name,
            offset=min(offset for _, offset in settings.values()),
            fields={name: value for name, (value, _) in settings.items()},
            excerpt="\n".join(f"{name} {offset} 0" for name, (_, offset) in settings.items()),
        )


StatedSettings = tuple[Origin, int, Sequence[tuple[str, str]]]


def _settings_by_nccl(data: bytes, text: Text) -> Iterator[StatedSettings]:
    """The settings in NCCL's own lines. A rank writes dozens of them, so each different prefix is parsed once; a line
    in JSON is parsed whole.
    """
    origins: dict[bytes, Origin] = {}
    place = data.find(NCCL_HINT)
    for _ in range(MAX_LINES):
        if place < 0:
            break
        start = data.rfind(b"\n", 0, place) + 1
        end = data.find(b"\n", place)
        line = data[start : end if end >= 0 else len(data)]
        if b'"' in line:
            yield from _settings_in(text.parse_line(line, start))
        else:
            prefix, marker, _ = line.partition(b"NCCL INFO ")
            if prefix not in origins:
                parsed = text.parse_line(prefix + marker, start)
                origins[prefix] = parsed[-1].parsed.origin if parsed else Origin()
            pairs = settings_in_line(line[len(prefix) :].decode("utf-8", "replace"))
            if pairs:
                yield origins[prefix], start, pairs
        place = data.find(NCCL_HINT, place + 1)


def _other_settings(data: bytes, text: Text) -> Iterator[StatedSettings]:
    for start, end in _candidate_lines(data):
        yield from _settings_in(text.parse_line(data[start:end], start))


def _settings_in(lines: Iterable[Line]) -> Iterator[StatedSettings]:
    for line in lines:
        pairs = settings_in_line(line.parsed.text)
        if pairs:
            yield line.parsed.origin, line.offset, pairs


def _candidate_lines(data: bytes) -> Iterator[tuple[int, int]]:
    """(start, end) of the lines that may state a setting, each once."""
    line_end = -1
    count = 0
    for match in setting_pattern().finditer(data):
        if match.start() >= line_end and count < MAX_LINES:
            count += 1
            start = data.rfind(b"\n", 0, match.end()) + 1
            end = data.find(b"\n", match.end() - 1)
            line_end = end if end >= 0 else len(data)
            yield start, line_end
