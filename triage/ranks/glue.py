"""Two writers on one line: where a launcher's prefix in the middle of a line begins another writer's text."""

from __future__ import annotations

import re

from triage.base.lazy_re import lazy_re

# Behind a blank, a colon, a bracket or a quotation mark it is text that speaks of a prefix, or a further layer.
_SPOKEN = b"\n\r\0 \t:>])('\"`=,"
# But a progress bar ends with a bracket: `50%|##### | 5/10 [00:01<00:01, 4.9it/s, loss=0.3]`.
_BAR = lazy_re(rb"(?:it/s|s/it|\d[a-zA-Z]*/s)(?:, [^\]\n]*)?\]\Z")
_BAR_BYTES = 200


def begins(data: bytes, at: int) -> bool:
    """Does the prefix that stands at `at` begin another writer's text? Not at the start of a line."""
    if not at:
        return False
    if data[at - 1] == 93:  # ]
        return _BAR.search(data[max(0, at - _BAR_BYTES) : at]) is not None
    return data[at - 1] not in _SPOKEN


# Within a traceback, what begins one again behind a prefix is another writer's, whatever stands before the prefix.
_WITHIN = lazy_re(rb'File "|Traceback \(')
_OPENS = lazy_re(rb' ?(?:Traceback \(most recent| *File ")')
RUN_ON = lazy_re(rb'(?:File "|Traceback \()[^\n]*?\w\]: ?(?:Traceback \(most recent| *File ")')
# A progress bar ends without a newline; what stands right behind it is somebody else's.
BAR_END = lazy_re(rb"(?:it/s|s/it)(?:, [^\]\n]{0,100})?\](?=[^\s\]])")


def runs_on(data: bytes, at: int, end: int) -> bool:
    """Does the prefix from `at` to `end` stand within a traceback, and open one?"""
    return _OPENS.match(data, end) is not None and _WITHIN.search(data, 0, at) is not None


TAG = lazy_re(rb"\[rank\d+\]: ")


def second(data: bytes, at: int, prefix: re.Pattern[bytes]) -> bool:
    """Does `prefix` stand at `at`, in the middle of a line of `data`, and begin another writer's text?"""
    match = prefix.match(data, at)
    if match is None:
        return False
    if begins(data, at):
        return True
    begin = data.rfind(b"\n", 0, at) + 1
    return _OPENS.match(data, match.end()) is not None and _WITHIN.search(data, begin, at) is not None
