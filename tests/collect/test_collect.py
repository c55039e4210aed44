"""`triage collect` on processes that really run."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

import triage
from tests.artifacts.crashing import DEADLOCK, build, needs
from triage.base.errors import InputError
from triage.cli import main
from triage.collect import collect, logs, steps
from triage.collect.processes import Target, targets
from triage.sources import Limits, discover, streams

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux has /proc")
MARK = "triage-collect-test"
SPY = """#!/bin/sh
echo "Process 5: python train.py"
echo "Python v3.11.7 (/usr/bin/python3)"
echo
echo 'Thread 5 (idle): "MainThread"'
echo "    all_reduce (torch/distributed/distributed_c10d.py:3252)"
echo "    <module> (train.py:9)"
"""


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that a launcher would have started as rank 3, with secrets in its environment."""
    secrets = {"MY_API_TOKEN": "hunter2hunter2", "WANDB_API_KEY": "k" * 40, "DB_URL": "postgres://me:pa55word@db/x"}
    environ = {"RANK": "3", "WORLD_SIZE": "4", "NCCL_ALGO": "Ring", **secrets}
    with (tmp_path / "rank3.log").open("wb") as log:
        command = [sys.executable, "-c", "import time; print('step 7 loss 2.5', flush=True); time.sleep(60)", MARK]
        process = subprocess.Popen(command, env=environ, stdout=log, stderr=log)
    deadline = time.monotonic() + 20
    while not (tmp_path / "rank3.log").read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place that is all of PATH."""
    return only(tmp_path / "bin", monkeypatch)


def only(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place.mkdir()
    monkeypatch.setattr(
        steps.shutil, "which", lambda name, path=None: str(place / name) if (place / name).exists() else None
    )
    return place


def tool(place: Path, name: str, text: str) -> None:
    (place / name).write_text(text)
    (place / name).chmod(0o755)


def content(bundle: Path) -> dict[str, str]:
    with (
        bundle.open("rb") as file,
        tarfile.open(fileobj=zstandard.ZstdDecompressor().stream_reader(file), mode="r|") as archive,
    ):
        return {
            member.name.partition("/")[2] or member.name: archive.extractfile(member).read().decode()
            for member in archive
        }  # type: ignore[union-attr]


def test_the_bundle_holds_what_a_diagnosis_needs(sleeper: subprocess.Popen[bytes], tools: Path, tmp_path: Path) -> None:
    """Stack, states, files, environment and log of the process; ingest sees a dump of rank 3; what is missing is told
    with its reason.
    """
    tool(tools, "py-spy", SPY)
    bundle = tmp_path / "node.tar.zst"
    begun: list[str] = []
    done = collect(bundle, [sleeper.pid], report=begun.append)
    assert [name for name in begun if name in done.names] == done.names
    found = content(bundle)
    here = f"rank3.pid{sleeper.pid}"
    assert "all_reduce" in found[f"{here}/py-spy.txt"]
    assert "NCCL_ALGO=Ring" in found[f"{here}/environ.txt"]
    assert f"tid {sleeper.pid} " in found[f"{here}/status.txt"]
    assert "rank3.log" in found[f"{here}/files.txt"]
    assert "step 7 loss 2.5" in next(text for name, text in found.items() if name.endswith("rank3.log"))
    assert {name.rpartition("/")[2]: why for name, why in done.missing}["gdb.txt"] == "gdb is not installed"
    assert "gdb is not installed" in found["COLLECTED.md"]
    assert bundle.stat().st_mode & 0o077 == 0
    kinds = {
        source.name.rpartition("/")[2]: source.kind
        for source, _ in streams(discover([str(bundle)]).files[0], Limits(), print)
    }
    assert (kinds["py-spy.txt"], kinds["environ.txt"]) == ("py-spy", "environment")


def test_no_secret_gets_into_the_bundle(sleeper: subprocess.Popen[bytes], tools: Path, tmp_path: Path) -> None:
    """Values of secrets in the environment are left out, their names stay."""
    collect(tmp_path / "node.tar.zst", [sleeper.pid])
    text = "\n".join(content(tmp_path / "node.tar.zst").values())
    assert "MY_API_TOKEN=[redacted]" in text
    assert not [secret for secret in ("hunter2", "kkkkkkkk", "pa55word") if secret in text]


def test_a_tool_that_hangs_is_ended_with_its_children(
    sleeper: subprocess.Popen[bytes], tools: Path, tmp_path: Path
) -> None:
    """At the deadline the tool's whole group is gone, and the reason is told."""
    tool(tools, "py-spy", f"#!/bin/sh\nsleep 71 &\necho $! > {tmp_path}/child\nwait\n")
    with pytest.raises(steps.Missing, match="did not end within"):
        steps.run(("py-spy",), 1.0)
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 10
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(child)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_size_is_bounded(sleeper: subprocess.Popen[bytes], tools: Path, tmp_path: Path) -> None:
    """What does not fit is left out and told; the stacks come first."""
    tool(tools, "py-spy", SPY)
    done = collect(tmp_path / "node.tar.zst", [sleeper.pid], most=300)
    assert [name.rpartition("/")[2] for name in done.names][:1] == ["py-spy.txt"]
    assert done.size <= 300
    assert any("larger than" in why for _, why in done.missing)


