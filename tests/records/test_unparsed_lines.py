"""triage.records.text: lines that need not be parsed"""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.ranks.layouts import detect_layout
from triage.records.text import STAMP_REACH, Line, Text, find_time_before

ROOT = Path(__file__).resolve().parents[2]
FILES = [path for path in sorted((ROOT / "samples" / "jobs").glob("*/job/**/*")) if path.is_file()]


def open_text(data: bytes) -> Text:
    return Text("job.log", lambda offset, length: data[offset : offset + length], len(data), 2026, detect_layout(data))


def find_time_in_every_line(text: Text, line: Line) -> float | None:
    """Return the time that reading every line before gives, for a line without a rank."""
    own = line.parsed
    outermost = own.writer[: own.writer.find("]:") + 2] if "]:" in own.writer else own.writer
    before = (one.parsed for one in text.lines_before(line.offset, STAMP_REACH, line.start_of(outermost)))
    times = (one.origin.time for one in before if one.origin.time is not None and one.writer == own.writer)
    return next(times, None)


def test_lines_that_are_not_parsed_give_no_time() -> None:
    """In the files of all samples, lines without a rank have the time that reading every line before them gives."""
    compared = 0
    for path in FILES:
        data = path.read_bytes()[: 1 << 15]
        text = open_text(data)
        lines = [line for line in text.lines_from(0, len(data)) if line.parsed.origin.time is None]
        for line in [line for line in lines if line.parsed.origin.rank is None][:: len(lines) // 10 + 1]:
            assert find_time_before(text, line) == find_time_in_every_line(text, line), (path, line.raw)
            compared += 1
    assert compared > 300


def test_places_of_lines_are_those_of_the_lines() -> None:
    """In the files of all samples, the lines at the places that are found without parsing are those that are parsed."""
    compared = 0
    for path in FILES:
        data = path.read_bytes()[: 1 << 14]
        text = open_text(data)
        for start, reach in ((0, len(data)), (len(data) // 3, len(data) // 2)):
            places = text.places_from(start, reach)
            if places is not None:
                lines = list(text.lines_from(start, reach))
                assert [place[0] for place in places] == [line.offset for line in lines]
                assert [text.line_at(place).data for place in places] == [line.data for line in lines]
                compared += 1
    assert compared > 100


@pytest.mark.parametrize(
    "between", ["step 1", "\x1b[31m2026-11-20 10:00:05 red\x1b[0m", "[rank3]: 2026-11-20 10:00:05 step"]
)
def test_the_nearest_time_of_the_same_writer_counts(between: str) -> None:
    """A line without a writer has the time of the nearest line that has none either, also behind a colour."""
    text = open_text(f"2026-11-20 10:00:01 begin\n{between}\nboom\n".encode())
    line = next(line for line in text.lines_from(0, 1 << 10) if line.raw == "boom")
    time = find_time_before(text, line)
    assert time is not None
    assert time % 60 == (5 if "red" in between else 1)
