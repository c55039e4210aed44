"""Intake: which files are scanned, what identifies a writer and a job, and line numbers of evidence."""

from __future__ import annotations

import gzip
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from triage import sources
from triage.base.content_digest import digest_bytes
from triage.model.diagnosis import Finding
from triage.model.evidence import Evidence, Origin, Source
from triage.pipeline.intake import Intake, writer_key
from triage.pipeline.scanned_texts import ScannedTexts
from triage.scan.edges import HeldEdges
from triage.scan.interface import Hit, ScanResult


def scan_result(text: bytes, hits: tuple[Hit, ...] = ()) -> ScanResult:
    return ScanResult(hits, len(text), HeldEdges(text[:8192], text[-8192:]), digest=digest_bytes(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"[default3]:[rank3]: RuntimeError: x", b"[default4]:[rank4]: RuntimeError: x"),
        (b"node1:412:530 [0] NCCL WARN x", b"node1:413:531 [1] NCCL WARN x"),
        (b" 3: step", b"11: step"),
        (b"[1,2]<stderr>: x", b"[1,3]<stderr>: x"),
        (b"process 12 died", b"process 13 died"),
        (b"NVRM: Xid (PCI:0000:3b:00): 79", b"NVRM: Xid (PCI:0000:86:00): 79"),
        (b'{"ts": 1, "rank": 3, "msg": "x', b'{"ts": 1, "rank": 4, "msg": "x'),
        (b'{"global_rank":"3","msg":"x', b'{"global_rank":"4","msg":"x'),
        (b'{"log":"x","kubernetes":{"pod_name":"llm-0"', b'{"log":"x","kubernetes":{"pod_name":"llm-1"'),
        (b"INFO trainer rank=3 x", b"INFO trainer rank=4 x"),
        (b"[pod/llm-worker-3/torch] x", b"[pod/llm-worker-4/torch] x"),
        (b"worker-3  | x", b"worker-4  | x"),
        (b"node3: x", b"node4: x"),
        (b"Nov 21 03:07:45 node3 kernel: x", b"Nov 21 03:07:45 node4 kernel: x"),
        (b"2026-11-21T03:07:45.123Z [rank3]: x", b"2026-11-21T03:07:45.123Z [rank4]: x"),
    ],
)
def test_writers_have_different_keys(one: bytes, other: bytes) -> None:
    """Lines of two writers have two keys; all lines of one writer have one key."""
    assert writer_key(one) != writer_key(other)
    assert writer_key(one) == writer_key(one + b" more 0x12")


@pytest.mark.parametrize("line", [b"RuntimeError: x 3", b"CUDA error: x", b"Traceback (most recent call last):"])
def test_a_line_may_have_no_writer(line: bytes) -> None:
    """More lines count where it is not known who writes, so that a word must not be taken for a name."""
    assert writer_key(line) == b""


@pytest.mark.parametrize("text", [b"node3 kernel: x", b"[rank3]: x", b"  3: x"])
def test_the_time_of_a_line_is_not_its_writer(text: bytes) -> None:
    """Lines of one writer at two times are of one kind."""
    for one, other in (
        (b"2026-11-21T03:07:45.123Z ", b"2026-11-21T03:07:46.124Z "),
        (b"[2026-11-21 03:07:45,123] ", b"[2026-11-22 03:07:45,124] "),
        (b"Nov 21 03:07:45 ", b"Nov 22 03:07:46 "),
    ):
        assert writer_key(one + text) == writer_key(other + text) == writer_key(text)


@pytest.mark.parametrize("prefix", [b"[rank5]:", b"5: [rank5]:", b"5: "])
def test_each_process_group_of_a_rank_is_a_writer(prefix: bytes) -> None:
    """Each has its own watchdog: a storm of one must not hide the timeout of another."""
    line = prefix + b"[PG ID %d PG GUID 7(tp) Rank 1] last enqueued work: %d"
    assert writer_key(line % (1, 5)) != writer_key(line % (2, 5))
    assert writer_key(line % (1, 5)) == writer_key(line % (1, 6))


def test_quoted_traceback_is_of_the_rank_that_it_names() -> None:
    """Two ranks that quote the traceback of a third have its key; the tracebacks of two ranks have two, in one log."""
    header = b"[rank%d]: Traceback (most recent call last): (RANK %d)"
    assert writer_key(header % (0, 9)) == writer_key(header % (1, 9))
    assert writer_key(header % (0, 9)) != writer_key(header % (0, 10))
    assert writer_key(b"[rank0]: saw (RANK 9)") == writer_key(b"[rank0]: saw (RANK 10)")