def test_processes_are_found(sleeper: subprocess.Popen[bytes]) -> None:
    """By pid, by command line, and by the RANK that a launcher gave them."""
    assert [target.pid for target in targets([sleeper.pid], None)] == [sleeper.pid]
    assert sleeper.pid in [target.pid for target in targets([], MARK)]
    assert (sleeper.pid, 3) in [(target.pid, target.rank) for target in targets([], None)]


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that NCCL and CANN were told to write logs for, with a log of its own open and its output in a pipe."""
    home = tmp_path / "home"
    (home / "ascend/log/debug/plog").mkdir(parents=True)
    environ = {"RANK": "0", "WORLD_SIZE": "1", "NCCL_DEBUG_FILE": "logs/nccl.%h.%p.100%%.txt", "HOME": str(home)}
    code = "import time; log = open('train.log', 'w'); log.write('epoch 3\\n'); log.flush(); print('up', flush=True); time.sleep(60)"
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=environ, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def target(process: subprocess.Popen[bytes], **environ: str) -> Target:
    """The process, with another environment."""
    (found,) = targets([process.pid], None)
    return replace(found, environ={**(found.environ or {}), **environ})


def test_logs_are_where_the_process_says(writer: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """NCCL's pattern holds in the directory of the process, with the short name of the host; CANN's logs lie in its
    home.
    """
    host = os.uname().nodename.partition(".")[0]
    nccl = tmp_path / f"logs/nccl.{host}.{writer.pid}.100%.txt"
    nccl.parent.mkdir()
    nccl.write_text("NCCL INFO comm\n")
    plog = tmp_path / f"home/ascend/log/debug/plog/plog-{writer.pid}_20261121103000123.log"
    plog.write_text("[ERROR] HCCL\n")
    plog.with_name("plog-1_20261121103000123.log").write_text("of another process\n")
    texts = {each.name: steps.tail(each) for each in logs.of(target(writer)) if isinstance(each, logs.Log)}
    expected = {str(tmp_path / "train.log"): "epoch 3\n", str(nccl): "NCCL INFO comm\n", str(plog): "[ERROR] HCCL\n"}
    assert {name: text for name, text in texts.items() if name.startswith(str(tmp_path))} == expected


def test_logs_that_are_not_there_are_told(writer: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """Each log that the process was told to write and that is nowhere has its reason, and so has output that goes
    elsewhere.
    """
    found = [
        each for each in logs.of(target(writer, ASCEND_PROCESS_LOG_PATH="plogs")) if not isinstance(each, logs.Log)
    ]
    told = dict(found)
    assert "/dev/null" in told["output"]
    assert f"{tmp_path}/logs/nccl." in told["nccl-log"]
    assert f"{tmp_path}/plogs" in told["hccl-log"]
    assert not [each for each in logs.of(target(writer, NCCL_DEBUG_FILE="/dev/stderr")) if each[0] == "nccl-log"]


def test_a_process_cannot_have_others_files_read(writer: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """A name in the environment leads to no file that the process's user could not read."""
    secret = tmp_path / "secret"
    secret.write_text("hush\n")
    secret.chmod(0o600)
    log = logs.Log(str(secret), secret, owner=os.getuid() + 1)
    with pytest.raises(steps.Missing, match="another user"):
        steps.tail(log)
    secret.chmod(0o644)
    assert steps.tail(log) == "hush\n"


STARTING = """Process {pid}: python train.py
Python v3.11.7 (/usr/bin/python3)

Thread {pid} (active+gil): "MainThread"
    {inner}
    <module> (torch/_dynamo/config.py:{line})
    _call_with_frames_removed (<frozen importlib._bootstrap>:241)
    _find_and_load (<frozen importlib._bootstrap>:1178)
    <module> (train.py:2)
"""


