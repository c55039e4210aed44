"""Unwrap logs whose lines are inside records of something else.

JSON of Docker, journald or a program's logger, journald's export format, CRI lines in pieces, and consoles that write
the timestamp on a line of its own. The scan reads the bytes as they are; only the lines around hits are unwrapped here.

Formats: Docker json-file `{"log":"…\\n","stream":…,"time":…}` (moby daemon/logger/jsonfilelog), journalctl -o json and
-o export (systemd JOURNAL_EXPORT_FORMATS), CRI `<stamp> <stream> P|F <text>` (kubernetes cri-api), and CloudWatch's
console export. Tables of log lines are in csv_records.py.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.model.evidence import Origin
from triage.ranks.grammar import Table
from triage.ranks.json_errors import read_errors
from triage.ranks.prefix import ParsedLine, parse_prefix
from triage.ranks.timestamps import ISO, epoch_seconds

Read = Callable[[int, int], bytes]
Message = tuple[str, ParsedLine]
"""The text of a message (without its last newline), and what its record says."""
WrapperKind = Literal["", "json", "json-lines", "export", "stamp-behind", "stamp-before", "cri", "csv"]

# A piece of a cut line has at most 16 KiB (containerd, CRI-O and Docker).
_PIECE = (1 << 14) + 256
_MOST_PIECES = 64
_NEAR_BYTES = 1 << 12

_MESSAGES = (
    *("log", "MESSAGE", "message", "msg", "event", "textPayload", "@message", "log_message", "body", "Body"),
    *("short_message", "@mt", "@m"),
)
_ERRORS = (
    *("exc_info", "exception", "exc_text", "stack_trace", "stacktrace", "traceback", "stack", "error", "err", "@x"),
    *("full_message", "exception.stacktrace", "error.stack_trace", "error_message", "exception.message", "cause"),
)
# What a program says of its message, where it is a sentence: others hold codes and objects in fields of these names.
_DETAILS = ("reason", "detail", "details")
_TIMES = ("time", "timestamp", "ts", "asctime", "@timestamp", "eventTime", "__REALTIME_TIMESTAMP")
_KEYS: dict[str, str] = {
    **dict.fromkeys(_MESSAGES, "message"),
    **dict.fromkeys((*_ERRORS, *_DETAILS), "error"),
    **dict.fromkeys(_TIMES, "time"),
    **dict.fromkeys(("rank", "global_rank", "RANK", "_rank", "Rank"), "rank"),
    **dict.fromkeys(("local_rank", "LOCAL_RANK"), "local_rank"),
    **dict.fromkeys(("_HOSTNAME", "hostname", "host", "node_name", "pod_name"), "host"),
    **dict.fromkeys(("_PID", "pid", "process"), "pid"),
    "stream": "stream",
}
# A value may be cut off: the middle of a very long line is left out.
_PAIR = lazy_re(
    r'(?<!\\)"(?P<key>'
    + "|".join(map(re.escape, _KEYS))
    + r')"\s*:\s*(?:"(?P<text>(?:[^"\\]|\\.)*)"?|(?P<number>-?\d+(?:\.\d+)?)|(?P<bytes>\[[\d,\s]*\]))',
    re.S,
)
_ESCAPED = lazy_re(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.S)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_SAME_IN_JSON = lazy_re(r"[ !#-%'-;=?-\[\]-~]*")  # without what JSON or Docker escapes
_ISO = lazy_re(ISO)
_STAMP_ONLY = lazy_re(rf"\s*\[?{ISO}\]?\s*$")
_TABLE = "CSV export"
_DELIMITER = lazy_re(rb"[,;\t]")
_COLUMN = lazy_re(rb"(?:\xef\xbb\xbf)?\"? ?[\w.@][\w.@ \[\]-]{0,60}\"?\r?")
_FEWEST = 3
_MOST_NESTED = 3
_MESSAGE_FIELD = lazy_re(r'\s+"(?:message|textPayload|log)": *"')
_MESSAGE_LINE = lazy_re(rb'(?m)^[ \t]+"(?:message|textPayload|log)": *"')
_MOST_FIELDS = 20  # lines of one object around a message
_OTHER_FIELD = lazy_re(r'\s*(?:"[^"]+" *: .*|[\[\]{}]+,?)\s*$')
_FIELD = lazy_re(rb"[A-Z_][A-Z0-9_]*=")
_LOG = b'{"log":"'
_DOCKER = lazy_re(rb'(\\n)?","stream":"(stdout|stderr)"')
CRI_PREFIX = lazy_re(rb"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) (stdout|stderr) ([FP])(?::\w+)? ")


@dataclass(frozen=True, slots=True)
class LogWrapper:
    """A way to wrap log lines. `sample` is a part of a file with the messages `step 3` and `step 4`."""

    name: str
    kind: WrapperKind
    since: str
    sample: str
    provides: str


LOG_WRAPPERS: tuple[LogWrapper, ...] = (
    LogWrapper(
        "Docker json-file",
        "json",
        "Docker 1.6",
        "".join(f'{{"log":"step {n}\\n","stream":"stderr","time":"2026-11-21T03:07:45.372001123Z"}}\n' for n in (3, 4)),
        "stream, time; lines cut at 16 KiB are joined",
    ),
    LogWrapper(
        "journald JSON",
        "json",
        "systemd 38",
        "".join(
            f'{{"__REALTIME_TIMESTAMP":"1795230465000000","_HOSTNAME":"node1","_PID":"412","MESSAGE":"step {n}"}}\n'
            for n in (3, 4)
        ),
        "host, pid, time",
    ),
    LogWrapper(
        "JSON log",
        "json",
        "Fluent Bit, structlog, python-json-logger",
        "".join(
            f'{{"timestamp":"2026-11-21T03:07:45Z","level":"info","rank":3,"message":"step {n}"}}\n' for n in (3, 4)
        ),
        "rank, local_rank, host, pid, stream, time, if it has such keys; tracebacks in it are unwrapped",
    ),
    LogWrapper(
        "JSON with a field a line",
        "json-lines",
        "aws logs get-log-events, gcloud logging read",
        "[\n"
        + "".join(f'  {{\n    "timestamp": 1795230465123,\n    "message": "step {n}"\n  }},\n' for n in (3, 4, 5))
        + "]\n",
        "time, host",
    ),
    LogWrapper(
        "journald export",
        "export",
        "systemd 38",
        "".join(
            f"__REALTIME_TIMESTAMP=1795230465000000\n_HOSTNAME=node1\n_PID=412\nMESSAGE=step {n}\n\n" for n in (3, 4)
        ),
        "host, pid, time",
    ),
    LogWrapper(
        "stamp on a line of its own",
        "stamp-behind",
        "CloudWatch console",
        "".join(f"step {n}\n2026-11-21T03:07:45.123Z\n" for n in (3, 4)) + "step 5\n2026-11-21T03:07:46.123Z\n",
        "time",
    ),
    LogWrapper(
        _TABLE,
        "csv",
        "RFC 4180: Kibana, Grafana, CloudWatch, Google and Azure",
        "@timestamp,pod_name,rank,pid,message\n"
        + "".join(f"2026-11-21T03:07:45.372Z,train-worker-0,3,412,step {n}\n" for n in (3, 4)),
        "rank, host, pid, time, if it has such columns; messages of several lines",
    ),
    LogWrapper(
        "CRI lines in pieces",
        "cri",
        "CRI",
        "".join(
            f"2026-11-21T03:07:45.372001123Z stderr P st\n2026-11-21T03:07:45.372001123Z stderr F ep {n}\n"
            for n in (3, 4)
        ),
        "stream, time; the pieces are joined",
    ),
)


def is_journal_export(data: bytes) -> bool:
    """Are these lines in the journal's export format?"""
    return any(data.startswith(mark) or b"\n" + mark in data for mark in (b"__REALTIME_TIMESTAMP=", b"__CURSOR="))


