"""Logs whose lines are wrapped in records of something else: JSON of Docker, journald or the program's logger,
journald's export format,
CRI lines that were cut in pieces, consoles that put the stamp on a line of its own.

The scan sees the bytes as they are; only the lines around hits are opened here. Forms: Docker json-file
`{"log":"…\\n","stream":…,"time":…}`
(moby daemon/logger/jsonfilelog), journalctl -o json and -o export (systemd JOURNAL_EXPORT_FORMATS), CRI `<stamp>
<stream> P|F <text>`
(kubernetes cri-api), CloudWatch's console export.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from triage.base.lazy_re import lazy_re
from triage.model.evidence import Origin
from triage.ranks.grammars import Table
from triage.ranks.prefix import Parsed, parse
from triage.ranks.stamps import ISO, seconds

Read = Callable[[int, int], bytes]
Opened = tuple[str, Parsed]
"""A message (without newline at its end) and what its envelope says."""
Kind = Literal["", "json", "json-lines", "export", "stamp-behind", "stamp-before", "cri"]

# A piece of a cut line has at most 16 KiB (containerd, CRI-O and Docker alike), and a few pieces are joined.
_PIECE = (1 << 14) + 256
_MOST_PIECES = 64
_NEAR = 1 << 12

_MESSAGES = ("log", "MESSAGE", "message", "msg", "event", "textPayload", "@message", "log_message", "body")
_ERRORS = ("exc_info", "exception", "exc_text", "stack_trace", "stacktrace", "traceback", "stack", "error")
_TIMES = ("time", "timestamp", "ts", "asctime", "@timestamp", "eventTime", "__REALTIME_TIMESTAMP")
_KEYS: dict[str, str] = {
    **dict.fromkeys(_MESSAGES, "message"),
    **dict.fromkeys(_ERRORS, "error"),
    **dict.fromkeys(_TIMES, "time"),
    **dict.fromkeys(("rank", "global_rank", "RANK"), "rank"),
    **dict.fromkeys(("local_rank", "LOCAL_RANK"), "local_rank"),
    **dict.fromkeys(("_HOSTNAME", "hostname", "host", "node_name", "pod_name"), "host"),
    **dict.fromkeys(("_PID", "pid", "process"), "pid"),
    "stream": "stream",
}
# The value may be cut off: of a very long line the middle is left out.
_PAIR = lazy_re(
    r'(?<!\\)"(?P<key>'
    + "|".join(map(re.escape, _KEYS))
    + r')"\s*:\s*(?:"(?P<text>(?:[^"\\]|\\.)*)"?|(?P<number>-?\d+(?:\.\d+)?)|(?P<bytes>\[[\d,\s]*\]))',
    re.S,
)
_ESCAPED = lazy_re(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.S)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_ISO = lazy_re(ISO)
_BARE = lazy_re(rf"\s*\[?{ISO}\]?\s*$")
_FEW = 3
_OWN_LINE = lazy_re(r'\s+"(?:message|textPayload|log)": *"')
_INDENTED = lazy_re(r'\s*(?:"[^"]+" *: .*|[\[\]{}]+,?)\s*$')
_FIELD = lazy_re(rb"[A-Z_][A-Z0-9_]*=")
_LOG = b'{"log":"'
_DOCKER = lazy_re(rb'(\\n)?","stream":"(stdout|stderr)"')
CRI = lazy_re(rb"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) (stdout|stderr) ([FP])(?::\w+)? ")


@dataclasses.dataclass(frozen=True, slots=True)
class Envelope:
    """A way of wrapping; `sample` is a piece of a file of two messages, `step 3` and `step 4`."""

    name: str
    kind: Kind
    since: str
    sample: str
    says: str


ENVELOPES: tuple[Envelope, ...] = (
    Envelope(
        "Docker json-file",
        "json",
        "Docker 1.6",
        "".join(f'{{"log":"step {n}\\n","stream":"stderr","time":"2026-11-21T03:07:45.372001123Z"}}\n' for n in (3, 4)),
        "stream, time; lines cut at 16 KiB are joined",
    ),
    Envelope(
        "journald JSON",
        "json",
        "systemd 38",
        "".join(
            f'{{"__REALTIME_TIMESTAMP":"1795230465000000","_HOSTNAME":"node1","_PID":"412","MESSAGE":"step {n}"}}\n'
            for n in (3, 4)
        ),
        "host, pid, time",
    ),
    Envelope(
        "JSON log",
        "json",
        "Fluent Bit, structlog, python-json-logger",
        "".join(
            f'{{"timestamp":"2026-11-21T03:07:45Z","level":"info","rank":3,"message":"step {n}"}}\n' for n in (3, 4)
        ),
        "rank, local_rank, host, pid, stream, time, where it has such keys; tracebacks in it are opened",
    ),
    Envelope(
        "JSON with a field a line",
        "json-lines",
        "aws logs get-log-events, gcloud logging read",
        "[\n"
        + "".join(f'  {{\n    "timestamp": 1795230465123,\n    "message": "step {n}"\n  }},\n' for n in (3, 4, 5))
        + "]\n",
        "time, host",
    ),
    Envelope(
        "journald export",
        "export",
        "systemd 38",
        "".join(
            f"__REALTIME_TIMESTAMP=1795230465000000\n_HOSTNAME=node1\n_PID=412\nMESSAGE=step {n}\n\n" for n in (3, 4)
        ),
        "host, pid, time",
    ),
    Envelope(
        "stamp on a line of its own",
        "stamp-behind",
        "CloudWatch console",
        "".join(f"step {n}\n2026-11-21T03:07:45.123Z\n" for n in (3, 4)) + "step 5\n2026-11-21T03:07:46.123Z\n",
        "time",
    ),
    Envelope(
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


def exported(data: bytes) -> bool:
    """Are these lines in the journal's export format?"""
    return any(data.startswith(mark) or b"\n" + mark in data for mark in (b"__REALTIME_TIMESTAMP=", b"__CURSOR="))


