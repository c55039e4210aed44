"""Hostile dumps, cores and programs. Nothing harmful is stored: the pickles name a call that would only make a file."""

from __future__ import annotations

import functools
import json
import os
import struct
from collections.abc import Iterator

from tests.artifacts.flight.factories import Call, Job as FlightJob, as_pickle
from tests.artifacts.flight.test_load import HOSTILE
from tests.artifacts.test_mutated_cores import make_notes_core
from tests.hostile.archives import patched
from tests.hostile.model import MIB, HostileCase, Job, repeat

REGISTERS = struct.pack("<27Q", *range(27))


def write_pickle(name: str, job: Job) -> None:
    """One of the pickles that the reader of dumps refuses, with a key of a dump before it."""
    data, _ = HOSTILE[name]
    if name.startswith("json"):
        data = b'{"pg_config": {}, "pg_status": {}, "entries": ' + data.partition(b":")[2]
    elif len(data) > 60_000:  # what makes it a dump must be among the first bytes
        data = data[:2] + b"X\x09\0\0\0pg_config0" + data[2:]
    job.write("fr_rank_0", data if b"pg_config" in data else data + b"pg_config")


def write_damaged_dump(job: Job) -> None:
    """A dump whose middle was overwritten."""
    data = _dump()
    job.write("fr_rank_0", patched(data, len(data) // 2, b"\xff" * 200))


def write_cut_dump(job: Job) -> None:
    """A dump that was cut."""
    job.write("fr_rank_0", _dump()[:-3000])


def _dump() -> bytes:
    calls = [Call(place=("train.py", line, "step")) for line in range(99)]
    return as_pickle(FlightJob({rank: list(calls) for rank in range(2)}).dumps()[0])


def write_strange_dump(job: Job) -> None:
    """A dump with ranks, sizes, times and groups that no job can have."""
    entry = {
        "record_id": 1 << 70, "pg_id": -1, "process_group": ["x" * 9999, "y"], "collective_seq_id": -(1 << 63),
        "input_sizes": [[1 << 62] * 50], "output_sizes": "none", "state": 5, "time_created_ns": 10**30, "frames": {},
        "profiling_name": "nccl:\x1b[2J", "p2p_seq_id": None, "op_id": [], "is_p2p": "maybe", "timeout_ms": -1,
    }  # fmt: skip
    config = {"0": {"name": "0", "desc": "d", "ranks": "[0, 99999999999, -5, 4294967296]"}}
    dump = {"version": "2.99", "pg_config": config, "pg_status": {"0": []}, "entries": [entry] * 5}
    for rank in (0, 10**12):
        job.write(f"fr_rank_{rank}", json.dumps(dump).encode())


def write_cut_core(job: Job) -> None:
    """A core that ends within its headers."""
    job.write("core.1001", make_notes_core(62, REGISTERS)[:90])


def write_many_headers(job: Job) -> None:
    """A core that claims 65,534 program headers and has one."""
    job.write("core.1001", patched(make_notes_core(62, REGISTERS), 56, b"\xfe\xff"))


def write_large_note(job: Job) -> None:
    """A core with a note of exabytes."""
    job.write("core.1001", patched(make_notes_core(62, REGISTERS), 64 + 32, b"\xff" * 7 + b"\x7f"))


def write_looping_segments(job: Job) -> None:
    """A core whose segments lie on top of each other, and of its headers."""
    header = make_notes_core(62, REGISTERS)
    segment = struct.pack("<IIQQQQQQ", 1, 7, 0, 0, 0, 1 << 62, 1 << 62, 1)
    data = patched(header, 56, struct.pack("<H", 60_000))
    job.write("core.1001", data[:120] + segment * 59_999 + data[120:])


def write_many_mappings(job: Job) -> None:
    """A core whose list of files claims a million entries."""
    desc = struct.pack("<QQ", 1 << 20, 4096) + b"/tmp/gdbinit.py\0" * 9
    note = struct.pack("<III", 5, len(desc), 0x46494C45) + b"CORE\0\0\0\0" + desc
    data = make_notes_core(62, REGISTERS)
    size = struct.unpack_from("<Q", data, 64 + 32)[0]
    job.write("core.1001", patched(data, 64 + 32, struct.pack("<Q", size + len(note))) + note)


def write_sparse_core(job: Job) -> None:
    """A core of a terabyte that is one hole."""
    path = job.write("core.1001", patched(make_notes_core(62, REGISTERS), 64 + 96, b"\0"))
    os.truncate(path, 1 << 40)


def write_other_class(job: Job) -> None:
    """A core of 32 bits and of the other byte order."""
    data = make_notes_core(62, REGISTERS)
    job.write("core.1001", patched(data, 4, b"\1"))
    job.write("core.1002", patched(patched(data, 5, b"\2"), 16, b"\0\4"))


def write_programs(job: Job) -> None:
    """A program with absurd headers, and a text that calls itself a core."""
    job.write("train.bin", b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\0" + b"\xff" * 4096)
    job.write("core.txt.1001", b"\x7fELF" + b"\xff" * 60)


def write_stacks(job: Job) -> None:
    """Dumps of stacks with frames without end."""
    frames = b"".join(
        b"#%d  0x%016x in f%d (x=...) from /lib/x.so\n" % (n, n, n) for n in range(job.size(5_000, 200_000))
    )
    job.write("stacks.txt", b"Thread 1 (Thread 0x7f00 (LWP 1001)):\n" + frames)


def write_py_spy(job: Job) -> None:
    """A dump of py-spy as JSON, nested beyond any use."""
    start = b'[{"pid": 1001, "thread_id": 1, "frames": '
    job.write("pyspy.json", (start, *repeat(b"[", job.size(MIB, 32 * MIB))))


def write_environment(job: Job) -> None:
    """An environment of a million variables, some of which set libraries and shells."""
    lines = (b"VARIABLE_%d=%d\n" % (number, number) for number in range(job.size(20_000, 10**6)))
    job.write("env.txt", (b"PATH=/bin\nPWD=/\nLD_PRELOAD=/tmp/x.so\nBASH_ENV=/tmp/x\nRANK=99999999999\n", *lines))


def _pickles() -> Iterator[HostileCase]:
    """Yield a case for each pickle that is refused."""
    for name, (_, message) in HOSTILE.items():
        if name.startswith("json"):
            yield HostileCase(f"dump: {name}", functools.partial(write_pickle, name), f"damaged-artifact: .*{message}")
        elif message:
            is_marked = len(HOSTILE[name][0]) > 60_000
            expected = "damaged-artifact: " if is_marked else f"damaged-artifact: .*({message})"
            yield HostileCase(f"pickle: {name}", functools.partial(write_pickle, name), expected)


REFUSED = r"(damaged-artifact|unreadable|core-truncated|core-damaged|artifact-not-read): "
CASES = (
    *_pickles(),
    HostileCase("dump: overwritten", write_damaged_dump, r"damaged-artifact: "),
    HostileCase("dump: cut", write_cut_dump, r"cut-dump: .*1 lost"),
    HostileCase("dump: impossible values", write_strange_dump, r"new-dump-version: "),
    HostileCase("core: cut", write_cut_core, REFUSED),
    HostileCase("core: claims 65,534 headers", write_many_headers, REFUSED),
    HostileCase("core: note of exabytes", write_large_note, REFUSED),
    HostileCase("core: segments on each other", write_looping_segments, REFUSED, seconds=300),
    HostileCase("core: a million mappings", write_many_mappings, REFUSED),
    HostileCase("core: hole of a terabyte", write_sparse_core, r"core-program: ", seconds=300),
    HostileCase("core: other class and byte order", write_other_class, REFUSED),
    HostileCase("elf: absurd headers", write_programs, REFUSED),
    HostileCase(
        "stacks: frames without end", write_stacks, "", "a stack is one text, cut where it is shown", seconds=300
    ),
    HostileCase("py-spy: deep nesting", write_py_spy, r"damaged-artifact: "),
    HostileCase("environment: a million variables", write_environment, "", "its variables are data", seconds=300),
)
