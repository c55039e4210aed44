"""triage.sources.classify"""

from __future__ import annotations

import json
import os
import pickle
import struct

import pytest
from hypothesis import given, strategies as st

from triage.sources.classify import classify, is_binary

from .factories import COMPRESSIONS, log, make_zip, tar

DUMP = {"version": "2.4", "nccl_version": "2.21.5", "pg_config": {}, "pg_status": {}, "entries": [{"record_id": 0}]}
CORE = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<H", 4) + bytes(46)
CASES = {
    "text": log(),
    "gzip": COMPRESSIONS["gzip"](log()),
    "bzip2": COMPRESSIONS["bzip2"](log()),
    "xz": COMPRESSIONS["xz"](log()),
    "zstd": COMPRESSIONS["zstd"](log()),
    "lz4-legacy": b"\x02\x21\x4c\x18" + bytes(20),
    "lz4": b"\x04\x22\x4d\x18\x64\x40\xa7" + bytes(20),
    "tar": tar({"a": b"b"}),
    "zip": make_zip({"a": b"b"}),
    "core": CORE,
    "elf": CORE[:16] + struct.pack("<H", 3) + CORE[18:],
    "flight-recorder": pickle.dumps(DUMP, protocol=2),
    "py-spy": b"Process 4242: python train.py --lr 3\nPython v3.10.12 (/usr/bin/python3.10)\n\n"
    b'Thread 4242 (idle): "MainThread"\n',
    "error-file": json.dumps({"message": {"message": "RuntimeError: x", "extraInfo": {"timestamp": "1"}}}).encode(),
    "environment": b"PATH=/usr/bin\nRANK=3\nNCCL_DEBUG=INFO\n",
    "binary": bytes(range(256)) * 100,
    "empty": b"",
    "7z": b"7z\xbc\xaf\x27\x1c\x00\x04",
    "rar": b"Rar!\x1a\x07\x01\x00",
    "compress": b"\x1f\x9d\x90abc",
    "journal": b"LPKSHHRH" + bytes(100),
}


@pytest.mark.parametrize("kind", CASES)
def test_each_kind_is_recognized_by_its_first_bytes(kind: str) -> None:
    """The first bytes of every kind are classified as that kind."""
    assert classify(CASES[kind][:65536])[0] == kind


def test_a_flight_recorder_dump_as_json_is_recognized() -> None:
    """The JSON form is a flight recorder's dump too."""
    assert classify(json.dumps(DUMP).encode())[0] == "flight-recorder"


def test_json_lines_that_mention_entries_are_text() -> None:
    """A JSON log that contains one key of a dump is text."""
    assert classify(b'{"level": "info", "entries": 3}\n{"level": "warn"}\n')[0] == "text"


def test_a_json_log_with_a_message_is_text() -> None:
    """Only torchelastic's nested message makes an error file."""
    assert classify(b'{"message": "hello"}\n')[0] == "text"


def test_a_pickle_that_is_no_dump_is_binary() -> None:
    """Other pickles are not artifacts."""
    assert classify(pickle.dumps({"weights": list(range(1000))}))[0] == "binary"


def test_a_big_endian_core_is_a_core() -> None:
    """The type of an ELF file is read in its own byte order."""
    assert classify(b"\x7fELF\x02\x02\x01" + bytes(9) + struct.pack(">H", 4) + bytes(46))[0] == "core"


def test_a_tar_of_the_oldest_format_is_a_tar() -> None:
    """Without the ustar magic the checksum decides."""
    header = bytearray(tar({"a.log": b"x"})[:512])
    header[257:265] = bytes(8)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    assert classify(bytes(header))[0] == "tar"


@pytest.mark.parametrize(
    "data",
    [
        b"a\0b\n" * 8 + log(50),
        log(50) + b"\xff\xfe\xfd\n" * 20,
        "错误: 设备丢失\n".encode("gbk") * 50,
        b"\x1b[31mred\x1b[0m\n" * 50,
        log(50) + bytes(60_000),  # a file system lost the blocks at the end, or a writer reserved them
        bytes(60_000) + log(50),
    ],
)
def test_text_with_some_dirt_is_text(data: bytes) -> None:
    """Some NULs, invalid UTF-8, another charset or colours do not make a log binary."""
    assert classify(data) == ("text", "utf-8")


@pytest.mark.parametrize(
    "data",
    [
        os.urandom(65536),
        struct.pack("<1000f", *range(1000)),
        bytes(65536),
        b"x" + bytes(65535),  # no line
        b"\x93NUMPY\x01\x00v\x00{'descr': '<f4'}\n" + bytes(65000),
    ],
)
def test_numbers_and_noise_are_binary(data: bytes) -> None:
    """Random bytes, arrays and NULs are binary."""
    assert is_binary(data)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wide_text_is_recognized_by_its_byte_order_mark(encoding: str) -> None:
    """UTF-16 and UTF-32 with a byte order mark are text of that encoding."""
    assert classify("\ufeffNCCL WARN x\n".encode(encoding)) == ("text", encoding)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_wide_text_is_recognized_without_a_byte_order_mark(encoding: str) -> None:
    """Text in which every second byte is NUL is UTF-16."""
    assert classify(("NCCL WARN x\n" * 20).encode(encoding)) == ("text", encoding)


@given(st.binary(max_size=2000))
def test_any_head_has_a_kind(data: bytes) -> None:
    """No bytes make the classifier fail, and only a file without bytes is empty."""
    assert (classify(data)[0] == "empty") == (not data)


@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1).map(
        lambda text: ("[rank0]: " + text + "\n").encode()
    )
)
def test_any_printable_text_is_text(data: bytes) -> None:
    """A file that begins like a log line is text, whatever follows."""
    assert classify(data) == ("text", "utf-8")