def kind_of(lines: Sequence[str], table: Table) -> Kind:
    """How the lines of a source are wrapped, told by some of them, where it is not the journal's export format."""
    if any(open_json(parse(line, 1970, table), 1970) for line in lines if "{" in line and '"' in line):
        return "json"
    if sum(_OWN_LINE.match(line) is not None for line in lines) >= _FEW:
        return "json-lines"
    bare = [bool(_BARE.match(line)) for line in lines if line.strip()]
    if sum(bare) >= 3 and sum(bare) * 3 >= len(bare) and not all(bare):
        return "stamp-before" if bare[0] else "stamp-behind"
    return "cri" if any(" std" in line and CRI.match(line.encode("utf-8", "replace")) for line in lines) else ""


def unwrap(kind: Kind, data: bytes, offset: int, year: int, table: Table, read: Read) -> list[Opened] | None:
    """The messages in one physical line; None when it is not wrapped, nothing when it only belongs to another line's
    message.
    """
    raw = data.decode("utf-8", "replace")
    if kind == "json":
        return open_json(parse(raw, year, table), year) if "{" in raw else None
    if kind == "json-lines":
        return _indented(raw, offset, len(data), year, read)
    if kind == "export":
        return _exported(raw, data, offset, read)
    if kind in ("stamp-behind", "stamp-before"):
        return _stamped(raw, offset, len(data), year, table, read, behind=kind == "stamp-behind")
    return None


