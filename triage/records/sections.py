"""Writers whose lines stand one after another in one file, as `kubectl logs -l` and `docker compose logs` print them.

Where one writer ends and the next begins is found by bisection, so that a large file is read at few places.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from triage.ranks.layouts import Layout
from triage.records.activity import Activity, read_activity
from triage.records.text import Text

Read = Callable[[int, int], bytes]
Part = tuple[int, str, int, str]
"""Start and end of a part of the file, each with the writer of the lines there."""

CHUNK = 1 << 13
_LINE = 1 << 10  # of the last line, which may go on behind a part
_MOST_PROBES = 1 << 13
_SAMPLES = 7
_FEWEST_LINES = 8  # that show who writes in turn


def read_section_ends(read: Read, end: int, year: int, layout: Layout) -> list[Activity]:
    """Return the last activity of each writer before `end`; nothing where the lines of several writers are mixed."""
    text = Text("", read, end, year, layout)
    if end <= CHUNK or any(_is_mixed(text, end * number // _SAMPLES) for number in range(_SAMPLES)):
        return []
    try:
        parts = list(_find_changes(text, end))
    except _TooManyProbesError:
        return []
    ends = []
    for start, _, stop, following in parts:
        ends += [
            activity
            for activity in read_activity(read(start, stop - start + _LINE), start, year, layout, by_prefix=True)
            if activity.writer and activity.writer != following
        ]
    return ends


class _TooManyProbesError(Exception):
    pass


def _find_changes(text: Text, end: int) -> Iterator[Part]:
    """Yield the parts of at most CHUNK bytes, in file order, at whose ends different writers write."""
    probes = 0
    todo = [(0, _writer_at(text, 0), end, _writer_at(text, end - CHUNK))]
    while todo:
        start, first, stop, last = todo.pop()
        if first == last:
            continue
        if stop - start <= CHUNK:
            yield start, first, stop, last
            continue
        if (probes := probes + 1) > _MOST_PROBES:
            raise _TooManyProbesError
        middle = (start + stop) // 2
        writer = _writer_at(text, middle)
        todo += [(middle, writer, stop, last), (start, first, middle, writer)]


def _is_mixed(text: Text, offset: int) -> bool:
    """Whether a writer writes again after another has written, or most of them write one line in turn."""
    lines = list(_writers_at(text, offset))
    writers = [writer for writer, _ in itertools.groupby(lines)]
    return len(set(writers)) < len(writers) or 3 * len(writers) > 2 * max(len(lines), _FEWEST_LINES)


def _writer_at(text: Text, offset: int) -> str:
    return next(_writers_at(text, offset), "")


def _writers_at(text: Text, offset: int) -> Iterator[str]:
    """Yield the writers of the lines that start within CHUNK bytes."""
    lines = text.lines_from(offset, CHUNK)
    return (line.parsed.writer for line in lines if line.parsed.writer)
