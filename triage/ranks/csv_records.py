"""Unwrap tables of log lines, as stores of logs export them: CSV with a column for the message.

A message with newlines stands in quotes over several lines of the file, with each quote in it doubled (RFC 4180). The
names of the columns say which one has the message and which the time, the host and the rank; a table with a message
alone may be anything, such as the samples of a training.
"""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Callable, Sequence

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.model.evidence import Origin
from triage.ranks.timestamps import ISO, epoch_seconds

_HEADER_BYTES = 1 << 12
_NEAR_BYTES = 1 << 14
_DELIMITERS = ",\t;"
_CONCEPTS: dict[str, tuple[str, ...]] = {
    "message": (
        *("message", "@message", "msg", "log", "line", "log_message", "logmessage", "textpayload", "body", "_raw"),
        *("jsonpayload.message", "log.message", "event.original", "content"),
    ),
    "time": (
        *("time", "timestamp", "@timestamp", "ts", "_time", "date", "datetime", "eventtime", "asctime"),
        *("receivetimestamp", "timegenerated", "timegenerated [utc]", "timestamp [utc]"),
    ),
    "rank": ("rank", "global_rank", "global rank"),
    "local_rank": ("local_rank", "local rank"),
    "host": (
        *("host", "hostname", "host.name", "node", "node_name", "computer", "instance", "pod", "pod_name", "podname"),
        *("kubernetes.pod.name", "kubernetes.pod_name", "resource.labels.pod_name", "@logstream", "logstream"),
    ),
    "pid": ("pid", "process.pid"),
}
_CONCEPT_OF = {name: concept for concept, names in _CONCEPTS.items() for name in names}
_ISO = lazy_re(ISO)
_TIME = lazy_re(r"\d{4}-\d\d-\d\d|\d{10,19}(?:\.\d+)?$|[A-Z][a-z]{2} \d{1,2}, \d{4}|\d{1,2}/\d{1,2}/\d{2,4}")
_NUMBER = lazy_re(r"\d{1,9}$")
_EPOCH = lazy_re(r"(?P<seconds>\d{10})(?P<fraction>\d{3}|\d{6}|\d{9})?(?:\.\d+)?$")
# The rest of a quoted message: up to a quote that is not doubled, before a delimiter or the end of the line.
_QUOTED = lazy_re(r'((?:[^"]|"")*)(?:"(?P<after>[,\t;].*)?)?$', re.S)