def open_json(outer: Parsed, year: int) -> list[Opened] | None:
    """The messages of a JSON object behind whatever stands before it; None where it holds none.

    Docker and journald carry the lines of others; the JSON of a program's own logger is a record. Messages keep
    newlines.
    """
    if not outer.text.lstrip().startswith("{"):
        return None
    found: dict[str, list[tuple[str, str]]] = {}
    for match in _PAIR.finditer(outer.text):
        if match["bytes"]:  # journald writes what is no plain text as a list of bytes
            value = bytes(int(number) & 0xFF for number in re.findall(r"\d+", match["bytes"])).decode(
                "utf-8", "replace"
            )
        else:
            value = unescape(match["text"]) if match["text"] is not None else str(match["number"])
        found.setdefault(_KEYS[match["key"]], []).append((match["key"], value))
    messages = found.get("message", [])[:1] + found.get("error", [])
    if not messages:
        return None
    first = messages[0][0]
    carrier = first in ("log", "MESSAGE")
    host, pid = _text(found, "host"), _number(found, "pid")
    inner = Origin(
        rank=_number(found, "rank"),
        local_rank=_number(found, "local_rank"),
        host=host or outer.origin.host,
        pid=pid if pid is not None else outer.origin.pid,
        stream=_text(found, "stream") or outer.origin.stream,
        time=_time(found, year) or outer.origin.time,
    )
    writer = f"{outer.writer}[{pid}]" if first == "MESSAGE" and pid is not None else outer.writer
    name = {"log": "Docker json-file", "MESSAGE": "journald JSON"}.get(first, "JSON log")
    carried = Parsed("", writer, outer.record or not carrier, (*outer.layers, name), inner)
    lines = [line for _, value in messages for line in value.rstrip("\n").split("\n")]
    bare = dataclasses.replace(carried, record=outer.record)
    return [(line, bare if index and not carrier else carried) for index, line in enumerate(lines)]


def unescape(text: str) -> str:
    """What a JSON string holds, as far as it goes: it may be cut off in the middle."""
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return _ESCAPED.sub(
            lambda match: chr(int(match[1], 16)) if match[1] else _ESCAPES.get(match[2], match[2]), text
        )


def escaped(literal: str) -> Iterator[str]:
    """The other ways in which `literal` can stand in JSON: plain, with Docker's escapes, and with everything but ASCII
    escaped.
    """
    plain = json.dumps(literal, ensure_ascii=False)[1:-1]
    html = plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    yield from dict.fromkeys(form for form in (plain, html, json.dumps(literal)[1:-1]) if form != literal)


