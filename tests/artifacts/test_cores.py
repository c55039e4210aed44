"""Real cores: made here, read with gdb and without."""

from __future__ import annotations

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
from tests.artifacts.crashing import CXX, DEADLOCK, LOADER, C, build, build_extension, core_of, needs
from triage.artifacts.cores import engine, gdb, python, spool
from triage.artifacts.cores.engine import Limits, run
from triage.artifacts.cores.files import Where
from triage.artifacts.cores.model import CoreError
from triage.artifacts.cores.reader import Cores, evidence
from triage.artifacts.cores.report import Report, read
from triage.artifacts.cores.symbols import build_id_of
from triage.artifacts.interface import Artifact
from triage.cli import main
from triage.clusters.fingerprint import name as name_of
from triage.evidence import from_text
from triage.model.evidence import Source
from triage.stacks import parse, reduce

PATIENT = Limits(seconds=120)


class Lab:
    """The programs, and each one's core when it is first asked for."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._cores: dict[str, Path] = {}
        self._programs: dict[str, Path] = {}

    def program(self, name: str = "crash") -> Path:
        if name not in self._programs:
            self._programs[name] = build(self.directory, name, CXX if name == "uncaught" else C)
        return self._programs[name]

    def core(self, mode: str) -> Path:
        if mode not in self._cores:
            command = [str(self.program("uncaught"))] if mode == "uncaught" else [str(self.program()), mode]
            self._cores[mode] = core_of(self.directory, *command)
        return self._cores[mode]

    def read(self, mode: str, **options: object) -> Report:
        return read(str(self.core(mode)), mode, limits=PATIENT, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    needs("gcc", "g++", "gdb")
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
def test_a_crash_through_gdb_and_through_the_notes(
    lab: Lab, mode: str, signal: str, kind: str, frame: str, meaning: str
) -> None:
    """Signal, kind, crash frame and the meaning of the address are right both ways, and the crash point is one."""
    through_gdb, alone = lab.read(mode), lab.read(mode, use_gdb=False)
    assert (through_gdb.engine, alone.engine) == ("gdb", "notes")
    for report in (through_gdb, alone):
        assert (report.stacks.signal, report.crash.kind, report.crash.frames[:1], report.meaning.word) == (
            signal,
            kind,
            (frame,),
            meaning,
        )
        assert report.crash.thread is report.stacks.threads[0]
    assert through_gdb.crash.point == alone.crash.point
    assert {"notes": "context", "gdb": "unwound"}[alone.engine] == alone.stacks.threads[0].frames[0].trust


def test_all_threads_are_there(lab: Lab) -> None:
    """Two hundred threads, each with its own id; the crashed one is the one that got the signal."""
    for report in (lab.read("threads"), lab.read("threads", use_gdb=False)):
        assert len({thread.tid for thread in report.stacks.threads}) == 200
        assert [thread.crashed for thread in report.stacks.threads].count(True) == 1


def test_messages_are_found(lab: Lab) -> None:
    """glibc's last words and a failed assertion come from the core itself."""
    assert "Assertion `x == 1' failed" in lab.read("assert", use_gdb=False).stacks.message
    assert "double free or corruption" in lab.read("heap", use_gdb=False).stacks.message


def test_the_file_behind_a_bus_error_is_named(lab: Lab) -> None:
    """A mapping that lost its file says which file."""
    assert "mapped.bin" in lab.read("bus", use_gdb=False).meaning.sentence


def test_module_and_offset_without_the_program(lab: Lab, tmp_path: Path) -> None:
    """Where the program is gone, the place of the crash is its module, its build-id and an offset inside of the right
    function.
    """
    program = shutil.copy(lab.program(), tmp_path / "gone")
    core = core_of(tmp_path, str(program), "null")
    build_id = build_id_of(str(program))
    table = subprocess.run(["nm", "-S", str(program)], capture_output=True, text=True, check=True).stdout
    start, size = next(
        (int(row[0], 16), int(row[1], 16)) for row in map(str.split, table.splitlines()) if row[-1] == "read_header"
    )
    os.unlink(program)
    for use_gdb in (True, False):
        report = read(str(core), "core", use_gdb=use_gdb)
        frame = report.stacks.threads[0].frames[0]
        assert (frame.module, frame.build_id, frame.function) == (str(program), build_id, "")
        assert frame.offset is not None
        assert start <= frame.offset < start + size
        assert report.crash.frames[0] == f"gone!{build_id[:12]}+{frame.offset:#x}"
        assert any("is not here" in sentence for _, sentence in report.remarks)


