"""triage.scan.run"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.base import forks
from triage.model.evidence import Source
from triage.scan import run as module

from .scanning import SMALL, TEXTS, Container, Dribble, file, one, plain, scan, small, streamed

LONG = st.lists(TEXTS, min_size=1, max_size=4).map(b"".join)


@given(LONG, st.integers(1, 4), st.integers(1, 2000), st.sampled_from(["hyperscan", "re2"]))
def test_neither_workers_nor_chunks_nor_engine_change_the_answer(
    data: bytes, workers: int, chunk: int, engine: str
) -> None:
    """Hits, counts, head and tail are those of one worker with one large chunk, also in storms and overlong lines."""
    with small(), file(data) as path:
        expected = one(plain(path))
        assert one(plain(path), workers=workers, chunk_bytes=chunk, engine=engine) == expected


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    """What was a file when the job was listed may be a pipe when it is read: an error that is told, the others are
    scanned.
    """
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "log").write_bytes(b"[r1] boom\n")
    told = scan([plain(str(tmp_path / "pipe"), size=100, name="pipe"), plain(str(tmp_path / "log"))])
    assert [(source.name, scanned.matched) for source, scanned in told.scanned] == [("log", 1), ("pipe", 0)]
    assert [name for name, _ in told.failures] == ["pipe"]


@pytest.mark.parametrize("fork", [False, True])
def test_no_file_stays_open(tmp_path: Path, fork: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service scans for months: whoever reads closes, also where the work comes back from a process that died."""
    monkeypatch.setattr(module, "_WORTH_FORKING", 0)
    monkeypatch.setattr(forks.threading, "active_count", lambda: 1)
    monkeypatch.setattr(forks, "_be_copy", lambda *_: os._exit(0))
    containers = []
    for number in range(5):
        (tmp_path / str(number)).write_bytes(b"[r1] boom\n")
        containers.append(plain(str(tmp_path / str(number)), name=str(number)))
    before = len(os.listdir("/proc/self/fd"))
    assert [scanned.matched for _, scanned in scan(containers, workers=2, fork=fork).scanned] == [1] * 5
    assert len(os.listdir("/proc/self/fd")) == before


@given(st.lists(LONG, min_size=1, max_size=3), st.integers(2, 4), st.integers(1, 2000))
@settings(max_examples=30)
def test_forked_processes_give_the_same(texts: list[bytes], workers: int, chunk: int) -> None:
    """What other processes scan comes back whole, and a file that cannot be read is told once for each of its spans."""
    with small(), file(b"") as path, pytest.MonkeyPatch.context() as patch:
        containers = [plain(path, size=4 * SMALL["SPAN"], name="shrunk")]
        for index, data in enumerate(texts):
            with open(f"{path}{index}", "wb") as out:
                out.write(data)
            containers.append(plain(f"{path}{index}", name=f"log{index}"))
        expected = scan(containers)
        patch.setattr(module, "_WORTH_FORKING", 0)
        patch.setattr(
            forks.threading, "active_count", lambda: 1
        )  # a test's runner may have others, which do not matter here
        forked = scan(containers, workers=workers, chunk_bytes=chunk, fork=True)
    assert forked.scanned == expected.scanned
    assert list(map(str, forked.failures)) == list(map(str, expected.failures))
    assert len(expected.failures) == 4
    assert forked.advanced == expected.advanced


@given(LONG, st.integers(1, 2000), st.sampled_from(["hyperscan", "re2"]))
def test_the_chunks_of_a_stream_do_not_change_the_answer(data: bytes, chunk: int, engine: str) -> None:
    """A stream is scanned alike, its windows included, whatever the chunk and the engine."""
    with small():
        assert one(streamed(data), chunk_bytes=chunk, engine=engine) == one(streamed(data))


@given(LONG, st.integers(1, 2000))
def test_a_gate_fitted_to_the_text_does_not_change_the_answer(data: bytes, chunk: int) -> None:
    """The windows, and fitting them to a sample of the job, speed the search up and change nothing."""
    with small(), file(data) as path, pytest.MonkeyPatch.context() as patch:
        expected = one(plain(path))
        patch.setattr(module, "_WORTH_FITTING", 0)
        for windows in ([], ["oom", "err", "Zu", "bab", "long"], ["a", "o"]):
            assert one(plain(path), chunk_bytes=chunk, windows=windows) == expected


def test_real_sizes_agree_too(tmp_path: Path) -> None:
    """With the real constants a file of several spans, with a storm and overlong lines, gives one answer."""
    random_ = random.Random(7)
    parts: list[bytes] = []
    for index in range(120):
        parts.append(b"[r%d] step %d loss 0.1\n" % (index % 4, index) * 2000)
        parts.append(
            b"[r1] boom\r\n"
            if index % 3
            else b"z" * random_.randrange(100_000, 900_000) + b"oomph" + b"y" * 200_000 + b"Zug\n"
        )
        parts.append(b"[r%d] err: 7 ababa\n" % (index % 9) * (4000 if index in (20, 21) else 1))
    data = b"".join(parts)
    (tmp_path / "log").write_bytes(data)
    expected = one(plain(str(tmp_path / "log")))
    assert len(data) > 16 << 20
    assert expected.sampled
    for workers, chunk, engine in [(3, 1 << 20, "hyperscan"), (2, 1 << 22, "re2")]:
        assert one(plain(str(tmp_path / "log")), workers=workers, chunk_bytes=chunk, engine=engine) == expected
    other = one(streamed(data), chunk_bytes=1 << 20)
    assert (other.hits, other.matched, other.sampled) == (expected.hits, expected.matched, expected.sampled)


