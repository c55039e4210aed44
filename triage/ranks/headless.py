"""Tracebacks whose header line is missing, as in a paste of what several ranks wrote at once: frames, and the exception
lines under them.

Nothing in such lines makes the scan stop, so they are looked for only in small inputs that hold no header at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from triage.base.lazy_re import lazy_re
from triage.ranks.text import Line, Text

# Inputs of at most so many bytes, all sources together, are looked at.
SMALL = 1 << 20
QUICK = b'", line '
_FRAME = lazy_re(r'\s*File "[^"]+", line \d+(?:, in \S.*)?$')
# Narrower than under a header, where anything that looks like a name and a colon ends the frames.
_EXCEPTION = lazy_re(
    r"(?:[A-Za-z_][\w.]*\.)?[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Failure|Timeout|Expired|StopIteration)(?::(?: |$)|$)"
)
_CODE = lazy_re(r"\s{2}|[\s~^]+$")
# Lines of others that may stand between two of a run.
_FOREIGN = 8


def runs(text: Text) -> Iterator[list[Line]]:
    """Of every writer the frames with the code and the exception lines that follow, up to where other things are
    written.

    Lines of a writer with a prefix end with each exception line. Those without one may be of several writers, and stay
    together.
    """
    open_runs: dict[str, tuple[list[Line], int]] = {}
    for line in text.lines_from(0, text.size):
        parsed = line.parsed
        writer = parsed.writer
        found = open_runs.get(writer)
        if _FRAME.match(parsed.text) and not parsed.record:
            run = found[0] if found else []
            run.append(line)
            open_runs[writer] = run, 0
        elif found:
            run, foreign = found
            ended = is_end(line)
            if not parsed.record and (ended or _belongs(parsed.text, run[-1])):
                run.append(line)
                open_runs[writer] = run, 0
                if ended and writer:
                    yield run
                    del open_runs[writer]
            elif foreign >= _FOREIGN or parsed.record:
                yield from _whole(run)
                del open_runs[writer]
            elif parsed.text.strip():
                open_runs[writer] = run, foreign + 1
    for run, _ in open_runs.values():
        yield from _whole(run)


def is_end(line: Line) -> bool:
    """Is it an exception line?"""
    return _EXCEPTION.match(line.parsed.text) is not None


def _belongs(text: str, last: Line) -> bool:
    """Code and carets are indented; in a paste that lost its blanks, a line right behind a frame is its code."""
    return bool(text.strip()) and (_CODE.match(text) is not None or _FRAME.match(last.parsed.text) is not None)


def _whole(run: list[Line]) -> Iterator[list[Line]]:
    """What comes after the last exception line is nobody's traceback."""
    while run and not is_end(run[-1]):
        run.pop()
    if run:
        yield run