def test_another_build_is_said_and_not_used(lab: Lab, tmp_path: Path) -> None:
    """--exe with another build-id: a sentence, and no names guessed from the wrong file."""
    other = build(tmp_path, "other", C.replace("p[18]", "p[19]"))
    report = read(str(lab.core("null")), "core", Where(exe=str(other)), limits=PATIENT)
    assert [code for code, _ in report.remarks if code == "build-id-mismatch"]
    assert report.engine == "notes"
    assert report.stacks.threads[0].frames[0].function == ""
    right = read(str(lab.core("null")), "core", Where(exe=str(lab.program())), limits=PATIENT)
    assert right.crash.frames[0] == "read_header"


def test_symbols_that_lie_apart(lab: Lab, tmp_path: Path) -> None:
    """A stripped program: --debug-dir gives the names back with gdb and without; else both see the same places in it."""
    needs("objcopy", "strip")
    program = Path(shutil.copy(lab.program(), tmp_path / "stripped"))
    build_id = build_id_of(str(program)) or ""
    apart = tmp_path / "debug/.build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    apart.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", str(program), str(apart)], check=True)
    subprocess.run(["strip", str(program)], check=True)
    core = core_of(tmp_path, str(program), "null")
    bare = [read(str(core), "core", use_gdb=use_gdb, limits=PATIENT) for use_gdb in (True, False)]
    assert {report.engine for report in bare} == {"gdb", "notes"}
    assert len({report.crash.frames for report in bare}) == 1
    assert bare[0].crash.frames[1].startswith(f"stripped!{build_id[:12]}+0x")
    for use_gdb in (True, False):
        named = read(str(core), "core", Where(debug_dir=str(tmp_path / "debug")), use_gdb=use_gdb, limits=PATIENT)
        assert named.crash.frames == ("read_header", "work", "main")


def test_a_sysroot_stands_for_the_root(lab: Lab, tmp_path: Path) -> None:
    """Files are looked for below --sysroot, and nowhere else."""
    place = tmp_path / str(lab.program()).lstrip("/")
    place.parent.mkdir(parents=True)
    shutil.copy(lab.program(), place)
    report = read(str(lab.core("null")), "core", Where(sysroot=str(tmp_path)), limits=PATIENT)
    assert report.crash.frames[0] == "read_header"
    assert any("libc" in path for path in report.files.missing)


