"""`triage run` as a process: output, exit status and signals are those of the command; a failure is diagnosed."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAILING = """\
import sys
print("step 1 loss 3.2")
print("a progress", end="\\r", file=sys.stderr)
raise ValueError("the number 7 is cursed")
"""


def start(where: Path, *arguments: str, **options: object) -> subprocess.Popen[bytes]:
    """Start `triage run` in a directory, with a store of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRIAGE_STORE": str(where / "store.db")}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    command = [sys.executable, "-m", "triage", "run", *arguments]
    return subprocess.Popen(command, cwd=where, env=environment, **streams)  # type: ignore[call-overload, no-any-return]


def run(where: Path, *arguments: str, **options: object) -> tuple[int, bytes, bytes]:
    """Run `triage run` to its end: (status, standard output, standard error)."""
    process = start(where, *arguments, **options)
    out, errors = process.communicate(timeout=60)
    return process.returncode, out, errors


def python(text: str) -> tuple[str, ...]:
    return ("--", sys.executable, "-c", text)


def wait_for(path: Path, text: str) -> None:
    """Wait until a file has the text."""
    for _ in range(600):
        if path.exists() and text in path.read_text(errors="replace"):
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} has no {text!r}")


def test_a_failed_command_is_diagnosed(tmp_path: Path) -> None:
    """Both streams come unchanged, the report follows on standard error, and the exit status is the command's."""
    status, out, errors = run(tmp_path, "-o", "logs", *python(FAILING))
    assert (status, out) == (1, b"step 1 loss 3.2\n")
    own, _, report = errors.partition(b"is cursed\n")
    assert own.startswith(b"a progress\rTraceback")
    assert b"ValueError: the number 7 is cursed" in report
    assert b"console.log:" in report
    assert (tmp_path / "store.db").exists()
    lines = (tmp_path / "logs" / "console.log").read_text().splitlines()
    assert "step 1 loss 3.2" in lines  # the streams are two pipes: which comes first is open
    assert lines[-1] == "Command exited with non-zero status 1"


def test_a_good_command_is_left_alone(tmp_path: Path) -> None:
    """Nothing is added to its output and nothing is stored; what it wrote is saved."""
    assert run(tmp_path, *python("print('ok')")) == (0, b"ok\n", b"")
    (directory,) = tmp_path.iterdir()
    assert directory.name.startswith("triage-run-")
    assert (directory / "console.log").read_text() == "ok\n"


@pytest.mark.parametrize("status", [3, 255])
def test_the_exit_status_is_kept(tmp_path: Path, status: int) -> None:
    """Any exit status of the command is that of `triage run`."""
    assert run(tmp_path, "--no-store", *python(f"raise SystemExit({status})"))[0] == status


def test_a_death_by_a_signal_is_128_and_its_number(tmp_path: Path) -> None:
    """The report names the signal, which only the parent of a killed process knows."""
    status, _, errors = run(tmp_path, "--no-store", *python("import os; os.kill(os.getpid(), 9)"))
    assert status == 137
    assert b"SIGKILL" in errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_are_passed_on(tmp_path: Path, number: signal.Signals) -> None:
    """The command gets a signal that `triage run` gets, once, and may end well."""
    text = f"""
import signal, sys, time
signal.signal({int(number)}, lambda n, _: (print("got", n), time.sleep(0.5), sys.exit(0)))
print("ready")
time.sleep(60)
"""
    process = start(tmp_path, "-o", "logs", *python(text))
    wait_for(tmp_path / "logs" / "console.log", "ready")
    process.send_signal(number)
    assert process.communicate(timeout=60) == (f"ready\ngot {int(number)}\n".encode(), b"")
    assert process.returncode == 0


def test_ctrl_c_of_a_terminal_comes_once(tmp_path: Path) -> None:
    """The terminal sends SIGINT to the command too, so it is not passed on."""
    text = """
import signal, time
count = 0
def note(*_):
    global count
    count += 1
signal.signal(signal.SIGINT, note)
print("ready")
end = time.monotonic() + 30
while not count and time.monotonic() < end: time.sleep(0.05)
time.sleep(0.5)
print("interrupts:", count)
"""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.environ |= {"PYTHONPATH": str(ROOT), "TRIAGE_STORE": "off"}
        os.execv(sys.executable, [sys.executable, "-m", "triage", "run", "-o", "logs", *python(text)])
    wait_for(tmp_path / "logs" / "console.log", "ready")
    os.write(terminal, b"\x03")
    wait_for(tmp_path / "logs" / "console.log", "interrupts: 1")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(terminal)


def test_standard_input_is_that_of_the_command(tmp_path: Path) -> None:
    """The command reads what is written to `triage run`."""
    process = start(tmp_path, *python("print(input())"), stdin=subprocess.PIPE)
    assert process.communicate(b"hello\n", timeout=60)[0] == b"hello\n"


def test_a_closed_reader_does_not_end_the_command(tmp_path: Path) -> None:
    """`triage run … | head` lets the job go on, and the log has everything."""
    read, write = os.pipe()
    os.close(read)
    status, _, _ = run(tmp_path, "-o", "logs", *python("for n in range(9): print(n)"), stdout=write)
    os.close(write)
    assert status == 0
    assert (tmp_path / "logs" / "console.log").read_text().split() == [str(n) for n in range(9)]


