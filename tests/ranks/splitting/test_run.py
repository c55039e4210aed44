"""triage.ranks.splitting.run"""

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
from triage.ranks.splitting import Options, Result, opened, parts, run, split, stretch, work

Split = Callable[..., tuple[Result, dict[str, bytes]]]


@pytest.fixture
def splitting(tmp_path: Path) -> Split:
    """Write files, split them, and give the result and what was written."""

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


def test_lines_of_nobody_have_their_own_file(splitting: Split) -> None:
    """What no prefix gives to a writer is kept, in order."""
    result, found = splitting({"job.log": b"starting\n" + mixed(40, 2) + b"all over\n"})
    assert found["nobody.log"] == b"starting\nall over\n"
    assert found["rank_1.log"] == b"".join(b"step %d\n" % number for number in range(1, 40, 2))
    assert (result.lines, result.left_out) == (42, 0)


def test_lines_of_nobody_in_the_file_of_a_host_stay_apart(splitting: Split) -> None:
    """What two containers wrote without saying who they are is not one text."""
    tagged = b"[rank%d]: a\n[rank%d]: b\n"
    _, found = splitting(
        {f"train-worker-{pod}.log": b"of %d\n" % pod + tagged % (2 * pod, 2 * pod + 1) for pod in (0, 1)}
    )
    assert (found["nobody.train-worker-0.log"], found["nobody.train-worker-1.log"]) == (b"of 0\n", b"of 1\n")


def test_prefixes_can_be_kept(splitting: Split) -> None:
    """--keep-prefix writes lines as they stood."""
    _, found = splitting({"job.log": mixed(40, 2)}, Options(keep_prefix=True, workers=1))
    assert found["rank_0.log"].startswith(b"[default0]:step 0\n[default0]:step 2\n")


def test_only_some_ranks(splitting: Split) -> None:
    """What is of others is counted in a warning."""
    result, found = splitting({"job.log": b"banner\n" + mixed(40, 4)}, Options(ranks=frozenset({2, 3}), workers=1))
    assert set(found) == {"rank_2.log", "rank_3.log"}
    assert result.left_out == 21
    assert next(warning.message for warning in result.warnings if warning.code == "left-out").startswith("21 lines ")


def test_local_ranks_of_several_hosts_are_no_ranks(splitting: Split) -> None:
    """Only what the files say makes a local rank a rank: here one host says it and the other does not."""
    lines = b"".join(b"[node%d:%d]:step 1\n" % (node, local) for node in (0, 1) for local in (0, 1) for _ in range(9))
    _, found = splitting({"job.log": lines + b"[node1:1]:[rank3]: ValueError: boom\n"})
    assert set(found) == {"local_rank_0.node0.log", "local_rank_1.node0.log", "local_rank_0.node1.log", "rank_3.log"}
    assert found["rank_3.log"].endswith(b"step 1\n[rank3]: ValueError: boom\n")


def test_a_label_around_a_launcher_numbers_nodes(splitting: Split) -> None:
    """`srun --label torchrun`: the label is the node's, the rank is what the map says, or unknown."""
    lines = b"".join(
        b"%d: [default%d]:step %d\n" % (node, local, step) for step in range(9) for node in (0, 1) for local in (0, 1)
    )
    _, found = splitting({"job.log": lines + b"1: [default0]:[rank2]: ValueError: boom\n"})
    assert set(found) == {f"local_rank_{local}.task{node}.log" for local in (0, 1) for node in (0, 1)} - {
        "local_rank_0.task1.log"
    } | {"rank_2.log"}
    assert len(found["rank_2.log"].splitlines()) == 10


def test_two_files_of_a_rank_are_merged_by_their_stamps(splitting: Split) -> None:
    """A line without a stamp stays with the line before it."""
    out = b"2026-11-21 03:00:01 one\nof one\n2026-11-21 03:00:05 five\n"
    err = b"2026-11-21 03:00:02 two\nTraceback\n2026-11-21 03:00:09 nine"
    _, found = splitting({"attempt_0/3/stdout.log": out, "attempt_0/3/stderr.log": err})
    expected = b"2026-11-21 03:00:01 one\nof one\n2026-11-21 03:00:02 two\nTraceback\n2026-11-21 03:00:05 five\n2026-11-21 03:00:09 nine\n"
    assert found == {"rank_3.log": expected}