def test_a_core_that_is_cut(lab: Lab, tmp_path: Path) -> None:
    """What is left is read, and the report says how much is missing."""
    data = lab.core("null").read_bytes()
    (tmp_path / "cut").write_bytes(data[: len(data) // 2])
    report = read(str(tmp_path / "cut"), "cut", use_gdb=False)
    assert (report.stacks.signal, report.core.truncated) == ("SIGSEGV", True)
    assert [code for code, _ in report.remarks if code == "core-truncated"]
    (tmp_path / "stub").write_bytes(data[:100])
    with pytest.raises(CoreError, match="ends before its notes"):
        read(str(tmp_path / "stub"), "stub")


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x04\x00\x03\x00", "32-bit"),
        (b"\x7fELF\x02\x02\x01" + bytes(9) + b"\x00\x04\x00\x15", "big-endian"),
        (b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x04\x00\xf3\x00", "not known here"),
        (b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\x3e\x00", "no core"),
        (b"hello", "no ELF"),
    ],
)
def test_what_is_not_read_says_so(tmp_path: Path, head: bytes, words: str) -> None:
    """Each refusal is a sentence with a hint."""
    (tmp_path / "core").write_bytes(head.ljust(64, b"\0"))
    with pytest.raises(CoreError, match=words) as caught:
        read(str(tmp_path / "core"), "core")
    assert caught.value.hint


def test_a_python_process(lab: Lab, tmp_path: Path) -> None:
    """A crash in an extension module: its function is the crash point, in the thread that called it, and Python's
    frames stand with it.
    """
    if not python.available():
        pytest.skip("pystack is not installed")
    module = build_extension(tmp_path)
    script = tmp_path / "train.py"
    script.write_text(LOADER, "utf-8")
    core = core_of(tmp_path, os.path.realpath(sys.executable), str(script))
    report = read(str(core), "core", limits=PATIENT)
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
    for where in (Where(), Where(sysroot="/nonexistent")):  # with the files, and as on a machine that has none of them
        alone = read(str(core), "core", where, use_gdb=False, use_python=False)
        frame = alone.stacks.threads[0].frames[0]
        assert (alone.stacks.signal, frame.module, frame.build_id) == ("SIGSEGV", str(module), build_id_of(str(module)))
        assert frame.offset is not None
        assert start <= frame.offset < start + size
        assert alone.stacks.threads[0].tid == crashed.tid
    assert read(str(core), "core", use_gdb=False, use_python=False).crash.point == report.crash.point


def test_one_crash_is_one_point_however_it_is_seen(lab: Lab) -> None:
    """gdb's text, a c10 backtrace, faulthandler's C stack and the core without gdb meet in one crash point."""
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
        "Fatal Python error: Aborted\n\nCurrent thread 0x00007f4ea6a3c740 (most recent call first):\n  <no Python frame>\n\n"
        "Current thread's C stack trace (most recent call first):\n"
        '  Binary file "/usr/bin/python3.14", at _Py_DumpStack+0x5e [0x5a3f3c4b3e1e]\n'
        '  Binary file "/lib/libc.so.6", at abort+0xd2 [0x7f4ea6445330]\n'
        '  Binary file "/lib/libstdc++.so.6", at _ZSt9terminatev+0x14 [0x7f4ea6445331]\n'
        '  Binary file "/lib/libstdc++.so.6", at __cxa_throw+0x47 [0x7f4ea6445332]\n'
        '  Binary file "/w/uncaught", at _ZN3app6Loader6decodeIiEEvT_+0x3c [0x7f4ea6a4a109]\n'
        '  Binary file "/w/uncaught", at _ZN3app6Loader4nextEi+0xb [0x7f4ea6a4a119]\n'
    )
    seen = [reduce(parse(given)[0]) for given in (text, c10, fault)]
    assert {crash.point for crash in seen} == {report.crash.point}
    assert {crash.kind for crash in seen} == {"exception"}
    # In logs: what a handler printed, what gdb said, and the core itself belong to one cluster.
    words = "terminate called after throwing an instance of 'std::runtime_error'\n  what():  bad shard\n"
    facts = [
        fact for given in (text, words + c10, fault) for fact in from_text(given) if fact.fields.get("crash_point")
    ]
    assert [fact.kind for fact in facts] == ["crash", "terminate", "fatal-python"]
    core = evidence(report, Source("core", "core"))
    assert {name_of(fact) for fact in (*facts, core)} == {name_of(core)}


def test_cores_of_a_job(lab: Lab, tmp_path: Path) -> None:
    """In a job's directory, compressed or in an archive, a core is read by itself and belongs to the rank with its pid."""
    pid = lab.read("null", use_gdb=False).core.pid
    job = tmp_path / "job"
    job.mkdir()
    (job / "train.log").write_text(
        f"node1:{pid}:{pid} [0] NCCL INFO ncclCommInitRank comm 0x1 rank 3 nranks 8 cudaDev 3 busId 1000 - Init START\n",
        "utf-8",
    )
    (job / "core.zst").write_bytes(zstandard.compress(lab.core("null").read_bytes()))
    found = triage.ingest(job)
    assert found.root_cause is not None
    assert (found.root_cause.signature, found.root_cause.ranks) == ("crash.segfault", (3,))
    assert "crash point: segv | read_header | work" in found.root_cause.evidence[0].text
    with tarfile.open(tmp_path / "heap.tgz", "w:gz") as archive:
        archive.add(lab.core("heap"), "cores/core.1")
    found = triage.ingest(tmp_path / "heap.tgz")
    assert found.root_cause is not None
    assert found.root_cause.signature == "crash.heap-corruption"
    assert found.root_cause.evidence[0].source == f"{tmp_path}/heap.tgz!/cores/core.1"


def test_damage_in_a_job_is_a_warning(tmp_path: Path) -> None:
    """A core that cannot be read stops nothing."""
    (tmp_path / "core.1").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x04\x00\x3e\x00" + bytes(44))
    found = Cores().read([Artifact(Source("core.1", "core", 64, str(tmp_path / "core.1")), b"")])
    assert [warning.code for warning in found.warnings] == ["damaged-artifact"]


def test_a_large_core_in_an_archive_keeps_its_stacks(lab: Lab) -> None:
    """Above the cap only what stacks need is held, and the answer is the same."""
    with lab.core("threads").open("rb") as stream:
        kept, first = spool.keep(stream, cap=1 << 19)  # type: ignore[arg-type]
    assert kept.thinned
    assert first[:4] == b"\x7fELF"
    held = os.stat(kept.path).st_blocks * 512
    assert held < lab.core("threads").stat().st_size
    report = read(kept.path, "kept", limits=PATIENT)
    assert (report.engine, report.crash.frames[0], len(report.stacks.threads)) == ("gdb", "read_header", 200)


def test_the_command(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """Text names the crash point and (--explain) the rule behind each step; JSON carries all of it."""

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


def test_a_recursion_is_shown_in_two_lines(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """The same frame again and again is counted, so that the page holds what is around it."""
    assert main(["core", str(lab.core("overflow")), "--timeout", "120"]) == 0
    text, _ = capsys.readouterr()
    assert text.count("in walk ()") <= 3
    assert "times more, up to #" in text


def test_threads_that_wait_for_the_mutexes_of_each_other_are_named(lab: Lab, tmp_path: Path) -> None:
    """The core of a process in a deadlock says which threads, with gdb and without."""
    core = core_of(tmp_path, str(build(tmp_path, "train", DEADLOCK)), "end")
    for use_gdb in (True, False):
        report = read(str(core), "core", use_gdb=use_gdb, limits=PATIENT)
        [sentence] = [sentence for code, sentence in report.remarks if code == "core-deadlock"]
        assert sentence.endswith("wait for locks of each other")
        assert "(in main)" in sentence or not use_gdb
    assert not [code for code, _ in lab.read("threads", use_gdb=False).remarks if code == "core-deadlock"]


HOSTILE = """
import pathlib
pathlib.Path({marker!r}).write_text("ran")
"""


def test_nothing_beside_or_inside_a_program_runs(lab: Lab, tmp_path: Path) -> None:
    """Scripts in the binary, beside it and in the directory do run in a careless gdb, and do not in ours."""
    marker = tmp_path / "marker"
    payload = HOSTILE.format(marker=str(marker)).strip().replace("\n", "; ")
    section = f'asm(".pushsection \\".debug_gdb_scripts\\", \\"MS\\",@progbits,1\\n.byte 4\\n.ascii \\"gdb.inlined\\\\n\\"\\n.ascii \\"{payload}\\"\\n.byte 0\\n.popsection");'
    program = build(tmp_path, "victim", section.replace('"ran"', "'ran'") + "\n" + C)
    (tmp_path / "victim-gdb.py").write_text(HOSTILE.format(marker=str(marker)), "utf-8")
    (tmp_path / ".gdbinit").write_text("set auto-load safe-path /\n", "utf-8")
    core = core_of(tmp_path, str(program), "null")
    marker.unlink(missing_ok=True)
    assert read(str(core), "core", limits=PATIENT).crash.frames[0] == "read_header"
    assert not marker.exists()
    subprocess.run(
        ["gdb", "--nx", "-batch", "-iex", "set auto-load safe-path /", str(program), str(core)],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
    )
    assert marker.exists(), "the trap does not work, so the test proves nothing"


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for_end(pid: int) -> None:
    """The kernel takes its time with a killed process on a busy machine."""
    for _ in range(100):
        if not is_alive(pid):
            return
        time.sleep(0.1)
    raise AssertionError(f"{pid} still runs")


def test_a_gdb_that_hangs_is_gone(tmp_path: Path) -> None:
    """At the deadline the whole group of a real gdb is killed, its children too."""
    pids = tmp_path / "pids"
    hang = f'-interpreter-exec console "shell sleep 1000 & echo $PPID $$ $! > {pids}; wait"\n'
    output = run(gdb.command("gdb"), hang, Limits(seconds=1.5), str(tmp_path), {"PATH": "/usr/bin:/bin"})
    assert output.ended == "deadline"
    gdb_itself, shell, sleep = map(int, pids.read_text("utf-8").split())
    for pid in (gdb_itself, shell, sleep):
        wait_for_end(pid)


def test_a_gdb_that_is_too_slow_leaves_the_notes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gdb that is stopped while it reads a core leaves no process, and the notes answer instead."""
    started: list[subprocess.Popen[bytes]] = []

    class Watched(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *given: object, **options: object) -> None:
            super().__init__(*given, **options)  # type: ignore[call-overload]
            started.append(self)

    monkeypatch.setattr(engine.subprocess, "Popen", Watched)
    report = read(str(lab.core("null")), "core", limits=Limits(seconds=0.02))
    assert report.engine == "notes"
    assert any("gdb was stopped" in sentence for _, sentence in report.remarks)
    assert [process.args[0].rsplit("/", 1)[-1] for process in started] == ["gdb"]  # type: ignore[union-attr]
    wait_for_end(started[0].pid)
    assert not [place for place in Path("/proc").glob("[0-9]*/stat") if group_of(place) == started[0].pid]


def group_of(stat: Path) -> int:
    """The process group of a living process."""
    try:
        fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 0 if fields[0] in "ZX" else int(fields[2])


def test_output_is_capped(tmp_path: Path) -> None:
    """A debugger that never stops talking is stopped."""
    output = run(
        ["/bin/sh", "-c", "while :; do echo aaaaaaaaaaaaaaaa; done"],
        "",
        Limits(seconds=30, output=1 << 20),
        str(tmp_path),
    )
    assert output.ended == "output"
    assert len(output.text) < 1 << 21


def test_the_command_line_of_gdb_is_hardened() -> None:
    """Auto-loading is off before any file is read, and no init file is."""
    line = gdb.command("gdb")
    assert line.index("set auto-load off") < line.index("set pagination off")
    assert {"--nx", "--nh", "set debuginfod enabled off", "set may-call-functions off"} <= set(line)
