"""triage.split.run"""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from triage.base.errors import OptionError
from triage.split import Options, Result, part_files, run, segment, split, unwrapped_stream, worker_pool

Split = Callable[..., tuple[Result, dict[str, bytes]]]


@pytest.fixture
def split_files(tmp_path: Path) -> Split:
    """Return a function that writes files, splits them, and returns the result and the contents of the output files."""

    def do(files: dict[str, bytes], options: Options = Options(workers=1)) -> tuple[Result, dict[str, bytes]]:
        for name, data in files.items():
            (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "in" / name).write_bytes(data)
        result = split([str(tmp_path / "in")], tmp_path / "out", options)
        return result, {file.name: (tmp_path / "out" / file.name).read_bytes() for file in result.files}

    return do


def mixed(count: int, ranks: int, template: bytes = b"[default%d]:step %d\n") -> bytes:
    return b"".join(template % (number % ranks, number) for number in range(count))


def codes(result: Result) -> set[str]:
    return {warning.code for warning in result.warnings}


def test_unassigned_lines_go_to_their_own_file(split_files: Split) -> None:
    """Lines that no prefix assigns to a writer are written to nobody.log, in order."""
    result, outputs = split_files({"job.log": b"starting\n" + mixed(40, 2) + b"all over\n"})
    assert outputs["nobody.log"] == b"starting\nall over\n"
    assert outputs["rank_1.log"] == b"".join(b"step %d\n" % number for number in range(1, 40, 2))
    assert (result.lines, result.left_out) == (42, 0)


def test_unassigned_lines_of_different_hosts_stay_apart(split_files: Split) -> None:
    """Unassigned lines of two containers go to two files."""
    tagged = b"[rank%d]: a\n[rank%d]: b\n"
    _, outputs = split_files(
        {f"train-worker-{pod}.log": b"of %d\n" % pod + tagged % (2 * pod, 2 * pod + 1) for pod in (0, 1)}
    )
    assert (outputs["nobody.train-worker-0.log"], outputs["nobody.train-worker-1.log"]) == (b"of 0\n", b"of 1\n")


def test_keep_prefix_leaves_lines_unchanged(split_files: Split) -> None:
    """--keep-prefix writes the lines with their prefixes."""
    _, outputs = split_files({"job.log": mixed(40, 2)}, Options(keep_prefix=True, workers=1))
    assert outputs["rank_0.log"].startswith(b"[default0]:step 0\n[default0]:step 2\n")


def test_rank_option_selects_ranks(split_files: Split) -> None:
    """Lines of other ranks are left out, and a warning counts them."""
    result, outputs = split_files({"job.log": b"banner\n" + mixed(40, 4)}, Options(ranks=frozenset({2, 3}), workers=1))
    assert set(outputs) == {"rank_2.log", "rank_3.log"}
    assert result.left_out == 21
    assert next(warning.message for warning in result.warnings if warning.code == "left-out").startswith("21 lines ")


def test_local_ranks_of_several_hosts_are_not_global_ranks(split_files: Split) -> None:
    """A local rank becomes a global rank only where a line states both."""
    lines = b"".join(b"[node%d:%d]:step 1\n" % (node, local) for node in (0, 1) for local in (0, 1) for _ in range(9))
    _, outputs = split_files({"job.log": lines + b"[node1:1]:[rank3]: ValueError: boom\n"})
    assert set(outputs) == {"local_rank_0.node0.log", "local_rank_1.node0.log", "local_rank_0.node1.log", "rank_3.log"}
    assert outputs["rank_3.log"].endswith(b"step 1\n[rank3]: ValueError: boom\n")


def test_a_label_around_a_launcher_numbers_nodes(split_files: Split) -> None:
    """With `srun --label torchrun` the label is the node's number; the rank is what the job map knows, or unknown."""
    lines = b"".join(
        b"%d: [default%d]:step %d\n" % (node, local, step) for step in range(9) for node in (0, 1) for local in (0, 1)
    )
    _, outputs = split_files({"job.log": lines + b"1: [default0]:[rank2]: ValueError: boom\n"})
    assert set(outputs) == {f"local_rank_{local}.task{node}.log" for local in (0, 1) for node in (0, 1)} - {
        "local_rank_0.task1.log"
    } | {"rank_2.log"}
    assert len(outputs["rank_2.log"].splitlines()) == 10