def detect_wrapper(lines: Sequence[str], table: Table, data: bytes) -> WrapperKind:
    """Return how the lines of a source are wrapped, from some of them, and of JSON with a field a line from all `data`.

    The export format is not detected here.
    """
    if any(unwrap_json(parse_prefix(line, 1970, table), 1970) for line in lines if "{" in line and '"' in line):
        return "json"
    quote = data.find(b'"')  # one character is found far sooner than two
    fields = len(_MESSAGE_LINE.findall(data)) if quote >= 0 and data.find(b'":', quote) >= 0 else 0
    if fields >= _FEWEST and fields * _MOST_FIELDS >= data.count(b"\n"):
        return "json-lines"
    if _is_table(data[:_NEAR_BYTES].partition(b"\n")[0]):
        return "csv"
    is_stamp = [bool(_STAMP_ONLY.match(line)) for line in lines if line.strip()]
    if sum(is_stamp) >= _FEWEST and sum(is_stamp) * 3 >= len(is_stamp) and not all(is_stamp):
        return "stamp-before" if is_stamp[0] else "stamp-behind"
    is_cri = any(" std" in line and CRI_PREFIX.match(line.encode("utf-8", "replace")) for line in lines)
    return "cri" if is_cri else ""


def _is_table(header: bytes) -> bool:
    names = _DELIMITER.split(header)
    if len(names) < 2 or not all(_COLUMN.fullmatch(name) for name in names):
        return False
    from triage.ranks import csv_records

    return csv_records.parse_header(header) is not None