def test_what_no_clock_orders_stands_one_after_the_other(splitting: Split) -> None:
    """And a warning says so. Attempts follow each other whatever the clocks say."""
    result, found = splitting(
        {"attempt_0/3/stdout.log": b"a\n", "attempt_1/3/stdout.log": b"c\n", "attempt_0/3/stderr.log": b"b\n"}
    )
    assert found == {"rank_3.log": b"b\na\nc\n"}
    assert "no-clock" in codes(result)


def test_a_file_named_after_a_rank_is_that_ranks(splitting: Split) -> None:
    """Whatever its lines begin with; a last line without its newline stays so."""
    _, found = splitting({"rank_7.log": b"3: not a label\n[rank5]: seen\nend"})
    assert found == {"rank_7.log": b"3: not a label\n[rank5]: seen\nend"}


def test_two_writers_on_one_line_are_cut_apart(splitting: Split) -> None:
    """torchrun's tail may write a part of a line, and the next prefix stands behind it."""
    result, found = splitting(
        {"job.log": mixed(30, 2) + b"[default0]: 50%|##   [default1]:half\n[default1]:99%|####|[default0]:boom\n"}
    )
    assert found["rank_1.log"].endswith(b"step 29\n99%|####|\n")
    assert found["rank_0.log"].endswith(b" 50%|##   [default1]:half\nboom\n")
    assert result.added == 1
    assert "glued" in codes(result)


def test_partial_lines_of_containers_are_joined(splitting: Split) -> None:
    """Kubernetes cuts long lines into parts marked P; the last is marked F."""
    stamp = b"2026-11-21T03:07:45.372001Z stdout "
    lines = b"".join(stamp + b"F [rank%d]: step %d\n" % (number % 2, number) for number in range(40))
    result, found = splitting({"pod.log": lines + stamp + b"P [rank1]: first half, \n" + stamp + b"F second half\n"})
    assert found["rank_1.log"].endswith(b"first half, second half\n")
    assert "partial-lines" in codes(result)


