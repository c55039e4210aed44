"""Logs inside other logs: Docker json-files and journald exports as plain lines with an equivalent prefix.

Docker's lines become CRI lines (`<stamp> <stream> F|P <text>`), and journald's records become the lines of
`journalctl -o short-iso-precise`, so that the usual code decides who wrote a line and which pieces make one. The
formats are described in triage/ranks/log_wrappers.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import BinaryIO, Literal

from triage.base.lazy_re import lazy_re

Format = Literal["", "docker", "journal", "export"]

_DOCKER = lazy_re(
    rb'\{"log":"((?:[^"\\]|\\.)*)","stream":"(stdout|stderr)"(?:,"attrs":\{[^{}]*\})?,"time":"([^"]+)"\}\r?$'
)
_EXPORT = (b"__CURSOR=", b"__REALTIME_TIMESTAMP=")
_NOT_IN_PREFIX = lazy_re(r"[^\w./@-]+")
_LEAST_READ = 1 << 16
_LONGEST_RECORD = 64 << 20


def detect_format(head: bytes) -> Format:
    """Return the format of a source that begins with `head`; "" for plain lines."""
    lines = [line for line in head.split(b"\n")[:64] if line.strip()]
    lines = lines[:-1] or lines  # the last one may be cut
    if any(line.startswith(_EXPORT) for line in lines):
        return "export"
    if sum(_DOCKER.match(line) is not None for line in lines) * 2 > len(lines):
        return "docker"
    if sum(line.startswith(b"{") and b'"MESSAGE"' in line for line in lines) * 2 > len(lines):
        return "journal"
    return ""


class UnwrappedStream:
    """Read `stream` as plain lines. `lines_in` counts the lines of the stream, `lines_out` the plain lines."""

    def __init__(self, stream: BinaryIO, format: Format) -> None:  # noqa: A002
        self._stream = stream
        by_format = {"docker": _by_line(_unwrap_docker), "journal": _by_line(_unwrap_journal)}
        self._unwrap = by_format.get(format, _unwrap_export)
        self._raw = b""
        self._at_end = False
        self.lines_in = self.lines_out = 0

    def read(self, size: int) -> bytes:
        """Return some whole lines, from about `size` bytes of the stream; nothing at its end."""
        while not self._at_end:
            data = self._stream.read(max(size, _LEAST_READ))
            is_last = not data or len(self._raw) > _LONGEST_RECORD
            self._raw += data
            plain, used = self._unwrap(self._raw, is_last)
            self.lines_in += self._raw.count(b"\n", 0, used) + (
                is_last and not self._raw[:used].endswith(b"\n") and used > 0
            )
            self.lines_out += plain.count(b"\n")
            self._raw = self._raw[used:]
            self._at_end = not data
            if plain:
                return plain
        return b""


def _by_line(unwrap_line: Callable[[bytes], bytes]) -> Callable[[bytes, bool], tuple[bytes, int]]:
    """Make a function that unwraps whole lines, and returns the plain lines and how many bytes it used."""

    def unwrap(data: bytes, is_last: bool) -> tuple[bytes, int]:
        used = len(data) if is_last else data.rfind(b"\n") + 1
        return b"".join(map(unwrap_line, data[:used].removesuffix(b"\n").split(b"\n"))) if used else b"", used

    return unwrap


def _unwrap_docker(line: bytes) -> bytes:
    match = _DOCKER.match(line)
    if match is None:
        return line + b"\n"
    text, stream, stamp = match.groups()
    is_whole = text.endswith(b"\\n")
    *before, last = _unescape(text[:-2] if is_whole else text).split(b"\n")
    start = b"%s %s " % (stamp, stream)
    full = b"".join(start + b"F " + part + b"\n" for part in before)
    return full + start + (b"F " if is_whole else b"P ") + last + b"\n"


def _unescape(data: bytes) -> bytes:
    """Return the content of a JSON string; the bytes unchanged where it is none."""
    if b"\\" not in data:
        return data
    try:
        return str(json.loads(b'"%s"' % data, strict=False)).encode("utf-8", "replace")
    except ValueError:
        return data


def _unwrap_journal(line: bytes) -> bytes:
    try:
        fields = json.loads(line)
        message = fields["MESSAGE"]
        text = bytes(message) if isinstance(message, list) else str(message).encode("utf-8", "replace")
    except (ValueError, KeyError, TypeError, RecursionError):
        return line + b"\n"
    return line + b"\n" if message is None else _with_prefix({key: str(value) for key, value in fields.items()}, text)


def _with_prefix(fields: dict[str, str], message: bytes) -> bytes:
    """Return the lines of a message, each behind the prefix of its journal record."""
    prefix = _prefix(fields).encode()
    return b"".join(prefix + line + b"\n" for line in message.removesuffix(b"\n").split(b"\n"))


def _prefix(fields: dict[str, str]) -> str:
    stamp = fields.get("_SOURCE_REALTIME_TIMESTAMP") or fields.get("__REALTIME_TIMESTAMP", "")
    host, pid = fields.get("_HOSTNAME", ""), fields.get("_PID") or fields.get("SYSLOG_PID", "")
    name = fields.get("SYSLOG_IDENTIFIER") or fields.get("_COMM") or "unknown"
    if not (stamp.isdecimal() and len(stamp) < 18 and host[:1].isalpha() and (pid.isdecimal() or name == "kernel")):
        return ""
    time = datetime.fromtimestamp(int(stamp) / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f+0000")
    process = f"[{pid}]" if pid.isdecimal() and name != "kernel" else ""
    return f"{time} {_NOT_IN_PREFIX.sub('-', host)} {_NOT_IN_PREFIX.sub('-', name)}{process}: "


def _unwrap_export(data: bytes, is_last: bool) -> tuple[bytes, int]:
    """Return the messages of whole export records, and how many bytes they take.

    A field that is not plain text is written as its name, a newline, its length in 8 bytes, and its value.
    """
    messages = []
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
        if at > len(data) and not is_last:
            break
        if not name:
            messages += [] if message is None else [_with_prefix(fields, message)]
            fields, message, used = {}, None, at
    if is_last:
        messages += [] if message is None else [_with_prefix(fields, message)]
        used = len(data)
    return b"".join(messages), used
