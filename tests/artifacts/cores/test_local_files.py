"""Programs and libraries on this machine: build-ids, names for the linker, symbols, also of damaged files."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.artifacts.crash_factories import compile_program
from triage.artifacts.cores.local_files import build_id_of, load_symbols, soname_of

LIBRARY = r"""
int read_header(int *p) { return *p; }
asm(".text\n.globl read_block\n.type read_block,@function\nread_block: nop\nnop\nnop\nret\n.size read_block,4\n"
    ".globl read_alias\n.type read_alias,@function\n.set read_alias,read_block\n.size read_alias,1\n"
    ".globl block_read\n.type block_read,@function\n.set block_read,read_block\n.size block_read,4\n");
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with a build-id, a name for the linker, and three names for one function."""
    directory = tmp_path_factory.mktemp("library")
    options = ("-shared", "-fPIC", "-Wl,--build-id=sha1", "-Wl,-soname,libtrain.so.1")
    return compile_program(directory, "libtrain.so", LIBRARY, *options)


def cut_sections(data: bytes) -> bytes:
    """Return a file that ends within its section headers."""
    return data[:-64]


def drop_sections(data: bytes) -> bytes:
    """Return a file without section headers, as `sstrip` leaves it."""
    return data[:40] + bytes(8) + data[48:60] + bytes(4) + data[64:]


def move_symbols(data: bytes) -> bytes:
    """Return a file whose tables of symbols lie behind its end."""
    changed = bytearray(data)
    (start,), (count,) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<H", data, 60)
    for place in range(start, start + count * 64, 64):
        if struct.unpack_from("<I", data, place + 4)[0] in (2, 11):
            struct.pack_into("<Q", changed, place + 24, len(data) + 4096)
    return bytes(changed)


def test_library(library: Path) -> None:
    """Build-id, name and functions of a library are read."""
    build_id, symbols = build_id_of(str(library)), load_symbols(str(library))
    assert build_id is not None
    assert symbols is not None
    assert (len(build_id), soname_of(str(library))) == (40, "libtrain.so.1")
    assert "read_header" in symbols.names


def test_function_with_several_names(library: Path) -> None:
    """An address has the name of its longest function, and of equally long ones the name that comes first."""
    symbols = load_symbols(str(library))
    assert symbols is not None
    assert {"read_block", "read_alias"}.isdisjoint(symbols.names)
    start = symbols.starts[symbols.names.index("block_read")]
    assert symbols.at(start + 3) == ("block_read", 3)


@pytest.mark.parametrize("damage", [cut_sections, drop_sections, move_symbols], ids=lambda damage: damage.__name__)
def test_damaged_sections(damage: Callable[[bytes], bytes], library: Path, tmp_path: Path) -> None:
    """A library with damaged sections has no symbols, but its build-id, and its name where that section is whole."""
    path = tmp_path / "libtrain.so"
    path.write_bytes(damage(library.read_bytes()))
    assert build_id_of(str(path)) == build_id_of(str(library))
    assert load_symbols(str(path)) is None
    assert soname_of(str(path)) == ("" if damage is drop_sections else "libtrain.so.1")


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\nexec python train.py\n", b"\x7fELF\x01\x01\x01" + bytes(93)])
def test_other_files(content: bytes, tmp_path: Path) -> None:
    """A script, an empty file and a 32-bit program have neither build-id, name nor symbols."""
    path = tmp_path / "train"
    path.write_bytes(content)
    assert (build_id_of(str(path)), soname_of(str(path)), load_symbols(str(path))) == (None, "", None)


def test_missing_and_headless_files(library: Path, tmp_path: Path) -> None:
    """A missing file, and one whose program headers lie where no file can have bytes, are not readable."""
    assert (build_id_of(str(tmp_path / "gone")), soname_of(str(tmp_path / "gone"))) == (None, "")
    assert load_symbols(str(tmp_path / "gone")) is None
    path = tmp_path / "libtrain.so"
    data = library.read_bytes()
    path.write_bytes(data[:32] + b"\xff" * 8 + data[40:])
    assert build_id_of(str(path)) is None


def test_program_without_a_build_id(tmp_path: Path) -> None:
    """A program that was linked without a build-id has the empty one."""
    program = compile_program(tmp_path, "train", "int main(void) { return 0; }", "-Wl,--build-id=none")
    assert build_id_of(str(program)) == ""