def test_archives_and_compressed_files(splitting: Split, tmp_path: Path) -> None:
    """What lies in them is split as if it lay there."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo("run/job.log")
        member.size = len(mixed(40, 2))
        tar.addfile(member, io.BytesIO(mixed(40, 2)))
    _, found = splitting(
        {
            "a.tar.gz": packed.getvalue(),
            "b.log.gz": gzip.compress(b"".join(b"[rank%d]: of b\n" % rank for rank in (0, 1))),
        }
    )
    assert found["rank_1.log"].count(b"step") == 20
    assert found["rank_1.log"].count(b"of b\n") == 1


def test_a_directory_that_holds_something_is_refused(splitting: Split, tmp_path: Path) -> None:
    """--force replaces an earlier split, and only that."""
    splitting({"job.log": mixed(40, 4)})
    with pytest.raises(OptionError, match="not empty"):
        splitting({"job.log": mixed(40, 2)})
    (tmp_path / "out" / "notes.txt").write_text("mine")
    splitting({"job.log": mixed(40, 2)}, Options(force=True, workers=1))
    assert sorted(os.listdir(tmp_path / "out")) == ["notes.txt", "rank_0.log", "rank_1.log", "split.json"]


def test_the_output_is_never_read(tmp_path: Path) -> None:
    """Even where it lies among the input."""
    (tmp_path / "job.log").write_bytes(mixed(40, 2))
    first = split([str(tmp_path)], tmp_path / "out", Options(workers=1))
    again = split([str(tmp_path)], tmp_path / "out", Options(workers=1, force=True))
    assert first.files == again.files
    index = json.loads((tmp_path / "out" / "split.json").read_text())
    assert [file["name"] for file in index["files"]] == ["rank_0.log", "rank_1.log"]


def test_chunks_and_processes_do_not_matter(splitting: Split, forked: list[int]) -> None:
    """However the bytes are cut, also in lines longer than what is held, the files are the same."""
    data = mixed(3000, 8) + b"[default3]:" + b"x" * 5000 + b"\n" + mixed(3000, 8)
    _, expected = splitting({"job.log": data})
    for size in (64, 1000):
        with mock.patch.multiple(stretch, CHUNK=size, _FIRST=32, LONGEST_LINE=2000):
            result, found = splitting({}, Options(workers=1, force=True))
            assert found == expected
            assert "long-lines" in codes(result)
    with mock.patch.multiple(run, _WORTH_PROCESSES=1):
        result, found = splitting({}, Options(workers=2, force=True))
    assert found == expected
    assert result.lines == 6001
    assert len(forked) == 1


def test_what_a_process_leaves_undone_is_done_here(splitting: Split, forked: list[int], tmp_path: Path) -> None:
    """One that dies in its second file: that is read anew, what it did before counts, and the progress comes to the
    whole once.
    """
    files = {f"job{number}.log": mixed(300, 4) for number in range(4)}
    _, expected = splitting(files)
    here, whole, began = os.getpid(), work._one_file, []

    def dies(number: int, *rest: Any) -> stretch.Tally:
        if os.getpid() == here:
            began.append(number)
        elif number == 3:
            whole(number, *rest)
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(number, *rest)

    told: list[tuple[int, int | None]] = []
    with (
        mock.patch.multiple(run, _WORTH_PROCESSES=1),
        mock.patch.multiple(stretch, CHUNK=1000),
        mock.patch.object(work, "_one_file", dies),
    ):
        options = Options(workers=2, force=True)
        result = split([str(tmp_path / "in")], tmp_path / "out", options, lambda *done: told.append(done))
    assert {file.name: (tmp_path / "out" / file.name).read_bytes() for file in result.files} == expected
    assert began[-1] == 3
    assert len(forked) == 1
    assert told == sorted(told)
    assert told[-1] == (sum(map(len, files.values())),) * 2


def test_stretches_are_of_whole_lines(tmp_path: Path) -> None:
    """Every byte is in one of them."""
    (tmp_path / "a").write_bytes(mixed(100, 3))
    size = len(mixed(100, 3))
    tasks = work.stretches("a", str(tmp_path / "a"), size, 7, run.Layout(), None)
    data = mixed(100, 3)
    assert b"".join(data[task.offset : task.offset + task.size] for task in tasks) == data
    assert all(data[task.offset - 1 : task.offset] in (b"", b"\n") for task in tasks)
    assert len(tasks) == 7


def test_standard_input_is_split(tmp_path: Path) -> None:
    """As `-`, by the command itself: what a pipe gives comes apart like a file."""
    command = [sys.executable, "-m", "triage", "split", "-", "-o", str(tmp_path / "out"), "--format", "json"]
    done = subprocess.run(command, input=mixed(40, 2), capture_output=True, check=True)
    told = json.loads(done.stdout)
    assert [(file["rank"], file["lines"], file["sources"]) for file in told["files"]] == [
        (0, 20, ["-"]),
        (1, 20, ["-"]),
    ]
    assert (tmp_path / "out" / "rank_1.log").read_bytes() == b"".join(
        b"step %d\n" % number for number in range(1, 40, 2)
    )


def test_a_full_disk_is_said(splitting: Split) -> None:
    """With what to do, and nothing half done is left."""
    full = OSError(errno.ENOSPC, "No space left on device")
    with mock.patch.object(parts.Parts, "_fd", side_effect=full), pytest.raises(OptionError, match="No space left"):
        splitting({"job.log": mixed(40, 2)})


STAMPS = [f"2026-11-21T03:07:45.{number:09}Z" for number in range(400)]


def docker(stamp: str, text: str, stream: str = "stderr") -> bytes:
    """A line as Docker's json-file driver writes it: HTML's special characters escaped."""
    told = json.dumps({"log": text, "stream": stream, "time": stamp}, ensure_ascii=False, separators=(",", ":"))
    return told.replace("<", "\\u003c").replace(">", "\\u003e").encode() + b"\n"


def test_dockers_files_are_opened(splitting: Split) -> None:
    """The text comes back as it was written, and a line that Docker cut at 16 KiB is one again, though its second half
    has no prefix.
    """
    lines = [docker(STAMPS[number], f'[default{number % 2}]:Tensor <{number}> é\t"x"\n') for number in range(40)]
    cut = [
        docker(STAMPS[40], "[default1]:first, "),
        docker(STAMPS[41], "[default0]:out\n", "stdout"),
        docker(STAMPS[42], "second\n"),
    ]
    result, found = splitting({"3f-json.log": b"".join([*lines, *cut])})
    assert (
        found["rank_1.log"]
        == "".join(f'Tensor <{number}> é\t"x"\n' for number in range(1, 40, 2)).encode() + b"first, second\n"
    )
    assert found["rank_0.log"].endswith(b"\nout\n")
    assert result.lines == 43 == sum(file.lines for file in result.files) - result.added
    assert "partial-lines" in codes(result)


def test_journals_are_opened(splitting: Split) -> None:
    """In JSON and in the export format, where a message with newlines has its length before it; fields of records are
    counted.
    """
    said = {
        "__REALTIME_TIMESTAMP": "1795230465000000",
        "_HOSTNAME": "node1",
        "SYSLOG_IDENTIFIER": "train",
        "_TRANSPORT": "stdout",
    }
    records = [
        {**said, "_PID": str(700 + number % 2), "MESSAGE": f"[rank{number % 2}]: step {number}"} for number in range(40)
    ]
    as_json = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    exported = b"".join(
        "".join(f"{key}={value}\n" for key, value in record.items()).encode() + b"\n" for record in records
    )
    message = b"[rank1]: a\n\nb"
    fields = b"_HOSTNAME=node1\n__REALTIME_TIMESTAMP=1795230465000000\n_PID=701\nSYSLOG_IDENTIFIER=train\n"
    exported += fields + b"MESSAGE\n" + len(message).to_bytes(8, "little") + message + b"\n\n"
    expected = b"".join(b"step %d\n" % number for number in range(1, 40, 2))
    result, found = splitting({"a/journal.json": as_json})
    assert found["rank_1.log"] == expected
    assert result.lines == 40 == sum(file.lines for file in result.files)
    for size in (64, 1 << 20):
        with mock.patch.object(opened, "_LEAST", size), mock.patch.multiple(stretch, CHUNK=size, _FIRST=size):
            result, found = splitting(
                {"a/journal.json": b"", "b/journal.export": exported}, Options(workers=1, force=True)
            )
        assert found["rank_1.log"] == expected + b"a\n\nb\n"
        assert result.lines == exported.count(b"\n") == sum(file.lines for file in result.files) - result.added
        assert "record-fields" in codes(result)


def test_pieces_stay_with_their_writer_wherever_a_file_is_parted(splitting: Split, forked: list[int]) -> None:
    """The halves of a line that Kubernetes cut are one line also between chunks and between processes; what comes back
    is as with one.
    """
    lines = []
    for number in range(300):
        flag, stream = ("P", "stdout") if number % 3 == 0 else ("F", "stdout" if number % 3 == 1 else "stderr")
        text = f"[default{number % 2}]:step {number} " if flag == "P" or stream == "stderr" else f"goes on {number}"
        lines.append(f"{STAMPS[number]} {stream} {flag} {text}\n".encode())
    _, expected = splitting({"0.log": b"".join(lines)})
    assert expected["rank_0.log"].startswith(b"step 0 goes on 1\nstep 2 \n")
    assert set(expected) == {"rank_0.log", "rank_1.log"}
    with mock.patch.multiple(run, _WORTH_PROCESSES=1), mock.patch.multiple(stretch, CHUNK=100, _FIRST=100, HELD=300):
        result, found = splitting({}, Options(workers=3, force=True))
    assert found == expected
    assert len(forked) == 2
    assert result.lines == 300 == sum(file.lines for file in result.files) - result.added


def test_what_a_line_calls_itself_is_believed(splitting: Split, forked: list[int]) -> None:
    """A tag inside of another rank's prefix takes its line to its own rank, and a warning says so; only that line, and
    with any number of workers.
    """
    lines = mixed(9000, 2, b"%d: step %d\n")
    data = b"1: [rank1]: the labels are of ranks\n" + lines + b"0: [rank3]: ValueError: boom\n" + lines
    result, found = splitting({"job.log": data})
    assert found["rank_3.log"] == b"[rank3]: ValueError: boom\n"
    assert len(found["rank_0.log"].splitlines()) == 9000
    assert "`0:` of rank 0 says rank 3" in next(
        warning.message for warning in result.warnings if warning.code == "identity-conflict"
    )
    with mock.patch.multiple(run, _WORTH_PROCESSES=1), mock.patch.multiple(stretch, CHUNK=1000):
        assert splitting({}, Options(workers=3, force=True))[1] == found
    assert len(forked) == 2


def test_what_stands_behind_the_labels_of_nodes_goes_to_its_rank(splitting: Split) -> None:
    """One task a node: tagged lines are the tagged rank's, all others nobody's but the task's."""
    _, found = splitting(
        {"job.log": mixed(60, 2, b"%d: step %d\n") + b"1: [rank9]: ValueError: boom\n1: [rank8]: ValueError: boom\n"}
    )
    assert set(found) == {"rank_8.log", "rank_9.log", "writer_0.log", "writer_1.log"}
    assert found["rank_9.log"] == b"[rank9]: ValueError: boom\n"


