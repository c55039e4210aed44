"""`triage collect` on processes that really run."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from triage.cli import main
from triage.collect import collect, steps
from triage.collect.processes import targets
from triage.errors import InputError
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
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setattr(steps.shutil, "which", lambda name, path=None: str(place / name) if (place / name).exists() else None)
    return place


def tool(place: Path, name: str, text: str) -> None:
    (place / name).write_text(text)
    (place / name).chmod(0o755)


def content(bundle: Path) -> dict[str, str]:
    with bundle.open("rb") as file, tarfile.open(fileobj=zstandard.ZstdDecompressor().stream_reader(file), mode="r|") as archive:
        return {member.name.partition("/")[2] or member.name: archive.extractfile(member).read().decode() for member in archive}  # type: ignore[union-attr]


def test_the_bundle_holds_what_a_diagnosis_needs(sleeper: subprocess.Popen[bytes], tools: Path, tmp_path: Path) -> None:
    """Stack, states, files, environment and log of the process; ingest sees a dump of rank 3; what is missing is told with its reason."""
    tool(tools, "py-spy", SPY)
    bundle = tmp_path / "node.tar.zst"
    done = collect(bundle, [sleeper.pid])
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
    kinds = {source.name.rpartition("/")[2]: source.kind for source, _ in streams(discover([str(bundle)]).files[0], Limits(), print)}
    assert (kinds["py-spy.txt"], kinds["environ.txt"]) == ("py-spy", "environment")


def test_no_secret_gets_into_the_bundle(sleeper: subprocess.Popen[bytes], tools: Path, tmp_path: Path) -> None:
    """Values of secrets in the environment are left out, their names stay."""
    collect(tmp_path / "node.tar.zst", [sleeper.pid])
    text = "\n".join(content(tmp_path / "node.tar.zst").values())
    assert "MY_API_TOKEN=[redacted]" in text
    assert not [secret for secret in ("hunter2", "kkkkkkkk", "pa55word") if secret in text]


def test_a_tool_that_hangs_is_ended_with_its_children(sleeper: subprocess.Popen[bytes], tools: Path, tmp_path: Path) -> None:
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


def test_nobody_there_is_an_error_with_a_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No process: status 2, what to do, and no file."""
    with pytest.raises(InputError):
        targets([], "no such command line " + "x" * 40)
    assert main(["collect", "--pid", str(2**22 + 7), "-o", str(tmp_path / "x.tar.zst")]) == 2
    assert "pgrep" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []
