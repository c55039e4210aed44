"""Counts of answers by all processes of a server, in memory that they share: each writes in a place of its own, whoever
is asked sums them.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator

KINDS = ("1xx", "2xx", "3xx", "4xx", "5xx", "none")
BOUNDS = (0.005, 0.02, 0.05, 0.15, 0.5, 1.0, 5.0)
_FIELDS = len(KINDS) + len(BOUNDS) + 2  # answers by kind, by time, the rest, and the sum of seconds
_ROW = struct.Struct(f"{_FIELDS}d")


class Counters:
    """Made before the processes are forked; `place` is set in each of them."""

    def __init__(self, processes: int = 1) -> None:
        self._memory = mmap.mmap(-1, processes * _ROW.size)
        self._processes = processes
        self.place = 0

    def count(self, status: int, seconds: float) -> None:
        """An answer has gone out; 0: the client did not wait for it. Called from one thread of each process."""
        kind = min(status // 100, 5) - 1 if status >= 100 else len(KINDS) - 1
        bucket = next((number for number, bound in enumerate(BOUNDS) if seconds <= bound), len(BOUNDS))
        row = list(_ROW.unpack_from(self._memory, self.place * _ROW.size))
        row[kind] += 1
        row[len(KINDS) + bucket] += 1
        row[-1] += seconds
        _ROW.pack_into(self._memory, self.place * _ROW.size, *row)

    def lines(self) -> Iterator[str]:
        """The sums in Prometheus' text format."""
        rows = [_ROW.unpack_from(self._memory, number * _ROW.size) for number in range(self._processes)]
        sums = [sum(values) for values in zip(*rows, strict=True)]
        yield "# HELP triage_http_responses_total Answers by the kind of their status; none: the client left before."
        yield "# TYPE triage_http_responses_total counter"
        for kind, count in zip(KINDS, sums, strict=False):
            yield f'triage_http_responses_total{{status="{kind}"}} {count:.17g}'
        yield "# HELP triage_http_response_seconds How long answers took, streams to their end."
        yield "# TYPE triage_http_response_seconds histogram"
        total = 0.0
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), sums[len(KINDS) :], strict=False):
            total += count
            yield f'triage_http_response_seconds_bucket{{le="{bound}"}} {total:.17g}'
        yield f"triage_http_response_seconds_sum {sums[-1]:.17g}"
        yield f"triage_http_response_seconds_count {total:.17g}"