def test_a_process_that_stays_behind_delays_nothing(tmp_path: Path) -> None:
    """A grandchild that keeps the streams open does not keep `triage run`."""
    text = "import subprocess, sys; subprocess.Popen(['sleep', '30']); print('over')"
    began = time.monotonic()
    process = start(tmp_path, *python(text), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert process.wait(timeout=25) == 0
    assert time.monotonic() - began < 25


def test_lines_of_both_streams_stay_whole(tmp_path: Path) -> None:
    """The log has every line of both streams, none within another."""
    text = """
import os, threading
def write(fd):
    for n in range(300):
        line = b"%d:%d:" % (fd, n) + b"x" * 300
        os.write(fd, line[:200]); os.write(fd, line[200:] + b"\\n")
threads = [threading.Thread(target=write, args=(fd,)) for fd in (1, 2)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
"""
    run(tmp_path, "-o", "logs", *python(text))
    lines = (tmp_path / "logs" / "console.log").read_text().splitlines()
    assert sorted(lines) == sorted(f"{fd}:{n}:{'x' * 300}" for fd in (1, 2) for n in range(300))


def test_options_behind_the_command_are_its_own(tmp_path: Path) -> None:
    """Without `--` too: `-o` behind the command is not read by `triage run`."""
    status, out, _ = run(tmp_path, sys.executable, "-c", "import sys; print(sys.argv[1:])", "-o", "x", "--help")
    assert (status, out) == (0, b"['-o', 'x', '--help']\n")


def test_files_of_the_job_are_diagnosed_too(tmp_path: Path) -> None:
    """`--logs` names what the job writes itself; a path that was never written is left out."""
    text = f"open('own.log', 'w').write({FAILING!r} and 'RuntimeError: CUDA out of memory'); raise SystemExit(1)"
    own = text.replace("RuntimeError: CUDA", "torch.OutOfMemoryError: CUDA")
    errors = run(tmp_path, "--no-store", "--logs", "own.log", "--logs", "never.log", *python(own))[2]
    assert b"own.log:1" in errors


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--", "no-such-program"), "no-such-program cannot be started: No such file"),
        (("-o", "file/logs", "--", "true"), "cannot write file/logs"),
        ((), "missing argument"),
    ],
)
def test_what_cannot_run_is_an_error(tmp_path: Path, arguments: tuple[str, ...], reason: str) -> None:
    """The exit status is 2, with the reason and what to do."""
    (tmp_path / "file").write_text("")
    status, _, errors = run(tmp_path, *arguments)
    assert status == 2
    assert reason in errors.decode().lower() or reason in errors.decode()
    assert b"  try: " in errors


def test_a_store_that_cannot_be_used_changes_no_status(tmp_path: Path) -> None:
    """The report says that it was not stored; the exit status stays that of the command."""
    (tmp_path / "broken.db").write_text(json.dumps("no database" * 1000))
    status, _, errors = run(tmp_path, "--store", "broken.db", *python(FAILING))
    assert status == 1
    assert b"not stored" in errors


def test_a_missing_route_is_an_error_before_the_command_starts(tmp_path: Path) -> None:
    """With `--notify` and no route nothing runs: at the end the report would be missing, too."""
    settings = {**os.environ, "TRIAGE_CONFIG": str(tmp_path / "none.toml"), "PYTHONPATH": str(ROOT)}
    (tmp_path / "none.toml").write_text("")
    command = [sys.executable, "-m", "triage", "run", "--notify", "--", "touch", "started"]
    done = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, check=False, timeout=60)
    assert (done.returncode, (tmp_path / "started").exists()) == (2, False)
    assert b"--notify needs a route" in done.stderr


def test_a_broken_store_does_not_cost_the_report_of_a_notification(tmp_path: Path) -> None:
    """With `--notify` too the report comes, and says that it was not stored."""
    (tmp_path / "broken.db").write_text(json.dumps("no database" * 1000))
    (tmp_path / "triage.toml").write_text('[[routing.routes]]\nto = "slack:C1"\n')
    settings = {**os.environ, "TRIAGE_CONFIG": str(tmp_path / "triage.toml"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "triage", "run", "--notify", "--store", "broken.db", *python(FAILING)]
    done = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, check=False, timeout=60)
    assert done.returncode == 1
    assert b"UNKNOWN FAILURE" in done.stderr
    assert b"not stored" in done.stderr


def test_a_notified_failure_says_that_it_came_before(tmp_path: Path) -> None:
    """The report of the second job with the same cause says so with `--notify`, as it does without."""
    (tmp_path / "triage.toml").write_text('[[routing.routes]]\nto = "slack:C1"\n')
    settings = {**os.environ, "TRIAGE_CONFIG": str(tmp_path / "triage.toml"), "PYTHONPATH": str(ROOT)}
    reports = []
    for loss in ("3.2", "3.4"):
        command = [sys.executable, "-m", "triage", "run", "--notify", "--store", "s.db"]
        command += python(FAILING.replace("3.2", loss))
        done = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, check=False, timeout=60)
        reports.append(done.stderr.decode())
    assert ["Second time" in report for report in reports] == [False, True]


def test_logs_of_earlier_runs_are_not_read(tmp_path: Path) -> None:
    """A directory of logs that many jobs share has the failures of others; files that this job wrote are read."""
    shared = tmp_path / "shared"
    shared.mkdir()
    earlier = shared / "worker-1.log"
    earlier.write_text("Traceback (most recent call last):\n  File 'a.py', line 1\nKeyError: 'of an earlier job'\n")
    os.utime(earlier, (time.time() - 60, time.time() - 60))
    text = (
        f"open({str(shared / 'worker-2.log')!r}, 'w').write('Traceback (most recent call last):\\n"
        '  File "b.py", line 1, in f\\nValueError: of this job\\n\'); raise SystemExit(1)'
    )
    status, _, errors = run(tmp_path, "-o", "logs", "--logs", "shared", *python(text))
    assert status == 1
    assert b"ValueError: of this job" in errors
    assert b"of an earlier job" not in errors
    assert b"1 file was not read: unchanged since the job started" in errors