def test_two_files_of_a_rank_are_merged_by_timestamp(split_files: Split) -> None:
    """A line without a timestamp stays with the line before it."""
    out = b"2026-11-21 03:00:01 one\nof one\n2026-11-21 03:00:05 five\n"
    err = b"2026-11-21 03:00:02 two\nTraceback\n2026-11-21 03:00:09 nine"
    _, outputs = split_files({"attempt_0/3/stdout.log": out, "attempt_0/3/stderr.log": err})
    expected = (
        b"2026-11-21 03:00:01 one\nof one\n2026-11-21 03:00:02 two\nTraceback\n"
        b"2026-11-21 03:00:05 five\n2026-11-21 03:00:09 nine\n"
    )
    assert outputs == {"rank_3.log": expected}


def test_files_without_timestamps_follow_each_other(split_files: Split) -> None:
    """A warning reports it. Attempts are always in order."""
    result, outputs = split_files(
        {"attempt_0/3/stdout.log": b"a\n", "attempt_1/3/stdout.log": b"c\n", "attempt_0/3/stderr.log": b"b\n"}
    )
    assert outputs == {"rank_3.log": b"b\na\nc\n"}
    assert "no-clock" in codes(result)


def test_a_rank_in_the_file_name_decides(split_files: Split) -> None:
    """Prefixes in it are ignored, and a last line without a newline stays without one."""
    _, outputs = split_files({"rank_7.log": b"3: not a label\n[rank5]: seen\nend"})
    assert outputs == {"rank_7.log": b"3: not a label\n[rank5]: seen\nend"}


def test_two_writers_on_one_line_are_split(split_files: Split) -> None:
    """torchrun's tail may write a part of a line, so that the next prefix follows it directly."""
    result, outputs = split_files(
        {"job.log": mixed(30, 2) + b"[default0]: 50%|##   [default1]:half\n[default1]:99%|####|[default0]:boom\n"}
    )
    assert outputs["rank_1.log"].endswith(b"step 29\n99%|####|\n")
    assert outputs["rank_0.log"].endswith(b" 50%|##   [default1]:half\nboom\n")
    assert result.added == 1
    assert "glued" in codes(result)


def test_partial_lines_of_containers_are_joined(split_files: Split) -> None:
    """Kubernetes cuts long lines into parts marked P; the last one is marked F."""
    stamp = b"2026-11-21T03:07:45.372001Z stdout "
    lines = b"".join(stamp + b"F [rank%d]: step %d\n" % (number % 2, number) for number in range(40))
    result, outputs = split_files(
        {"pod.log": lines + stamp + b"P [rank1]: first half, \n" + stamp + b"F second half\n"}
    )
    assert outputs["rank_1.log"].endswith(b"first half, second half\n")
    assert "partial-lines" in codes(result)


