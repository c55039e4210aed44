"""Tracebacks without their header line, as in a paste of what several ranks wrote at once: frames and exception lines.

The scan does not stop at such lines, so only small inputs without any header are searched for them.
"""

from __future__ import annotations

from collections.abc import Iterator

from triage.base.lazy_re import lazy_re
from triage.records.text import Line, Text

# Inputs of at most so many bytes, all sources together, are searched.
SMALL = 1 << 20
FRAME_HINT = b'", line '
_FRAME = lazy_re(r'\s*File "[^"]+", line \d+(?:, in \S.*)?$')
# Narrower than under a header, where any name with a colon ends the frames.
_EXCEPTION = lazy_re(
    r"(?:[A-Za-z_][\w.]*\.)?"
    r"[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Failure|Timeout|Expired|StopIteration)(?::(?: |$)|$)"
)
_CODE = lazy_re(r"\s{2}|[\s~^]+$")
_RANK_LABEL = ("bracketed rank",)
# The most lines of others between two lines of a traceback.
_MOST_OTHERS = 8


def find_headerless_tracebacks(text: Text) -> Iterator[list[Line]]:
    """Yield, for every writer, the frames with their code and exception lines, until other output follows.

    Lines of a writer with a prefix end with each exception line. Lines without one may be of several writers, and stay
    together.
    """
    open_tracebacks: dict[tuple[str, int | None], tuple[list[Line], int]] = {}
    for line in text.lines_from(0, text.size):
        parsed = line.parsed
        writer = parsed.writer, parsed.origin.rank
        current = open_tracebacks.get(writer)
        # `[rank3] ` before each line is no record of a logger.
        opens_record = parsed.opens_record and parsed.layers[-1:] != _RANK_LABEL
        if _FRAME.match(parsed.text) and not opens_record:
            lines = current[0] if current else []
            lines.append(line)
            open_tracebacks[writer] = lines, 0
        elif current:
            lines, others = current
            is_end = is_exception_line(line)
            if not opens_record and (is_end or _is_code(parsed.text, lines[-1])):
                lines.append(line)
                open_tracebacks[writer] = lines, 0
                if is_end and writer != ("", None):
                    yield lines
                    del open_tracebacks[writer]
            elif others >= _MOST_OTHERS or opens_record:
                yield from _until_exception(lines)
                del open_tracebacks[writer]
            elif parsed.text.strip():
                open_tracebacks[writer] = lines, others + 1
    for lines, _ in open_tracebacks.values():
        yield from _until_exception(lines)


def is_exception_line(line: Line) -> bool:
    """Is it the exception line of a traceback?"""
    return names_exception(line.parsed.text)


def names_exception(text: str) -> bool:
    """Does a text begin with the name of an exception that ends in `Error`, `Exception` or the like?"""
    return _EXCEPTION.match(text) is not None


def _is_code(text: str, last: Line) -> bool:
    """Code and carets are indented. In a paste without blanks, the line directly behind a frame is its code."""
    return bool(text.strip()) and (_CODE.match(text) is not None or _FRAME.match(last.parsed.text) is not None)


def _until_exception(lines: list[Line]) -> Iterator[list[Line]]:
    """Drop what follows the last exception line and its message."""
    end = len(lines)
    while end and not is_exception_line(lines[end - 1]):
        end -= 1
    if end and lines[end - 1].parsed.text.rstrip().endswith(":"):
        while end < len(lines) and _continues(lines[end], lines[end - 1]):
            end += 1
    if end:
        yield lines[:end]


def _continues(line: Line, last: Line) -> bool:
    """Whether the line is directly behind the last one and no frame."""
    return line.offset - last.end <= len("\r\n") and _FRAME.match(line.parsed.text) is None