Read = Callable[[int, int], bytes]


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table: what stands between them, their number, and which one has what."""

    delimiter: str
    count: int
    places: dict[str, int]


@dataclass(frozen=True, slots=True)
class CsvLine:
    """The part of a message in one line of the file, and what its row says of the writer."""

    text: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class _Row:
    """A row as far as it stands in its first line: the text of its message, and the fields up to its end.

    `is_closed`: the message ends there too, so that the row is complete.
    """

    text: str
    fields: tuple[str, ...]
    is_closed: bool

    def closed_by(self, fields: list[str]) -> _Row:
        """Return the row with the fields behind its message."""
        return _Row(self.text, (*self.fields, *fields), is_closed=True)


@functools.lru_cache(maxsize=64)
def parse_header(line: bytes) -> Columns | None:
    """Return the columns that the first line of a file names; None if it is not the header of a table of log lines."""
    text = line.decode("utf-8", "replace").removeprefix("\ufeff").rstrip("\r")
    for delimiter in _DELIMITERS:
        names = [name.strip().lower() for name in _split_row(text, delimiter)]
        places: dict[str, int] = {}
        for place, name in enumerate(names):
            if name in _CONCEPT_OF:
                places.setdefault(_CONCEPT_OF[name], place)
        if "message" in places and len(places) > 1 and len(set(names)) == len(names):
            return Columns(delimiter, len(names), places)
    return None


def read_columns(read: Read) -> Columns | None:
    """Return the columns of a file."""
    return parse_header(read(0, _HEADER_BYTES).partition(b"\n")[0])


def unwrap_csv(raw: str, offset: int, length: int, year: int, read: Read) -> CsvLine | None:
    """Return the part of a message in a line of the file, which has `length` bytes at `offset`.

    None for the header, and where a message has no text.
    """
    columns = read_columns(read)
    if columns is None or not offset:
        return None
    raw = raw.rstrip("\r")
    row = _split_start(raw, columns)
    text = row.text if row is not None else _end_of_quoted(raw)[0]
    if not text.strip():
        return None
    is_continued = row is None
    if row is None:
        row = _find_row_before(offset, columns, read)
    if row is not None and not row.is_closed:
        row = row.closed_by(_find_end(raw if is_continued else "", offset + length, columns, read))
    return CsvLine(text, _origin(row.fields if row is not None else [], columns, year))


def list_messages(data: bytes) -> list[str]:
    """Return the lines of the messages in the first bytes of a table, whose last line may be cut off."""
    lines = data.split(b"\n")
    columns = parse_header(lines[0])
    if columns is None:
        return []
    texts = []
    for line in lines[1:]:
        raw = line.decode("utf-8", "replace").rstrip("\r")
        row = _split_start(raw, columns)
        texts.append(row.text if row is not None else _end_of_quoted(raw)[0])
    return [text for text in texts if text.strip()]


def _split_start(raw: str, columns: Columns) -> _Row | None:
    """Return the row that begins in a line, as far as it stands there; None if none does."""
    fields: list[str] = []
    rest: str | None = raw
    place = columns.places["message"]
    for _ in range(place):
        field, is_closed, rest = _take_field(rest or "", columns.delimiter)
        if not is_closed or rest is None:
            return None
        fields.append(field)
    is_quoted = (rest or "").startswith('"')
    text, is_closed, rest = _take_field(rest or "", columns.delimiter)
    if not is_quoted and text.count('"') % 2:  # the end of a message that began above
        return None
    fields.append(text)
    if is_closed:
        fields += [] if rest is None else _split_row(rest, columns.delimiter)
        if len(fields) != columns.count:
            return None
    row = _Row(text, tuple(fields), is_closed)
    return row if _has_forms(fields, columns) or (is_quoted and not place) else None


def _has_forms(fields: Sequence[str], columns: Columns) -> bool:
    """Whether the fields that are there have the form of their columns; only the time is always given."""
    for concept, pattern in (("time", _TIME), ("rank", _NUMBER), ("local_rank", _NUMBER), ("pid", _NUMBER)):
        place = columns.places.get(concept, columns.count)
        value = fields[place].strip() if place < len(fields) else None
        if value is not None and pattern.match(value) is None and (value or concept == "time"):
            return False
    return len(fields) > 1


def _take_field(text: str, delimiter: str) -> tuple[str, bool, str | None]:
    """Return the first field of a text, whether it ends in it, and what follows it; None at the end of the line."""
    if text.startswith('"'):
        value, after = _end_of_quoted(text[1:])
        return value, after is not None, after[1:] if after else None
    field, has_more, rest = text.partition(delimiter)
    return field, True, rest if has_more else None


def _end_of_quoted(text: str) -> tuple[str, str | None]:
    """Return a quoted field up to its end, and what stands behind it in the line; None where it does not end there."""
    match = _QUOTED.match(text)
    if match is None:
        return text.replace('""', '"'), None
    return match[1].replace('""', '"'), (match["after"] or "") if match.end(1) < len(text) else None


def _split_row(text: str, delimiter: str) -> list[str]:
    """Return the fields of a text; none where it is no CSV, such as a field of more than 128 KiB."""
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error:
        return []


def _find_row_before(offset: int, columns: Columns, read: Read) -> _Row | None:
    """Return the row in which the line at `offset` continues a message; None if it begins far away."""
    start = max(0, offset - _NEAR_BYTES)
    lines = read(start, offset - start).split(b"\n")[:-1]
    rows = (_split_start(line.decode("utf-8", "replace").rstrip("\r"), columns) for line in reversed(lines))
    return next((row for row in rows if row is not None), None)


def _find_end(line: str, behind: int, columns: Columns, read: Read) -> list[str]:
    """Return the fields behind a message that ends in `line` or in one of the next ones; none if it ends far away."""
    following = read(behind, _NEAR_BYTES).decode("utf-8", "replace").split("\n")[1:]
    for text in (line, *following):
        _, after = _end_of_quoted(text.rstrip("\r"))
        if after is not None:
            return _split_row(after[1:], columns.delimiter) if after else []
    return []


def _origin(fields: Sequence[str], columns: Columns, year: int) -> Origin:
    values = {concept: fields[place].strip() for concept, place in columns.places.items() if place < len(fields)}
    numbers = {name: int(value) for name, value in values.items() if _NUMBER.match(value)}
    return Origin(
        rank=numbers.get("rank"),
        local_rank=numbers.get("local_rank"),
        host=values.get("host") or None,
        pid=numbers.get("pid"),
        time=_read_time(values.get("time", ""), year),
    )


def _read_time(value: str, year: int) -> float | None:
    match = _ISO.match(value)
    if match:
        return epoch_seconds(match, year)
    epoch = _EPOCH.match(value)
    return float(f"{epoch['seconds']}.{epoch['fraction'] or 0}") if epoch else None