def test_archives_and_compressed_files_are_split(split_files: Split, tmp_path: Path) -> None:
    """Their members are split like plain files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo("run/job.log")
        member.size = len(mixed(40, 2))
        tar.addfile(member, io.BytesIO(mixed(40, 2)))
    _, outputs = split_files(
        {
            "a.tar.gz": packed.getvalue(),
            "b.log.gz": gzip.compress(b"".join(b"[rank%d]: of b\n" % rank for rank in (0, 1))),
        }
    )
    assert outputs["rank_1.log"].count(b"step") == 20
    assert outputs["rank_1.log"].count(b"of b\n") == 1


def test_a_directory_that_is_not_empty_is_refused(split_files: Split, tmp_path: Path) -> None:
    """--force replaces the files of an earlier split, and no other file."""
    split_files({"job.log": mixed(40, 4)})
    with pytest.raises(OptionError, match="not empty"):
        split_files({"job.log": mixed(40, 2)})
    (tmp_path / "out" / "notes.txt").write_text("mine")
    split_files({"job.log": mixed(40, 2)}, Options(force=True, workers=1))
    assert sorted(os.listdir(tmp_path / "out")) == ["notes.txt", "rank_0.log", "rank_1.log", "split.json"]


def test_the_output_directory_is_never_read(tmp_path: Path) -> None:
    """The output is skipped even when it lies inside the input."""
    (tmp_path / "job.log").write_bytes(mixed(40, 2))
    first = split([str(tmp_path)], tmp_path / "out", Options(workers=1))
    again = split([str(tmp_path)], tmp_path / "out", Options(workers=1, force=True))
    assert first.files == again.files
    index = json.loads((tmp_path / "out" / "split.json").read_text())
    assert [file["name"] for file in index["files"]] == ["rank_0.log", "rank_1.log"]


def test_chunk_size_and_processes_do_not_change_the_output(split_files: Split, forked: list[int]) -> None:
    """Also with lines that are longer than the memory for them."""
    data = mixed(3000, 8) + b"[default3]:" + b"x" * 5000 + b"\n" + mixed(3000, 8)
    _, expected = split_files({"job.log": data})
    for size in (64, 1000):
        with mock.patch.multiple(segment, CHUNK=size, _FIRST_CHUNK=32, LONGEST_LINE=2000):
            result, outputs = split_files({}, Options(workers=1, force=True))
            assert outputs == expected
            assert "long-lines" in codes(result)
    with mock.patch.multiple(run, _WORTH_PROCESSES=1):
        result, outputs = split_files({}, Options(workers=2, force=True))
    assert outputs == expected
    assert result.lines == 6001
    assert len(forked) == 1


def test_the_work_of_a_dead_process_is_done_again(split_files: Split, forked: list[int], tmp_path: Path) -> None:
    """The parent repeats the segment of the dead process, uses its earlier results, and reports the progress once."""
    files = {f"job{number}.log": mixed(300, 4) for number in range(4)}
    _, expected = split_files(files)
    parent, split_file, started = os.getpid(), worker_pool._split_file, []

    def split_or_die(number: int, *rest: Any) -> segment.Tally:
        if os.getpid() == parent:
            started.append(number)
        elif number == 3:
            split_file(number, *rest)
            os.kill(os.getpid(), signal.SIGKILL)
        return split_file(number, *rest)

    reported: list[tuple[int, int | None]] = []
    with (
        mock.patch.multiple(run, _WORTH_PROCESSES=1),
        mock.patch.multiple(segment, CHUNK=1000),
        mock.patch.object(worker_pool, "_split_file", split_or_die),
    ):
        options = Options(workers=2, force=True)
        result = split([str(tmp_path / "in")], tmp_path / "out", options, lambda *done: reported.append(done))
    assert {file.name: (tmp_path / "out" / file.name).read_bytes() for file in result.files} == expected
    assert started[-1] == 3
    assert len(forked) == 1
    assert reported == sorted(reported)
    assert reported[-1] == (sum(map(len, files.values())),) * 2


def test_segments_are_whole_lines(tmp_path: Path) -> None:
    """Every byte is in exactly one segment."""
    (tmp_path / "a").write_bytes(mixed(100, 3))
    size = len(mixed(100, 3))
    tasks = worker_pool.cut_segments("a", str(tmp_path / "a"), size, 7, run.LauncherLayout(), None)
    data = mixed(100, 3)
    assert b"".join(data[task.offset : task.offset + task.size] for task in tasks) == data
    assert all(data[task.offset - 1 : task.offset] in (b"", b"\n") for task in tasks)
    assert len(tasks) == 7


def test_standard_input_is_split(tmp_path: Path) -> None:
    """`triage split -` splits what comes through a pipe."""
    command = [sys.executable, "-m", "triage", "split", "-", "-o", str(tmp_path / "out"), "--format", "json"]
    done = subprocess.run(command, input=mixed(40, 2), capture_output=True, check=True)
    summary = json.loads(done.stdout)
    assert [(file["rank"], file["lines"], file["sources"]) for file in summary["files"]] == [
        (0, 20, ["-"]),
        (1, 20, ["-"]),
    ]
    assert (tmp_path / "out" / "rank_1.log").read_bytes() == b"".join(
        b"step %d\n" % number for number in range(1, 40, 2)
    )


def test_a_full_disk_is_reported(split_files: Split) -> None:
    """It raises OptionError, and leaves no partial output."""
    full = OSError(errno.ENOSPC, "No space left on device")
    with (
        mock.patch.object(part_files.PartFiles, "_fd", side_effect=full),
        pytest.raises(OptionError, match="No space left"),
    ):
        split_files({"job.log": mixed(40, 2)})


STAMPS = [f"2026-11-21T03:07:45.{number:09}Z" for number in range(400)]


def docker(stamp: str, text: str, stream: str = "stderr") -> bytes:
    """Return a line of Docker's json-file driver, which escapes the special characters of HTML."""
    line = json.dumps({"log": text, "stream": stream, "time": stamp}, ensure_ascii=False, separators=(",", ":"))
    return line.replace("<", "\\u003c").replace(">", "\\u003e").encode() + b"\n"