@given(st.binary(max_size=300))
def test_any_line_has_a_key(line: bytes) -> None:
    """Every line has a hashable key that is hardly longer than the line."""
    assert hash(writer_key(line)) == hash(writer_key(line))
    assert len(writer_key(line)) <= len(line) + 2


def take_in(directory: Path, *extra: Path) -> Intake:
    """Return the sorted files of a directory and of further paths."""
    paths = [str(directory), *map(str, extra)]
    return Intake(sources.discover(paths).files, paths)


def test_programs_and_settings_are_skipped(tmp_path: Path) -> None:
    """Files that people write are skipped with a warning; a file that the user names is read in any case."""
    for name in ("train.py", "config.yaml", "README.md", "kernel.cu"):
        (tmp_path / name).write_text("x: 1\n", encoding="utf-8")
    for name in ("job.log", "train.py.log", "out.py.1", "slurm-12.out", "data.json"):
        (tmp_path / name).write_text("[rank0]: step 1\n", encoding="utf-8")
    directory = take_in(tmp_path)
    assert sorted(Path(file.name).name for file in directory.files) == [
        "data.json",
        "job.log",
        "out.py.1",
        "slurm-12.out",
        "train.py.log",
    ]
    (warning,) = directory.all_warnings()
    assert (warning.code, warning.source) == ("no-output", None)
    assert all(name in warning.message for name in ("train.py", "config.yaml", "README.md", "kernel.cu"))
    assert str(tmp_path) not in warning.message, "names are below the directory of the job"
    named = take_in(tmp_path / "job.log", tmp_path / "train.py")
    assert [Path(file.name).name for file in named.files] == ["job.log", "train.py"]
    assert named.all_warnings() == []


def test_many_programs_give_one_warning(tmp_path: Path) -> None:
    """A source checkout beside the logs gives a single warning."""
    (tmp_path / "job.log").write_text("step 1\n", encoding="utf-8")
    for number in range(50):
        (tmp_path / f"module{number}.py").write_text("x = 1\n", encoding="utf-8")
    (warning,) = take_in(tmp_path).all_warnings()
    assert "and 45 more" in warning.message


def test_nothing_but_programs_is_nothing_read(tmp_path: Path) -> None:
    """A directory of source code leaves no file to read, and says why."""
    (tmp_path / "train.py").write_text("x = 1\n", encoding="utf-8")
    source_code = take_in(tmp_path)
    assert source_code.files == []
    assert source_code.unread == [(str(tmp_path / "train.py"), "a program, settings or a document")]


@pytest.mark.parametrize(
    ("others", "quoted", "is_read"),
    [((), True, True), ((), False, False), (("README.md",), True, False), (("rank0.log",), True, False)],
)
def test_a_report_that_is_all_there_is_is_read(
    tmp_path: Path, others: tuple[str, ...], quoted: bool, is_read: bool
) -> None:
    """A document that quotes lines is about the job; beside other files, or without a quote, it is skipped."""
    quote = "```\nstep 7 loss 0.5\nit stands still here\n```\n" if quoted else ""
    for name in ("issue.md", *others):
        text = f"# Our job hangs\n\nWe run it on two nodes since last week.\n\n{quote}"
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert (str(tmp_path / "issue.md") in [file.name for file in take_in(tmp_path).files]) is is_read


def test_a_document_in_an_archive_is_not_all_there_is(tmp_path: Path) -> None:
    """An archive is one file with several members, of which a document that quotes lines is none of the job's logs."""
    with zipfile.ZipFile(tmp_path / "job.zip", "w") as archive:
        archive.writestr("README.md", "# Known errors\n\n```\nRuntimeError: CUDA out of memory\n```\n")
        archive.writestr("rank0.log", "step 7 loss 0.5\n")
    intake = take_in(tmp_path)
    read = [source.name for container in intake.containers() for source, _ in container.streams()]
    assert [name.rpartition("!/")[2] for name in read] == ["rank0.log"]


def test_a_log_is_read_by_any_name(tmp_path: Path) -> None:
    """The text decides where it has lines of a writer: timestamps, ranks, steps."""
    names = ("README", "README.md", "NOTES.txt", "train.sh", "history.csv")
    for name in names:
        text = "".join(f"[rank0]: step {step} loss 2.1\n" for step in range(9))
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert sorted(Path(file.name).name for file in take_in(tmp_path).files) == sorted(names)


