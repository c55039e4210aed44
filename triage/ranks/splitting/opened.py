"""Logs that hold other logs: Docker's json-file and what journald exports, as plain lines with a prefix that says the
same.

Docker's lines become CRI's (`<stamp> <stream> F|P <text>`), journald's those of `journalctl -o short-iso-precise`, so
that who wrote a line, and
which pieces make one, is decided where it always is. Forms: see envelopes.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import BinaryIO, Literal

from triage.base.lazy_re import lazy_re

Kind = Literal["", "docker", "journal", "export"]

_DOCKER = lazy_re(
    rb'\{"log":"((?:[^"\\]|\\.)*)","stream":"(stdout|stderr)"(?:,"attrs":\{[^{}]*\})?,"time":"([^"]+)"\}\r?$'
)
_EXPORT = (b"__CURSOR=", b"__REALTIME_TIMESTAMP=")
_ODD = lazy_re(r"[^\w./@-]+")
_LEAST = 1 << 16
_LONGEST = 64 << 20  # of what has no end


def kind_of(head: bytes) -> Kind:
    """Of a source that begins with `head`."""
    lines = [line for line in head.split(b"\n")[:64] if line.strip()]
    lines = lines[:-1] or lines  # the last one may be cut
    if any(line.startswith(_EXPORT) for line in lines):
        return "export"
    if sum(_DOCKER.match(line) is not None for line in lines) * 2 > len(lines):
        return "docker"
    if sum(line.startswith(b"{") and b'"MESSAGE"' in line for line in lines) * 2 > len(lines):
        return "journal"
    return ""


class Opened:
    """Reads `stream` and gives plain lines. `lines` counts those of the stream, `given` those that came out."""

    def __init__(self, stream: BinaryIO, kind: Kind) -> None:
        self._stream = stream
        self._open = {"docker": _lines(_docker), "journal": _lines(_journal)}.get(kind, _export)
        self._raw = b""
        self._over = False
        self.lines = self.given = 0

    def read(self, size: int) -> bytes:
        """Some whole lines, about `size` bytes of the stream; nothing at its end."""
        while not self._over:
            data = self._stream.read(max(size, _LEAST))
            self._over = not data or len(self._raw) > _LONGEST
            self._raw += data
            found, used = self._open(self._raw, self._over)
            self.lines += self._raw.count(b"\n", 0, used) + (
                self._over and not self._raw[:used].endswith(b"\n") and used > 0
            )
            self.given += found.count(b"\n")
            self._raw = self._raw[used:]
            self._over = not data
            if found:
                return found
        return b""


def _lines(opening: Callable[[bytes], bytes]) -> Callable[[bytes, bool], tuple[bytes, int]]:
    """Opens whole lines one by one."""

    def opened(data: bytes, over: bool) -> tuple[bytes, int]:
        used = len(data) if over else data.rfind(b"\n") + 1
        return b"".join(map(opening, data[:used].removesuffix(b"\n").split(b"\n"))) if used else b"", used

    return opened


def _docker(line: bytes) -> bytes:
    match = _DOCKER.match(line)
    if match is None:
        return line + b"\n"
    text, stream, stamp = match.groups()
    whole = text.endswith(b"\\n")
    *before, last = _text(text[:-2] if whole else text).split(b"\n")
    start = b"%s %s " % (stamp, stream)
    return (
        b"".join(start + b"F " + part + b"\n" for part in before) + start + (b"F " if whole else b"P ") + last + b"\n"
    )


def _text(data: bytes) -> bytes:
    """What a JSON string holds; as it stands where it is none."""
    if b"\\" not in data:
        return data
    try:
        return str(json.loads(b'"%s"' % data, strict=False)).encode("utf-8", "replace")
    except ValueError:
        return data


def _journal(line: bytes) -> bytes:
    try:
        fields = json.loads(line)
        message = fields["MESSAGE"]
        told = bytes(message) if isinstance(message, list) else str(message).encode("utf-8", "replace")
    except (ValueError, KeyError, TypeError):
        return line + b"\n"
    return line + b"\n" if message is None else _record({key: str(value) for key, value in fields.items()}, told)


def _record(fields: dict[str, str], message: bytes) -> bytes:
    """The lines of a message, each behind what the journal knows of it."""
    prefix = _prefix(fields).encode()
    return b"".join(prefix + line + b"\n" for line in message.removesuffix(b"\n").split(b"\n"))


def _prefix(fields: dict[str, str]) -> str:
    stamp = fields.get("_SOURCE_REALTIME_TIMESTAMP") or fields.get("__REALTIME_TIMESTAMP", "")
    host, pid = fields.get("_HOSTNAME", ""), fields.get("_PID") or fields.get("SYSLOG_PID", "")
    name = fields.get("SYSLOG_IDENTIFIER") or fields.get("_COMM") or "unknown"
    if not (stamp.isdigit() and len(stamp) < 18 and host[:1].isalpha() and (pid.isdigit() or name == "kernel")):
        return ""
    time = datetime.fromtimestamp(int(stamp) / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f+0000")
    return f"{time} {_ODD.sub('-', host)} {_ODD.sub('-', name)}{f'[{pid}]' if pid.isdigit() and name != 'kernel' else ''}: "


def _export(data: bytes, over: bool) -> tuple[bytes, int]:
    """The messages of whole records, and how far those reach. A field that is no plain text has its length, 8 bytes of
    it, before it.
    """
    found = []
    at = used = 0
    fields: dict[str, str] = {}
    message: bytes | None = None
    while at < len(data):
        stop = data.find(b"\n", at)
        if stop < 0:
            stop = len(data)
        name, equals, value = data[at:stop].partition(b"=")
        if not equals and name:
            size = int.from_bytes(data[stop + 1 : stop + 9], "little")
            value = data[stop + 9 : stop + 9 + size]
            stop += 9 + size
        if name == b"MESSAGE":
            message = value
        elif name:
            fields[name.decode("latin-1")] = value.decode("utf-8", "replace")
        at = stop + 1
        if at > len(data) and not over:
            break
        if not name:
            found += [] if message is None else [_record(fields, message)]
            fields, message, used = {}, None, at
    if over:
        found += [] if message is None else [_record(fields, message)]
        used = len(data)
    return b"".join(found), used