@pytest.mark.parametrize(("age", "blamed"), [(9, False), (900, True)])
def test_a_job_that_starts_has_no_odd_ranks(tmp_path: Path, age: int, blamed: bool) -> None:
    """Who imports modules seconds after it began is on its way; who still does after a quarter of an hour is the one
    that is waited for.
    """
    waiting = "rendezvous (torch/distributed/rendezvous.py:9)\n    init_process_group (torch/distributed/distributed_c10d.py:9)\n    <module> (train.py:4)"
    for rank in range(3):
        (place := tmp_path / f"node/rank{rank}.pid{50 + rank}").mkdir(parents=True)
        dump = STARTING.format(pid=50 + rank, inner="compile (<string>:1)", line=rank)
        (place / "py-spy.txt").write_text(dump if rank == 2 else dump[: dump.index("    compile")] + f"    {waiting}\n")
        status = f"tid {50 + rank} comm python state S (sleeping) wchan futex_do_wait syscall 202 0x1 call futex\n\n"
        (place / "status.txt").write_text(f"{status}began {age} s before this was taken\nTgid:\t{50 + rank}\n")
    found = triage.ingest(tmp_path)
    if blamed:
        assert found.root_cause is not None
        assert found.root_cause.ranks == (2,)
    else:
        assert found.verdict == "clean"
        assert any("rank 2 still imported modules" in warning.message for warning in found.warnings)


def test_what_could_not_be_had_is_told_by_ingest(sleeper: subprocess.Popen[bytes], tools: Path, tmp_path: Path) -> None:
    """The reader of a bundle learns why a stack is missing, and of no missing nvidia-smi."""
    collect(tmp_path / "node.tar.zst", [sleeper.pid])
    found = [
        warning.message
        for warning in triage.ingest(tmp_path / "node.tar.zst").warnings
        if warning.code == "not-collected"
    ]
    assert {
        f"`triage collect` could not get {piece}.txt: {piece} is not installed" for piece in ("gdb", "py-spy")
    } <= set(found)
    assert "nvidia" not in "".join(found)


def test_nobody_there_is_an_error_with_a_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No process: status 2, what to do, and no file."""
    with pytest.raises(InputError):
        targets([], "no such command line " + "x" * 40)
    assert main(["collect", "--pid", str(2**22 + 7), "-o", str(tmp_path / "x.tar.zst")]) == 2
    assert "pgrep" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_what_started_us_is_no_rank(sleeper: subprocess.Popen[bytes]) -> None:
    """A pattern that stands on our own command line, and on that of sudo before us, finds neither."""
    code = f"from triage.collect.processes import targets; print([target.pid for target in targets((), {MARK!r})])"
    shell = f"{sys.executable} -c '{code.replace(chr(39), chr(34))}'; true"
    said = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout
    assert said.split() == [f"[{sleeper.pid}]"]


def test_threads_that_wait_for_the_mutexes_of_each_other_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads of C in a deadlock: the bundle of a node without any tool says so, since the kernel tells the lock
    and the lock its holder.
    """
    needs("gcc")
    program = build(tmp_path, "train", DEADLOCK)
    only(tmp_path / "bin", monkeypatch)
    log = tmp_path / "rank2.log"
    with log.open("wb") as output:
        process = subprocess.Popen([str(program)], env={"RANK": "2", "WORLD_SIZE": "4"}, stdout=output)
    try:
        deadline = time.monotonic() + 20
        while _sleeping(process.pid) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        collect(tmp_path / "node.tar.zst", [process.pid])
    finally:
        process.kill()
        process.wait()
    root = triage.ingest(tmp_path / "node.tar.zst").root_cause
    assert root is not None
    assert (root.signature, root.ranks) == ("torch.thread-deadlock", (2,))
    assert any("for one of the main thread" in why for why in root.why)


def _sleeping(pid: int) -> int:
    """How many threads wait for a mutex: the second and third argument of futex."""
    calls = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/syscall")]
    return sum(call[2:4] == ["0x80", "0x2"] for call in calls)


def test_a_process_behind_a_chroot_says_why_py_spy_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """py-spy looks for the program by its path, which is another one outside; the reason names the root directory."""
    needs("gcc")
    if os.getuid():
        pytest.skip("only root may change the root directory")
    build(tmp_path, "train", "#include <unistd.h>\nint main(void) { return pause(); }", "-static")
    tools = only(tmp_path / "bin", monkeypatch)
    (tools / "py-spy").write_text("#!/bin/sh\necho 'Error: No such file or directory (os error 2)' >&2\nexit 1\n")
    (tools / "py-spy").chmod(0o755)
    process = subprocess.Popen(["/train"], preexec_fn=lambda: os.chroot(tmp_path))
    try:
        done = collect(tmp_path / "node.tar.zst", [process.pid])
    finally:
        process.kill()
        process.wait()
    [reason] = [why for name, why in done.missing if name.endswith("py-spy.txt")]
    assert str(tmp_path) in reason
