"""Faults of the store itself: kills inside transactions and migrations, a full disk, no permission, another clock."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from tests.drills.site import SECONDS, DrillSite, is_stored
from tests.store.factories import NOW
from triage.store import Store, maintenance, migrations
from triage.store.outbox import Outbox
from triage.store.tasks import Tasks

OLD = sorted((Path(__file__).resolve().parents[1] / "store" / "old").glob("*.db"))
OUTPUT = ("--format", "json", "--quiet")
YEAR = 365 * 86_400.0
LEASE, STALE = 180.0, 30.0
KILL_SECONDS = 0.04  # a migration takes about so long after Python has started
# Waits until everything is imported, so that kills hit the migration and not the start of Python.
MIGRATE = """
import sys, sqlite_utils
from triage.store import Store
print("ready", flush=True)
Store.open(sys.argv[1]).close()
"""


def kill_migration(site: DrillSite) -> None:
    """SIGKILL during a migration: the store has its old version or the new one, with all of its rows."""
    old = site.chance.choice(OLD)
    shutil.copy(old, site.store)
    before, version = _count_rows(site.store), _read_version(site.store)
    command = [sys.executable, "-c", MIGRATE, str(site.store)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=site.environment, cwd=site.place)
    assert process.stdout is not None
    process.stdout.readline()
    site.interrupt(process, site.chance.uniform(0, KILL_SECONDS), signal.SIGKILL)
    process.communicate(timeout=SECONDS)
    after = _read_version(site.store)
    site.check(after in (version, migrations.VERSION), f"{old.name} is left between versions, in {after}")
    with Store.open(site.store) as store:
        problems = maintenance.check_store(store.connections)
        site.check(problems == [], f"{old.name}: {problems}")
        site.check(store.search.count_incidents() == before["incident"], f"{old.name} lost incidents")
    lost = {name: count for name, count in before.items() if _count_rows(site.store).get(name, 0) < count}
    site.check(not lost, f"{old.name} lost rows of {lost}")
    site.check_files()


def _read_version(path: Path) -> int:
    db = sqlite3.connect(path)
    try:
        return migrations.schema_version(db)
    finally:
        db.close()


def _count_rows(path: Path) -> dict[str, int]:
    """Return the number of rows of each table that holds data of users."""
    db = sqlite3.connect(path)
    try:
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        plain = [name for name in tables if not name.startswith(("page_fts", "sqlite_"))]
        return {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in plain}
    finally:
        db.close()


def jump_clock(site: DrillSite) -> None:
    """The clock jumps ahead and back: incidents stay, posts are sent and tasks are done all the same."""
    jobs = [site.add_job(f"jump{number}") for number in range(3)]
    jumps = [site.chance.choice((-1, 1)) * site.chance.uniform(60, 3 * YEAR) for _ in jobs]
    for job, jump in zip(jobs, jumps, strict=True):
        status, report, errors = site.run("ingest", job, *OUTPUT, shift=jump)
        site.faults += 1
        site.check(is_stored(status, report), f"not stored with a clock {jump:+.0f} s off: {errors}")
    site.check_store(is_complete=True)
    with Store.open(site.store) as store:
        for jump in jumps:
            _check_outbox(site, store.outbox, jump)
            _check_tasks(site, store.tasks, jump)
            site.faults += 2


def _check_outbox(site: DrillSite, outbox: Outbox, jump: float) -> None:
    """A post whose sender died while the clock was wrong is sent again after its lease."""
    outbox.put("drill", f"post {jump}", f"once {jump}", {}, now=NOW)
    outbox.take(LEASE, kinds=("drill",), now=max(NOW, NOW + jump))
    again = outbox.take(LEASE, kinds=("drill",), now=NOW + LEASE + 1)
    site.check(again is not None, f"a post is stuck after a jump of {jump:+.0f} s")
    if again is not None:
        outbox.mark_sent(again.id)


def _check_tasks(site: DrillSite, tasks: Tasks, jump: float) -> None:
    """A task whose worker died while the clock was wrong is done by another one."""
    task = tasks.add("drill", {}, actor="drill", now=NOW)
    tasks.claim("first", now=NOW + jump)
    tasks.requeue_orphans(STALE, now=NOW + STALE + 1)
    claimed = tasks.claim("second", now=NOW + STALE + 1)
    site.check(claimed is not None and claimed.id == task.id, f"a task is stuck after a jump of {jump:+.0f} s")
    tasks.cancel(task.id)
    if claimed is not None:
        with tasks._db.write() as db:
            tasks.end(db, claimed, "done")


def fill_disk(site: DrillSite) -> None:
    """A file system without space: the diagnosis is reported with a warning, and the store is whole."""
    first, job = site.add_job("first"), site.add_job("late", steps=100)
    disk = site.place / "disk"
    disk.mkdir()
    store = disk / "triage.db"
    size = site.chance.randint(300, 900)
    ingest = f'"{sys.executable}" -m triage ingest --format json --quiet --store "{store}"'
    script = (
        f'mount -t tmpfs -o size={size}k none "{disk}" || exit 77; {ingest} "{first}" >"{site.place}/1"; '
        f'head -c 1M /dev/zero >"{disk}/zeros" 2>/dev/null; {ingest} "{job}" >"{site.place}/2"; echo $?; '
        f'rm "{disk}/zeros"; cp "{disk}"/* "{site.place}"'
    )
    if not _run_with_mounts(site, script):
        return
    site.faults += 1
    reports = {path: (site.place / name).read_text() for path, name in ((first, "1"), (job, "2"))}
    site.check_store([path for path, report in reports.items() if report and is_stored(0, report)])
    site.check(bool(reports[job]), "a full disk hides the diagnosis")
    status, report, errors = site.run("ingest", first, *OUTPUT)
    site.run("ingest", job, *OUTPUT)
    site.check(is_stored(status, report), f"with free space nothing is stored: {errors}")
    site.check_store(is_complete=True)


def forbid_writing(site: DrillSite) -> None:
    """A read-only file system: the diagnosis is reported, the store is read, and no byte of it changes."""
    first, job = site.add_job("first"), site.add_job("late")
    store = site.place / "disk" / "triage.db"
    site.run("ingest", first, "--store", store, *OUTPUT)
    before = {path.name: path.read_bytes() for path in store.parent.iterdir()}
    disk, python = store.parent, sys.executable
    script = (
        f'mount --bind "{disk}" "{disk}" && mount -o remount,ro,bind "{disk}" || exit 77; '
        f'"{python}" -m triage ingest "{job}" --format json --quiet --store "{store}" >"{site.place}/1"; '
        f'"{python}" -m triage list --format json --store "{store}" >"{site.place}/2"'
    )
    if not _run_with_mounts(site, script):
        return
    site.faults += 1
    report = (site.place / "1").read_text()
    site.check("shard of late is bad" in report, "a read-only store hides the diagnosis")
    site.check(bool(report) and not is_stored(0, report), "a read-only store claims to have stored")
    site.check(str(first) in (site.place / "2").read_text(), "a read-only store is not read")
    site.check({path.name: path.read_bytes() for path in disk.iterdir()} == before, "a read-only store changed")


def _run_with_mounts(site: DrillSite, script: str) -> bool:
    """Run a shell script where it may mount file systems. Returns False where that is not allowed."""
    command = ["unshare", "--map-root-user", "--user", "--mount", "sh", "-c", script]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, env=site.environment, cwd=site.place, check=False
        )
    except FileNotFoundError:
        return False
    return done.returncode != 77 and "unshare" not in done.stderr


DRILLS = (kill_migration, jump_clock, fill_disk, forbid_writing)
