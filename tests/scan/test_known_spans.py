"""Spans that an earlier scan read are not read again, and the result is the same."""

from __future__ import annotations

import contextlib
import json
import os

import pytest
from hypothesis import given, strategies as st

from triage.scan.interface import ScanResult
from triage.scan.known_spans import FileSpans, KnownSpans, count_complete_spans, divide_spans, spans_from_row
from triage.scan.run import Scan
from triage.sources.opened_file import LocalFile

from .factories import LITERALS, TEXTS, plain_container, small_limits, temporary_file, writer


def scan_file(path: str, known: FileSpans | None = None) -> tuple[ScanResult, list[FileSpans], int]:
    """Return the scan of a file, its spans as they are remembered, and the bytes of progress."""
    progress: list[int] = []
    job = Scan(
        LITERALS,
        writer,
        workers=1,
        chunk_bytes=64,
        find_known=lambda path, size: known,
        on_progress=progress.append,
        on_failure=lambda name, error: pytest.fail(f"{name}: {error}"),
    )
    [(_, result)], _ = job.run([plain_container(path)])
    return result, [spans for _, _, spans in job.file_spans()], sum(progress)


def through_json(spans: KnownSpans) -> KnownSpans:
    return spans_from_row(json.loads(json.dumps(spans.to_row())))


@given(st.lists(TEXTS, min_size=2, max_size=4), st.sampled_from([1 << 16, 8, 3, 0]), st.integers(1, 3))
def test_a_growing_file_gives_the_same_with_and_without_what_is_known(
    texts: list[bytes], limit: int, more: int
) -> None:
    """However it grows, also in the middle of a line: hits, counts, digest and progress are those of a whole scan; also
    where spans are merged as they come, and where kinds of hits are left out.
    """
    with small_limits(FILE_KINDS=limit, MORE_KINDS=more), temporary_file(b"") as path:
        known = None
        for text in texts:
            with open(path, "ab") as file:
                file.write(text)
            result, spans, progress = scan_file(path, known)
            assert result == scan_file(path)[0]
            assert progress == os.path.getsize(path)
            if spans:
                known = FileSpans(through_json(spans[0].complete), KnownSpans())


@given(TEXTS)
def test_a_file_of_which_all_is_known_is_not_read(text: bytes) -> None:
    """Its result comes from what is known, and there is nothing new to remember."""
    with small_limits(), temporary_file(text) as path:
        result, [spans], _ = scan_file(path)
        known = FileSpans(through_json(spans.complete), through_json(spans.rest))
        assert scan_file(path, known) == (result, [], len(text))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (b"", 0),
        (b"x" * 255, 0),
        (b"x" * 255 + b"\n", 1),
        (b"x" * 256, 0),
        (b"x" * 256 + b"\n", 1),
        (b"x" * 300, 0),
        (b"x" * 300 + b"\n", 1),
        (b"x\n" * 256, 2),
        (b"x\n" * 255 + b"xx", 1),
        (b"x" * 600, 0),
    ],
)
def test_a_span_is_complete_when_its_last_line_is(text: bytes, count: int) -> None:
    """A line that is cut by the end of its span and has no newline yet will grow: its span is not complete."""
    with small_limits(), temporary_file(text) as path, contextlib.closing(LocalFile(path)) as file:
        assert count_complete_spans(file, len(text)) == count


def test_spans_are_divided_between_parts_only() -> None:
    """A border inside a part that was remembered as a whole cannot be found again."""
    parts = [KnownSpans(("a", "b"), 1), KnownSpans(("c",), 2), KnownSpans(("d",), 4)]
    assert divide_spans(parts, 3) == FileSpans(KnownSpans(("a", "b", "c"), 3), KnownSpans(("d",), 4))
    assert divide_spans(parts, 0) == FileSpans(KnownSpans(), KnownSpans(("a", "b", "c", "d"), 7))
    assert divide_spans(parts, 1) is None
