"""triage.scan.run"""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given, settings, strategies as st

from triage.base import forks
from triage.base.content_digest import digest_bytes, digest_list
from triage.model.evidence import Source
from triage.scan import one_span, run as module
from triage.scan.lines import HitGroup
from triage.scan.run import Scan

from .factories import (
    SMALL,
    TEXTS,
    Container,
    SlowStream,
    plain_container,
    scan,
    scan_bytes,
    scan_one,
    small_limits,
    stream_container,
    temporary_file,
)

LONG = st.lists(TEXTS, min_size=1, max_size=4).map(b"".join)


@given(LONG, st.integers(1, 4), st.integers(1, 2000), st.sampled_from(["hyperscan", "re2"]))
def test_the_result_is_independent_of_workers_chunks_and_engine(
    data: bytes, workers: int, chunk: int, engine: str
) -> None:
    """The result equals that of one worker with one large chunk, also in storms and overlong lines."""
    with small_limits(), temporary_file(data) as path:
        expected = scan_one(plain_container(path))
        assert scan_one(plain_container(path), workers=workers, chunk_bytes=chunk, engine=engine) == expected


@given(LONG, st.integers(1, 2000), st.integers(1, 4), st.data())
def test_every_byte_counts_for_the_digest(text: bytes, chunk: int, workers: int, data: st.DataObject) -> None:
    """The digest is that of the spans in order; another byte anywhere, one more or one less gives another digest."""
    with small_limits():
        span = SMALL["SPAN"]
        parts = [text[start : start + span] for start in range(0, len(text), span)] or [b""]
        digest = digest_list(map(digest_bytes, parts))
        place = data.draw(st.integers(0, max(0, len(text) - 1)))
        others = [text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :], text[:-1]] if text else []
        assert scan_bytes(text, chunk_bytes=chunk, workers=workers).digest == digest
        for other in [*others, text + b"\n", text + text + b"z"]:
            assert scan_bytes(other, chunk_bytes=chunk).digest != digest


def test_an_unreadable_file_has_no_text(tmp_path: Path) -> None:
    """A listed file that is gone has the size 0, so that nobody takes it for a text; an empty file is no such file."""
    gone = Container("log", 40, Source("log", "text", 40, str(tmp_path / "gone")))
    [(_, unread)] = scan([gone]).scanned
    (tmp_path / "log").write_bytes(b"")
    empty = scan_one(plain_container(str(tmp_path / "log")))
    assert (unread.size, unread.head, empty.size) == (0, b"", 0)
    assert (unread.sampled, unread.matched, unread.dropped_cells) == (0, 0, 0)
    assert unread.digest != empty.digest


