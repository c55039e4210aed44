"""Two writers on one line: where a launcher's prefix in the middle of a line begins another writer's text."""

from __future__ import annotations

import re

# Behind a blank, a colon, a bracket or a quotation mark it is text that speaks of a prefix, or a further layer.
_SPOKEN = b"\n\r\0 \t:>])('\"`=,"
# But a progress bar ends with a bracket: `50%|##### | 5/10 [00:01<00:01, 4.9it/s, loss=0.3]`.
_BAR = re.compile(rb"(?:it/s|s/it|\d[a-zA-Z]*/s)(?:, [^\]\n]*)?\]\Z")
_BAR_BYTES = 200


def begins(data: bytes, at: int) -> bool:
    """Does the prefix that stands at `at` begin another writer's text? Not at the start of a line."""
    if not at:
        return False
    if data[at - 1] == 93:  # ]
        return _BAR.search(data[max(0, at - _BAR_BYTES) : at]) is not None
    return data[at - 1] not in _SPOKEN
