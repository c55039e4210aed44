"""Two writers on one line: find where a launcher's prefix in the middle of a line begins another writer's text."""

from __future__ import annotations

import re

from triage.base.lazy_re import lazy_re

TORCH_TAG = lazy_re(rb"\[rank\d+\]: ")
# A progress bar ends without a newline; what stands directly behind it is another writer's.
PROGRESS_BAR_END = lazy_re(rb"(?:it/s|s/it)(?:, [^\]\n]{0,100})?\](?=[^\s\]])")
# Behind a blank, a colon, a bracket or a quotation mark a prefix is quoted, or a further layer.
_BEFORE_QUOTED = b"\n\r\0 \t:>])('\"`=,"
# But a progress bar ends with a bracket: `50%|##### | 5/10 [00:01<00:01, 4.9it/s, loss=0.3]`.
_BAR = lazy_re(rb"(?:it/s|s/it|\d[a-zA-Z]*/s)(?:, [^\]\n]*)?\]\Z")
_BAR_BYTES = 200
# Behind a line of a traceback, a prefix with another traceback line is a second writer's, whatever stands before it.
_TRACEBACK_LINE = lazy_re(rb'File "|Traceback \(')
_OPENS_TRACEBACK_LINE = lazy_re(rb' ?(?:Traceback \(most recent| *File ")')
_TWO_TRACEBACKS = lazy_re(rb'(?:File "|Traceback \()[^\n]*?\w\]: ?(?:Traceback \(most recent| *File ")')
_LAUNCHER_PREFIX = lazy_re(rb"\[[A-Za-z_][\w.-]*?:?\d{1,4}\]:|\[\d+,\d+\]<std(?:out|err|diag)>:")
_PREFIX_BEHIND_TEXT = lazy_re(rb"\[(?<=[^\n\r\0 \t:>][\[])(?=[A-Za-z_][\w.-]*:?\d+\]:|\d+,\d+\]<std)")
_VARIABLE_PART = lazy_re(rb"\d+|(?<=\[)[A-Za-z_][\w.-]*(?=:\d)|out|err|diag")


def is_second_writer(data: bytes, at: int, prefix: re.Pattern[bytes]) -> bool:
    """Does `prefix` stand at `at`, in the middle of a line of `data`, and begin another writer's text?"""
    match = prefix.match(data, at)
    return match is not None and _begins_second_writer(data, match, data.rfind(b"\n", 0, at) + 1)


def find_second_writers(line: bytes) -> list[int]:
    """Return where torch's tag, or a launcher prefix like the one at the start, begins another writer's text."""
    tags = TORCH_TAG.finditer(line) if b"]: " in line else ()
    places = [match.start() for match in tags if _begins_second_writer(line, match)]
    first = _LAUNCHER_PREFIX.match(line) if line[:1] == b"[" else None
    if first is not None and line.find(b"[", first.end()) > 0:
        shape = _VARIABLE_PART.sub(b"", first.group())
        places += [
            match.start()
            for match in _LAUNCHER_PREFIX.finditer(line, first.end())
            if _VARIABLE_PART.sub(b"", match.group()) == shape and _begins_second_writer(line, match)
        ]
    return places


def may_have_second_writer(page: bytes) -> bool:
    """Quick check of many lines: does a bracket follow text directly, or a traceback or progress bar run on?"""
    return any(_follows_text(page, match.start()) for match in _PREFIX_BEHIND_TEXT.finditer(page)) or any(
        pattern.search(page) for pattern in (_TWO_TRACEBACKS, PROGRESS_BAR_END)
    )


def _begins_second_writer(data: bytes, prefix: re.Match[bytes], line_start: int = 0) -> bool:
    return _follows_text(data, prefix.start()) or (
        _OPENS_TRACEBACK_LINE.match(data, prefix.end()) is not None
        and _TRACEBACK_LINE.search(data, line_start, prefix.start()) is not None
    )


def _follows_text(data: bytes, at: int) -> bool:
    """Does the prefix at `at` directly follow text, so that it is not quoted by it?"""
    if not at:
        return False
    if data[at - 1] == ord("]"):
        return _BAR.search(data[max(0, at - _BAR_BYTES) : at]) is not None
    return data[at - 1] not in _BEFORE_QUOTED
