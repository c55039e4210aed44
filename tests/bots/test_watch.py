"""`triage watch --notify` as a process posts one message per job, edits it, and links the stored incident."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bots.factories import CHANNEL, Bench, texts
from triage.store import Store
from triage.testing.jobs import JobBuilder
from triage.testing.slack import SlackServer

ROOT = Path(__file__).resolve().parents[2]


class Workspace:
    """A directory with settings that route everything to the local Slack."""

    def __init__(self, directory: Path, slack: SlackServer) -> None:
        self.directory = directory
        (directory / "config.toml").write_text(f'[[routing.routes]]\nto = "slack:{CHANNEL}"\n', encoding="utf-8")
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TRIAGE_CONFIG": str(directory / "config.toml"),
            "TRIAGE_STORE": str(directory / "triage.db"),
            "TRIAGE_SLACK_TOKEN": slack.token,
            "TRIAGE_SLACK_API_URL": f"{slack.url}/api/",
            "XDG_STATE_HOME": str(directory / "state"),
        }

    def start(self, *command: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, "-m", "triage", *command],
            env=self.environment,
            cwd=self.directory,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )

    def run(self, *command: str) -> tuple[int, str, str]:
        process = self.start(*command)
        out, errors = process.communicate(timeout=120)
        return process.returncode, out, errors


@pytest.fixture
def workspace(tmp_path: Path, slack: SlackServer) -> Workspace:
    return Workspace(tmp_path, slack)


def test_a_failure_is_posted_edited_and_stored(workspace: Workspace, slack: SlackServer, bench: Bench) -> None:
    """A later cause edits the message, the stored incident takes it over, and ingest adds no message."""
    logs = workspace.directory / "logs"
    job = JobBuilder(logs, layout="perrank", world_size=2).steps(5)
    job.write()
    watch = workspace.start("watch", "logs", "--notify", "--quiet", "--poll", "0.1s")
    time.sleep(1)
    job.rank(1).traceback("RuntimeError: NCCL error: unhandled system error, remote process exited")
    job.rank(0).traceback("RuntimeError: NCCL error: unhandled system error, remote process exited")
    job.write()
    slack.wait(lambda: slack.visible(CHANNEL), 90)
    first = bench.text()
    job.rank(0).log("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
    job.write()
    time.sleep(0.5)
    watch.send_signal(signal.SIGTERM)
    assert watch.communicate(timeout=60)[1] == ""
    (message,) = slack.visible(CHANNEL)
    with Store.open(workspace.directory / "triage.db") as store:
        (incident,) = store.search.list_incidents()
    assert texts(message["blocks"]) != first
    assert incident.id in texts(message["blocks"])
    assert message["blocks"][-1]["type"] == "actions"
    assert workspace.run("ingest", "logs", "--notify", "--quiet")[0] == 0
    assert slack.visible(CHANNEL) == [message]
    assert len(slack.visible(CHANNEL, message["ts"])) == 1


# The real watch, killed when it saves its state for the N-th time: 1 before the report, 2 after the post was sent.
KILLED = """
import os, signal, sqlite3, sys, time
from triage.cli import main
from triage.watch import state_file

SENT = "SELECT 1 FROM told_part WHERE ref <> ''"

def save(*arguments, after=state_file.save, times=[]):
    times.append(1)
    while len(times) == 2 and not sqlite3.connect("triage.db").execute(SENT).fetchone():
        time.sleep(0.05)
    if len(times) < 2 or {n} > 1:
        after(*arguments)
    if len(times) == {n}:
        os.kill(os.getpid(), signal.SIGKILL)

state_file.save = save
sys.argv[0] = "triage"
main()
"""


@pytest.mark.parametrize("times", [1, 2])
def test_a_watch_killed_during_a_report_posts_one_message(workspace: Workspace, slack: SlackServer, times: int) -> None:
    """SIGKILL before the post, or between the post and its record, leaves one message without repeats."""
    logs = workspace.directory / "logs"
    job = JobBuilder(logs, world_size=2).steps(5)
    job.rank(1).traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
    job.elastic_table({1: 1}).write()
    script = KILLED.replace("{n}", str(times))
    command = [sys.executable, "-c", script, "watch", "logs", "--notify", "--quiet", "--poll", "0.1s"]
    killed = subprocess.run(
        command, env=workspace.environment, cwd=workspace.directory, capture_output=True, timeout=60
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(slack.visible(CHANNEL)) == times - 1
    assert workspace.run("watch", "logs", "--notify", "--quiet", "--stop-after", "1s")[0] == 0
    (message,) = slack.visible(CHANNEL)
    assert [reply["text"] for reply in slack.visible(CHANNEL, message["ts"]) if "The same" in reply["text"]] == []


def test_a_silent_rank_is_posted_and_closed(workspace: Workspace, slack: SlackServer, bench: Bench) -> None:
    """Rank 3 falls silent while the others continue; then it continues too."""
    logs = workspace.directory / "logs"
    logs.mkdir()
    watch = workspace.start("watch", "logs", "--notify", "--quiet", "--poll", "0.1s")
    while len(os.listdir(f"/proc/{watch.pid}/task")) < 2:  # until its thread that posts is there
        time.sleep(0.05)

    def steps(ranks: range, first: int, last: int, until: str) -> bool:
        for step in range(first, last):
            for rank in ranks:
                with (logs / f"rank_{rank}.log").open("a") as file:
                    file.write(f"[rank{rank}] step {step} loss 2.5\n")
            time.sleep(0.2)
            if until in "".join(message["text"] for message in slack.visible(CHANNEL)):
                return True
        return False

    others = range(4)
    steps(others, 0, 12, "nothing of it yet")
    assert steps(range(3), 12, 120, "Silent: rank 3 wrote nothing")
    assert steps(others, 200, 320, "Back: rank 3 continues")
    watch.send_signal(signal.SIGTERM)
    assert watch.communicate(timeout=60)[1] == ""
    assert len(slack.visible(CHANNEL)) == 1


def test_a_watch_prints_events_while_slack_is_down(workspace: Workspace, slack: SlackServer) -> None:
    """The post waits in the outbox until it is sent again."""
    slack.inject_failure("", "503", times=1000)
    job = JobBuilder(workspace.directory / "logs", world_size=2).steps(5)
    job.rank(1).traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
    job.elastic_table({1: 1}).write()
    status, out, _ = workspace.run("watch", "logs", "--notify", "--quiet", "--stop-after", "2s")
    assert (status, "FAILED" in out) == (0, True)
    slack._failures.clear()
    waiting = json.loads(workspace.run("outbox", "list", "--state", "waiting", "--format", "json")[1])["posts"]
    number = str(waiting[0]["id"])
    assert workspace.run("outbox", "retry", number)[0] == 0
    assert "1 sent" in workspace.run("outbox", "send")[1]
    assert len(slack.visible(CHANNEL)) == 1


def test_notify_without_a_route_is_refused(workspace: Workspace) -> None:
    """The error names what is missing before the watch starts."""
    (workspace.directory / "config.toml").write_text("", encoding="utf-8")
    (workspace.directory / "logs").mkdir()
    assert "--notify needs a route" in workspace.run("watch", "logs", "--notify")[2]
    status, _, errors = workspace.run("ingest", "logs", "--notify", "--no-store")
    assert status == 2
    assert "Traceback" not in errors