def test_a_file_that_became_a_pipe_is_an_error(tmp_path: Path) -> None:
    """A pipe in the place of a listed file is reported without waiting, and other files are scanned."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "log").write_bytes(b"[r1] boom\n")
    outcome = scan(
        [plain_container(str(tmp_path / "pipe"), size=100, name="pipe"), plain_container(str(tmp_path / "log"))]
    )
    assert [(source.name, scanned.matched) for source, scanned in outcome.scanned] == [("log", 1), ("pipe", 0)]
    assert [name for name, _ in outcome.failures] == ["pipe"]


@pytest.mark.parametrize("fork", [False, True])
def test_no_file_stays_open(tmp_path: Path, fork: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """All files are closed, also when a worker process died."""
    monkeypatch.setattr(module, "_MIN_BYTES_TO_FORK", 0)
    monkeypatch.setattr(forks.threading, "active_count", lambda: 1)
    monkeypatch.setattr(forks, "_run_child", lambda *_: os._exit(0))
    containers = []
    for number in range(5):
        (tmp_path / str(number)).write_bytes(b"[r1] boom\n")
        containers.append(plain_container(str(tmp_path / str(number)), name=str(number)))
    before = len(os.listdir("/proc/self/fd"))
    assert [scanned.matched for _, scanned in scan(containers, workers=2, fork=fork).scanned] == [1] * 5
    assert len(os.listdir("/proc/self/fd")) == before


@given(st.lists(LONG, min_size=1, max_size=3), st.integers(2, 4), st.integers(1, 2000))
@settings(max_examples=30)
def test_forked_processes_return_the_same(texts: list[bytes], workers: int, chunk: int) -> None:
    """Results of other processes are complete, and an unreadable file is reported once per span."""
    with small_limits(), temporary_file(b"") as path, pytest.MonkeyPatch.context() as patch:
        containers = [plain_container(path, size=4 * SMALL["SPAN"], name="shrunk")]
        for index, data in enumerate(texts):
            with open(f"{path}{index}", "wb") as out:
                out.write(data)
            containers.append(plain_container(f"{path}{index}", name=f"log{index}"))
        expected = scan(containers)
        patch.setattr(module, "_MIN_BYTES_TO_FORK", 0)
        patch.setattr(forks.threading, "active_count", lambda: 1)  # idle threads of the test runner do not matter
        forked = scan(containers, workers=workers, chunk_bytes=chunk, fork=True)
    assert forked.scanned == expected.scanned
    assert list(map(str, forked.failures)) == list(map(str, expected.failures))
    assert len(expected.failures) == 4
    assert forked.advanced == expected.advanced


@given(LONG, st.integers(1, 2000), st.sampled_from(["hyperscan", "re2"]))
def test_the_result_of_a_stream_is_independent_of_chunks_and_engine(data: bytes, chunk: int, engine: str) -> None:
    """A stream gives the same result, saved cells included, for all chunk sizes and engines."""
    with small_limits():
        assert scan_one(stream_container(data), chunk_bytes=chunk, engine=engine) == scan_one(stream_container(data))


@given(LONG, st.integers(1, 2000))
def test_windows_fitted_to_the_text_do_not_change_the_result(data: bytes, chunk: int) -> None:
    """Windows and fitting them to a sample change only the speed."""
    with small_limits(), temporary_file(data) as path, pytest.MonkeyPatch.context() as patch:
        expected = scan_one(plain_container(path))
        patch.setattr(module, "_MIN_BYTES_TO_FIT", 0)
        for windows in ([], ["oom", "err", "Zu", "bab", "long"], ["a", "o"]):
            assert scan_one(plain_container(path), chunk_bytes=chunk, windows=windows) == expected


def test_real_sizes_agree(tmp_path: Path) -> None:
    """With the real constants, a file of several spans with a storm and overlong lines gives one result."""
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
    expected = scan_one(plain_container(str(tmp_path / "log")))
    assert len(data) > 16 << 20
    assert expected.sampled
    for workers, chunk, engine in [(3, 1 << 20, "hyperscan"), (2, 1 << 22, "re2")]:
        assert (
            scan_one(plain_container(str(tmp_path / "log")), workers=workers, chunk_bytes=chunk, engine=engine)
            == expected
        )
    other = scan_one(stream_container(data), chunk_bytes=1 << 20)
    assert (other.hits, other.matched, other.sampled) == (expected.hits, expected.matched, expected.sampled)


@given(st.lists(TEXTS, max_size=5), st.lists(TEXTS, max_size=3), st.integers(1, 4))
@settings(max_examples=40)
def test_sources_are_sorted_and_independent(files: list[bytes], members: list[bytes], workers: int) -> None:
    """Each of many files gives its own result, and results are sorted by name."""
    with small_limits(), temporary_file(b"") as path:
        containers = []
        for index, data in enumerate(files):
            with open(f"{path}{index}", "wb") as out:
                out.write(data)
            containers.append(plain_container(f"{path}{index}", name=f"b{-index}"))
        packed = {f"c/{index}": data for index, data in enumerate(members)}
        opens: dict[str, Callable[[], BinaryIO | None]] = {
            name: (lambda data=data: SlowStream(data, 50)) for name, data in packed.items()
        }
        containers.append(Container("a.tar", 10, None, opens))
        outcome = scan(containers, workers=workers)
        assert [source.name for source, _ in outcome.scanned] == sorted(
            [container.name for container in containers[:-1]] + list(packed)
        )
        assert outcome.advanced == sum(map(len, files)) + 10
        by_name = {source.name: scanned for source, scanned in outcome.scanned}
        for container in containers[:-1]:
            assert by_name[container.name] == scan_one(container)
        for name, data in packed.items():
            assert by_name[name] == scan_one(stream_container(data))


def test_sources_that_are_not_text_are_returned() -> None:
    """A member without a stream is not scanned and is among the other sources, sorted."""
    outcome = scan([Container("x.zip", 5, None, {"x/2": lambda: None, "x/1": lambda: None})])
    assert [source.name for source in outcome.others] == ["x/1", "x/2"]
    assert outcome.scanned == []


def test_an_empty_file_is_scanned(tmp_path: Path) -> None:
    """A file of no bytes gives no hits and no failure."""
    (tmp_path / "log").write_bytes(b"")
    scanned = scan_one(plain_container(str(tmp_path / "log")))
    assert (scanned.hits, scanned.size, scanned.head, scanned.tail) == ((), 0, b"", b"")


@pytest.mark.parametrize("workers", [1, 3])
def test_a_missing_file_is_reported_and_the_others_are_scanned(workers: int, tmp_path: Path) -> None:
    """`on_failure` gets the name and the error, and the other files are scanned."""
    (tmp_path / "log").write_bytes(b"boom\n")
    gone = Container("gone", 40, Source("gone", "text", 40, str(tmp_path / "gone")))
    outcome = scan([gone, plain_container(str(tmp_path / "log"))], workers=workers)
    assert [(name, type(error)) for name, error in outcome.failures] == [("gone", FileNotFoundError)]
    assert {source.name: scanned.matched for source, scanned in outcome.scanned} == {"gone": 0, "log": 1}
    assert outcome.advanced == 45


@given(LONG, st.integers(1, 600), st.integers(1, 3))
def test_a_file_that_shrank_is_reported_and_read_to_its_end(data: bytes, missing: int, workers: int) -> None:
    """`on_failure` gets the name, and the hits of the remaining bytes are found."""
    with small_limits(), temporary_file(data) as path:
        left = scan_one(plain_container(path))
        outcome = scan([plain_container(path, len(data) + missing)], workers=workers)
    assert {name for name, _ in outcome.failures} == {"log"}
    assert all(error.strerror for _, error in outcome.failures)
    [(_, scanned)] = outcome.scanned
    assert scanned.hits == left.hits
    assert outcome.advanced == len(data) + missing


def test_a_file_that_shrinks_between_two_spans_is_reported(tmp_path: Path) -> None:
    """A file that shrinks during the scan is reported."""
    path = tmp_path / "log"
    with small_limits():
        path.write_bytes(b"boom\n" * SMALL["SPAN"])
        container = plain_container(str(path))

        def shrinking(line: bytes) -> str:
            os.truncate(path, 20)
            return ""

        outcome = scan([container], key=shrinking)
    assert {name for name, _ in outcome.failures} == {"log"}


@pytest.mark.parametrize(
    ("size", "problems"), [(10, [FileNotFoundError]), (11, [OSError])], ids=["read well", "also shorter than listed"]
)
def test_a_file_that_is_deleted_while_it_is_read_is_reported_once(
    tmp_path: Path, size: int, problems: list[type[OSError]]
) -> None:
    """A file that cannot be opened at the end of the scan is a failure, unless one of its spans has failed already."""
    (tmp_path / "log").write_bytes(b"boom\nend.\n")

    def remove(line: bytes) -> bytes:
        (tmp_path / "log").unlink()
        return b""

    outcome = scan([plain_container(str(tmp_path / "log"), size)], key=remove)
    assert [type(error) for _, error in outcome.failures] == problems
    assert outcome.scanned[0][1].matched == 1


def test_a_file_that_is_replaced_while_it_is_read_gives_one_text(tmp_path: Path) -> None:
    """When a log is rotated during the scan, later spans are still those of the file that was there before."""
    path, later = tmp_path / "log", tmp_path / "later"
    later.write_bytes(b"other\n" * SMALL["SPAN"])

    def rotate(line: bytes) -> bytes:
        if later.exists():
            later.replace(path)
        return b""

    with small_limits():
        path.write_bytes(b"boom\n" * SMALL["SPAN"])
        expected = scan_one(plain_container(str(path))).hits
        assert scan_one(plain_container(str(path)), key=rotate).hits == expected


def test_file_descriptor_0_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program without standard input gets the descriptor 0 for its first file; it is closed like all others."""
    closed: list[int] = []
    monkeypatch.setattr(os, "open", lambda *_: 0)
    monkeypatch.setattr(os, "close", closed.append)
    files = one_span.OneOpenFile()
    files.close()
    assert files.get("log") is files.get("log")
    files.close()
    files.close()
    assert closed == [0]


