"""The shape of a line: its text with digits, addresses, quoted texts and paths masked.

A log is thousands of lines of few shapes. A shape that stands again and again, and before the end, is usual.
"""

from __future__ import annotations

from triage.base.digit_masks import ask_masked
from triage.base.lazy_re import lazy_re
from triage.records.activity import shows_progress
from triage.records.completion import read_completion

_LONGEST = 400
_JSON_HEAD = 4000
_JSON_END = 300 + _JSON_HEAD
_COLOUR = lazy_re(rb"\x1b\[[0-9;]*[A-Za-z]")
_MASKED = lazy_re(
    rb"0x[0-9a-fA-F]+|\b[0-9a-f]{8,}\b|/[\w./-]+|[-+]?\d+(?:[.,:eE+-]+\d+)*[a-zA-Z%]{0,3}|"
    rb"(?<!msg=)(?<!event=)(?<!message=)\"[^\"]{0,200}\"|(?<![\w])'[^'\n]{0,200}'|"
    rb"(?:[#=\xe2\x96\x88\xe2\x96\x8f>. -]){4,}"
)
_LETTER = lazy_re(rb"[0-9A-Za-z\x80-\xff]")
# Some collectors export the time of each record on a line of its own.
_STAMP = lazy_re(rb"\s*\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\s*")
_BLANKS = lazy_re(rb"\s+")
_JSON_PAIR = lazy_re(rb'"([^"\\]{1,40})"\s*:\s*("(?:[^"\\]|\\.){0,120}|-?\d+)?')
_JSON_FIELD = lazy_re(rb'[ \t]+"([^"\\]{1,40})": ?("(?:[^"\\]|\\.){0,400})')
_JSON_TEXTS = frozenset(
    (
        *(
            b"level",
            b"levelname",
            b"severity",
            b"SeverityText",
            b"msg",
            b"message",
            b"MESSAGE",
            b"event",
            b"Body",
            b"body",
            b"lvl",
        ),
        *(b"short_message", b"@mt", b"@l", b"@m", b"log", b"status", b"log.level", b"text", b"name"),
    )
)
_DIGITS = lazy_re(rb"\d+(?:[.,:eE+-]+\d+)*")
# Lines of stacks stand again and again too, behind a host as pdsh writes it; and so do rules behind a timestamp, and
# what launchers write when they stop the other processes, or in a block for each that ended.
_STACK_START = lazy_re(
    rb"\s|[a-z][\w.@-]{0,80}:(?: {3,}\S|\t\S|\s*$)|#\d|\S{0,40}\s*\[\s*\d+\] |[-=*~_#. ]+$|.{0,60} [-=*~_]{20,}$"
)
_STACK_PART = lazy_re(
    rb"0x[0-9a-f]|most recent call|(?: {3,}|\t)at \S|=   [A-Z]{3}|\bSending process \d+ closing signal SIG"
    rb"|\bKilling subprocess \d|\b(?:rank|task|process|worker) \d{1,7} (?:died from|exited with|was killed)\b"
    rb"|\bgoroutine \d+ \[|\b(?:stack|Stack) backtrace:|\bCaused by:|\bnote: (?:run with|Some details)"
    rb"|\b(?:stopping|exiting(?: with (?:exit )?(?:code|status) \d+)?|giving up|shutting down|aborting|quitting)"
    rb"(?: now)?\W{0,3}$|(?:^|[:\]|] )Terminated$"
)
# Each form of a part holds one of these. Most lines hold none.
_STACK_HINTS = (
    *(b"   at ", b"\tat ", b"=   "),
    *(b"0x", b"most recent", b"process", b"goroutine", b"backtrace", b"Caused", b"note: "),
    *(b"died from", b"exited with", b"was killed"),
    *(b"stopping", b"exiting", b"giving up", b"shutting", b"aborting", b"quitting", b"Terminated"),
)
FEWEST = 3
_FEWEST_PROGRESS = 2


@ask_masked
def shape_of(line: bytes) -> bytes:
    """Return the shape of a physical line. Of a JSON record: its keys, its level and the shape of its message."""
    line = _without_colours(line[:_JSON_END])
    start = line.find(b"{", 0, _JSON_END - _JSON_HEAD)
    if line[:1] in b" \t" and (field := _JSON_FIELD.match(line)) is not None:
        return _shape_of_pair(*field.groups())
    if start >= 0 and line[start + 1 : start + 2] in (b'"', b" "):
        pairs = _JSON_PAIR.findall(line[start : start + _JSON_HEAD])
        if pairs:
            return b"{" + b",".join(_shape_of_pair(key, value) for key, value in pairs)
    return _BLANKS.sub(b" ", _MASKED.sub(b"0", line[:_LONGEST])).strip()


def _shape_of_pair(key: bytes, value: bytes) -> bytes:
    return key + b"=" + _DIGITS.sub(b"0", value) if key in _JSON_TEXTS else key


def has_text(line: bytes) -> bool:
    """Whether the line holds a letter or a digit of any script, and is not only a timestamp."""
    return _LETTER.search(line, 0, _LONGEST) is not None and _STAMP.fullmatch(line) is None


@ask_masked
def is_stack(line: bytes) -> bool:
    """Whether the line may belong to a stack or a rule between blocks, or says that its writer ends: these repeat at
    an end too.
    """
    line = _without_colours(line[:_LONGEST])
    if _STACK_START.match(line) is not None:
        return True
    return any(hint in line for hint in _STACK_HINTS) and _STACK_PART.search(line) is not None


def _without_colours(line: bytes) -> bytes:
    return _COLOUR.sub(b"", line) if b"\x1b" in line else line


def is_progress(line: bytes) -> bool:
    """Whether the line reports progress or a good end."""
    text = line[:_LONGEST].decode("utf-8", "replace")
    return shows_progress(text) or read_completion(text)[0] != ""


def is_usual(line: bytes, count: int) -> bool:
    """Whether a line of which there are `count` with its shape is the usual output of the program."""
    return count >= FEWEST or (count >= _FEWEST_PROGRESS and is_progress(line))
