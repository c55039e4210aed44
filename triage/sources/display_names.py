"""Make names fit for display: without control characters, undecodable bytes or parent directories."""

from __future__ import annotations


def printable_name(name: str) -> str:
    r"""`name` with what a terminal should not see as backslash escapes: b'\xff' in a file name becomes the four
    characters \xff."""
    if name.isprintable():
        return name
    return "".join(char if char.isprintable() else _escaped(char) for char in name)


def member_name(name: str) -> str:
    """Return an archive member's name for display; never use it to open anything.

    `/etc/x`, `../../etc/x` and `./etc/x` are all `etc/x`.
    """
    parts = [part for part in name.split("/") if part not in ("", ".", "..")]
    return printable_name("/".join(parts)) or "?"


def _escaped(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # surrogateescape: a byte that was not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