def unwrap_line(
    kind: WrapperKind, data: bytes, offset: int, year: int, table: Table, read: Read
) -> list[Message] | None:
    """Return the messages in one physical line.

    None if the line is not wrapped; an empty list if it only belongs to the message of another line.
    """
    raw = data.decode("utf-8", "replace")
    if kind == "json":
        return unwrap_json(parse_prefix(raw, year, table), year) if "{" in raw else None
    if kind == "json-lines":
        return _unwrap_json_field(raw, offset, len(data), year, read)
    if kind == "export":
        return _unwrap_export(raw, data, offset, read)
    if kind == "csv":
        return _unwrap_csv(raw, offset, len(data), year, read)
    if kind in ("stamp-behind", "stamp-before"):
        return _unwrap_stamped(raw, offset, len(data), year, read, is_behind=kind == "stamp-behind")
    return None


def unwrap_json(outer: ParsedLine, year: int, depth: int = _MOST_NESTED) -> list[Message] | None:
    """Return the messages in the JSON object behind a prefix; None if there is none.

    Docker and journald carry other programs' lines; the JSON of a program's own logger is a record. A message with
    newlines gives several lines. One that is such an object itself, as a cloud's record of a program's, is unwrapped
    too, down to `depth` objects.
    """
    if not outer.text.lstrip().startswith("{"):
        return None
    fields = _json_fields(outer.text)
    errors = [error for error in fields.get("error", []) if error[0] not in _DETAILS or " " in error[1].strip()]
    messages = fields.get("message", [])[:1] + _without_repeats([*errors, *read_errors(outer.text)])
    if not messages:
        return None
    first = messages[0][0]
    is_carrier = first in ("log", "MESSAGE")
    host, pid = _text(fields, "host"), _number(fields, "pid")
    inner = Origin(
        rank=_first(_number(fields, "rank"), outer.origin.rank),
        local_rank=_first(_number(fields, "local_rank"), outer.origin.local_rank),
        host=host or outer.origin.host,
        pid=_first(pid, outer.origin.pid),
        stream=_text(fields, "stream") or outer.origin.stream,
        time=_time(fields, year) or outer.origin.time,
    )
    writer = f"{outer.writer}[{pid}]" if first == "MESSAGE" and pid is not None else outer.writer
    name = {"log": "Docker json-file", "MESSAGE": "journald JSON"}.get(first, "JSON log")
    parsed = ParsedLine("", writer, outer.opens_record or not is_carrier, (*outer.layers, name), inner)
    continuation = parsed if is_carrier else dataclasses.replace(parsed, opens_record=outer.opens_record)
    lines = [line for _, value in messages for line in value.rstrip("\n").split("\n")]
    if len(lines) == 1 and depth > 1:
        inside = unwrap_json(dataclasses.replace(parsed, text=lines[0]), year, depth - 1)
        if inside is not None:
            return inside
    return [(line, continuation if index else parsed) for index, line in enumerate(lines)]


