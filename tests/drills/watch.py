"""Faults while a job is watched: a killed watch, one that is stopped, one that is terminated."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from pathlib import Path

from tests.drills.site import SECONDS, DrillSite
from triage.testing.jobs import JobBuilder

# Writes each event to a file of its own, whole or not at all.
HOOK = 'sh -c \'cat >"$0/$$.part" && mv "$0/$$.part" "$0/$$.json"\' {}'


def kill_watch(site: DrillSite) -> None:
    """SIGKILL at any moment: after a restart the failure is reported, and stored when the job is over."""
    _interrupt_watch(site, signal.SIGKILL)


def terminate_watch(site: DrillSite) -> None:
    """SIGTERM at any moment: the same, and it ends with status 0 once it runs."""
    _interrupt_watch(site, signal.SIGTERM)


def _interrupt_watch(site: DrillSite, number: int) -> None:
    logs, events, state = site.place / "jobs" / "watched", site.place / "events", site.place / "state" / "watch.json"
    events.mkdir()
    job = JobBuilder(logs, layout="perrank", world_size=2).steps(5)
    job.write()
    command = ["watch", logs, "--state", state, "--exec", HOOK.format(events), "--poll", "0.05s", "--quiet"]
    process = site.start(*command)
    time.sleep(site.chance.uniform(0.3, 1.2))
    job.rank(1).traceback("ValueError: shard of watched is bad", [("/work/watched.py", 30, "load")])
    job.write()
    site.interrupt(process, site.chance.uniform(0, 4), number)
    site.finish(process)
    site.remember_job(logs)
    status, _, errors = site.run(*command, "--stop-after", "1s")
    site.check(status == 0, f"the restarted watch ends with {status}: {errors}")
    failures = _read_failures(site, events)
    site.check(len(failures) >= 1, "the failure is not reported")
    site.check(len(failures) <= 2, f"the failure is reported {len(failures)} times")
    site.check_processes()
    site.check_files()
    parts = [path.name for path in state.parent.iterdir() if path != state] if state.parent.exists() else []
    site.check(not parts, f"parts of the state are left: {parts}")
    site.check_store(is_complete=True)


def _read_failures(site: DrillSite, events: Path) -> list[str]:
    """Return the verdicts of the reported failures; an event that is not whole is a loss."""
    verdicts = []
    for path in sorted(events.glob("*.json")):
        try:
            event = json.loads(path.read_text())
        except ValueError:
            site.losses.append(f"half an event: {path.read_text()[:200]}")
            continue
        if event.get("diagnosis"):
            verdicts.append(event["diagnosis"]["verdict"])
    return verdicts


def stop_watch(site: DrillSite) -> None:
    """SIGSTOP for a while, as when a laptop sleeps: it goes on, and reports what came meanwhile once."""
    logs, events = site.place / "jobs" / "watched", site.place / "events"
    events.mkdir()
    job = JobBuilder(logs, layout="perrank", world_size=2).steps(5)
    job.write()
    process = site.start(
        "watch", logs, "--no-state", "--exec", HOOK.format(events), "--poll", "0.05s", "--quiet", "--stop-after", "4s"
    )
    site.interrupt(process, site.chance.uniform(0.3, 2), signal.SIGSTOP)
    job.rank(1).traceback("ValueError: shard of watched is bad", [("/work/watched.py", 30, "load")])
    job.write()
    site.remember_job(logs)
    time.sleep(site.chance.uniform(0, 1))
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGCONT)
    deadline = time.monotonic() + SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    site.finish(process)
    failures = _read_failures(site, events)
    site.check(len(failures) == 1, f"the failure is reported {len(failures)} times")
    site.check_processes()
    site.check_files()
    site.check_store(is_complete=True)


DRILLS = (kill_watch, terminate_watch, stop_watch)
