"""Scan spans of plain files on other machines, next to where the files lie."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from triage.base.executor_work import SharedData
from triage.scan.interface import LiteralMatcher, WriterKey
from triage.scan.literal_matcher import build
from triage.scan.one_span import OneOpenFile, encode_span, read_sample, scan_span
from triage.scan.spans import SpanReader
from triage.sources.opened_file import accept_file

_THREAD = threading.local()
_BUILDING = threading.Lock()


def scan_unit(shared: SharedData, unit: Sequence[Any], writer: WriterKey, cache: Path | None) -> list[Any]:
    """Scan one span on a worker. Raises OSError if it cannot be read there to its end."""
    described, number, size = unit
    if getattr(_THREAD, "shared", None) is not shared:
        with _BUILDING:  # threads of a worker share one matcher
            matcher = _build_matcher(shared, cache)
        settings = shared.value
        _THREAD.reader = SpanReader(
            matcher.for_thread(), writer, settings["chunk_bytes"], frozenset(settings["generic"])
        )
        _THREAD.shared, _THREAD.files = shared, OneOpenFile()
    span = scan_span(_THREAD.reader, _THREAD.files, accept_file(described), number, size)
    if span.problem is not None:
        _THREAD.files.close()
        raise span.problem
    return encode_span(span)


@lru_cache(maxsize=2)
def _build_matcher(shared: SharedData, cache: Path | None) -> LiteralMatcher:
    settings = shared.value
    sample = read_sample([(accept_file(described), offset) for described, offset in settings["sample"]])
    matcher = build(settings["literals"], settings["engine"], settings["windows"], sample, cache)
    if sample:
        matcher.prepare(sample)
    return matcher