def test_docker_json_files_are_unwrapped(split_files: Split) -> None:
    """The text comes back as it was written. A line that Docker cut at 16 KiB is joined, though its second half has no
    prefix.
    """
    lines = [docker(STAMPS[number], f'[default{number % 2}]:Tensor <{number}> é\t"x"\n') for number in range(40)]
    cut = [
        docker(STAMPS[40], "[default1]:first, "),
        docker(STAMPS[41], "[default0]:out\n", "stdout"),
        docker(STAMPS[42], "second\n"),
    ]
    result, outputs = split_files({"3f-json.log": b"".join([*lines, *cut])})
    assert (
        outputs["rank_1.log"]
        == "".join(f'Tensor <{number}> é\t"x"\n' for number in range(1, 40, 2)).encode() + b"first, second\n"
    )
    assert outputs["rank_0.log"].endswith(b"\nout\n")
    assert result.lines == 43 == sum(file.lines for file in result.files) - result.added
    assert "partial-lines" in codes(result)


def test_journals_are_unwrapped(split_files: Split) -> None:
    """In JSON and in the export format, where a message with newlines is stored behind its length. A warning counts the
    fields.
    """
    common = {
        "__REALTIME_TIMESTAMP": "1795230465000000",
        "_HOSTNAME": "node1",
        "SYSLOG_IDENTIFIER": "train",
        "_TRANSPORT": "stdout",
    }
    records = [
        {**common, "_PID": str(700 + number % 2), "MESSAGE": f"[rank{number % 2}]: step {number}"}
        for number in range(40)
    ]
    as_json = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    exported = b"".join(
        "".join(f"{key}={value}\n" for key, value in record.items()).encode() + b"\n" for record in records
    )
    message = b"[rank1]: a\n\nb"
    fields = b"_HOSTNAME=node1\n__REALTIME_TIMESTAMP=1795230465000000\n_PID=701\nSYSLOG_IDENTIFIER=train\n"
    exported += fields + b"MESSAGE\n" + len(message).to_bytes(8, "little") + message + b"\n\n"
    expected = b"".join(b"step %d\n" % number for number in range(1, 40, 2))
    result, outputs = split_files({"a/journal.json": as_json})
    assert outputs["rank_1.log"] == expected
    assert result.lines == 40 == sum(file.lines for file in result.files)
    for size in (64, 1 << 20):
        with (
            mock.patch.object(unwrapped_stream, "_LEAST_READ", size),
            mock.patch.multiple(segment, CHUNK=size, _FIRST_CHUNK=size),
        ):
            result, outputs = split_files(
                {"a/journal.json": b"", "b/journal.export": exported}, Options(workers=1, force=True)
            )
        assert outputs["rank_1.log"] == expected + b"a\n\nb\n"
        assert result.lines == exported.count(b"\n") == sum(file.lines for file in result.files) - result.added
        assert "record-fields" in codes(result)


def test_cut_pieces_stay_together_across_chunks_and_processes(split_files: Split, forked: list[int]) -> None:
    """The halves of a line that Kubernetes cut are joined across chunks and processes."""
    lines = []
    for number in range(300):
        flag, stream = ("P", "stdout") if number % 3 == 0 else ("F", "stdout" if number % 3 == 1 else "stderr")
        text = f"[default{number % 2}]:step {number} " if flag == "P" or stream == "stderr" else f"goes on {number}"
        lines.append(f"{STAMPS[number]} {stream} {flag} {text}\n".encode())
    _, expected = split_files({"0.log": b"".join(lines)})
    assert expected["rank_0.log"].startswith(b"step 0 goes on 1\nstep 2 \n")
    assert set(expected) == {"rank_0.log", "rank_1.log"}
    with (
        mock.patch.multiple(run, _WORTH_PROCESSES=1),
        mock.patch.multiple(segment, CHUNK=100, _FIRST_CHUNK=100, WRITE_SIZE=300),
    ):
        result, outputs = split_files({}, Options(workers=3, force=True))
    assert outputs == expected
    assert len(forked) == 2
    assert result.lines == 300 == sum(file.lines for file in result.files) - result.added


