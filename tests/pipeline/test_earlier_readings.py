"""What earlier runs read changes how much is read, and never the answer."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.shared_catalog import share_catalog
from triage import pipeline
from triage.base.options import Options
from triage.evidence import extraction
from triage.model import Diagnosis
from triage.model.diagnosis import Stats
from triage.pipeline import earlier_readings, file_states
from triage.scan import interface, known_spans, lines, one_span, run, spans
from triage.scan.spans import SpanReader

SPAN = 1 << 12
LINES = (
    b"[rank0]: step 12 loss 2.31 lr 1e-4\n" * 20,
    b"[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
    b'[rank2]: Traceback (most recent call last):\n[rank2]:   File "train.py", line 3, in <module>\n[rank2]:     f()\n'
    b"[rank2]: ValueError: no tokens left\n",
    b"[rank3]: RuntimeError: CUDA error: an illegal memory access was encountered",  # its line goes on
    b"\n",
    b"my own failure 7\n",
    b"\xff\x00 bytes that are no text\n",
    b"x" * 5000 + b"\n",
)
SIGNATURE = """
id: host.own-failure
revision: 1
title: My own failure
status: stable
role: cause
severity: fatal
match:
  kind: message
  text: 'my own failure (?P<number>\\d+)'
meaning: It is mine.
impact: The job ends.
remediation: {summary: Mend it., steps: [Mend it.]}
falsepositives: [None known.]
references: ['https://example.org']
samples:
  match: [{text: my own failure 7, captures: {number: '7'}}]
  no_match: [{text: my own success 7, why: It is none.}]
"""


@pytest.fixture(autouse=True)
def small_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use small spans, remember small jobs too, and as if every file had been written long ago."""
    for module in (interface, known_spans, lines, one_span, run, spans, earlier_readings, file_states):
        monkeypatch.setattr(module, "SPAN", SPAN)
    monkeypatch.setattr(file_states, "_EDGE", 64)
    monkeypatch.setattr(earlier_readings, "MIN_BYTES", 0)
    let_time_pass(monkeypatch, 10.0)


