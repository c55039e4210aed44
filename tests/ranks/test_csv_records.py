"""triage.ranks.csv_records: tables of log lines are read as the lines that they hold."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import assume, given, strategies as st

import triage
from triage.ranks.csv_records import parse_header, unwrap_csv

TRACEBACK = (
    'Traceback (most recent call last):\n  File "train.py", line 31, in <module>\n    main()\n'
    'ValueError: sample "doc-7", shard 3 has no tokens'
)
# What exports look like: delimiter, header, and a row of time, host, rank and message.
EXPORTS = {
    "Kibana": (",", ["@timestamp", "kubernetes.pod.name", "message"], "Nov 21, 2026 @ 03:07:{s:02}.000|w-{r}|{m}"),
    "Grafana": (",", ["Time", "Line", "pod"], "17952304{s:02}123|{m}|w-{r}"),
    "CloudWatch": (",", ["@timestamp", "@message", "@logStream"], "2026-11-21 03:07:{s:02}.000|{m}|w-{r}"),
    "Azure": (",", ["TimeGenerated [UTC]", "Computer", "LogMessage"], "2026-11-21T03:07:{s:02}Z|w-{r}|{m}"),
    "message first": (",", ["message", "timestamp", "rank"], "{m}|2026-11-21T03:07:{s:02}Z|{r}"),
    "semicolons": (";", ["time", "rank", "level", "msg"], "2026-11-21 03:07:{s:02}|{r}|INFO|{m}"),
    "tabs": ("\t", ["ts", "rank", "pid", "line"], "2026-11-21T03:07:{s:02}Z|{r}|41{r}|{m}"),
}


def write_table(delimiter: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerows([header, *rows])
    return out.getvalue()


@pytest.mark.parametrize("name", EXPORTS)
def test_the_failure_in_an_export_is_that_of_its_rank(name: str, tmp_path: Path) -> None:
    """A traceback of several lines in quotes is one exception of the rank or the host that its row names."""
    delimiter, header, row = EXPORTS[name]
    lines = [(step, rank, f"[rank{rank}] step {step}, loss 2.{step}") for step in range(5) for rank in range(3)]
    lines += [(9, 2, TRACEBACK), (10, 0, "RuntimeError: Connection reset by peer")]
    rows = [[part.format(s=s, r=r, m=text) for part in row.split("|")] for s, r, text in lines]
    (tmp_path / "export.csv").write_text(write_table(delimiter, header, rows))
    diagnosis = triage.ingest(tmp_path)
    root = diagnosis.root_cause
    assert root is not None
    assert root.title == 'ValueError: sample "doc-7", shard 3 has no tokens'
    assert root.ranks == ((2,) if "rank" in header else root.ranks)
    assert root.hosts == (() if "rank" in header else ("w-2",))
    assert diagnosis.job.world_size == 3


@pytest.mark.parametrize(
    ("header", "is_log"),
    [
        ("timestamp,rank,message", True),
        ("\ufeffTime;Host;Message\r", True),
        ("id,message", False),
        ("label,text", False),
        ("step,loss,time", False),
        ("time,rank,message,message", False),
        ("2026-11-21 03:07:45, rank 3, message", False),
    ],
)
def test_only_a_header_of_log_lines_begins_a_table(header: str, *, is_log: bool) -> None:
    """A message alone may be a sample of the training; something must say when, where or by whom."""
    assert (parse_header(header.encode()) is not None) == is_log


TEXTS = st.lists(st.text(st.sampled_from("ab,\"'; []{}:0"), min_size=1, max_size=12), min_size=1, max_size=4)


@given(messages=st.lists(TEXTS, min_size=1, max_size=5), place=st.integers(0, 2), delimiter=st.sampled_from(",;\t"))
def test_every_line_of_a_message_comes_back(messages: list[list[str]], place: int, delimiter: str) -> None:
    """Whatever quotes, delimiters and newlines a message has, its lines are those of the table, with the row's rank.

    In the first column, a line that begins with a quote may begin a row as well.
    """
    assume(place or not any(line.startswith('"') for lines in messages for line in lines))
    header = ["time", "rank"]
    header.insert(place, "message")
    rows = []
    for number, lines in enumerate(messages):
        row = [f"2026-11-21T03:07:{number:02}Z", str(number)]
        row.insert(place, "\n".join(lines))
        rows.append(row)
    data = write_table(delimiter, header, rows).encode()
    parts: list[tuple[str, int | None]] = []
    offset = 0
    for line in data.split(b"\n"):
        part = unwrap_csv(line.decode(), offset, len(line), 2026, lambda start, count: data[start : start + count])
        parts += [(part.text, part.origin.rank)] if part is not None else []
        offset += len(line) + 1
    wanted = [(text, number) for number, lines in enumerate(messages) for text in lines if text.strip()]
    assert parts == wanted


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        ("1795230465", 1795230465.0),
        ("1795230465123", 1795230465.123),
        ("1795230465123000000", 1795230465.123),
        ("1795230465.5", 1795230465.0),
        ("²²²²²²²²²²", None),
        ("17952304651", None),
    ],
)
def test_times_without_a_date_count_from_1970(time: str, seconds: float | None) -> None:
    """In seconds, milliseconds, microseconds or nanoseconds; anything else is no time."""
    header = b"message,time\n"
    data = header + f"step 3,{time}\n".encode()
    line = data[len(header) :].rstrip(b"\n")
    part = unwrap_csv(line.decode(), len(header), len(line), 2026, lambda start, count: data[start : start + count])
    assert part is not None
    assert (part.origin.time is None) if seconds is None else (part.origin.time == pytest.approx(seconds, abs=1e-3))


def test_bytes_that_are_no_text_do_not_hide_the_end_of_a_message() -> None:
    """The row ends at its own byte, however many characters the bytes before it become."""
    data = b'message,rank\n"a ' + b"\xff" * 9 + b'\nb",3\n"c\nd",4\n'
    line = data.split(b"\n")[1]
    offset = data.index(line)
    part = unwrap_csv(
        line.decode("utf-8", "replace"), offset, len(line), 2026, lambda start, count: data[start : start + count]
    )
    assert part is not None
    assert part.origin.rank == 3