def test_threads_are_daemons(tmp_path: Path) -> None:
    """A program that is interrupted does not wait for the threads of a scan."""
    both_read = threading.Barrier(2, timeout=60)
    are_daemons: set[bool] = set()

    def meet(line: bytes) -> bytes:
        both_read.wait()
        if threading.current_thread() is not threading.main_thread():
            are_daemons.add(threading.current_thread().daemon)
        return b""

    for name in "ab":
        (tmp_path / name).write_bytes(b"boom\n")
    scan([plain_container(str(tmp_path / name), name=name) for name in "ab"], workers=2, key=meet)
    assert are_daemons == {True}


def test_a_stream_that_breaks_is_reported(tmp_path: Path) -> None:
    """An OSError of a container is reported; what was scanned before stays."""

    def broken() -> BinaryIO:
        raise OSError(5, "the disk is gone")

    outcome = scan([Container("x.tar", 7, None, {"a": lambda: SlowStream(b"boom\n", 3), "b": broken})])
    assert [(name, error.strerror) for name, error in outcome.failures] == [("x.tar", "the disk is gone")]
    assert [source.name for source, _ in outcome.scanned] == ["a"]
    assert outcome.advanced == 7


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_in_a_thread_is_raised(workers: int, tmp_path: Path) -> None:
    """`run` raises the error of any worker."""
    (tmp_path / "log").write_bytes(b"boom\n")

    def bad(line: bytes) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        scan([plain_container(str(tmp_path / "log"))], workers=workers, key=bad)


