"""Between the rooms: which files go into the scan, who wrote a line, what makes a job the same job, and lines found
again.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage import sources
from triage.base.errors import InputError
from triage.intake import Intake, Reading, hash_of, writer_key
from triage.model.evidence import Evidence, Origin, Source
from triage.scan.interface import Hit, Scanned


def scanned(text: bytes, hits: tuple[Hit, ...] = ()) -> Scanned:
    return Scanned(hits, len(text), text[:8192], text[-8192:])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"[default3]:[rank3]: RuntimeError: x", b"[default4]:[rank4]: RuntimeError: x"),
        (b"node1:412:530 [0] NCCL WARN x", b"node1:413:531 [1] NCCL WARN x"),
        (b" 3: step", b"11: step"),
        (b"[1,2]<stderr>: x", b"[1,3]<stderr>: x"),
        (b"process 12 died", b"process 13 died"),
        (b"NVRM: Xid (PCI:0000:3b:00): 79", b"NVRM: Xid (PCI:0000:86:00): 79"),
    ],
)
def test_writers_are_told_apart(one: bytes, other: bytes) -> None:
    """Lines of two writers have two keys; the same writer's lines have one, whatever they say after the prefix."""
    assert writer_key(one) != writer_key(other)
    assert writer_key(one) == writer_key(one + b" more 0x12")


@given(st.binary(max_size=300))
def test_any_line_has_a_key(line: bytes) -> None:
    """Keys can be counted, and none grows with the line."""
    assert hash(writer_key(line)) == hash(writer_key(line))
    assert len(writer_key(line)) <= len(line) + 2


def intake(directory: Path, *extra: Path) -> Intake:
    paths = [str(directory), *map(str, extra)]
    return Intake(sources.discover(paths).files, paths)


def test_programs_and_settings_stay_outside(tmp_path: Path) -> None:
    """What people write is not what a job wrote; a file that is named is read whatever it is called."""
    for name in (
        "train.py",
        "config.yaml",
        "README.md",
        "kernel.cu",
        "job.log",
        "train.py.log",
        "out.py.1",
        "slurm-12.out",
        "data.json",
    ):
        (tmp_path / name).write_text("[rank0]: step 1\n", encoding="utf-8")
    taken = intake(tmp_path)
    assert sorted(Path(file.name).name for file in taken.files) == [
        "data.json",
        "job.log",
        "out.py.1",
        "slurm-12.out",
        "train.py.log",
    ]
    (remark,) = taken.remarks()
    assert (remark.code, remark.source) == ("no-output", None)
    assert all(name in remark.message for name in ("train.py", "config.yaml", "README.md", "kernel.cu"))
    named = intake(tmp_path / "job.log", tmp_path / "train.py")
    assert [Path(file.name).name for file in named.files] == ["job.log", "train.py"]
    assert named.remarks() == []


def test_many_programs_are_one_remark(tmp_path: Path) -> None:
    """A checkout beside the logs does not flood the warnings."""
    (tmp_path / "job.log").write_text("step 1\n", encoding="utf-8")
    for number in range(50):
        (tmp_path / f"module{number}.py").write_text("x = 1\n", encoding="utf-8")
    (remark,) = intake(tmp_path).remarks()
    assert "and 45 more" in remark.message


def test_nothing_but_programs_is_refused(tmp_path: Path) -> None:
    """A directory of source code is no job, and what to give instead is said."""
    (tmp_path / "train.py").write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        intake(tmp_path)
    assert caught.value.hint
    assert str(tmp_path) in str(caught.value)


def test_texts_are_scanned_where_they_lie(tmp_path: Path) -> None:
    """A plain file is scanned by its path, a packed one by its stream; what is no text is taken aside."""
    (tmp_path / "a.log").write_text("step 1\n", encoding="utf-8")
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(b"step 2\n"))
    (tmp_path / "c.bin").write_bytes(bytes(range(256)) * 20)
    taken = intake(tmp_path)
    plain, packed, binary = taken.containers()
    assert plain.plain is not None
    assert packed.plain is None
    (streamed,) = [(source, stream.read()) for source, stream in packed.streams() if stream is not None]
    assert streamed[1] == b"step 2\n"
    assert [stream for _, stream in binary.streams()] == [None]
    assert [artifact.source.name for artifact in taken.artifacts] == [str(tmp_path / "c.bin")]


def test_identity_is_the_content() -> None:
    """Names and order do not make a job another one; a byte at either end, or the size, does."""
    empty = Intake([])
    one, two = (Source("a", "text"), scanned(b"x" * 100)), (Source("b", "text"), scanned(b"y" * 100))
    renamed = (Source("c", "text"), one[1])
    assert empty.identity([one, two]) == empty.identity([two, renamed])
    assert empty.identity([one]) != empty.identity([two])
    assert empty.identity([one]) != empty.identity([(one[0], scanned(b"x" * 101))])
    assert len(hash_of(b"")) == 16


def test_a_file_that_fails_is_a_warning() -> None:
    """The name and the reason, in words."""
    taken = Intake([])
    taken.failed("a.log", OSError(5, "Input/output error"))
    assert [(w.code, w.source) for w in taken.remarks()] == [("unreadable", "a.log")]
    assert "Input/output error" in taken.remarks()[0].message


@given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), min_size=1, max_size=30), st.data())
def test_lines_are_found_again(lines: list[bytes], data: st.DataObject) -> None:
    """An offset inside a line has that line's number, 1-based; facts of sources that are not texts are on line 1."""
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
        with Reading([(source, scanned(b"\n".join(lines)))]) as reading:
            reading.number(facts)
            placed = reading._place(facts)
    assert [fact.line for fact in placed] == [number + 1, 1]
    assert [fact.end_line for fact in placed] == [number + 1, 1]
