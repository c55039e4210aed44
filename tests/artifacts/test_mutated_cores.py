"""Damaged cores: whatever the bytes, an answer or a sentence."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.artifacts.crashing import C, build, core_of, needs
from triage.artifacts.cores import elf
from triage.artifacts.cores.reader import Cores, answer
from triage.artifacts.interface import Artifact, Facts
from triage.model.evidence import Source


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    needs("gcc", "gdb")
    directory = tmp_path_factory.mktemp("mutated")
    return core_of(directory, str(build(directory, "crash", C)), "null").read_bytes()


def head_size(core: bytes) -> int:
    """Where the notes end: the part that the reader trusts least."""
    phoff, phnum = struct.unpack_from("<Q", core, 32)[0], struct.unpack_from("<H", core, 56)[0]
    headers = struct.iter_unpack("<IIQQQQQQ", core[phoff : phoff + phnum * 56])
    return max(offset + size for kind, _, offset, _, _, size, _, _ in headers if kind == 4)


@st.composite
def damages(draw: st.DrawFn) -> list[tuple[float, bytes]]:
    """Places (as a part of the head, or of the whole from 1 on) and the bytes to put there."""
    word = st.binary(min_size=1, max_size=8) | st.sampled_from(
        [b"\xff" * 8, b"\0" * 8, b"\xff\xff\xff\x7f", struct.pack("<Q", 1 << 40)]
    )
    return draw(st.lists(st.tuples(st.floats(0, 2, exclude_max=True), word), max_size=6))


@given(damages(), st.floats(0, 1))
@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_mutated_cores(core: bytes, tmp_path: Path, places: list[tuple[float, bytes]], cut: float) -> None:
    """Two hundred damaged cores: each gives a report or an error with a hint, and never anything else."""
    data = bytearray(core)
    head = head_size(core)
    for place, word in places:
        at = int(place * head) if place < 1 else int((place - 1) * len(core))
        data[at : at + len(word)] = word
    file = tmp_path / "core"
    file.write_bytes(data[: int(len(data) * (1 - cut * cut))])
    found = Facts([], [])
    answer(found, Artifact(Source("core", "core", None, str(file)), b""))
    # An offset that no file can have is refused by the kernel: unreadable.
    assert len(found.evidence) == 1 or [warning.code for warning in found.warnings] in (
        ["damaged-artifact"],
        ["unreadable"],
    )
    assert all(warning.message for warning in found.warnings)


def damaged(core: bytes, seed: int) -> bytes:
    """A core with a few words overwritten, mostly in its notes; every third is cut, too."""
    pick = random.Random(seed)
    data = bytearray(core)
    for _ in range(pick.choice((1, 3, 9))):
        at = pick.randrange(head_size(core) if pick.random() < 0.6 else len(core))
        word = pick.choice((b"\xff" * 8, b"\0" * 8, b"\xff\xff\xff\x7f", struct.pack("<Q", 1 << 40), pick.randbytes(4)))
        data[at : at + len(word)] = word
    return bytes(data[: pick.randrange(4096, len(data)) if seed % 3 == 0 else len(core)])


def test_gdb_survives_damage(core: bytes, tmp_path: Path) -> None:
    """With a real gdb too: ten damaged cores each end in a report or an error, and what is cut is said to be."""
    engines = set()
    for seed in range(10):
        data = damaged(core, seed)
        (tmp_path / "core").write_bytes(data)
        found = Cores().read([Artifact(Source("core", "core", None, str(tmp_path / "core")), b"")])
        codes = {warning.code for warning in found.warnings}
        if not found.evidence:
            assert codes & {"damaged-artifact", "unreadable"}
            continue
        engines.add(found.evidence[0].fields["engine"])
        assert seed % 3 or codes & {"core-truncated", "core-damaged"}
        assert not any("was stopped" in warning.message for warning in found.warnings)
    assert "gdb" in engines


class Bytes:
    """A core's bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)

    def read(self, offset: int, length: int) -> bytes:
        return self.data[offset : offset + length] if offset >= 0 and length > 0 else b""


def made(machine: int, registers: bytes, threads: int = 1, xnum: bool = False) -> bytes:
    """A core with nothing but notes."""
    status = bytearray(112)
    struct.pack_into("<h", status, 12, 11)
    struct.pack_into("<i", status, 32, 77)
    desc = bytes(status) + registers + bytes(8)
    note = struct.pack("<III", 5, len(desc), 1) + b"CORE\0\0\0\0" + desc + bytes(-len(desc) % 4)
    notes = note * threads
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01" + bytes(9),
        4,
        machine,
        1,
        0,
        64,
        120,
        0,
        64,
        56,
        0xFFFF if xnum else 1,
        64,
        1,
        0,
    )
    phdr = struct.pack("<IIQQQQQQ", 4, 0, 184, 0, 0, len(notes), 0, 4)
    section = bytes(44) + struct.pack("<I", 1) + bytes(16)
    return header + phdr + section + notes


def test_a_mapping_of_impossible_length_is_no_module() -> None:
    """Damage that makes a library span the address space takes it out of the modules, and the others stay."""
    mappings = [elf.Mapping(0x1000, 1 << 40, 0, "/lib/libc.so.6"), elf.Mapping(0x5000, 0x6000, 0, "/opt/app")]
    data = Bytes(b"\x7fELF" + bytes(4092))
    found = elf._modules(
        mappings, elf.Memory(data, (elf.Segment(0x1000, 0x2000, 0, 4096, 5), elf.Segment(0x5000, 0x6000, 0, 4096, 5)))
    )
    assert [module.path for module in found] == ["/opt/app"]


def test_aarch64() -> None:
    """The registers of an aarch64 thread: program counter, stack, frame and link."""
    registers = struct.pack("<34Q", *range(1000, 1034))
    core = elf.read(Bytes(made(183, registers)))
    (thread,) = core.threads
    assert (core.machine, thread.tid, thread.pc, thread.sp, thread.fp, thread.link) == (
        "aarch64",
        77,
        1032,
        1031,
        1029,
        1030,
    )


def test_more_than_65535_segments() -> None:
    """The number of program headers then stands in the first section header."""
    core = elf.read(Bytes(made(62, struct.pack("<27Q", *range(27)), threads=3, xnum=True)))
    assert (len(core.threads), core.threads[0].pc, core.threads[0].sp) == (3, 16, 19)
