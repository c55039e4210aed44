"""`triage collect` on running processes."""

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
from tests.artifacts.crash_factories import DEADLOCK, compile_program, require_programs
from triage.base.errors import InputError
from triage.cli import main
from triage.collect import collect, logs, probes
from triage.collect.processes import Target, find_targets
from triage.sources import Limits, discover, streams

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux has /proc")
MARK = "triage-collect-test"
PY_SPY_OUTPUT = """#!/bin/sh
echo "Process 5: python train.py"
echo "Python v3.11.7 (/usr/bin/python3)"
echo
echo 'Thread 5 (idle): "MainThread"'
echo "    all_reduce (torch/distributed/distributed_c10d.py:3252)"
echo "    <module> (train.py:9)"
"""


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process like one that a launcher started as rank 3, with secrets in its environment."""
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
    """A directory with the only tools that can be found."""
    return use_only_tools(tmp_path / "bin", monkeypatch)


def use_only_tools(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory.mkdir()
    monkeypatch.setattr(
        probes.shutil, "which", lambda name, path=None: str(directory / name) if (directory / name).exists() else None
    )
    return directory


def tool(directory: Path, name: str, text: str) -> None:
    (directory / name).write_text(text)
    (directory / name).chmod(0o755)


def content(bundle: Path) -> dict[str, str]:
    with (
        bundle.open("rb") as file,
        tarfile.open(fileobj=zstandard.ZstdDecompressor().stream_reader(file), mode="r|") as archive,
    ):
        return {
            member.name.partition("/")[2] or member.name: archive.extractfile(member).read().decode()
            for member in archive
        }  # type: ignore[union-attr]


def test_the_bundle_has_what_a_diagnosis_needs(sleeper: subprocess.Popen[bytes], tools: Path, tmp_path: Path) -> None:
    """It has stacks, states, files, environment and log of the process, and the reasons for missing files."""
    tool(tools, "py-spy", PY_SPY_OUTPUT)
    bundle = tmp_path / "node.tar.zst"
    reported: list[str] = []
    bundle_contents = collect(bundle, [sleeper.pid], report=reported.append)
    assert [name for name in reported if name in bundle_contents.names] == bundle_contents.names
    texts = content(bundle)
    folder = f"rank3.pid{sleeper.pid}"
    assert "all_reduce" in texts[f"{folder}/py-spy.txt"]
    assert "NCCL_ALGO=Ring" in texts[f"{folder}/environ.txt"]
    assert f"tid {sleeper.pid} " in texts[f"{folder}/status.txt"]
    assert "rank3.log" in texts[f"{folder}/files.txt"]
    assert "step 7 loss 2.5" in next(text for name, text in texts.items() if name.endswith("rank3.log"))
    reasons = {name.rpartition("/")[2]: reason for name, reason in bundle_contents.missing}
    assert reasons["gdb.txt"] == "gdb is not installed"
    assert "gdb is not installed" in texts["COLLECTED.md"]
    assert bundle.stat().st_mode & 0o077 == 0
    kinds = {
        source.name.rpartition("/")[2]: source.kind
        for source, _ in streams(discover([str(bundle)]).files[0], Limits(), print)
    }
    assert (kinds["py-spy.txt"], kinds["environ.txt"]) == ("py-spy", "environment")


def test_secrets_are_not_in_the_bundle(sleeper: subprocess.Popen[bytes], tools: Path, tmp_path: Path) -> None:
    """Values of secrets in the environment are redacted, their names stay."""
    collect(tmp_path / "node.tar.zst", [sleeper.pid])
    text = "\n".join(content(tmp_path / "node.tar.zst").values())
    assert "MY_API_TOKEN=[redacted]" in text
    assert not [secret for secret in ("hunter2", "kkkkkkkk", "pa55word") if secret in text]


def test_a_hanging_tool_is_killed_with_its_children(
    sleeper: subprocess.Popen[bytes], tools: Path, tmp_path: Path
) -> None:
    """After the deadline the whole process group is gone, and the reason is given."""
    tool(tools, "py-spy", f"#!/bin/sh\nsleep 71 &\necho $! > {tmp_path}/child\nwait\n")
    with pytest.raises(probes.Unavailable, match="did not end within"):
        probes.run_tool(("py-spy",), 1.0)
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
    """Files that do not fit are listed as missing; the stacks come first."""
    tool(tools, "py-spy", PY_SPY_OUTPUT)
    bundle_contents = collect(tmp_path / "node.tar.zst", [sleeper.pid], max_bytes=300)
    assert [name.rpartition("/")[2] for name in bundle_contents.names][:1] == ["py-spy.txt"]
    assert bundle_contents.size <= 300
    assert any("larger than" in why for _, why in bundle_contents.missing)


def test_processes_are_found(sleeper: subprocess.Popen[bytes]) -> None:
    """They are found by pid, by command line, and by the RANK of a launcher."""
    assert [target.pid for target in find_targets([sleeper.pid], None)] == [sleeper.pid]
    assert sleeper.pid in [target.pid for target in find_targets([], MARK)]
    assert (sleeper.pid, 3) in [(target.pid, target.rank) for target in find_targets([], None)]


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process with logs of NCCL and CANN, an open log of its own, and its output in a pipe."""
    home = tmp_path / "home"
    (home / "ascend/log/debug/plog").mkdir(parents=True)
    environ = {"RANK": "0", "WORLD_SIZE": "1", "NCCL_DEBUG_FILE": "logs/nccl.%h.%p.100%%.txt", "HOME": str(home)}
    code = (
        "import time; log = open('train.log', 'w'); log.write('epoch 3\\n'); log.flush(); print('up', flush=True); "
        "time.sleep(60)"
    )
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
    """Return the process with another environment."""
    (original,) = find_targets([process.pid], None)
    return replace(original, environ={**(original.environ or {}), **environ})