def test_fixtures_are_skipped_beside_other_logs_only(tmp_path: Path) -> None:
    """What lies in a folder of fixtures is read where nothing else is there."""
    (tmp_path / "tests" / "fixtures").mkdir(parents=True)
    (tmp_path / "tests" / "fixtures" / "crash.log").write_text("Segmentation fault\n", encoding="utf-8")
    assert len(take_in(tmp_path).files) == 1
    (tmp_path / "job.log").write_text("step 1\n", encoding="utf-8")
    assert [Path(file.name).name for file in take_in(tmp_path).files] == ["job.log"]


@pytest.mark.parametrize("has_log", [False, True])
def test_prose_by_any_name_is_skipped_beside_logs_only(tmp_path: Path, has_log: bool) -> None:
    """A program may print paragraphs when it dies: where nothing else is there, they are read."""
    prose = "The certificate of the server has expired. To learn more about this situation, visit the page above.\n"
    (tmp_path / "run.txt").write_text(4 * prose, encoding="utf-8")
    if has_log:
        (tmp_path / "job.log").write_text("step 1\n", encoding="utf-8")
    names = [Path(file.name).name for file in take_in(tmp_path).files]
    assert names == (["job.log"] if has_log else ["run.txt"])


def test_plain_files_are_scanned_in_place(tmp_path: Path) -> None:
    """A plain file is scanned by its path and a packed one as a stream; a binary file becomes an artifact."""
    (tmp_path / "a.log").write_text("step 1\n", encoding="utf-8")
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(b"step 2\n"))
    (tmp_path / "c.bin").write_bytes(bytes(range(256)) * 20)
    job_files = take_in(tmp_path)
    plain, packed, binary = job_files.containers()
    assert plain.plain is not None
    assert packed.plain is None
    (streamed,) = [(source, stream.read()) for source, stream in packed.streams() if stream is not None]
    assert streamed[1] == b"step 2\n"
    assert [stream for _, stream in binary.streams()] == [None]
    assert [artifact.source.name for artifact in job_files.artifacts] == [str(tmp_path / "c.bin")]


def test_identity_is_the_content() -> None:
    """File names and order do not change a job's identity; another digest does, and a text is not an artifact."""
    empty = Intake([])
    one, two = (Source("a", "text"), scan_result(b"x" * 100)), (Source("b", "text"), scan_result(b"y" * 100))
    renamed = (Source("c", "text"), one[1])
    assert empty.identify([one, two], ["1"]) == empty.identify([two, renamed], ["1"])
    assert empty.identify([one], []) != empty.identify([two], [])
    assert empty.identify([one], []) != empty.identify([one, renamed], [])
    assert empty.identify([one], []) != empty.identify([], [one[1].digest])


def test_identity_of_a_growing_text() -> None:
    """A text without a digest counts by its size and ends, and is never the same job as the finished text."""
    grown = scan_result(b"x" * 100)
    states = [replace(scan_result(b"x" * size), digest="") for size in (100, 101)]
    assert len({Intake([]).identify([(Source("a", "text"), scan)], []) for scan in [grown, *states]}) == 3


def test_a_file_that_fails_is_a_warning() -> None:
    """The warning has the file's name and the reason."""
    job_files = Intake([])
    job_files.warn_unreadable("a.log", OSError(5, "Input/output error"))
    assert [(w.code, w.source) for w in job_files.all_warnings()] == [("unreadable", "a.log")]
    assert "Input/output error" in job_files.all_warnings()[0].message


@given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), min_size=1, max_size=30), st.data())
def test_evidence_gets_its_line_number(lines: list[bytes], data: st.DataObject) -> None:
    """An offset inside a line gets this line's number, 1-based; evidence of other sources than texts gets line 1."""
    import tempfile

    number = data.draw(st.integers(0, len(lines) - 1))
    offset = sum(len(line) + 1 for line in lines[:number])
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"\n".join(lines) + b"\n")
        file.flush()
        size = offset + 1 + sum(len(line) + 1 for line in lines[number:])
        source = Source("job.log", "text", size, file.name)
        facts = tuple(
            Evidence("message", "app", "x", Origin(), name, offset, offset) for name in ("job.log", "error.json")
        )
        finding = Finding(None, "", "", "cause", "error", 1.0, evidence=facts)
        with ScannedTexts([(source, scan_result(b"\n".join(lines)))]) as texts:
            placed = texts.with_lines(finding).evidence
    assert [fact.line for fact in placed] == [number + 1, 1]
    assert [fact.end_line for fact in placed] == [number + 1, 1]
