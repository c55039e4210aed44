"""What is fuzzed: one function for each parser of untrusted bytes. It returns if all is well, and raises if not.

Errors that a parser documents are part of its answer. What it returns is encoded as the store does, so that a text
which nobody can store is noticed here.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from triage.artifacts.cores import elf
from triage.artifacts.cores.model import CoreError
from triage.artifacts.error_file import extract_exceptions
from triage.artifacts.flight.analyse import analyse
from triage.artifacts.flight.reader import read_dumps
from triage.artifacts.interface import Artifact, ArtifactError
from triage.base.errors import InputError
from triage.catalog.match import Matcher
from triage.catalog.model import Catalog
from triage.catalog.read import parse_signatures
from triage.evidence import extract_text
from triage.evidence.redact import redact
from triage.model.evidence import Evidence, Source
from triage.pipeline.document_texts import classify_text
from triage.ranks.file_names import parse_file_name
from triage.ranks.file_prefixes import detect_table
from triage.ranks.json_errors import read_errors
from triage.ranks.layouts import detect_layout
from triage.ranks.log_wrappers import read_message_fields, unescape_json
from triage.ranks.prefix import parse_prefix
from triage.ranks.stated_ranks import read_stated_ranks
from triage.sources import Limits, discover, streams
from triage.split.unwrapped_stream import _unwrap_journal, detect_format
from triage.stacks.parser import parse_stacks
from triage.store.codec import encode_document

LIMITS = Limits(max_total_bytes=1 << 20, max_members=50, ratio_floor_bytes=1 << 16, max_ratio=200)
"""Limits of an archive, small enough that a mutated one takes milliseconds."""


@dataclass(frozen=True, slots=True)
class Harness:
    """One parser: `run` takes any bytes; `tokens` are texts that its formats are made of, for the mutations.

    `longest` are the bytes of an input: short ones are tried more often, and what a parser does per line needs few.
    """

    name: str
    run: Callable[[bytes], object]
    tokens: tuple[str, ...] = ()
    longest: int = 4096


def read_prefixes(data: bytes) -> None:
    """Parse lines one by one: their prefixes, their layout, and the name of a file."""
    text = data.decode("utf-8", "replace")
    lines = text.split("\n")
    table = detect_table(lines)
    detect_layout(data)
    for line in lines[:50]:
        for parsed in (parse_prefix(line), parse_prefix(line, 2026, table)):
            assert line.endswith(parsed.text) or parsed.text in line
            json.dumps(msgspec.to_builtins(parsed.origin))
        parse_file_name(line)
        read_stated_ranks(line)


def read_records(data: bytes) -> None:
    """Read a piece of log as blocks, and their evidence."""
    check_evidence(extract_text(data.decode("utf-8", "replace")))
    redact(data.decode("utf-8", "replace"))


def read_backtraces(data: bytes) -> None:
    """Read printed stacks of any form."""
    for stacks in parse_stacks(data.decode("utf-8", "replace")):
        json.dumps(msgspec.to_builtins(stacks), default=str)


def read_flight(data: bytes) -> None:
    """Load one dump of Flight Recorder, and compare it with itself as two ranks."""
    builder, _ = read_dumps((Source(f"fr_rank_{rank}", "flight-recorder"), data) for rank in (0, 1))
    try:
        recording = builder.build()
    except ArtifactError:
        return
    if recording.dumps:
        analyse(recording)


class _Bytes:
    """The bytes of a core in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, offset: int, length: int) -> bytes:
        return self._data[offset : offset + length] if offset >= 0 and length > 0 else b""


def read_elf(data: bytes) -> None:
    """Parse a core: its headers, notes, threads, mappings and modules."""
    elf.notes_end(data)
    elf.parse_build_id(data[:4096])
    try:
        elf.parse_core(_Bytes(data))
    except CoreError:
        return


def read_catalog(data: bytes) -> None:
    """Read a signature, and match it with text."""
    signatures, problems = parse_signatures(data.decode("utf-8", "replace"), "own/fuzzed.yaml")
    assert signatures or problems
    if signatures:
        Matcher(Catalog("1", tuple(signatures))).evaluate(_texts())


@functools.cache
def _texts() -> list[Evidence]:
    return extract_text("RuntimeError: CUDA error: device-side assert\n" + "a" * 2000 + "\n")


def read_archive(data: bytes) -> None:
    """Read a file of any kind to its end: compressed, an archive, joined, or text in any encoding."""
    path = os.path.join(_scratch(), "fuzzed")
    with open(path, "wb") as file:
        file.write(data)
    try:
        files = discover([path]).files
    except InputError:
        return
    for file in files:
        for source, stream in streams(file, LIMITS, _check_warning):
            assert source.name.isprintable()
            size = 0
            while stream is not None and (piece := stream.read(1 << 16)):
                size += len(piece)
            assert size <= 2 * LIMITS.max_total_bytes


@functools.cache
def _scratch() -> str:
    import atexit
    import tempfile

    directory = tempfile.TemporaryDirectory(
        prefix="triage-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None
    )
    atexit.register(directory.cleanup)
    return directory.name


def _check_warning(warning: Any) -> None:
    assert warning.code
    assert warning.message
    assert (warning.source or "").isprintable()


def read_json(data: bytes) -> None:
    """Read a log whose lines are objects, an error file, and records of a journal."""
    text = data.decode("utf-8", "replace")
    read_message_fields(data)
    classify_text(data)
    detect_format(data)
    for line in text.split("\n")[:50]:
        read_errors(line)
        unescape_json(line)
        _unwrap_journal(line.encode())
    with suppress(ArtifactError):
        check_evidence(extract_exceptions(Artifact(Source("error.json", "error-file"), data)))
    check_evidence(extract_text(text))


def check_evidence(facts: Iterable[Evidence]) -> None:
    """Encode evidence as the store does."""
    encode_document({"facts": [msgspec.to_builtins(fact) for fact in facts]})


PREFIX_TOKENS = (
    "[rank0]: ",
    "[default1]:",
    "[1,3]<stdout>:",
    "node1: ",
    "(pid=7, ip=10.0.0.1) ",
    "E1121 02:30:05.000000 900 ",
)
STACK_TOKENS = (
    "Thread 1 (Thread 0x7f00 (LWP 7)):\n",
    "#0  0x00007f in f () at a.c:3\n",
    "frame #1: ",
    "*** SIGSEGV ***",
)
JSON_TOKENS = ('"message": ', '"exc_info": ', '{"MESSAGE": "', '"log":"', "\\ud83d", "\\u0000", '"stack": [')
HARNESSES = (
    Harness("prefixes", read_prefixes, PREFIX_TOKENS, longest=160),
    Harness(
        "records",
        read_records,
        (*PREFIX_TOKENS, "Traceback (most recent call last):\n", '  File "a.py", line 1, in f\n'),
        longest=480,
    ),
    Harness("backtraces", read_backtraces, STACK_TOKENS, longest=1024),
    Harness("flight", read_flight, ("pg_config", "pg_status", "entries", "collective_seq_id", "record_id", "ranks")),
    Harness("elf", read_elf, ("\x7fELF", "CORE\0\0\0\0", "LINUX\0\0\0")),
    Harness(
        "catalog",
        read_catalog,
        ("match:", "any:", "- text: ", "leads_to:", "engine: regex", "fields: {", "&a", "*a", "!!"),
        longest=1024,
    ),
    Harness("archives", read_archive, ("PK\x03\x04", "PK\x01\x02", "ustar\x0000", "\x1f\x8b\x08\0", "==> a.log <==\n")),
    Harness("json", read_json, JSON_TOKENS, longest=480),
)