def test_logs_of_nccl_and_cann_are_found(writer: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """NCCL's pattern is relative to the directory of the process; CANN's logs are in its home directory."""
    host = os.uname().nodename.partition(".")[0]
    nccl = tmp_path / f"logs/nccl.{host}.{writer.pid}.100%.txt"
    nccl.parent.mkdir()
    nccl.write_text("NCCL INFO comm\n")
    plog = tmp_path / f"home/ascend/log/debug/plog/plog-{writer.pid}_20261121103000123.log"
    plog.write_text("[ERROR] HCCL\n")
    plog.with_name("plog-1_20261121103000123.log").write_text("of another process\n")
    texts = {each.name: probes.tail(each) for each in logs.find_logs(target(writer)) if isinstance(each, logs.Log)}
    expected = {str(tmp_path / "train.log"): "epoch 3\n", str(nccl): "NCCL INFO comm\n", str(plog): "[ERROR] HCCL\n"}
    assert {name: text for name, text in texts.items() if name.startswith(str(tmp_path))} == expected


def test_missing_logs_have_a_reason(writer: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """Configured logs that do not exist and output that goes elsewhere are listed."""
    logs_or_reasons = logs.find_logs(target(writer, ASCEND_PROCESS_LOG_PATH="plogs"))
    reasons = dict(item for item in logs_or_reasons if not isinstance(item, logs.Log))
    assert "/dev/null" in reasons["output"]
    assert f"{tmp_path}/logs/nccl." in reasons["nccl-log"]
    assert f"{tmp_path}/plogs" in reasons["hccl-log"]
    assert not [each for each in logs.find_logs(target(writer, NCCL_DEBUG_FILE="/dev/stderr")) if each[0] == "nccl-log"]


def test_files_of_other_users_are_not_read(writer: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """A path in the environment gives no file that the user of the process may not read."""
    secret = tmp_path / "secret"
    secret.write_text("hush\n")
    secret.chmod(0o600)
    log = logs.Log(str(secret), secret, owner=os.getuid() + 1)
    with pytest.raises(probes.Unavailable, match="another user"):
        probes.tail(log)
    secret.chmod(0o644)
    assert probes.tail(log) == "hush\n"


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
def test_a_starting_rank_is_not_blamed(tmp_path: Path, age: int, blamed: bool) -> None:
    """A rank that imports modules is blamed only if it started long ago."""
    waiting = (
        "rendezvous (torch/distributed/rendezvous.py:9)\n"
        "    init_process_group (torch/distributed/distributed_c10d.py:9)\n    <module> (train.py:4)"
    )
    for rank in range(3):
        (directory := tmp_path / f"node/rank{rank}.pid{50 + rank}").mkdir(parents=True)
        dump = STARTING.format(pid=50 + rank, inner="compile (<string>:1)", line=rank)
        (directory / "py-spy.txt").write_text(
            dump if rank == 2 else dump[: dump.index("    compile")] + f"    {waiting}\n"
        )
        status = f"tid {50 + rank} comm python state S (sleeping) wchan futex_do_wait syscall 202 0x1 call futex\n\n"
        (directory / "status.txt").write_text(f"{status}began {age} s before this was taken\nTgid:\t{50 + rank}\n")
    diagnosis = triage.ingest(tmp_path)
    if blamed:
        assert diagnosis.root_cause is not None
        assert diagnosis.root_cause.ranks == (2,)
    else:
        assert diagnosis.verdict == "inconclusive"
        assert any("rank 2" in warning.message and "import" in warning.message for warning in diagnosis.warnings)


def test_ingest_warns_of_missing_files(sleeper: subprocess.Popen[bytes], tools: Path, tmp_path: Path) -> None:
    """The warnings name missing stacks with the reason, but not a missing nvidia-smi."""
    collect(tmp_path / "node.tar.zst", [sleeper.pid])
    warnings = triage.ingest(tmp_path / "node.tar.zst").warnings
    messages = {warning.message for warning in warnings if warning.code == "not-collected"}
    for piece in ("gdb", "py-spy"):
        assert f"`triage collect` could not get {piece}.txt: {piece} is not installed" in messages
    assert "nvidia" not in "".join(messages)


def test_a_missing_process_is_an_error_with_a_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit status is 2, and no file is written."""
    with pytest.raises(InputError):
        find_targets([], "no such command line " + "x" * 40)
    assert main(["collect", "--pid", str(2**22 + 7), "-o", str(tmp_path / "x.tar.zst")]) == 2
    assert "pgrep" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_the_command_does_not_find_itself(sleeper: subprocess.Popen[bytes]) -> None:
    """A pattern on its own command line, or on that of sudo, does not match these processes."""
    code = (
        "from triage.collect.processes import find_targets; "
        f"print([target.pid for target in find_targets((), {MARK!r})])"
    )
    shell = f"{sys.executable} -c '{code.replace(chr(39), chr(34))}'; true"
    output = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout
    assert output.split() == [f"[{sleeper.pid}]"]


def test_a_deadlock_of_two_threads_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bundle of a node without tools shows it: the kernel gives the lock, and the lock its owner."""
    require_programs("gcc")
    program = compile_program(tmp_path, "train", DEADLOCK)
    use_only_tools(tmp_path / "bin", monkeypatch)
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
    """Return how many threads wait for a mutex, by the arguments of futex."""
    calls = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/syscall")]
    return sum(call[2:4] == ["0x80", "0x2"] for call in calls)


def test_py_spy_cannot_dump_a_process_in_a_chroot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """py-spy looks for the program by its path inside; the reason names the root directory."""
    require_programs("gcc")
    if os.getuid():
        pytest.skip("only root may change the root directory")
    compile_program(tmp_path, "train", "#include <unistd.h>\nint main(void) { return pause(); }", "-static")
    tools = use_only_tools(tmp_path / "bin", monkeypatch)
    (tools / "py-spy").write_text("#!/bin/sh\necho 'Error: No such file or directory (os error 2)' >&2\nexit 1\n")
    (tools / "py-spy").chmod(0o755)
    process = subprocess.Popen(["/train"], preexec_fn=lambda: os.chroot(tmp_path))
    try:
        bundle_contents = collect(tmp_path / "node.tar.zst", [process.pid])
    finally:
        process.kill()
        process.wait()
    [reason] = [reason for name, reason in bundle_contents.missing if name.endswith("py-spy.txt")]
    assert str(tmp_path) in reason
