"""`triage watch --notify` as a process: posted while the job runs, revised in place, and one message with the incident
that it becomes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bots.making import CHANNEL, Bench, texts
from triage.store import Store
from triage.testing.jobs import JobBuilder
from triage.testing.slack import SlackServer

ROOT = Path(__file__).resolve().parents[2]


class Place:
    """A directory with settings that send everything to the local Slack."""

    def __init__(self, where: Path, slack: SlackServer) -> None:
        self.where = where
        (where / "config.toml").write_text(f'[[routing.routes]]\nto = "slack:{CHANNEL}"\n', encoding="utf-8")
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TRIAGE_CONFIG": str(where / "config.toml"),
            "TRIAGE_STORE": str(where / "triage.db"),
            "TRIAGE_SLACK_TOKEN": slack.token,
            "TRIAGE_SLACK_API_URL": f"{slack.url}/api/",
            "XDG_STATE_HOME": str(where / "state"),
        }

    def start(self, *command: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, "-m", "triage", *command],
            env=self.environment,
            cwd=self.where,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )

    def run(self, *command: str) -> tuple[int, str, str]:
        process = self.start(*command)
        out, errors = process.communicate(timeout=120)
        return process.returncode, out, errors


@pytest.fixture
def place(tmp_path: Path, slack: SlackServer) -> Place:
    return Place(tmp_path, slack)


def test_posted_revised_and_kept(place: Place, slack: SlackServer, bench: Bench) -> None:
    """The first guess is posted while the job runs; the cause that shows later edits it; the incident takes it over;
    ingest adds nothing.
    """
    logs = place.where / "logs"
    job = JobBuilder(logs, layout="perrank", world_size=2).steps(5)
    job.write()
    watch = place.start("watch", "logs", "--notify", "--quiet", "--poll", "0.1s")
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
    with Store.open(place.where / "triage.db") as store:
        (incident,) = store.search.listed()
    assert texts(message["blocks"]) != first
    assert incident.id in texts(message["blocks"])
    assert message["blocks"][-1]["type"] == "actions"
    assert place.run("ingest", "logs", "--notify", "--quiet")[0] == 0
    assert slack.visible(CHANNEL) == [message]
    assert len(slack.visible(CHANNEL, message["ts"])) == 1


# The watch as it is, but killed when it wrote its memory for the N-th time: 1 before it tells, 2 when it was posted and
# is about to remember that.
KILLED = """
import os, signal, sqlite3, sys, time
from triage.cli import main
from triage.watch import memory

def save(*arguments, after=memory.save, times=[]):
    times.append(1)
    while len(times) == 2 and not sqlite3.connect("triage.db").execute("SELECT 1 FROM told_part WHERE ref <> ''").fetchone():
        time.sleep(0.05)
    if len(times) < 2 or {n} > 1:
        after(*arguments)
    if len(times) == {n}:
        os.kill(os.getpid(), signal.SIGKILL)

memory.save = save
sys.argv[0] = "triage"
main()
"""


@pytest.mark.parametrize("times", [1, 2])
def test_killed_while_it_tells(place: Place, slack: SlackServer, times: int) -> None:
    """SIGKILL before the post, or after it and before it is remembered: one message, once told, whose count of repeats
    is right (none).
    """
    logs = place.where / "logs"
    job = JobBuilder(logs, world_size=2).steps(5)
    job.rank(1).traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
    job.elastic_table({1: 1}).write()
    script = KILLED.replace("{n}", str(times))
    command = [sys.executable, "-c", script, "watch", "logs", "--notify", "--quiet", "--poll", "0.1s"]
    killed = subprocess.run(command, env=place.environment, cwd=place.where, capture_output=True, timeout=60)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(slack.visible(CHANNEL)) == times - 1
    assert place.run("watch", "logs", "--notify", "--quiet", "--stop-after", "1s")[0] == 0
    (message,) = slack.visible(CHANNEL)
    assert [reply["text"] for reply in slack.visible(CHANNEL, message["ts"]) if "The same" in reply["text"]] == []


def test_a_silent_rank_is_posted_and_taken_back(place: Place, slack: SlackServer, bench: Bench) -> None:
    """While the job runs: rank 3 says nothing and the others go on; then it goes on too."""
    logs = place.where / "logs"
    logs.mkdir()
    watch = place.start("watch", "logs", "--notify", "--quiet", "--poll", "0.1s")
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
    assert steps(range(3), 12, 120, "Silent: rank 3 said nothing")
    assert steps(others, 200, 320, "Back: rank 3 goes on")
    watch.send_signal(signal.SIGTERM)
    assert watch.communicate(timeout=60)[1] == ""
    assert len(slack.visible(CHANNEL)) == 1


def test_a_watch_says_it_all_the_same_when_slack_is_down(place: Place, slack: SlackServer) -> None:
    """It is printed, and the post waits in the outbox until somebody sends it."""
    slack.trouble("", "503", times=1000)
    job = JobBuilder(place.where / "logs", world_size=2).steps(5)
    job.rank(1).traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
    job.elastic_table({1: 1}).write()
    status, out, _ = place.run("watch", "logs", "--notify", "--quiet", "--stop-after", "2s")
    assert (status, "FAILED" in out) == (0, True)
    slack._troubles.clear()
    (number, *_) = (line.split()[0] for line in place.run("outbox", "list", "--state", "waiting")[1].splitlines()[1:])
    assert place.run("outbox", "retry", number)[0] == 0
    assert "1 sent" in place.run("outbox", "send")[1]
    assert len(slack.visible(CHANNEL)) == 1


def test_no_route_no_watch(place: Place) -> None:
    """It says what is missing before it begins."""
    (place.where / "config.toml").write_text("", encoding="utf-8")
    (place.where / "logs").mkdir()
    assert "no route says to whom" in place.run("watch", "logs", "--notify")[2]
    status, _, errors = place.run("ingest", "logs", "--notify", "--no-store")
    assert status == 2
    assert "Traceback" not in errors
