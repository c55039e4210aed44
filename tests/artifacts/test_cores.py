"""Real cores, made by crashing programs and read with gdb and without."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
import zstandard

import triage
from tests.artifacts.crash_factories import (
    CXX,
    DEADLOCK,
    LOADER,
    C,
    compile_extension,
    compile_program,
    make_core,
    require_programs,
)
from triage.artifacts.cores import elf, gdb, limited_process, python_frames, reader
from triage.artifacts.cores.limited_process import Limits, Output, run_limited
from triage.artifacts.cores.local_files import LocalFiles, SearchPaths, build_id_of
from triage.artifacts.cores.model import CoreError
from triage.artifacts.cores.needed_parts import digest_core
from triage.artifacts.cores.reader import CoreReader, to_evidence
from triage.artifacts.cores.report import CoreReport, read_core
from triage.artifacts.interface import Artifact
from triage.cli import main
from triage.clusters.fingerprint import name_cluster
from triage.evidence import extract_text
from triage.model.evidence import Source
from triage.stacks.parser import parse_stacks
from triage.stacks.signature import reduce_stacks

PATIENT = Limits(seconds=120)


class Lab:
    """Compiles programs and makes their cores when they are first needed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._cores: dict[str, Path] = {}
        self._programs: dict[str, Path] = {}

    def program(self, name: str = "crash") -> Path:
        if name not in self._programs:
            self._programs[name] = compile_program(self.directory, name, CXX if name == "uncaught" else C)
        return self._programs[name]

    def core(self, mode: str) -> Path:
        if mode not in self._cores:
            command = [str(self.program("uncaught"))] if mode == "uncaught" else [str(self.program()), mode]
            self._cores[mode] = make_core(self.directory, *command)
        return self._cores[mode]

    def read(self, mode: str, **options: object) -> CoreReport:
        return read_core(str(self.core(mode)), mode, limits=PATIENT, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    require_programs("gcc", "g++", "gdb")
    return Lab(tmp_path_factory.mktemp("lab"))


CRASHES = [
    # mode, signal, kind, crash frame, meaning
    ("null", "SIGSEGV", "segv", "read_header", "null"),
    ("offset", "SIGSEGV", "segv", "read_field", "small-offset"),
    ("wild", "SIGSEGV", "segv", "read_wild", "unmapped"),
    ("noncanonical", "SIGSEGV", "segv", "read_wild", "non-canonical"),
    ("heap", "SIGABRT", "heap-corruption", "release", "abort"),
    ("assert", "SIGABRT", "assert", "check", "abort"),
    ("overflow", "SIGSEGV", "stack-overflow", "walk", "stack-overflow"),
    ("divide", "SIGFPE", "fpe", "divide", "division-by-zero"),
    ("bus", "SIGBUS", "bus", "touch", "truncated-mapping"),
    ("uncaught", "SIGABRT", "exception", "app::Loader::decode<T>", "abort"),
    ("threads", "SIGSEGV", "segv", "read_header", "null"),
]


@pytest.mark.parametrize(("mode", "signal", "kind", "frame", "meaning"), CRASHES, ids=[row[0] for row in CRASHES])
def test_crash_read_with_gdb_and_from_notes(
    lab: Lab, mode: str, signal: str, kind: str, frame: str, meaning: str
) -> None:
    """Signal, kind, crash frame, meaning and crash point are the same with gdb and without."""
    with_gdb, from_notes = lab.read(mode), lab.read(mode, use_gdb=False)
    assert (with_gdb.engine, from_notes.engine) == ("gdb", "notes")
    for report in (with_gdb, from_notes):
        assert (report.stacks.signal, report.crash.kind, report.crash.frames[:1], report.meaning.code) == (
            signal,
            kind,
            (frame,),
            meaning,
        )
        assert report.crash.thread is report.stacks.threads[0]
    assert with_gdb.crash.point == from_notes.crash.point
    assert from_notes.stacks.threads[0].frames[0].trust == "context"


def test_all_threads_are_read(lab: Lab) -> None:
    """Each of two hundred threads has its own id, and exactly one of them crashed."""
    for report in (lab.read("threads"), lab.read("threads", use_gdb=False)):
        assert len({thread.tid for thread in report.stacks.threads}) == 200
        assert [thread.crashed for thread in report.stacks.threads].count(True) == 1


def test_abort_messages_are_read(lab: Lab) -> None:
    """The messages of glibc and of a failed assertion come from the core itself."""
    assert "Assertion `x == 1' failed" in lab.read("assert", use_gdb=False).stacks.message
    assert "double free or corruption" in lab.read("heap", use_gdb=False).stacks.message


def test_bus_error_names_the_mapped_file(lab: Lab) -> None:
    """The meaning of a bus error names the mapped file."""
    assert "mapped.bin" in lab.read("bus", use_gdb=False).meaning.sentence


def test_missing_program_gives_module_and_offset(lab: Lab, tmp_path: Path) -> None:
    """Without the program, a frame has its module, build-id and an offset within the right function."""
    program = shutil.copy(lab.program(), tmp_path / "gone")
    core = make_core(tmp_path, str(program), "null")
    build_id = build_id_of(str(program))
    table = subprocess.run(["nm", "-S", str(program)], capture_output=True, text=True, check=True).stdout
    start, size = next(
        (int(row[0], 16), int(row[1], 16)) for row in map(str.split, table.splitlines()) if row[-1] == "read_header"
    )
    os.unlink(program)
    for use_gdb in (True, False):
        report = read_core(str(core), "core", use_gdb=use_gdb)
        frame = report.stacks.threads[0].frames[0]
        assert (frame.module, frame.build_id, frame.function) == (str(program), build_id, "")
        assert frame.offset is not None
        assert start <= frame.offset < start + size
        assert report.crash.frames[0] == f"gone!{build_id[:12]}+{frame.offset:#x}"
        assert any("is not here" in sentence for _, sentence in report.remarks)


def test_program_of_another_build_is_not_used(lab: Lab, tmp_path: Path) -> None:
    """--exe with another build-id gives a remark, and no names from the wrong file."""
    other = compile_program(tmp_path, "other", C.replace("p[18]", "p[19]"))
    report = read_core(str(lab.core("null")), "core", SearchPaths(exe=str(other)), limits=PATIENT)
    assert [code for code, _ in report.remarks if code == "build-id-mismatch"]
    assert report.engine == "notes"
    assert report.stacks.threads[0].frames[0].function == ""
    right = read_core(str(lab.core("null")), "core", SearchPaths(exe=str(lab.program())), limits=PATIENT)
    assert right.crash.frames[0] == "read_header"


def test_separate_debug_symbols(lab: Lab, tmp_path: Path) -> None:
    """--debug-dir names the functions of a stripped program; without it gdb and notes give the same offsets."""
    require_programs("objcopy", "strip")
    program = Path(shutil.copy(lab.program(), tmp_path / "stripped"))
    build_id = build_id_of(str(program)) or ""
    debug_file = tmp_path / "debug/.build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    debug_file.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", str(program), str(debug_file)], check=True)
    subprocess.run(["strip", str(program)], check=True)
    core = make_core(tmp_path, str(program), "null")
    bare = [read_core(str(core), "core", use_gdb=use_gdb, limits=PATIENT) for use_gdb in (True, False)]
    assert {report.engine for report in bare} == {"gdb", "notes"}
    assert len({report.crash.frames for report in bare}) == 1
    assert bare[0].crash.frames[1].startswith(f"stripped!{build_id[:12]}+0x")
    assert all("--debug-dir" in dict(report.remarks)["core-stripped"] for report in bare)
    for use_gdb in (True, False):
        named = read_core(
            str(core), "core", SearchPaths(debug_dir=str(tmp_path / "debug")), use_gdb=use_gdb, limits=PATIENT
        )
        assert named.crash.frames == ("read_header", "work", "main")
        assert "core-stripped" not in dict(named.remarks)


