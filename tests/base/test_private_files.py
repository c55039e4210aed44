"""triage.base.private_files"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from triage.base import private_files
from triage.base.private_files import read_private_file, write_private_file


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    """The file and its directory are made for the user alone."""
    path = tmp_path / "cache" / "file"
    write_private_file(path, b"data")
    assert read_private_file(path) == b"data"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("mode", "is_read"), [(0o600, True), (0o644, True), (0o620, False), (0o602, False)])
def test_a_file_that_others_can_write_is_not_read(tmp_path: Path, mode: int, is_read: bool) -> None:
    """Others may read the file, but whoever could write it could change what triage finds."""
    path = tmp_path / "file"
    write_private_file(path, b"data")
    path.chmod(mode)
    assert read_private_file(path) == (b"data" if is_read else None)


@pytest.mark.parametrize(("most", "is_read"), [(4, True), (3, False)])
def test_a_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, is_read: bool) -> None:
    """A file longer than the limit is not read, not even in part."""
    write_private_file(tmp_path / "file", b"data")
    monkeypatch.setattr(private_files, "MAX_BYTES", most)
    assert read_private_file(tmp_path / "file") == (b"data" if is_read else None)


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    """A link is an error, and a pipe is not waited for."""
    os.mkfifo(tmp_path / "pipe")
    assert read_private_file(tmp_path / "pipe") is None
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("link", "missing"):
        with pytest.raises(OSError, match=name):
            read_private_file(tmp_path / name)


def test_what_cannot_be_written_is_left_alone(tmp_path: Path) -> None:
    """A directory that is a file, and a path that is none, raise nothing and leave nothing."""
    (tmp_path / "file").write_text("")
    write_private_file(tmp_path / "file" / "inside", b"data")
    write_private_file(tmp_path / "a\0b", b"data")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
