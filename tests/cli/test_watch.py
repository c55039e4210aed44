"""`triage watch` as a process follows files, reports events, runs the hook, and repeats nothing after a restart."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from triage.store import Store
from triage.store.search import Filter

ROOT = Path(__file__).resolve().parents[2]
JOB = ROOT / "samples" / "jobs" / "exception_one_rank_tee" / "job"


def start(directory: Path, state: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "triage", "watch", str(directory), "--state", str(state / "m.json"), *options]
    env = {**os.environ, "TRIAGE_STORE": "off", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def write(directory: Path) -> None:
    """Write the logs of the job."""
    for path in sorted(JOB.rglob("*")):
        if path.is_file():
            (directory / path.name).write_bytes(path.read_bytes())


def test_a_failure_is_reported_once(tmp_path: Path) -> None:
    """It is printed as JSON and given to the hook; a second watch of the same files reports nothing."""
    job, out = tmp_path / "job", tmp_path / "hook.json"
    job.mkdir()
    watch = start(job, tmp_path, "--format", "json", "--exec", f"tee -a {out}")
    time.sleep(1.0)
    write(job)
    assert watch.stdout is not None
    line = watch.stdout.readline()
    watch.send_signal(signal.SIGTERM)
    rest, errors = watch.communicate(timeout=60)
    assert (watch.returncode, errors) == (0, "")
    first = json.loads(line)
    assert (first["schema"], first["event"], first["ranks"]) == ("triage.watch/1", "failure", [2])
    assert first["diagnosis"]["schema"] == "triage.diagnosis/2"
    assert out.read_text() == line + rest
    again = start(job, tmp_path, "--stop-after", "1s", "--poll", "0.1s")
    assert again.communicate(timeout=60) == ("", "")


def test_text_is_for_people(tmp_path: Path) -> None:
    """The text has time, rank and place; without a terminal there is no status line."""
    job = tmp_path / "job"
    job.mkdir()
    write(job)
    done, errors = start(job, tmp_path, "--stop-after", "2s").communicate(timeout=60)
    assert errors == ""
    head, place = done.splitlines()[:2]
    assert "FAILED" in head
    assert "rank 2 on node1: ValueError" in head
    assert place.strip().startswith(f"{job}/console.log:")


def test_the_watched_job_is_stored_with_labels_and_settings(tmp_path: Path) -> None:
    """The diagnosis of a failure has the labels as facts; its settings are stored beside it, to be compared."""
    job, store = tmp_path / "job", tmp_path / "triage.db"
    job.mkdir()
    write(job)
    (job / "env.node1").write_text("PATH=/bin\nPWD=/x\nNCCL_ALGO=Ring\nOMP_NUM_THREADS=4\n")
    labels = ("--label", "team=vision", "--label", "team=cv", "--store", str(store))
    done, errors = start(job, tmp_path, "--format", "json", "--stop-after", "2s", *labels).communicate(timeout=60)
    assert errors == ""
    assert json.loads(done.splitlines()[0])["diagnosis"]["job"]["facts"]["team"] == ["vision", "cv"]
    with Store.open(store) as opened:
        (stored,) = opened.search.list_incidents(Filter(facts=(("team", "cv"),)))
        document = opened.service_data.get_document(opened.incidents.find_number(stored.id), "environment")
    assert document is not None
    assert document["agreed"]["NCCL_ALGO"] == "Ring"


@pytest.mark.parametrize(
    "wrong",
    [
        *(("--stop-after", "soon"), ("--poll", "x"), ("--exec", "'"), ("--stall-least", "-"), ("--idle", "x")),
        ("--label", "team"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, wrong: tuple[str, str]) -> None:
    """The exit status is 2, without a traceback."""
    watch = start(tmp_path, tmp_path, *wrong)
    _, errors = watch.communicate(timeout=60)
    assert watch.returncode == 2
    assert "Traceback" not in errors


def test_a_path_that_does_not_exist_yet_is_named_at_once(tmp_path: Path) -> None:
    """It is waited for; what can never appear is an error that names the missing directory."""
    _, errors = start(tmp_path / "soon", tmp_path, "--stop-after", "1s", "--poll", "0.1s").communicate(timeout=60)
    assert errors == f"warning: {tmp_path / 'soon'} does not exist yet: waiting for it\n"
    never = start(tmp_path / "no" / "where", tmp_path)
    _, errors = never.communicate(timeout=60)
    assert never.returncode == 2
    assert f"nor does the directory {tmp_path / 'no'}" in errors


def watch_on_terminal(directory: Path, state: Path, *options: str) -> str:
    """Return what a watch writes to a terminal on standard error until it stops."""
    terminal, stderr = pty.openpty()
    command = [sys.executable, "-m", "triage", "watch", str(directory), "--state", str(state), *options]
    env = {**os.environ, "TRIAGE_STORE": "off", "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    shown = b""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, env=env):
        os.close(stderr)
        with contextlib.suppress(OSError):  # Linux ends a terminal without writers so
            while piece := os.read(terminal, 1 << 16):
                shown += piece
    os.close(terminal)
    return shown.decode()


def test_the_first_watch_says_what_it_does(tmp_path: Path) -> None:
    """On a terminal, once: not when the watch is started again, and not with --quiet."""
    job, state = tmp_path / "job", tmp_path / "m.json"
    job.mkdir()
    write(job)
    options = ("--stop-after", "1s", "--poll", "0.1s")
    assert "--exec CMD" not in watch_on_terminal(job, tmp_path / "quiet.json", "--quiet", *options)
    assert "--exec CMD" in watch_on_terminal(job, state, *options)
    assert "--exec CMD" not in watch_on_terminal(job, state, *options)


def test_the_status_shows_what_is_read(tmp_path: Path) -> None:
    """While existing lines are read it shows how many bytes of how many; without files that it waits for them."""
    job, options = tmp_path / "job", ("--no-state", "--stop-after", "2s", "--poll", "0.1s")
    job.mkdir()
    assert "\rwaiting for text files" in watch_on_terminal(job, tmp_path / "m", *options)
    (job / "train.log").write_text("step 1 loss 3.2\n" * (20 << 16))
    shown = watch_on_terminal(job, tmp_path / "m", *options)
    assert re.search(r"\rreading 1 file: [\d.]+ MB of 21\.0 MB, \d\d%", shown)
    assert "\rwatching 1 file, 21.0 MB" in shown
