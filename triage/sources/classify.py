"""Tell what a file is by its first bytes, never by its name."""

from __future__ import annotations

import re

from triage.sources.environment_dumps import is_environment
from triage.sources.interface import FileKind
from triage.sources.live_stacks import is_live_dump

SNIFF = 4 * 1024
"""Bytes that settle most files."""
HEAD = 64 * 1024
"""Bytes that settle the rest: text or binary, whose pickle."""

# Long magics only, and what follows them checked where it is fixed: a log may begin with any two characters.
_MAGICS: tuple[tuple[bytes, FileKind], ...] = (
    *((b"\x1f\x8b\x08%c" % flags, "gzip") for flags in range(0x20)),
    *((b"BZh%d%s" % (level, block), "bzip2") for level in range(1, 10) for block in (b"1AY&SY", b"\x17rE8P\x90")),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    *((b"%c\x2a\x4d\x18" % skipped, "zstd") for skipped in range(0x50, 0x60)),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\x02\x21\x4c\x18", "lz4-legacy"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (b"PK\x07\x08PK\x03\x04", "zip"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!\x1a\x07", "rar"),
    *((b"\x1f\x9d%c" % flags, "compress") for flags in range(0x80, 0xA0)),
    (b"LPKSHHRH", "journal"),
)
_ANY_MAGIC = tuple(magic for magic, _ in _MAGICS)

_BOMS = (
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_CONTROL = bytes(set(range(32)) - set(b"\a\b\t\n\v\f\r\x1b") | {127})
_HIGH = bytes(range(128, 256))
_PY_SPY_JSON = rb'\[\s*\{\s*"pid"\s*:\s*\d+\s*,\s*"thread_id"\s*:'
_RECORDER = (b"pg_config", b"pg_status", b"nccl_version")


def classify(head: bytes) -> tuple[FileKind, str | None]:
    """Return the kind of a file and, if it is text, its encoding.

    `head` is its first 64 KiB, or all of it.
    """
    if not head:
        return "empty", None
    kind = _classify_by_magic(head)
    if kind:
        return kind, "utf-8" if kind in ("py-spy", "live-stacks", "error-file") else None
    if len(head) < HEAD and is_environment(head, whole=True):
        return "environment", "utf-8"
    encoding = _wide_encoding(head)
    if encoding:
        return "text", encoding
    return ("binary", None) if is_binary(head) else ("text", "utf-8")


def needs_more(sniffed: bytes) -> bool:
    """Whether the first 4 KiB do not decide the kind, so that 64 KiB must be read."""
    return sniffed.lstrip()[:1] in (b"{", b"\x80") or not _is_plain(sniffed) or is_environment(sniffed, whole=False)


def is_binary(head: bytes) -> bool:
    """Whether the bytes are mostly control bytes, or some control bytes among many that are not ASCII.

    A log with a few NULs or in another charset is text.
    """
    if _is_plain(head):
        return False
    control = len(head) - len(head.translate(None, _CONTROL))
    if control * 25 <= len(head):
        return False
    if control * 10 > len(head) * 3 or b"\n" not in head:
        return True
    return (len(head) - len(head.translate(None, _HIGH))) * 5 > len(head)


def _is_plain(head: bytes) -> bool:
    """Whether it is ASCII without NUL, as most logs are."""
    return b"\0" not in head and head.isascii()


def _classify_by_magic(head: bytes) -> FileKind | None:
    if head.startswith(_ANY_MAGIC):
        return next(kind for magic, kind in _MAGICS if head.startswith(magic))
    if head.startswith(b"\x7fELF"):
        return "core" if int.from_bytes(head[16:18], "big" if head[5:6] == b"\x02" else "little") == 4 else "elf"
    if head[:1] == b"\x80" and b"\x02" <= head[1:2] <= b"\x05":
        return "flight-recorder" if any(key in head for key in _RECORDER) or b"record_id" in head else "binary"
    if head.startswith(b"Process ") and re.match(rb"Process \d+: [^\n]*\nPython v\d", head):
        return "py-spy"
    if head[:1] == b"[" and re.match(_PY_SPY_JSON, head):
        return "py-spy"
    if head[:1] in b"{ \t\r\n" and head.lstrip()[:1] == b"{":
        return _classify_json(head.lstrip())
    if is_live_dump(head):
        return "live-stacks"
    return "tar" if is_tar_header(head[:512]) else None


def _classify_json(head: bytes) -> FileKind | None:
    """Tell torchelastic's error file (a message within a message) from a flight recorder's dump."""
    if re.match(rb'\{\s*"message"\s*:\s*\{\s*"(message|extraInfo|errorCode)"', head):
        return "error-file"
    key_count = sum(b'"%s"' % key in head for key in (b"entries", *_RECORDER))
    return "flight-recorder" if key_count >= 2 and (b'"pg_config"' in head or b'"pg_status"' in head) else None


def is_tar_header(block: bytes) -> bool:
    """Whether a block is a tar header: it has the ustar magic or (in the oldest format) a right checksum."""
    if len(block) < 512:
        return False
    if block[257:262] == b"ustar":
        return True
    if block[0] == 0 or block[155] not in b"\0 ":
        return False
    try:
        expected_sum = int(block[148:156].strip(b"\0 "), 8)
    except ValueError:
        return False
    return expected_sum == sum(block) - sum(block[148:156]) + 8 * 32


def _wide_encoding(head: bytes) -> str | None:
    """Return the encoding of text in 16 or 32 bit units, else None.

    It is recognized by the byte order mark or (as Windows tools redirect output) by every second byte being NUL.
    """
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return encoding
    if b"\0" not in head[:4]:
        return None
    low, high = head[:1024:2], head[1:1024:2]
    for nul, text, encoding in ((high, low, "utf-16-le"), (low, high, "utf-16-be")):
        if len(text) >= 8 and nul.count(0) * 10 > len(nul) * 9 and not text.count(0) and not is_binary(text + b"\n"):
            return encoding
    return None