def test_the_rank_in_a_line_overrides_its_prefix(split_files: Split, forked: list[int]) -> None:
    """Only that line goes to the rank it names, with a warning, for any number of workers."""
    lines = mixed(9000, 2, b"%d: step %d\n")
    data = b"1: [rank1]: the labels are of ranks\n" + lines + b"0: [rank3]: ValueError: boom\n" + lines
    result, outputs = split_files({"job.log": data})
    assert outputs["rank_3.log"] == b"[rank3]: ValueError: boom\n"
    assert len(outputs["rank_0.log"].splitlines()) == 9000
    assert "`0:` of rank 0 precedes lines of rank 3" in next(
        warning.message for warning in result.warnings if warning.code == "identity-conflict"
    )
    with mock.patch.multiple(run, _WORTH_PROCESSES=1), mock.patch.multiple(segment, CHUNK=1000):
        assert split_files({}, Options(workers=3, force=True))[1] == outputs
    assert len(forked) == 2


def test_tagged_lines_behind_labels_of_nodes_go_to_their_rank(split_files: Split) -> None:
    """With one task per node, untagged lines belong to the task only."""
    _, outputs = split_files(
        {"job.log": mixed(60, 2, b"%d: step %d\n") + b"1: [rank9]: ValueError: boom\n1: [rank8]: ValueError: boom\n"}
    )
    assert set(outputs) == {"rank_8.log", "rank_9.log", "writer_0.log", "writer_1.log"}
    assert outputs["rank_9.log"] == b"[rank9]: ValueError: boom\n"


def test_local_ranks_with_several_global_ranks_stay_local(split_files: Split) -> None:
    """After a restart elsewhere `[default0]:` is another rank, so the file cannot tell which lines belong to which
    rank.
    """
    lines = mixed(2000, 2)
    data = lines + b"[default0]:[rank0]: hello\n" + lines + b"[default0]:[rank8]: ValueError: boom\n" + lines
    _, outputs = split_files({"job.log": data})
    assert set(outputs) == {"local_rank_0.job.log", "local_rank_1.job.log"}


def test_a_torch_tag_without_a_launcher_prefix_names_its_rank(split_files: Split) -> None:
    """A tagged line without the prefix of all other lines is assigned by its tag."""
    _, outputs = split_files({"job.log": mixed(60, 4) + b"[rank3]: ValueError: boom\nof nobody\n"})
    assert outputs["rank_3.log"].endswith(b"step 59\n[rank3]: ValueError: boom\n")
    assert outputs["nobody.log"] == b"of nobody\n"


def test_second_writers_in_tracebacks_and_behind_progress_bars_are_split(split_files: Split) -> None:
    """A prefix behind a frame, even after a blank, and torch's tag directly behind a progress bar begin a second
    writer.
    """
    two_writers = b'[default0]:  File "a.py", line 3, in f [default1]:  File "b.py", line 4, in g\n'
    bar = b"[default0]: 50%|##  | 5/10 [00:01<00:01, 4.9it/s][rank1]: Traceback (most recent call last):\n"
    quoted = b"[default0]:see [default1]: of the others, and [rank1]: too\n"
    result, outputs = split_files({"job.log": mixed(40, 2) + two_writers + bar + quoted})
    assert outputs["rank_1.log"].endswith(
        b'step 39\n  File "b.py", line 4, in g\n[rank1]: Traceback (most recent call last):\n'
    )
    assert outputs["rank_0.log"].endswith(b"4.9it/s]\nsee [default1]: of the others, and [rank1]: too\n")
    assert result.added == 2
    result, outputs = split_files(
        {"job.log": bar[11:] + b"[rank1]: ValueError: boom\n" + b"plain\n" * 20}, Options(workers=1, force=True)
    )
    assert outputs["rank_1.log"] == b"[rank1]: Traceback (most recent call last):\n[rank1]: ValueError: boom\n"
