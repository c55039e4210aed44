"""Remove from log text what steers a terminal or reorders what a person reads.

Removed: escape sequences (ECMA-48: CSI, OSC, DCS and the two-character ones), C0 and C1 controls, DEL, bidirectional
controls (Unicode UAX #9), interlinear and tag characters, byte order marks. A tab becomes spaces, a carriage return
and the Unicode line separators become line ends, a lone surrogate becomes U+FFFD.
"""

from __future__ import annotations

from triage.base.lazy_re import lazy_re

TAB = 4

# A string sequence (OSC, DCS, …) that is never closed ends with its line, so that one stray byte cannot hide a whole
# log.
_ESCAPES = lazy_re(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n\r]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_BREAKS = lazy_re("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_CONTROLS = lazy_re(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_SURROGATES = lazy_re(r"[\ud800-\udfff]")
_UNSAFE = lazy_re("[^\n -~\xa0-\u0619\u0620-\u1fff\u3000-\ud7ff]")
# The same for ASCII: the other pattern takes longer to compile than most reports to write.
_UNSAFE_ASCII = lazy_re("[^\n -~]")


def sanitize(text: str) -> str:
    """Return the text without terminal controls; lines stay lines."""
    if not (_UNSAFE_ASCII if text.isascii() else _UNSAFE).search(text):
        return text
    text = _BREAKS.sub("\n", _ESCAPES.sub("", text))
    text = _CONTROLS.sub("", text).replace("\t", " " * TAB)
    return _SURROGATES.sub("\ufffd", text)


def sanitize_line(text: str) -> str:
    """Return the text like `sanitize`, on one line with single spaces."""
    return " ".join(sanitize(text).split())


def truncate(text: str, limit: int) -> str:
    """Return at most `limit` characters of a label; a longer one ends in `…`."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def clip(text: str, limit: int) -> str:
    """Return at most `limit` characters; the middle is replaced by a count, because both ends of a log line matter."""
    if len(text) <= limit:
        return text
    room = limit - len(f" … {len(text)} more characters … ")
    if room < 8:
        return text[: max(limit - 1, 0)] + "…" if limit > 0 else ""
    tail = room // 3
    return f"{text[: room - tail]} … {len(text) - room} more characters … {text[len(text) - tail :]}"
