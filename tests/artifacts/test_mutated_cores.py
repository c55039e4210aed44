"""Damaged cores: every one gives evidence or a warning."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.artifacts.crash_factories import C, compile_program, make_core, require_programs
from triage.artifacts.cores import elf
from triage.artifacts.cores.reader import CoreReader
from triage.artifacts.interface import Artifact
from triage.model.evidence import Source


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    require_programs("gcc", "gdb")
    directory = tmp_path_factory.mktemp("mutated")
    return make_core(directory, str(compile_program(directory, "crash", C)), "null").read_bytes()


def head_size(core: bytes) -> int:
    """Return the offset at which the notes end; the parser depends on the bytes before it."""
    phoff, phnum = struct.unpack_from("<Q", core, 32)[0], struct.unpack_from("<H", core, 56)[0]
    headers = struct.iter_unpack("<IIQQQQQQ", core[phoff : phoff + phnum * 56])
    return max(offset + size for kind, _, offset, _, _, size, _, _ in headers if kind == 4)


@st.composite
def damages(draw: st.DrawFn) -> list[tuple[float, bytes]]:
    """Draw positions (0 to 1 in the head, 1 to 2 in the file) and the bytes to write there."""
    patch = st.binary(min_size=1, max_size=8) | st.sampled_from(
        [b"\xff" * 8, b"\0" * 8, b"\xff\xff\xff\x7f", struct.pack("<Q", 1 << 40)]
    )
    return draw(st.lists(st.tuples(st.floats(0, 2, exclude_max=True), patch), max_size=6))


@given(damages(), st.floats(0, 1))
@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_mutated_cores(
    core: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    patches: list[tuple[float, bytes]],
    cut: float,
) -> None:
    """A damaged core gives a report or a warning, and no other exception."""
    data = bytearray(core)
    head = head_size(core)
    for position, patch in patches:
        start = int(position * head) if position < 1 else int((position - 1) * len(core))
        data[start : start + len(patch)] = patch
    file = tmp_path / "core"
    file.write_bytes(data[: int(len(data) * (1 - cut * cut))])
    monkeypatch.setattr("triage.artifacts.cores.reader.BUDGET", 0.0)  # without debuggers
    result = CoreReader().read([Artifact(Source("core", "core", None, str(file)), b"")])
    # The kernel refuses an offset that no file can have: unreadable.
    codes = [warning.code for warning in result.warnings]
    assert len(result.evidence) == 1 or codes in (["damaged-artifact"], ["unreadable"])
    assert all(warning.message for warning in result.warnings)


def damage(core: bytes, seed: int) -> bytes:
    """Overwrite a few words of a core, mostly in its notes, and cut every third core."""
    pick = random.Random(seed)
    data = bytearray(core)
    for _ in range(pick.choice((1, 3, 9))):
        start = pick.randrange(head_size(core) if pick.random() < 0.6 else len(core))
        patch = pick.choice(
            (b"\xff" * 8, b"\0" * 8, b"\xff\xff\xff\x7f", struct.pack("<Q", 1 << 40), pick.randbytes(4))
        )
        data[start : start + len(patch)] = patch
    return bytes(data[: pick.randrange(4096, len(data)) if seed % 3 == 0 else len(core)])


def test_gdb_survives_damage(core: bytes, tmp_path: Path) -> None:
    """A damaged core read with a real gdb gives evidence or a warning, and a cut one names the damage."""
    engines = set()
    for seed in range(10):
        data = damage(core, seed)
        (tmp_path / "core").write_bytes(data)
        result = CoreReader().read([Artifact(Source("core", "core", None, str(tmp_path / "core")), b"")])
        codes = {warning.code for warning in result.warnings}
        if not result.evidence:
            assert codes & {"damaged-artifact", "unreadable"}
            continue
        engines.add(result.evidence[0].fields["engine"])
        assert seed % 3 or codes & {"core-truncated", "core-damaged"}
        assert not any("was stopped" in warning.message for warning in result.warnings)
    assert "gdb" in engines


class Bytes:
    """The bytes of a core in memory."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)

    def read(self, offset: int, length: int) -> bytes:
        return self.data[offset : offset + length] if offset >= 0 and length > 0 else b""


def make_notes_core(machine: int, registers: bytes, threads: int = 1, xnum: bool = False) -> bytes:
    """Return a core that contains only notes."""
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


def test_mapping_of_impossible_length_is_not_a_module() -> None:
    """A damaged mapping that spans the address space is left out; the other modules stay."""
    mappings = [elf.Mapping(0x1000, 1 << 40, 0, "/lib/libc.so.6"), elf.Mapping(0x5000, 0x6000, 0, "/opt/app")]
    data = Bytes(b"\x7fELF" + bytes(4092))
    modules = elf._modules(
        mappings, elf.Memory(data, (elf.Segment(0x1000, 0x2000, 0, 4096, 5), elf.Segment(0x5000, 0x6000, 0, 4096, 5)))
    )
    assert [module.path for module in modules] == ["/opt/app"]


def test_aarch64() -> None:
    """Program counter, stack, frame and link of an aarch64 thread are parsed."""
    registers = struct.pack("<34Q", *range(1000, 1034))
    core = elf.parse_core(Bytes(make_notes_core(183, registers)))
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
    """With 65,535 or more segments their number comes from the first section header."""
    core = elf.parse_core(Bytes(make_notes_core(62, struct.pack("<27Q", *range(27)), threads=3, xnum=True)))
    assert (len(core.threads), core.threads[0].pc, core.threads[0].sp) == (3, 16, 19)