def test_nothing_to_scan_gives_nothing() -> None:
    """A job without files gives an empty result."""
    outcome = scan([], workers=2)
    assert (outcome.scanned, outcome.others, outcome.failures, outcome.advanced) == ([], [], [], 0)


@pytest.mark.parametrize(("more", "has_forked"), [(0, True), (1, False)])
def test_large_jobs_are_scanned_by_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked: list[int], more: int, has_forked: bool
) -> None:
    """From the limit on, where the caller permits it, and where every file can be read at any offset."""
    (tmp_path / "log").write_bytes(b"boom\n" * 10)
    container = plain_container(str(tmp_path / "log"))
    monkeypatch.setattr(module, "_MIN_BYTES_TO_FORK", 50 + more)
    with small_limits(SPAN=16):
        assert scan([container], workers=2, fork=True).scanned[0][1].matched == 10
        assert bool(forked) is has_forked
        forked.clear()
        scan([container], workers=2, fork=False)
        scan([container, stream_container(b"boom", name="packed")], workers=2, fork=True)
    assert forked == []


@pytest.mark.parametrize(("files", "has_forked"), [(128, True), (127, False)])
def test_jobs_of_many_files_are_scanned_by_processes(
    tmp_path: Path, forked: list[int], files: int, has_forked: bool
) -> None:
    """However small they are."""
    containers = []
    for number in range(files):
        (tmp_path / str(number)).write_bytes(b"boom\n")
        containers.append(plain_container(str(tmp_path / str(number)), name=str(number)))
    assert [scanned.matched for _, scanned in scan(containers, workers=2, fork=True).scanned] == [1] * files
    assert bool(forked) is has_forked


@pytest.mark.parametrize(("more", "is_read"), [(0, True), (1, False)])
def test_a_sample_comes_from_all_over_a_large_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int, is_read: bool
) -> None:
    """From the limit on; the pieces lie evenly, a file that is gone gives none, streams are not read."""
    (tmp_path / "a").write_bytes(b"0123456789")
    (tmp_path / "b").write_bytes(b"abcdef")
    containers = [plain_container(str(tmp_path / name), name=name) for name in "ab"]
    gone = Container("gone", 16, Source("gone", "text", 16, str(tmp_path / "gone")))
    monkeypatch.setattr(one_span, "_SAMPLE_BYTES", 2)
    for name, value in (("_MIN_BYTES_TO_FIT", 32 + more), ("_SAMPLES", 8)):
        monkeypatch.setattr(module, name, value)
    job = Scan(
        [],
        lambda line: b"",
        workers=1,
        chunk_bytes=1,
        on_progress=lambda size: None,
        on_failure=lambda name, error: None,
    )
    spans = list(job._list_spans([*containers, stream_container(b"z" * 100), gone]))
    sample = one_span.read_sample(job._choose_sample(spans))
    assert sample == (b"23\n67\nab\nef\n\n\n\n" if is_read else b"")


@pytest.mark.parametrize("problem", [None, OSError(5, "the disk is gone")])
def test_a_process_sends_a_span_as_it_is(problem: OSError | None) -> None:
    """Hits, counts, the digest and the error of a span survive the way through JSON."""
    group = HitGroup(2)
    for place in range(7):
        group.add(place, place + 1, (3, 4))
    span = one_span.Span({((3, 4), b"\xff[r1]"): group}, 99, problem, "abc")
    copy = one_span.decode_span(json.loads(json.dumps(one_span.encode_span(span))))
    assert (copy.sampled, copy.digest, repr(copy.problem)) == (99, "abc", repr(problem))
    [(kind, decoded)] = copy.groups.items()
    assert kind == ((3, 4), b"\xff[r1]")
    assert (decoded.hits(), decoded.count) == (group.hits(), 7)