def _without_repeats(errors: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the errors of a record without those that are part of another one, such as the message of a traceback."""
    texts = [text.strip() for _, text in errors]
    return [
        error
        for index, error in enumerate(errors)
        if texts[index]
        and not any(
            texts[index] in text and (len(text) > len(texts[index]) or other < index)
            for other, text in enumerate(texts)
        )
    ]


_Fields = dict[str, list[tuple[str, str]]]
"""Each concept (message, rank, time …) with the keys and values that are in a JSON object."""


def _json_fields(text: str) -> _Fields:
    fields: _Fields = {}
    for match in _PAIR.finditer(text):
        if match["bytes"]:  # journald writes a value that is not plain text as a list of bytes
            value = bytes(int(number) & 0xFF for number in re.findall(r"\d+", match["bytes"])).decode(
                "utf-8", "replace"
            )
        else:
            value = unescape_json(match["text"]) if match["text"] is not None else str(match["number"])
        fields.setdefault(_KEYS[match["key"]], []).append((match["key"], value))
    return fields


def unescape_json(text: str) -> str:
    """Return the content of a JSON string, which may be cut off in the middle."""
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return _ESCAPED.sub(
            lambda match: chr(int(match[1], 16)) if match[1] else _ESCAPES.get(match[2], match[2]), text
        )


def json_forms(literal: str) -> Iterator[str]:
    """Yield the other forms of `literal` in JSON: plain, with Docker's escapes, and in ASCII."""
    plain = json.dumps(literal, ensure_ascii=False)[1:-1]
    html = plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    yield from dict.fromkeys(form for form in (plain, html, json.dumps(literal)[1:-1]) if form != literal)


def with_json_forms(literals: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what to scan for to find `literals` in JSON too, and for each of these the literal it stands for."""
    plain = set(literals)
    escaped = (literal for literal in literals if not _SAME_IN_JSON.fullmatch(literal))
    others = [(form, literal) for literal in escaped for form in json_forms(literal) if form not in plain]
    return (*literals, *(form for form, _ in others)), (*literals, *(literal for _, literal in others))


def _text(fields: _Fields, name: str) -> str | None:
    return fields[name][0][1] or None if name in fields else None


def _number(fields: _Fields, name: str) -> int | None:
    value = fields[name][0][1] if name in fields else ""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else None


def _first(inner: int | None, outer: int | None) -> int | None:
    return outer if inner is None else inner


def _time(fields: _Fields, year: int) -> float | None:
    for _, value in fields.get("time", []):
        match = _ISO.match(value)
        if match:
            return epoch_seconds(match, year)
        if re.fullmatch(r"\d{10}(?:\.\d+)?", value):
            return float(value)
        if re.fullmatch(r"\d{13}|\d{16}|\d{19}", value):
            return int(value) / float(10 ** (len(value) - 10))
    return None


def _unwrap_json_field(raw: str, offset: int, length: int, year: int, read: Read) -> list[Message] | None:
    """Unwrap JSON with one field per line, as cloud tools print it: the object around the message has its origin."""
    if _MESSAGE_FIELD.match(raw) is None:
        return [] if _OTHER_FIELD.match(raw) else None
    start = max(0, offset - _NEAR_BYTES)
    before = read(start, offset - start).decode("utf-8", "replace")
    after = read(offset + length, _NEAR_BYTES).decode("utf-8", "replace")
    around = "{" + before[before.rfind("{") + 1 :] + raw + after[: after.find("}") if "}" in after else None]
    return unwrap_json(ParsedLine(around, "", False, (), Origin()), year)


def read_message_fields(data: bytes) -> list[str]:
    """Return the lines of the messages in JSON with one field per line, whose first and last line may be cut off."""
    fields = [line for line in data.decode("utf-8", "replace").split("\n") if _MESSAGE_FIELD.match(line)]
    texts = [match["text"] for line in fields if (match := _PAIR.search(line)) and match["text"] is not None]
    return [line for text in texts for line in unescape_json(text).rstrip("\n").split("\n") if line.strip()]


def _unwrap_export(raw: str, data: bytes, offset: int, read: Read) -> list[Message] | None:
    """Unwrap journald's export format: one field per line, records separated by an empty line.

    A MESSAGE that is not plain text follows its length.
    """
    if data.startswith(b"MESSAGE="):
        return [(raw[len("MESSAGE=") :], _export_record(offset, len(data), read))]
    if not data or _FIELD.match(data) or data == b"MESSAGE":
        return []
    if read(max(0, offset - 9), min(offset, 9)).endswith(b"\nMESSAGE\n"):
        return [(data[8:].decode("utf-8", "replace"), _export_record(offset, len(data), read))]
    return None


def _export_record(offset: int, length: int, read: Read) -> ParsedLine:
    """Return what the export record around a message says about its origin."""
    start = max(0, offset - _NEAR_BYTES)
    around = read(start, offset - start + length + _NEAR_BYTES)
    begin = around.rfind(b"\n\n", 0, offset - start) + 2 if b"\n\n" in around[: offset - start] else 0
    end = around.find(b"\n\n", offset - start)
    fields = dict(
        line.split(b"=", 1) for line in around[begin : end if end >= 0 else None].split(b"\n") if _FIELD.match(line)
    )
    pid = _export_number(fields.get(b"_PID", b""))
    stamp = _export_number(fields.get(b"_SOURCE_REALTIME_TIMESTAMP") or fields.get(b"__REALTIME_TIMESTAMP", b""))
    origin = Origin(
        host=fields.get(b"_HOSTNAME", b"").decode("utf-8", "replace") or None,
        pid=pid,
        time=None if stamp is None else stamp / 1e6,
    )
    return ParsedLine("", "" if pid is None else f"[{pid}]", False, ("journald export",), origin)


def _export_number(value: bytes) -> int | None:
    return int(value) if value.isdigit() and len(value) < 18 else None


def _unwrap_csv(raw: str, offset: int, length: int, year: int, read: Read) -> list[Message]:
    """Unwrap a line of a table; a message may be an object of JSON itself."""
    from triage.ranks import csv_records

    line = csv_records.unwrap_csv(raw, offset, length, year, read)
    if line is None:
        return []
    parsed = ParsedLine("", line.origin.host or "", False, (_TABLE,), line.origin)
    inside = unwrap_json(dataclasses.replace(parsed, text=line.text), year) if "{" in line.text else None
    return [(line.text, parsed)] if inside is None else inside


def _unwrap_stamped(
    raw: str, offset: int, length: int, year: int, read: Read, *, is_behind: bool
) -> list[Message] | None:
    """Unwrap a message whose timestamp is on the next line, or on the one before."""
    if _STAMP_ONLY.match(raw):
        return []
    if is_behind:
        near = read(offset + length + 1, _NEAR_BYTES).split(b"\n")
    else:
        start = max(0, offset - _NEAR_BYTES)
        near = read(start, offset - start).split(b"\n")[::-1]
    for line in near:
        match = _STAMP_ONLY.match(line.decode("utf-8", "replace"))
        if match:
            origin = Origin(time=epoch_seconds(match, year))
            return [(raw, ParsedLine("", "", False, ("stamp on a line of its own",), origin))]
    return None


@dataclass(frozen=True, slots=True)
class _Piece:
    """A physical line of a cut one: its stream, whether the line continues, and where its text is."""

    stream: bytes
    continues: bool
    start: int
    stop: int


def _cri_piece(data: bytes) -> _Piece | None:
    match = CRI_PREFIX.match(data)
    return _Piece(match[1], match[2] == b"P", match.end(), len(data)) if match else None


def _docker_piece(data: bytes) -> _Piece | None:
    """Docker ends every whole line with a newline inside the string."""
    match = _DOCKER.search(data) if data.startswith(_LOG) else None
    return _Piece(match[2], not match[1], len(_LOG), match.start(2) - len(b'","stream":"')) if match else None


def join_pieces(kind: WrapperKind, data: bytes, offset: int, size: int, read: Read) -> tuple[bytes, int, int] | None:
    """Return the whole line of a piece that the container runtime cut, where it begins and where it ends.

    None for a line that is not cut. The result is the same for each of its pieces.
    """
    parse_piece = _cri_piece if kind == "cri" else _docker_piece
    own = parse_piece(data)
    if own is None:
        return None
    begin = offset
    for _ in range(_MOST_PIECES):
        before = _piece_before(begin, own.stream, parse_piece, read)
        if before is None:
            break
        begin = before
    if begin == offset and not own.continues:
        return None
    text, tail, end, position = b"", b"", begin, begin
    for _ in range(4 * _MOST_PIECES):
        line = read(position, 2 * _PIECE).split(b"\n", 1)[0]
        piece = parse_piece(line)
        if piece is not None and piece.stream == own.stream:
            text += line[piece.start if text else 0 : piece.stop]
            tail, end = line[piece.stop :], position + len(line)
            if not piece.continues:
                break
        position += len(line) + 1
        if position >= size:
            break
    return text + tail, begin, end


def _piece_before(offset: int, stream: bytes, parse_piece: Callable[[bytes], _Piece | None], read: Read) -> int | None:
    """Return where the line of the same stream before `offset` begins, if it is a piece that continues.

    Lines of the other stream may be between.
    """
    for reach in (1 << 10, 2 * _PIECE):  # mostly the line before is short
        start = max(0, offset - reach)
        before = read(start, offset - start).removesuffix(b"\n")
        while before:
            begin = before.rfind(b"\n") + 1
            if not begin and start:
                break
            piece = parse_piece(before[begin:])
            if piece is not None and piece.stream == stream:
                return start + begin if piece.continues else None
            before = before[: max(0, begin - 1)]
    return None