def test_sysroot_replaces_the_root(lab: Lab, tmp_path: Path) -> None:
    """Files are only looked for below --sysroot."""
    copy = tmp_path / str(lab.program()).lstrip("/")
    copy.parent.mkdir(parents=True)
    shutil.copy(lab.program(), copy)
    report = read_core(str(lab.core("null")), "core", SearchPaths(sysroot=str(tmp_path)), limits=PATIENT)
    assert report.crash.frames[0] == "read_header"
    assert any("libc" in path for path in report.files.missing)


def test_truncated_core(lab: Lab, tmp_path: Path) -> None:
    """A truncated core is read as far as possible, and a remark says how much is missing."""
    data = lab.core("null").read_bytes()
    (tmp_path / "cut").write_bytes(data[: len(data) // 2])
    report = read_core(str(tmp_path / "cut"), "cut", use_gdb=False)
    assert (report.stacks.signal, report.core.is_truncated) == ("SIGSEGV", True)
    assert [code for code, _ in report.remarks if code == "core-truncated"]
    (tmp_path / "stub").write_bytes(data[:100])
    with pytest.raises(CoreError, match="ends before its notes"):
        read_core(str(tmp_path / "stub"), "stub")


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x04\x00\x03\x00", "32-bit"),
        (b"\x7fELF\x02\x02\x01" + bytes(9) + b"\x00\x04\x00\x15", "big-endian"),
        (b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x04\x00\xf3\x00", "unsupported machine"),
        (b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\x3e\x00", "not a core"),
        (b"hello", "not an ELF"),
    ],
)
def test_unsupported_files_are_errors(tmp_path: Path, head: bytes, message: str) -> None:
    """Each unsupported file gives an error with a hint."""
    (tmp_path / "core").write_bytes(head.ljust(64, b"\0"))
    with pytest.raises(CoreError, match=message) as caught:
        read_core(str(tmp_path / "core"), "core")
    assert caught.value.hint


def test_python_process(lab: Lab, tmp_path: Path) -> None:
    """The crash point of an extension module is its function, in the thread with its Python frames."""
    if not python_frames.has_pystack():
        pytest.skip("pystack is not installed")
    module = compile_extension(tmp_path)
    script = tmp_path / "train.py"
    script.write_text(LOADER, "utf-8")
    core = make_core(tmp_path, os.path.realpath(sys.executable), str(script))
    report = read_core(str(core), "core", limits=PATIENT)
    assert (report.engine, report.stacks.signal, report.crash.frames) == ("gdb", "SIGSEGV", ("decode_block", "decode"))
    assert (report.crash.python, report.crash.module) == ("train.py:load_shard", "shards")
    crashed, *others = report.stacks.threads
    assert (len(others), crashed.crashed, crashed.tid != report.stacks.pid) == (4, True, True)
    assert [frame.language for frame in crashed.frames].index("python") == 2
    assert not report.remarks, "a healthy core needs no remark"
    table = subprocess.run(["nm", "-S", str(module)], capture_output=True, text=True, check=True).stdout
    start, size = next(
        (int(row[0], 16), int(row[1], 16)) for row in map(str.split, table.splitlines()) if row[-1] == "decode_block"
    )
    # With the files, and as on a machine without them.
    for search in (SearchPaths(), SearchPaths(sysroot="/nonexistent")):
        from_notes = read_core(str(core), "core", search, use_gdb=False, use_python=False)
        frame = from_notes.stacks.threads[0].frames[0]
        assert (from_notes.stacks.signal, frame.module, frame.build_id) == (
            "SIGSEGV",
            str(module),
            build_id_of(str(module)),
        )
        assert frame.offset is not None
        assert start <= frame.offset < start + size
        assert from_notes.stacks.threads[0].tid == crashed.tid
    assert read_core(str(core), "core", use_gdb=False, use_python=False).crash.point == report.crash.point


def test_relative_paths_reach_pystack(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """pystack runs in a directory of its own, so the core and the root directory are given absolutely."""
    commands: list[list[str]] = []

    def record(command: list[str], *_: object) -> Output:
        commands.append(command)
        return Output("", "", "", 0)

    monkeypatch.setattr(python_frames, "has_pystack", lambda: True)
    monkeypatch.setattr(python_frames, "run_limited", record)
    with contextlib.closing(elf.FileBytes(str(lab.core("null")))) as data:
        core = elf.parse_core(data)
    program = core.executable
    assert program is not None
    files = LocalFiles({program.path: program.path})
    python_frames.add_python_frames((), "cores/core.7", core, files, SearchPaths(sysroot="image"), PATIENT)
    assert os.path.abspath("cores/core.7") in commands[0]
    assert os.path.abspath("image") in commands[0]


def test_crash_point_is_equal_for_all_tools(lab: Lab) -> None:
    """gdb, c10, faulthandler and the core without gdb give one crash point."""
    report = lab.read("uncaught", use_gdb=False)
    text = subprocess.run(
        ["gdb", "--nx", "-batch", "-ex", "bt", str(lab.program("uncaught")), str(lab.core("uncaught"))],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    c10 = (
        "Exception raised from decode at load.cc:7 (most recent call first):\n"
        "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7f1 in /opt/lib/libc10.so)\n"
        "frame #1: void app::Loader::decode<int>(int) + 0x3c (0x7f2 in ./uncaught)\n"
        "frame #2: app::Loader::next(int) + 0xb (0x7f3 in ./uncaught)\n"
    )
    fault = (
        "Fatal Python error: Aborted\n\nCurrent thread 0x00007f4ea6a3c740 (most recent call first):\n"
        "  <no Python frame>\n\n"
        "Current thread's C stack trace (most recent call first):\n"
        '  Binary file "/usr/bin/python3.14", at _Py_DumpStack+0x5e [0x5a3f3c4b3e1e]\n'
        '  Binary file "/lib/libc.so.6", at abort+0xd2 [0x7f4ea6445330]\n'
        '  Binary file "/lib/libstdc++.so.6", at _ZSt9terminatev+0x14 [0x7f4ea6445331]\n'
        '  Binary file "/lib/libstdc++.so.6", at __cxa_throw+0x47 [0x7f4ea6445332]\n'
        '  Binary file "/w/uncaught", at _ZN3app6Loader6decodeIiEEvT_+0x3c [0x7f4ea6a4a109]\n'
        '  Binary file "/w/uncaught", at _ZN3app6Loader4nextEi+0xb [0x7f4ea6a4a119]\n'
    )
    crashes = [reduce_stacks(parse_stacks(printed)[0]) for printed in (text, c10, fault)]
    assert {crash.point for crash in crashes} == {report.crash.point}
    assert {crash.kind for crash in crashes} == {"exception"}
    # In logs, the output of a handler, the output of gdb and the core belong to one cluster.
    terminate = "terminate called after throwing an instance of 'std::runtime_error'\n  what():  bad shard\n"
    facts = [
        fact
        for printed in (text, terminate + c10, fault)
        for fact in extract_text(printed)
        if fact.fields.get("crash_point")
    ]
    assert [fact.kind for fact in facts] == ["crash", "terminate", "fatal-python"]
    core = to_evidence(report, Source("core", "core"))
    assert {name_cluster(fact) for fact in (*facts, core)} == {name_cluster(core)}


def test_cores_of_a_job(lab: Lab, tmp_path: Path) -> None:
    """A compressed or archived core of a job is read, and belongs to the rank with its pid."""
    pid = lab.read("null", use_gdb=False).core.pid
    job = tmp_path / "job"
    job.mkdir()
    (job / "train.log").write_text(
        f"node1:{pid}:{pid} [0] NCCL INFO ncclCommInitRank comm 0x1 rank 3 nranks 8 cudaDev 3 busId 1000 "
        "- Init START\n",
        "utf-8",
    )
    (job / "core.zst").write_bytes(zstandard.compress(lab.core("null").read_bytes()))
    diagnosis = triage.ingest(job)
    assert diagnosis.root_cause is not None
    assert (diagnosis.root_cause.signature, diagnosis.root_cause.ranks) == ("crash.segfault", (3,))
    assert "crash point: segv | read_header | work" in diagnosis.root_cause.evidence[0].text
    with tarfile.open(tmp_path / "heap.tgz", "w:gz") as archive:
        archive.add(lab.core("heap"), "cores/core.1")
    diagnosis = triage.ingest(tmp_path / "heap.tgz")
    assert diagnosis.root_cause is not None
    assert diagnosis.root_cause.signature == "crash.heap-corruption"
    assert diagnosis.root_cause.evidence[0].source == f"{tmp_path}/heap.tgz!/cores/core.1"


def test_damaged_core_of_a_job_is_a_warning(tmp_path: Path) -> None:
    """A core that cannot be read gives a warning and no exception."""
    (tmp_path / "core.1").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x04\x00\x3e\x00" + bytes(44))
    result = CoreReader().read([Artifact(Source("core.1", "core", 64, str(tmp_path / "core.1")), b"")])
    assert [warning.code for warning in result.warnings] == ["damaged-artifact"]


def test_large_archived_core_keeps_its_stacks(lab: Lab) -> None:
    """Above the cap only what stacks need is in memory, with the same report."""
    with lab.core("threads").open("rb") as stream:
        core, first = reader.spool_core(stream, cap=1 << 19)  # type: ignore[arg-type]
    assert core.is_partial
    assert first[:4] == b"\x7fELF"
    size = os.stat(core.path).st_blocks * 512
    assert size < lab.core("threads").stat().st_size
    report = read_core(core.path, "spooled", limits=PATIENT)
    assert (report.engine, report.crash.frames[0], len(report.stacks.threads)) == ("gdb", "read_header", 200)
    assert digest_core(core.path) == digest_core(str(lab.core("threads")))


def test_digest_of_a_core(lab: Lab, tmp_path: Path) -> None:
    """A byte of the notes or of a stack counts; a copy has the same digest, and cores of two crashes have two."""
    path = lab.core("null")
    digest = digest_core(str(path))
    (tmp_path / "copy").write_bytes(path.read_bytes())
    assert digest_core(str(tmp_path / "copy")) == digest != digest_core(str(lab.core("threads")))
    core = lab.read("null", use_gdb=False).core
    stack = core.segment_at(core.threads[0].sp)
    assert stack is not None
    for offset in (stack.offset + core.threads[0].sp - stack.start, 0x18, elf.notes_end(path.read_bytes()) - 1):
        changed = bytearray(path.read_bytes())
        changed[offset] ^= 1
        (tmp_path / "changed").write_bytes(changed)
        assert digest_core(str(tmp_path / "changed")) != digest
    (tmp_path / "damaged").write_bytes(path.read_bytes()[:200])
    assert digest_core(str(tmp_path / "damaged")) != digest


def test_core_command(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """Text shows the crash point and, with --explain, the rule of each step; JSON contains the crash."""

    def command(*argv: str) -> tuple[int, str, str]:
        status = main(list(argv))
        out, err = capsys.readouterr()
        return status, out, err

    status, text, _ = command("core", str(lab.core("heap")), "--explain")
    assert status == 0
    assert "heap-corruption | release" in text
    assert "abort.txt:" in text
    status, text, _ = command("core", str(lab.core("heap")), "--no-gdb", "--format", "json")
    document = json.loads(text)["cores"][0]
    assert (document["signal"], document["engine"], document["crash"]["frames"][0]) == ("SIGABRT", "notes", "release")
    (lab.directory / "plain.log").write_text("step 1\n", "utf-8")
    status, _, error = command("core", str(lab.directory / "plain.log"))
    assert status == 2
    assert "no core file" in error
    status, _, error = command("core", str(lab.program()))
    assert status == 2
    assert "--exe" in error


def test_recursion_is_shown_in_two_lines(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """A repeated frame is shown once, with how often it repeats."""
    assert main(["core", str(lab.core("overflow")), "--timeout", "120"]) == 0
    text, _ = capsys.readouterr()
    assert text.count("in walk ()") <= 3
    assert "times more, up to #" in text


def test_deadlocked_threads_are_named(lab: Lab, tmp_path: Path) -> None:
    """The core of a deadlocked process names the threads, with gdb and without."""
    core = make_core(tmp_path, str(compile_program(tmp_path, "train", DEADLOCK)), "end")
    for use_gdb in (True, False):
        report = read_core(str(core), "core", use_gdb=use_gdb, limits=PATIENT)
        [sentence] = [sentence for code, sentence in report.remarks if code == "core-deadlock"]
        assert sentence.endswith("wait for locks of each other")
        assert "(in main)" in sentence or not use_gdb
    assert not [code for code, _ in lab.read("threads", use_gdb=False).remarks if code == "core-deadlock"]


HOSTILE = """
import pathlib
pathlib.Path({marker!r}).write_text("ran")
"""


def test_no_code_of_the_program_runs_in_gdb(lab: Lab, tmp_path: Path) -> None:
    """Scripts in the binary and next to it run in a default gdb, but not in triage's."""
    marker = tmp_path / "marker"
    payload = HOSTILE.format(marker=str(marker)).strip().replace("\n", "; ")
    section = (
        'asm(".pushsection \\".debug_gdb_scripts\\", \\"MS\\",@progbits,1\\n.byte 4\\n.ascii \\"gdb.inlined\\\\n\\"\\n'
        f'.ascii \\"{payload}\\"\\n.byte 0\\n.popsection");'
    )
    program = compile_program(tmp_path, "victim", section.replace('"ran"', "'ran'") + "\n" + C)
    (tmp_path / "victim-gdb.py").write_text(HOSTILE.format(marker=str(marker)), "utf-8")
    (tmp_path / ".gdbinit").write_text("set auto-load safe-path /\n", "utf-8")
    core = make_core(tmp_path, str(program), "null")
    marker.unlink(missing_ok=True)
    assert read_core(str(core), "core", limits=PATIENT).crash.frames[0] == "read_header"
    assert not marker.exists()
    subprocess.run(
        ["gdb", "--nx", "-batch", "-iex", "set auto-load safe-path /", str(program), str(core)],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
    )
    assert marker.exists(), "the trap does not work, so the test proves nothing"


def is_alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for_end(pid: int) -> None:
    """Wait until a killed process has ended, which takes time on a busy machine."""
    for _ in range(100):
        if not is_alive(pid):
            return
        time.sleep(0.1)
    raise AssertionError(f"{pid} still runs")


def test_hanging_gdb_is_killed(tmp_path: Path) -> None:
    """At the deadline gdb and its children are killed."""
    pids = tmp_path / "pids"
    hang = f'-interpreter-exec console "shell sleep 1000 & echo $PPID $$ $! > {pids}; wait"\n'
    output = run_limited(gdb.command_line("gdb"), hang, Limits(seconds=1.5), str(tmp_path), {"PATH": "/usr/bin:/bin"})
    assert output.stopped_by == "deadline"
    gdb_itself, shell, sleep = map(int, pids.read_text("utf-8").split())
    for pid in (gdb_itself, shell, sleep):
        wait_for_end(pid)


def test_slow_gdb_is_replaced_by_the_notes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gdb that is stopped leaves no process, and the notes give the report."""
    started: list[subprocess.Popen[bytes]] = []

    class Watched(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: object, **options: object) -> None:
            super().__init__(*args, **options)  # type: ignore[call-overload]
            started.append(self)

    monkeypatch.setattr(limited_process.subprocess, "Popen", Watched)
    report = read_core(str(lab.core("null")), "core", limits=Limits(seconds=0.02))
    assert report.engine == "notes"
    assert any("gdb was stopped" in sentence for _, sentence in report.remarks)
    assert [process.args[0].rsplit("/", 1)[-1] for process in started] == ["gdb"]  # type: ignore[union-attr]
    wait_for_end(started[0].pid)
    assert not [stat for stat in Path("/proc").glob("[0-9]*/stat") if group_of(stat) == started[0].pid]


def group_of(stat: Path) -> int:
    """Return the process group of a running process, else 0."""
    try:
        fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 0 if fields[0] in "ZX" else int(fields[2])


def test_output_is_capped(tmp_path: Path) -> None:
    """A process that prints too much is stopped."""
    output = run_limited(
        ["/bin/sh", "-c", "while :; do echo aaaaaaaaaaaaaaaa; done"],
        "",
        Limits(seconds=30, output=1 << 20),
        str(tmp_path),
    )
    assert output.stopped_by == "output"
    assert len(output.text) < 1 << 21


def test_command_line_of_gdb_is_hardened() -> None:
    """Auto-loading is switched off first, and init files are not read."""
    line = gdb.command_line("gdb")
    assert line.index("set auto-load off") < line.index("set pagination off")
    assert {"--nx", "--nh", "set debuginfod enabled off", "set may-call-functions off"} <= set(line)
