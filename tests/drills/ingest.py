"""Faults during `triage ingest`: signals, no memory, a full disk, files that never answer, a reader that stops."""

from __future__ import annotations

import os
import resource
import signal
import socket
import time
from pathlib import Path

from tests.drills.site import DrillSite, is_stored

MEMORY = (24 << 20, 700 << 20)  # bytes of address space: from too few for Python to enough
OUTPUT = ("--format", "json", "--quiet")


def kill_ingest(site: DrillSite) -> None:
    """SIGKILL at any moment: what was reported is stored; the next ingest works."""
    _interrupt_ingest(site, signal.SIGKILL)


def kill_first_ingest(site: DrillSite) -> None:
    """SIGKILL while the catalog's cache is written: the next ingest writes it, and no part of a file is left."""
    cache, job = site.place / "cache", site.add_job("first")
    site.environment["TRIAGE_CACHE"] = str(cache)
    process = site.start("ingest", job, *OUTPUT)
    while process.poll() is None and not _list_parts(cache):
        time.sleep(site.chance.uniform(0, 0.0005))
    site.interrupt(process, 0)
    site.finish(process)
    status, report, errors = site.run("ingest", job, *OUTPUT)
    site.check(is_stored(status, report), f"an ingest with half a cache fails: {errors}")
    site.check(not _list_parts(cache), f"parts of the cache are left: {_list_parts(cache)}")
    site.check_store(is_complete=True)


def _list_parts(cache: Path) -> list[str]:
    """Return the files that are neither a catalog, databases of the scan nor compiled patterns."""
    files = [path for path in cache.rglob("*") if path.is_file()] if cache.exists() else []
    return [path.name for path in files if path.suffix not in (".json", ".hyperscan", ".msgpack")]


def terminate_ingest(site: DrillSite) -> None:
    """SIGTERM in any stage: the same, and the process ends by itself."""
    _interrupt_ingest(site, signal.SIGTERM)


def _interrupt_ingest(site: DrillSite, number: int) -> None:
    first, job = site.add_job("first"), site.add_job("interrupted", steps=300)
    seconds = site.measure(lambda: site.run("ingest", first, *OUTPUT))
    process = site.start("ingest", job, *OUTPUT)
    site.interrupt(process, site.chance.uniform(0, 1.2 * seconds), number)
    _check_and_repeat(site, process, first, job)


def _check_and_repeat(site: DrillSite, process: object, first: Path, job: Path) -> None:
    """Check what the fault left, ingest again, and check that everything is there."""
    status, report, _ = site.finish(process)  # type: ignore[arg-type]
    site.check_processes()
    site.check_files()
    site.check_store([first, job] if is_stored(status, report) else [first])
    again, report, errors = site.run("ingest", job, *OUTPUT)
    site.check(is_stored(again, report), f"the next ingest fails: {errors or report}")
    site.check_store(is_complete=True)


def limit_memory(site: DrillSite) -> None:
    """Too little address space: the process ends with a status, and the store is as before."""
    first, job = site.add_job("first"), site.add_job("interrupted", steps=300)
    site.run("ingest", first, *OUTPUT)
    process = site.start("ingest", job, *OUTPUT, limit=(resource.RLIMIT_AS, site.chance.randint(*MEMORY)))
    site.faults += 1
    _check_and_repeat(site, process, first, job)


def limit_file_size(site: DrillSite) -> None:
    """No file may grow beyond a size, in the middle of any write: the diagnosis is reported, the store is whole."""
    first, job = site.add_job("first"), site.add_job("interrupted")
    site.run("ingest", first, *OUTPUT)
    size = site.chance.randint(1, 2 * site.store.stat().st_size)
    process = site.start("ingest", job, *OUTPUT, limit=(resource.RLIMIT_FSIZE, size))
    site.faults += 1
    _check_and_repeat(site, process, first, job)


def stall_files(site: DrillSite) -> None:
    """Pipes, sockets and links without an end among the logs: they are skipped, and the job is diagnosed."""
    job = site.add_job("stalled")
    faults = [_add_pipe, _add_socket, _add_loop, _add_device, _add_dangling_link]
    chosen = site.chance.sample(faults, site.chance.randint(1, len(faults)))
    for number, add in enumerate(chosen):
        add(job / f"rank{number + 2}.log")
        site.faults += 1
    status, report, errors = site.run("ingest", job, *OUTPUT)
    site.check(is_stored(status, report), f"no diagnosis beside {chosen}: {errors}")
    site.check("shard of stalled is bad" in report, f"the failure is not found beside {chosen}")
    site.check_processes()
    site.check_files()


def _add_pipe(path: Path) -> None:
    os.mkfifo(path)


def _add_socket(path: Path) -> None:
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(path.parent)  # the address of a socket has at most 108 bytes
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


def _add_loop(path: Path) -> None:
    path.symlink_to(path.parent, target_is_directory=True)


def _add_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _add_dangling_link(path: Path) -> None:
    path.symlink_to("gone")


def stop_reader(site: DrillSite) -> None:
    """A stopped process, or one whose reader stopped, holds nothing that others need."""
    first, job = site.add_job("first"), site.add_job("interrupted", steps=300)
    seconds = site.measure(lambda: site.run("ingest", first, *OUTPUT))
    process = site.start("ingest", job, *OUTPUT)
    site.interrupt(process, site.chance.uniform(0, 1.2 * seconds), signal.SIGSTOP)
    other = site.add_job("other")
    status, report, errors = site.run("ingest", other, *OUTPUT)
    site.check(status == 0, f"a stopped process stops others: {errors}")
    process.send_signal(signal.SIGCONT)
    stored = [other] if is_stored(status, report) else []
    if not stored:
        site.run("ingest", other, *OUTPUT)
    _check_and_repeat(site, process, first, job)
    site.check_store(stored)


DRILLS = (kill_ingest, kill_first_ingest, terminate_ingest, limit_memory, limit_file_size, stall_files, stop_reader)
