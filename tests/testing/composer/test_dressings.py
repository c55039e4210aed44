"""Each dressing is what the real tool writes: text, times, hosts and order come back from it."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import re
import tarfile
import zipfile
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings, strategies as st

from triage.testing.composer.dressings import DRESSINGS
from triage.testing.composer.model import LogLine, World

WORLD = World(
    ("node3", "gpu-4.cluster.local"), 2, (81, 82, 81, 82), 1_790_000_000.25, 19_800, "/app/train_ddp.py", "nccl", "bare"
)
LINES = (
    LogLine(0.5, "step 1 loss 2.31", "node3", "stdout"),
    LogLine(0.5, "", "node3"),
    LogLine(61.25, "2026-09-21 INFO <b> & c\tend", "gpu-4.cluster.local"),
    LogLine(61.0, "Traceback (most recent call last):", ""),
    LogLine(90.0, "x" * 40_000, "node3"),
    LogLine(90.5, "größe 雪", "node3"),
)
BY_NAME = {dressing.name: dressing for dressing in DRESSINGS}
TEXTS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=90)


def dress(name: str, lines: tuple[LogLine, ...] = LINES, seed: int = 1) -> tuple[str, bytes]:
    return BY_NAME[name].dress("logs/a.log", lines, WORLD, random.Random(seed))


def read(name: str) -> list[str]:
    return dress(name)[1].decode().removesuffix("\n").split("\n")


def test_there_are_enough_dressings_and_each_has_its_own_name() -> None:
    """A composed job can be stored in at least 17 ways."""
    assert len(BY_NAME) == len(DRESSINGS) >= 17


@pytest.mark.parametrize("name", BY_NAME)
def test_the_same_draws_give_the_same_bytes(name: str) -> None:
    """Nothing comes from the clock, the process or another draw."""
    assert dress(name) == dress(name)


@pytest.mark.parametrize("name", BY_NAME)
@settings(max_examples=8, deadline=None)
@given(texts=st.lists(TEXTS, max_size=6))
def test_any_text_can_be_dressed(name: str, texts: list[str]) -> None:
    """No text of a program makes a dressing fail, and no file gets another directory."""
    lines = tuple(LogLine(float(number), text, "node3") for number, text in enumerate(texts))
    assert dress(name, lines)[0].startswith("logs/a.log")


def test_as_written_loses_nothing() -> None:
    """The lines stand there as they are."""
    assert read("as written") == [line.text for line in LINES]


@pytest.mark.parametrize(
    "name",
    ["docker logs -t", "docker compose", "kubectl --timestamps", "kubectl --prefix", "stern", "GitLab", "Jenkins",
     "ISO ts", "moreutils ts", "PAI DLC", "aws logs tail", "GitHub Actions", "line numbers"],
)  # fmt: skip
def test_prefixes_stand_before_the_whole_line(name: str) -> None:
    """Each line ends as it did, behind a prefix that is not empty."""
    lines = read(name)
    assert len(lines) == len(LINES)
    for line, original in zip(lines, LINES, strict=True):
        assert line.endswith(original.text)
        assert len(line) > len(original.text)


@pytest.mark.parametrize("name", ["docker logs -t", "kubectl --timestamps", "GitLab", "CRI", "aws logs tail"])
def test_timestamps_are_those_of_the_lines_in_utc_and_never_go_back(name: str) -> None:
    """A collector reads a line a moment after it was written, also where lines were written out of order."""
    stamps = [datetime.fromisoformat(line[:26]).replace(tzinfo=UTC).timestamp() for line in read(name)]
    assert stamps == sorted(stamps)
    assert all(stamp >= WORLD.start + 0.5 for stamp in stamps)
    assert stamps[0] == pytest.approx(WORLD.start + 0.5, abs=0.01)
    assert stamps[-1] == pytest.approx(WORLD.start + 90.5, abs=0.01)


def test_local_stamps_have_the_zone_and_the_host() -> None:
    """Journal and syslog write local time, drop empty lines, and syslog drops the domain."""
    journal, syslog = read("journalctl -o short-iso"), read("syslog")
    assert journal[0].startswith(f"{WORLD.stamp(0.5, '%Y-%m-%dT%H:%M:%S')}+0530 node3 train[")
    assert " gpu-4.cluster.local train[" in journal[1]
    assert " gpu-4 train[" in syslog[1]
    assert len(journal) == len(syslog) == len(LINES) - 1
    assert re.match(r"Sep [ 1-3]\d \d\d:\d\d:\d\d node3 ", syslog[0])


def test_docker_json_is_json_with_pieces_of_16_kib() -> None:
    """The pieces of a cut line have no newline but the last, and together give the text."""
    records = [json.loads(line) for line in read("docker json-file")]
    assert "".join(record["log"] for record in records) == "".join(f"{line.text}\n" for line in LINES)
    assert max(len(record["log"]) for record in records) == 16 * 1024
    assert records[0]["stream"] == "stdout"
    assert "\\u003cb\\u003e \\u0026" in read("docker json-file")[2]


@pytest.mark.parametrize("name", ["CRI", "CRI, cut"])
def test_cri_marks_pieces(name: str) -> None:
    """All pieces but the last of a line have P."""
    text = ""
    for line in read(name):
        _, stream, flag, piece = line.split(" ", 3)
        assert stream in ("stdout", "stderr")
        text += piece + ("\n" if flag == "F" else "")
    assert text == "".join(f"{line.text}\n" for line in LINES)


def test_collectors_name_the_host_of_each_line() -> None:
    """A line without a host is of the first node where the file has lines of several."""
    hosts = [json.loads(line)["_HOSTNAME"] for line in read("journald JSON")]
    assert hosts == ["node3", "gpu-4.cluster.local", "node3", "node3", "node3"]
    pods = [json.loads(line)["kubernetes"]["pod_name"] for line in read("Fluent Bit")]
    assert re.fullmatch(r"train-ddp-0-[a-z0-9]{5}", pods[0])
    assert pods[2].startswith("train-ddp-1-")


def test_aws_events_hold_the_lines() -> None:
    """The output is one JSON document, with milliseconds."""
    path, content = dress("aws logs get-log-events")
    events = json.loads(content)["events"]
    assert path == "logs/a.log.json"
    assert [event["message"] for event in events] == [line.text for line in LINES]
    assert abs(events[0]["timestamp"] - (WORLD.start + 0.5) * 1000) < 10


@pytest.mark.parametrize(
    ("name", "suffix", "decode"),
    [("gzip", ".gz", gzip.decompress), ("xz", ".xz", lzma.decompress), ("bzip2", ".bz2", bz2.decompress)],
)
def test_compressed_files_hold_the_log(name: str, suffix: str, decode: object) -> None:
    """Each standard tool reads them."""
    path, content = dress(name)
    assert callable(decode)
    assert (path, decode(content)) == (f"logs/a.log{suffix}", dress("as written")[1])


def test_encodings_hold_the_log() -> None:
    """CRLF and UTF-16 with its byte order mark hold the same lines."""
    plain = dress("as written")[1].decode()
    assert dress("CRLF")[1].decode() == plain.replace("\n", "\r\n")
    assert dress("UTF-16")[1].decode("utf-16") == plain.replace("\n", "\r\n")


def test_colours_and_bars_only_add() -> None:
    """Without escapes and removed bars the log is as it was; a bar never stands inside lines of one moment."""
    plain = dress("as written")[1].decode()
    coloured = dress("colours")[1].decode()
    assert "\x1b[32mINFO\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    lines = tuple(LogLine(number // 2 / 2, f"line {number}", "node3") for number in range(40))
    text = dress("progress bars", lines)[1].decode()
    assert "it/s]" in text
    assert re.sub(r"\r[^\r\n]*it/s\]\r +\r", "", text) == "".join(f"{line.text}\n" for line in lines)
    assert all("line 39" not in part and int(part.split()[-1]) % 2 == 0 for part in text.split("\n") if "\r" in part)


def test_archives_hold_all_files() -> None:
    """The directories stay, and nothing lies beside the archive."""
    files = {"b/x.log": b"1", "a.txt": b"2"}
    pack_tar, pack_zip = BY_NAME["tar.gz"].pack, BY_NAME["zip"].pack
    assert pack_tar
    assert pack_zip
    with tarfile.open(fileobj=io.BytesIO(pack_tar(files)["logs.tar.gz"])) as tar:
        assert tar.getnames() == ["logs/a.txt", "logs/b/x.log"]
    with zipfile.ZipFile(io.BytesIO(pack_zip(files)["logs.zip"])) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == files
    assert pack_tar(files) == pack_tar(dict(reversed(files.items())))
