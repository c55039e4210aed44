"""triage.scan.edges: the first and last bytes of a source."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.scan import edges as module
from triage.scan.edges import HEAD, TAIL, EdgeReader, FileEdges, HeldEdges


def test_the_edges_of_a_file_are_those_at_the_size_of_the_scan(tmp_path: Path) -> None:
    """A file that grew later gives the bytes that it had; a short one gives all of it twice."""
    data = bytes(97 + number % 26 for number in range(HEAD + TAIL + 100))
    long, short = tmp_path / "long", tmp_path / "short"
    long.write_bytes(data + b"grown")
    short.write_bytes(b"abcd")
    reader = EdgeReader()
    assert reader.read(str(long), len(data)).head == data[:HEAD]
    assert FileEdges(str(long), len(data), reader).tail == data[-TAIL:]
    assert reader.read(str(short), 3) == HeldEdges(b"abc", b"abc")


def test_only_the_edges_of_a_few_files_are_held(tmp_path: Path) -> None:
    """The last files are not read again while they are held; one that is gone gives nothing."""
    reader = EdgeReader()
    paths = [tmp_path / str(number) for number in range(9)]
    for path in paths:
        path.write_bytes(b"text")
        reader.read(str(path), 4)
        path.unlink()
    assert reader.read(str(paths[-1]), 4).head == b"text"
    assert reader.read(str(paths[0]), 4) == HeldEdges()


@pytest.mark.parametrize(("size", "is_held"), [(8192, True), (8193, False)])
def test_small_files_are_held(tmp_path: Path, size: int, is_held: bool) -> None:
    """What a small file has is known when it is gone; a larger one is read again, and has to be there at first."""
    path = tmp_path / "rank_0.log"
    path.write_bytes(bytes(size))
    edges = EdgeReader().edges_of(str(path), size)
    path.unlink()
    assert (edges.tail == bytes(size)) == is_held
    with pytest.raises(FileNotFoundError):
        EdgeReader().edges_of(str(path), size)


def test_small_files_are_held_up_to_a_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million small files do not fill the memory."""
    monkeypatch.setattr(module, "_MOST_SMALL_BYTES", 10)
    path = tmp_path / "rank_0.log"
    path.write_bytes(b"text.")
    reader = EdgeReader()
    assert [isinstance(reader.edges_of(str(path), 5), HeldEdges) for _ in range(3)] == [True, True, False]