def let_time_pass(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(earlier_readings, "now_ns", lambda: time.time_ns() + int(seconds * 1e9))


@contextmanager
def readings_in(directory: Path | None) -> Iterator[None]:
    """Remember readings below this directory; compiled catalogs stay where they are, since compiling takes seconds."""
    with mock.patch.object(earlier_readings, "choose_directory", return_value=directory):
        yield


@pytest.fixture
def readings(tmp_path: Path) -> Iterator[Path]:
    """The directory of remembered readings."""
    with readings_in(tmp_path / "cache"):
        yield tmp_path / "cache" / earlier_readings.DIRECTORY


@pytest.fixture(scope="module")
def shared_catalog() -> Iterator[None]:
    """For tests that diagnose a job a hundred times: each catalog is loaded once."""
    with share_catalog():
        yield


@pytest.fixture(scope="module")
def signature(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog of one signature of a user."""
    path = tmp_path_factory.mktemp("catalog") / "signature.yaml"
    path.write_text(SIGNATURE)
    return path


def ingest(job: Path, *, reuse: bool = True, catalogs: tuple[Path, ...] = ()) -> Diagnosis:
    """Return the diagnosis without what it cost."""
    options = Options(reuse=reuse, workers=1, catalogs=catalogs)
    return replace(pipeline.ingest([str(job)], options), stats=Stats())


def write_job(directory: Path, *, seed: int = 1, count: int = 2) -> Path:
    """Write a job of some spans."""
    directory.mkdir(exist_ok=True)
    random_ = random.Random(seed)
    for number in range(count):
        data = b"".join(random_.choices(LINES, k=30)) + b"\n" + LINES[0] * 10
        (directory / f"node{number}.log").write_bytes(data)
    return directory


class Counter:
    """Counts how many spans are scanned, and of how many sources the evidence is extracted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.spans = self.sources = 0
        scan_span, extract_source = SpanReader.scan_span, extraction.extract_source

        def count_span(*arguments: object) -> object:
            self.spans += 1
            return scan_span(*arguments)  # type: ignore[arg-type]

        def count_source(*arguments: object, **named: object) -> object:
            self.sources += 1
            return extract_source(*arguments, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(SpanReader, "scan_span", count_span)
        monkeypatch.setattr(extraction, "extract_source", count_source)

    def take(self) -> tuple[int, int]:
        counts, self.spans, self.sources = (self.spans, self.sources), 0, 0
        return counts


def test_a_second_ingest_reads_nothing_that_is_unchanged(
    tmp_path: Path, readings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No span is scanned and no evidence extracted again, and the answer is the same to the last line number."""
    job, counter = write_job(tmp_path / "job"), Counter(monkeypatch)
    first = ingest(job)
    assert counter.take() > (2, 2)
    [remembered] = readings.iterdir()
    before = remembered.stat().st_mtime_ns
    assert ingest(job) == first == ingest(job)
    assert counter.take() == (0, 0)
    assert remembered.stat().st_mtime_ns == before
    assert first.verdict == "known"
    assert ingest(job, reuse=False) == first
    assert counter.take() > (2, 2)


def test_a_grown_file_is_read_from_its_last_complete_span_on(
    tmp_path: Path, readings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the other file nothing is read; of this one the span that was not complete, and the new ones."""
    job, counter = write_job(tmp_path / "job"), Counter(monkeypatch)
    grown = job / "node0.log"
    ingest(job)
    counter.take()
    with grown.open("ab") as file:
        file.write(LINES[1])
    size = grown.stat().st_size
    assert ingest(job) == ingest(job, reuse=False)
    all_spans = sum(-(-path.stat().st_size // SPAN) for path in job.iterdir())
    scanned, extracted = counter.take()
    assert (scanned - all_spans, extracted - 2) == (-(-size // SPAN) - (size - len(LINES[1])) // SPAN, 1)


def test_what_a_file_that_changed_just_now_held_is_not_trusted(
    tmp_path: Path, readings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change within the granularity of the file system may leave all times as they are: the file is read again."""
    let_time_pass(monkeypatch, 0.0)
    job, counter = write_job(tmp_path / "job"), Counter(monkeypatch)
    first = ingest(job)
    cost = counter.take()
    assert ingest(job) == first
    assert counter.take() == cost


def test_a_change_at_the_same_size_and_mtime_is_seen(tmp_path: Path, readings: Path) -> None:
    """A program can set mtime back, and cannot set ctime."""
    job = write_job(tmp_path / "job")
    path = job / "node0.log"
    ingest(job)
    status, data = path.stat(), path.read_bytes()
    path.write_bytes(data.replace(b"no tokens left", b"no token lefts").replace(b"memory. Tried", b"memorx. Tried"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert ingest(job) == ingest(job, reuse=False)
    assert path.stat().st_mtime_ns == status.st_mtime_ns


def test_a_change_inside_an_old_span_of_a_file_that_then_grows_needs_exact(tmp_path: Path, readings: Path) -> None:
    """The limit that docs/security.md states: only reading all bytes shows it, in the diagnosis and in the digest."""
    job = tmp_path / "job"
    job.mkdir()
    path = job / "node0.log"
    path.write_bytes(LINES[0] * 60 + b"\n" + LINES[1])
    before = ingest(job)
    with path.open("r+b") as file:
        file.seek(SPAN // 2)
        file.write(b"[rank9]")
        file.seek(0, os.SEEK_END)
        file.write(LINES[4])
    assert ingest(job).job.id != before.job.id
    assert ingest(job).job.id != ingest(job, reuse=False).job.id


def change_job(job: Path, draw: Callable[..., object], own: Path) -> None:
    """Do one of the things that happen to the files of a job."""
    files = sorted(job.iterdir())
    path = draw(st.sampled_from(files))
    assert isinstance(path, Path)
    data = path.read_bytes()
    action = draw(
        st.sampled_from(["append", "append", "truncate", "edit", "replace", "rename", "swap", "remove", "add"])
    )
    new = b"".join(draw(st.lists(st.sampled_from(LINES), min_size=1, max_size=8)))  # type: ignore[call-overload]
    place = draw(st.integers(0, max(0, len(data) - 1)))
    assert isinstance(place, int)
    if action == "append":
        with path.open("ab") as file:
            file.write(new)
    elif action == "truncate":
        os.truncate(path, place)
    elif action == "edit":
        with path.open("r+b") as file:
            file.seek(place)
            file.write(new[: len(data) - place])
    elif action == "replace":
        other = own / "other"
        other.write_bytes(data[:place] + new + data[place:])
        other.replace(path)
    elif action == "rename":
        path.rename(job / f"{path.stem}.1.log")
    elif action == "swap":
        path.rename(own / "aside")
        files[0].rename(path) if files[0] != path else None
        (own / "aside").rename(files[0])
    elif action == "remove" and len(files) > 1:
        path.unlink()
    elif action == "add":
        (job / f"node{len(files) + 5}.log").write_bytes(new * 5)


@pytest.mark.usefixtures("shared_catalog")
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_the_answer_is_the_same_whatever_happened_since(signature: Path, data: st.DataObject) -> None:
    """Appended, cut, edited, replaced, renamed, removed and new files, and other catalogs, between the runs."""
    with TemporaryDirectory() as name, readings_in(Path(name) / "cache"):
        own = Path(name)
        job = write_job(own / "job", seed=data.draw(st.integers(0, 9)), count=3)
        for _ in range(4):
            catalogs = data.draw(st.sampled_from([(), (signature,)]))
            assert ingest(job, catalogs=catalogs) == ingest(job, reuse=False, catalogs=catalogs)
            change_job(job, data.draw, own)


@pytest.mark.usefixtures("shared_catalog")
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_damage_is_as_if_nothing_was_remembered(data: st.DataObject) -> None:
    """Cut off, of another shape, or with another byte anywhere: it is ignored, written anew and then used again."""
    with TemporaryDirectory() as name, readings_in(Path(name) / "cache"):
        job, readings = write_job(Path(name) / "job"), Path(name) / "cache" / earlier_readings.DIRECTORY
        expected = ingest(job)
        [path] = readings.iterdir()
        whole = path.read_bytes()
        place = data.draw(st.integers(0, len(whole) - 1))
        other = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[place]))
        changed = whole[:place] + bytes([other]) + whole[place + 1 :]
        path.write_bytes(data.draw(st.sampled_from([changed, whole[:place], whole[place:], b"{}", b'{"key":"x"}'])))
        assert ingest(job) == expected
        assert len(path.read_bytes()) == len(whole)


def test_what_others_can_write_is_ignored(tmp_path: Path, readings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is private when it is written; one that others may write counts as if it were not there."""
    job, counter = write_job(tmp_path / "job"), Counter(monkeypatch)
    ingest(job)
    cost = counter.take()
    [path] = readings.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert readings.stat().st_mode & 0o777 == 0o700
    path.chmod(0o662)
    ingest(job)
    assert counter.take() == cost


def test_no_place_to_remember_is_harmless(tmp_path: Path) -> None:
    """A file in the place of the directory, or no cache at all: the answer is the same."""
    job = write_job(tmp_path / "job")
    (tmp_path / "file").write_bytes(b"")
    for place in (None, tmp_path / "file"):
        with readings_in(place):
            assert ingest(job) == ingest(job) == ingest(job, reuse=False)


@pytest.mark.parametrize(("less", "is_remembered"), [(0, True), (1, False)])
def test_a_small_job_is_not_remembered(
    tmp_path: Path, readings: Path, monkeypatch: pytest.MonkeyPatch, less: int, is_remembered: bool
) -> None:
    """Below the limit, reading it again takes no longer."""
    job = write_job(tmp_path / "job")
    size = sum(path.stat().st_size for path in job.iterdir())
    monkeypatch.setattr(earlier_readings, "MIN_BYTES", size + less)
    ingest(job)
    assert readings.exists() is is_remembered


def test_other_code_literals_and_redaction_read_again(
    tmp_path: Path, readings: Path, signature: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found by other code, for another catalog or with other secrets does not count."""
    job, counter = write_job(tmp_path / "job"), Counter(monkeypatch)
    (tmp_path / "redact.toml").write_text("email = true\n")
    ingest(job)
    cost = counter.take()
    monkeypatch.setenv("TRIAGE_REDACT", str(tmp_path / "redact.toml"))
    ingest(job)
    assert counter.take() == cost
    ingest(job, catalogs=(signature,))
    assert counter.take() == cost
    monkeypatch.setattr(earlier_readings, "_stamp_code", lambda: [("scan/lines.py", 1, 2)])
    ingest(job, catalogs=(signature,))
    assert counter.take() == cost
    ingest(job, catalogs=(signature,))
    assert counter.take() == (0, 0)


def test_what_is_too_large_is_left_out(tmp_path: Path, readings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First the evidence, which is extracted again; then everything."""
    job, counter = write_job(tmp_path / "job"), Counter(monkeypatch)
    first = ingest(job)
    [path] = readings.iterdir()
    size = path.stat().st_size
    path.unlink()
    for limit, is_remembered in ((size // 2, True), (100, False)):
        monkeypatch.setattr(earlier_readings, "MAX_ENTRY_BYTES", limit)
        ingest(job)
        counter.take()
        assert ingest(job) == first
        assert (counter.take()[0] == 0) is is_remembered
        for remembered in readings.iterdir():
            remembered.unlink()


@pytest.mark.parametrize(
    ("max_bytes", "max_age", "left"),
    [(30, 100.0, "abc"), (29, 100.0, "ab"), (9, 100.0, ""), (30, 25.0, "ab"), (30, 5.0, "")],
)
def test_the_oldest_are_removed_first(tmp_path: Path, max_bytes: int, max_age: float, left: str) -> None:
    """While all are too large together, and whatever is too old."""
    for number, name in enumerate("abc", 1):
        (tmp_path / name).write_bytes(b"x" * 10)
        os.utime(tmp_path / name, (time.time() - 10 * number, time.time() - 10 * number))
    earlier_readings.remove_old_readings(tmp_path, max_bytes, max_age)
    assert sorted(path.name for path in tmp_path.iterdir()) == list(left)
    earlier_readings.remove_old_readings(tmp_path / "none", max_bytes, max_age)


def test_processes_at_once_give_one_answer(tmp_path: Path, warm_cache: Path) -> None:
    """Several commands that read and write the same cache, while the job grows between two rounds."""
    job = tmp_path / "job"
    job.mkdir()
    (job / "node0.log").write_bytes((LINES[0] * 1000 + LINES[2] + LINES[1]) * 3)
    command = [sys.executable, "-m", "triage", "ingest", str(job), "--format", "json", "--no-store", "-q"]
    environment = {**os.environ, "TRIAGE_CACHE": str(warm_cache)}
    for _ in range(2):
        runs = [
            subprocess.Popen([*command, *more], stdout=subprocess.PIPE, env=environment)
            for more in ([], [], [], ["--exact"])
        ]
        answers = [json.loads(process.communicate()[0]) for process in runs]
        for answer in answers:
            answer.pop("stats")
        assert answers[1:] == answers[:-1]
        with (job / "node0.log").open("ab") as file:
            file.write(LINES[0] * 100 + LINES[3])
