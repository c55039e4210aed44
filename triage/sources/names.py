"""Names fit to be shown: no control characters, no undecodable bytes, no climbing out of the archive."""

from __future__ import annotations


def printable(name: str) -> str:
    r"""`name` with what a terminal should not see as backslash escapes: b'\xff' in a file name becomes the four
    characters \xff."""
    if name.isprintable():
        return name
    return "".join(char if char.isprintable() else _escaped(char) for char in name)


def member(name: str) -> str:
    """An archive member's name for display: `/etc/x`, `../../etc/x` and `./etc/x` are all `etc/x`. Never used to open
    anything.
    """
    parts = [part for part in name.split("/") if part not in ("", ".", "..")]
    return printable("/".join(parts)) or "?"


def _escaped(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # surrogateescape: a byte that was not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