def in_json(literals: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What to scan for so that `literals` are found in JSON too, and for each of these the literal that is meant."""
    seen = dict.fromkeys(literals)
    others = [(form, literal) for literal in literals for form in escaped(literal) if form not in seen]
    return (*literals, *(form for form, _ in others)), (*literals, *(literal for _, literal in others))


def _text(found: dict[str, list[tuple[str, str]]], what: str) -> str | None:
    return found[what][0][1] or None if what in found else None


def _number(found: dict[str, list[tuple[str, str]]], what: str) -> int | None:
    value = found[what][0][1] if what in found else ""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else None


def _time(found: dict[str, list[tuple[str, str]]], year: int) -> float | None:
    for _, value in found.get("time", []):
        match = _ISO.match(value)
        if match:
            return seconds(match, year)
        if re.fullmatch(r"\d{10}(?:\.\d+)?", value):
            return float(value)
        if re.fullmatch(r"\d{13}|\d{16}|\d{19}", value):
            return int(value) / float(10 ** (len(value) - 10))
    return None


def _indented(raw: str, offset: int, length: int, year: int, read: Read) -> list[Opened] | None:
    """JSON with a field a line, as cloud command lines print it: the object around the message says the rest."""
    if _OWN_LINE.match(raw) is None:
        return [] if _INDENTED.match(raw) else None
    start = max(0, offset - _NEAR)
    before = read(start, offset - start).decode("utf-8", "replace")
    after = read(offset + length, _NEAR).decode("utf-8", "replace")
    around = "{" + before[before.rfind("{") + 1 :] + raw + after[: after.find("}") if "}" in after else None]
    return open_json(Parsed(around, "", False, (), Origin()), year)


def _exported(raw: str, data: bytes, offset: int, read: Read) -> list[Opened] | None:
    """journald's export format: one field a line, records parted by an empty line; a MESSAGE that is no plain text
    follows its length.
    """
    if data.startswith(b"MESSAGE="):
        return [(raw[len("MESSAGE=") :], _record(offset, len(data), read))]
    if not data or _FIELD.match(data) or data == b"MESSAGE":
        return []
    before = read(max(0, offset - 9), min(offset, 9))
    if before.endswith(b"\nMESSAGE\n"):
        return [(data[8:].decode("utf-8", "replace"), _record(offset, len(data), read))]
    return None


def _record(offset: int, length: int, read: Read) -> Parsed:
    start = max(0, offset - _NEAR)
    around = read(start, offset - start + length + _NEAR)
    begin = around.rfind(b"\n\n", 0, offset - start) + 2 if b"\n\n" in around[: offset - start] else 0
    end = around.find(b"\n\n", offset - start)
    fields = dict(
        line.split(b"=", 1) for line in around[begin : end if end >= 0 else None].split(b"\n") if _FIELD.match(line)
    )
    pid = fields.get(b"_PID", b"")
    stamp = fields.get(b"_SOURCE_REALTIME_TIMESTAMP") or fields.get(b"__REALTIME_TIMESTAMP", b"")
    origin = Origin(
        host=fields.get(b"_HOSTNAME", b"").decode("utf-8", "replace") or None,
        pid=int(pid) if pid.isdigit() else None,
        time=int(stamp) / 1e6 if stamp.isdigit() else None,
    )
    return Parsed("", f"[{pid.decode()}]" if pid.isdigit() else "", False, ("journald export",), origin)


def _stamped(
    raw: str, offset: int, length: int, year: int, table: Table, read: Read, *, behind: bool
) -> list[Opened] | None:
    """The stamp of a message stands on the next line, or on the one before."""
    if _BARE.match(raw):
        return []
    if behind:
        near = read(offset + length + 1, _NEAR).split(b"\n")
    else:
        start = max(0, offset - _NEAR)
        near = read(start, offset - start).split(b"\n")[::-1]
    for line in near:
        match = _BARE.match(line.decode("utf-8", "replace"))
        if match:
            return [(raw, Parsed("", "", False, ("stamp on a line of its own",), Origin(time=seconds(match, year))))]
    return None


@dataclasses.dataclass(frozen=True, slots=True)
class _Piece:
    """A physical line of a cut one: its stream, whether it goes on, and where its text lies in it."""

    stream: bytes
    more: bool
    start: int
    stop: int


def _cri_piece(data: bytes) -> _Piece | None:
    match = CRI.match(data)
    return _Piece(match[1], match[2] == b"P", match.end(), len(data)) if match else None


def _docker_piece(data: bytes) -> _Piece | None:
    """Docker ends every whole line with a newline inside the string."""
    match = _DOCKER.search(data) if data.startswith(_LOG) else None
    return _Piece(match[2], not match[1], len(_LOG), match.start(2) - len(b'","stream":"')) if match else None


def joined(kind: Kind, data: bytes, offset: int, size: int, read: Read) -> tuple[bytes, int, int] | None:
    """A line that the container runtime cut: as if it were whole, where it begins and where it ends.

    None for a line that is whole. The answer is the same whichever piece is asked for.
    """
    piece_of = _cri_piece if kind == "cri" else _docker_piece
    own = piece_of(data)
    if own is None:
        return None
    begin = offset
    for _ in range(_MOST_PIECES):
        before = _neighbour(begin, own.stream, piece_of, read)
        if before is None:
            break
        begin = before
    if begin == offset and not own.more:
        return None
    text, tail, end, position = b"", b"", begin, begin
    for _ in range(4 * _MOST_PIECES):
        line = read(position, 2 * _PIECE).split(b"\n", 1)[0]
        piece = piece_of(line)
        if piece is not None and piece.stream == own.stream:
            text += line[piece.start if text else 0 : piece.stop]
            tail, end = line[piece.stop :], position + len(line)
            if not piece.more:
                break
        position += len(line) + 1
        if position >= size:
            break
    return text + tail, begin, end


def _neighbour(offset: int, stream: bytes, piece_of: Callable[[bytes], _Piece | None], read: Read) -> int | None:
    """Where the line of the same stream before `offset` begins, if it is a piece that goes on; lines of the other
    stream may lie between.
    """
    for reach in (1 << 10, 2 * _PIECE):  # nearly always the line before is short
        start = max(0, offset - reach)
        before = read(start, offset - start).removesuffix(b"\n")
        while before:
            begin = before.rfind(b"\n") + 1
            if not begin and start:
                break
            piece = piece_of(before[begin:])
            if piece is not None and piece.stream == stream:
                return start + begin if piece.more else None
            before = before[: max(0, begin - 1)]
    return None
