"""When a file counts as unchanged, and when as grown."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from triage.pipeline import file_states
from triage.pipeline.file_states import GRANULARITY_NS, FileState, digest_both_ends, digest_span_ends, read_state

STATE = FileState(1, 2, 3, 4, 5)


@pytest.mark.parametrize(("mtime", "ctime"), [(7, 7), (7, 1), (1, 7)])
def test_a_file_is_settled_when_both_times_are_older_than_the_granularity(mtime: int, ctime: int) -> None:
    """Later than that, every change gives it another time; before, a change could leave its times as they are."""
    state = replace(STATE, mtime=mtime, ctime=ctime)
    assert not state.is_settled(7 + GRANULARITY_NS)
    assert state.is_settled(8 + GRANULARITY_NS)


def test_only_the_same_inode_with_more_bytes_has_grown() -> None:
    """Another device or inode, the same size and a smaller one are no growth."""
    assert replace(STATE, size=4, mtime=9, ctime=9).has_grown_from(STATE)
    assert not replace(STATE, size=3, mtime=9).has_grown_from(STATE)
    assert not replace(STATE, size=2).has_grown_from(STATE)
    assert not replace(STATE, size=4, inode=9).has_grown_from(STATE)
    assert not replace(STATE, size=4, device=9).has_grown_from(STATE)


def test_only_regular_files_have_a_state(tmp_path: Path) -> None:
    """A directory or a pipe in the place of a file has none."""
    (tmp_path / "log").write_bytes(b"four")
    for path, size in ((tmp_path / "log", 4), (tmp_path, None)):
        fd = os.open(path, os.O_RDONLY)
        state = read_state(fd)
        assert (state and state.size) == size
        os.close(fd)


def digests(path: Path, data: bytes, spans: int) -> tuple[str, str]:
    path.write_bytes(data)
    fd = os.open(path, os.O_RDONLY)
    try:
        return digest_span_ends(fd, spans), digest_both_ends(fd, len(data))
    finally:
        os.close(fd)


def test_the_ends_of_spans_and_files_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed byte within reach of an end of a span, or of the file, changes the digest; one in a middle does not."""
    monkeypatch.setattr(file_states, "SPAN", 16)
    monkeypatch.setattr(file_states, "_EDGE", 4)
    data = bytes(range(40))
    spans, ends = digests(tmp_path / "log", data, 2)
    for place in range(40):
        changed = data[:place] + b"\xff" + data[place + 1 :]
        near_span = place < 4 or 12 <= place < 20 or 28 <= place < 32
        near_end = place < 4 or place >= 36
        assert [
            digest != other for digest, other in zip(digests(tmp_path / "log", changed, 2), (spans, ends), strict=True)
        ] == [
            near_span,
            near_end,
        ]
    assert digests(tmp_path / "log", data, 0)[0] == ""