def test_local_ranks_that_became_other_ranks_are_none(splitting: Split) -> None:
    """After a restart in another place `[default0]:` is another rank: the file alone cannot say which lines are whose."""
    lines = mixed(2000, 2)
    data = lines + b"[default0]:[rank0]: hello\n" + lines + b"[default0]:[rank8]: ValueError: boom\n" + lines
    _, found = splitting({"job.log": data})
    assert set(found) == {"local_rank_0.job.log", "local_rank_1.job.log"}


def test_a_tag_without_the_launchers_prefix_tells_its_writer(splitting: Split) -> None:
    """A line that lost the prefix that all others have still says its rank."""
    _, found = splitting({"job.log": mixed(60, 4) + b"[rank3]: ValueError: boom\nof nobody\n"})
    assert found["rank_3.log"].endswith(b"step 59\n[rank3]: ValueError: boom\n")
    assert found["nobody.log"] == b"of nobody\n"


def test_glue_within_tracebacks_and_behind_bars_is_cut(splitting: Split) -> None:
    """A prefix behind a frame of another writer though a blank stands before it, and torch's tag right behind a
    progress bar.
    """
    glued = b'[default0]:  File "a.py", line 3, in f [default1]:  File "b.py", line 4, in g\n'
    bar = b"[default0]: 50%|##  | 5/10 [00:01<00:01, 4.9it/s][rank1]: Traceback (most recent call last):\n"
    spoken = b"[default0]:see [default1]: of the others, and [rank1]: too\n"
    result, found = splitting({"job.log": mixed(40, 2) + glued + bar + spoken})
    assert found["rank_1.log"].endswith(
        b'step 39\n  File "b.py", line 4, in g\n[rank1]: Traceback (most recent call last):\n'
    )
    assert found["rank_0.log"].endswith(b"4.9it/s]\nsee [default1]: of the others, and [rank1]: too\n")
    assert result.added == 2
    result, found = splitting(
        {"job.log": bar[11:] + b"[rank1]: ValueError: boom\n" + b"plain\n" * 20}, Options(workers=1, force=True)
    )
    assert found["rank_1.log"] == b"[rank1]: Traceback (most recent call last):\n[rank1]: ValueError: boom\n"
