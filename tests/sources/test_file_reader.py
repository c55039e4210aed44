"""triage.sources.file_reader"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from triage.base import forks
from triage.model import evidence as evidence_model
from triage.sources import FileReader, file_reader, find_line_numbers

from .factories import codes, temporary_directory


@given(
    st.lists(st.binary(max_size=300).map(lambda data: data.replace(b"a", b"\n")), max_size=3),
    st.sets(st.integers(0, 320)),
    st.integers(1, 50),
    st.integers(1, 90),
    st.integers(1, 2),
)
def test_lines_are_those_an_editor_shows(
    texts: list[bytes], offsets: set[int], chunk: int, piece: int, processes: int
) -> None:
    """An offset is on the line after the newlines before it, whatever the chunks and processes."""
    with temporary_directory() as place, pytest.MonkeyPatch.context() as patch:
        for name, value in (("_CHUNK", chunk), ("_PIECE", piece), ("_MIN_BYTES_FOR_PROCESSES", 200)):
            patch.setattr(file_reader, name, value)
        patch.setattr(
            forks.threading, "active_count", lambda: 1
        )  # a test's runner may have others, which do not matter here
        paths = {str(place / f"f{number}"): data for number, data in enumerate(texts)}
        for path, data in paths.items():
            Path(path).write_bytes(data)
        lines = find_line_numbers(dict.fromkeys(paths, offsets), forks.LocalProcesses(processes))
        assert all(
            lines[path][offset] == 1 + data[:offset].count(b"\n") for path, data in paths.items() for offset in offsets
        )


def test_only_what_is_needed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting stops at the last offset and reads nothing for no offsets or a missing file."""
    (tmp_path / "f").write_bytes(b"x\n" * (2 << 20))
    read: list[tuple[int, int]] = []
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, offset: read.append((offset, size)) or real(fd, size, offset))
    assert (
        find_line_numbers({str(tmp_path / "f"): [10], str(tmp_path / "missing"): [1 << 20]})[str(tmp_path / "f")][10]
        == 6
    )
    assert read == [(0, 10)]
    assert find_line_numbers({str(tmp_path / "missing"): []}) == {str(tmp_path / "missing"): {0: 1}}


def test_any_place_of_many_files_is_read(tmp_path: Path) -> None:
    """Of more files than may be open at once, only so many are open."""
    before = len(os.listdir("/proc/self/fd"))
    for at in range(20):
        (tmp_path / f"{at}").write_bytes(b"%03d" % at * 10)
    with FileReader(limit=4) as many:
        for at in [*range(20), *range(20)]:
            assert many.read_at(str(tmp_path / f"{at}"), 3, 3) == b"%03d" % at
            assert len(os.listdir("/proc/self/fd")) <= before + 4
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_end_of_a_file_gives_less(tmp_path: Path) -> None:
    """Past the end there is nothing, across the end the rest."""
    (tmp_path / "f").write_bytes(b"hello")
    with FileReader() as many:
        assert many.read_at(str(tmp_path / "f"), 3, 10) == b"lo"
        assert many.read_at(str(tmp_path / "f"), 30, 10) == b""


def test_a_missing_file_is_reported_once(tmp_path: Path) -> None:
    """A file that cannot be read again gives nothing and one warning."""
    warnings: list[evidence_model.Warning] = []
    with FileReader(warnings.append) as many:
        assert many.read_at(str(tmp_path / "f"), 0, 10) == b""
        assert many.read_at(str(tmp_path / "f"), 5, 10) == b""
    assert codes(warnings) == ["unreadable"]