@given(st.lists(TEXTS, max_size=5), st.lists(TEXTS, max_size=3), st.integers(1, 4))
@settings(max_examples=40)
def test_sources_come_sorted_and_each_as_if_alone(files: list[bytes], members: list[bytes], workers: int) -> None:
    """Scanning many files together gives each what it gives alone, sorted by name, whatever the order of the
    containers.
    """
    with small(), file(b"") as path:
        containers = []
        for index, data in enumerate(files):
            with open(f"{path}{index}", "wb") as out:
                out.write(data)
            containers.append(plain(f"{path}{index}", name=f"b{-index}"))
        packed = {f"c/{index}": data for index, data in enumerate(members)}
        opens: dict[str, Callable[[], BinaryIO | None]] = {
            name: (lambda data=data: Dribble(data, 50)) for name, data in packed.items()
        }
        containers.append(Container("a.tar", 10, None, opens))
        told = scan(containers, workers=workers)
        assert [source.name for source, _ in told.scanned] == sorted(
            [container.name for container in containers[:-1]] + list(packed)
        )
        assert told.advanced == sum(map(len, files)) + 10
        by_name = {source.name: scanned for source, scanned in told.scanned}
        for container in containers[:-1]:
            assert by_name[container.name] == one(container)
        for name, data in packed.items():
            assert by_name[name] == one(streamed(data))


def test_what_is_no_text_is_handed_back() -> None:
    """A member without a stream is not scanned and comes back among the others, sorted."""
    told = scan([Container("x.zip", 5, None, {"x/2": lambda: None, "x/1": lambda: None})])
    assert [source.name for source in told.others] == ["x/1", "x/2"]
    assert told.scanned == []


def test_an_empty_file_is_scanned(tmp_path: Path) -> None:
    """A file of no bytes gives no hits and no failure."""
    (tmp_path / "log").write_bytes(b"")
    scanned = one(plain(str(tmp_path / "log")))
    assert (scanned.hits, scanned.size, scanned.head, scanned.tail) == ((), 0, b"", b"")


@pytest.mark.parametrize("workers", [1, 3])
def test_a_file_that_vanished_is_told_and_the_others_are_scanned(workers: int, tmp_path: Path) -> None:
    """`failed` is called with the name and the error, and nothing is lost of the other files."""
    (tmp_path / "log").write_bytes(b"boom\n")
    gone = Container("gone", 40, Source("gone", "text", 40, str(tmp_path / "gone")))
    told = scan([gone, plain(str(tmp_path / "log"))], workers=workers)
    assert [(name, type(error)) for name, error in told.failures] == [("gone", FileNotFoundError)]
    assert {source.name: scanned.matched for source, scanned in told.scanned} == {"gone": 0, "log": 1}
    assert told.advanced == 45


@given(LONG, st.integers(1, 600), st.integers(1, 3))
def test_a_file_that_shrank_is_told_and_read_as_far_as_it_goes(data: bytes, missing: int, workers: int) -> None:
    """`failed` is called with the name; the hits of what is left are found."""
    with small(), file(data) as path:
        left = one(plain(path))
        told = scan([plain(path, len(data) + missing)], workers=workers)
    assert {name for name, _ in told.failures} == {"log"}
    assert all(error.strerror for _, error in told.failures)
    [(_, scanned)] = told.scanned
    assert scanned.hits == left.hits
    assert told.advanced == len(data) + missing


def test_a_file_that_shrinks_between_two_spans_is_told(tmp_path: Path) -> None:
    """Also when it happens in the middle of the scan."""
    path = tmp_path / "log"
    with small():
        path.write_bytes(b"boom\n" * SMALL["SPAN"])
        container = plain(str(path))

        def shrinking(line: bytes) -> str:
            os.truncate(path, 20)
            return ""

        told = scan([container], key=shrinking)
    assert {name for name, _ in told.failures} == {"log"}


def test_a_stream_that_breaks_is_told(tmp_path: Path) -> None:
    """An OSError of a container gives a `failed` call; what was scanned before stays."""

    def broken() -> BinaryIO:
        raise OSError(5, "the disk is gone")

    told = scan([Container("x.tar", 7, None, {"a": lambda: Dribble(b"boom\n", 3), "b": broken})])
    assert [(name, error.strerror) for name, error in told.failures] == [("x.tar", "the disk is gone")]
    assert [source.name for source, _ in told.scanned] == ["a"]
    assert told.advanced == 7


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_in_a_thread_is_raised(workers: int, tmp_path: Path) -> None:
    """What goes wrong in any worker comes out of `run`."""
    (tmp_path / "log").write_bytes(b"boom\n")

    def bad(line: bytes) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        scan([plain(str(tmp_path / "log"))], workers=workers, key=bad)


def test_nothing_to_scan_gives_nothing() -> None:
    """A job without files is no error."""
    told = scan([], workers=2)
    assert (told.scanned, told.others, told.failures, told.advanced) == ([], [], [], 0)
