"""The jobs below a directory or a prefix: each direct subdirectory and each archive is one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from triage.base.addresses import displayed_address, is_address
from triage.base.errors import InputError

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst", ".tar.lz4", ".zip")
"""Ends of the names of files that are a job of their own."""


class JobPath(NamedTuple):
    """A job below a directory: its name there, and the path or the address to read."""

    name: str
    path: str


class JobListing(NamedTuple):
    """The jobs below a directory, sorted by name, and the names of files there that belong to none."""

    jobs: list[JobPath]
    others: list[str]


def list_jobs(root: str) -> JobListing:
    """List the jobs directly below a directory or a prefix. Raises InputError if it cannot be listed."""
    jobs: list[JobPath] = []
    others: list[str] = []
    for name, path, is_directory in sorted(_remote_entries(root) if is_address(root) else _entries(root)):
        if is_directory or name.lower().endswith(ARCHIVES):
            jobs.append(JobPath(name, path))
        else:
            others.append(name)
    return JobListing(jobs, others)


def _entries(root: str) -> list[tuple[str, str, bool]]:
    try:
        with os.scandir(root) as entries:
            return [(entry.name, entry.path, entry.is_dir()) for entry in entries if not entry.name.startswith(".")]
    except OSError as error:
        raise InputError(
            f"cannot be listed: {error.strerror}", hint="Give the directory that holds one entry per job.", path=root
        ) from None


def _remote_entries(root: str) -> list[tuple[str, str, bool]]:
    from triage.remote.session import current_session

    children = current_session().list_children(root)
    return [(displayed_address(path.rstrip("/")).rpartition("/")[2], path, path.endswith("/")) for path in children]


def fingerprint(path: str) -> str:
    """Return a digest of the names, sizes and versions of all files of a job, which are not read. Raises InputError."""
    digest = hashlib.sha256()
    for row in sorted(_remote_versions(path) if is_address(path) else _versions(path)):
        digest.update(repr(row).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _versions(path: str) -> Iterator[tuple[str, int, int]]:
    """Yield (name, bytes, time of the last change in nanoseconds); links are followed to files only."""
    if not os.path.isdir(path):
        status = os.stat(path)
        yield "", status.st_size, status.st_mtime_ns
        return
    for directory, _, names in os.walk(path):
        for name in names:
            place = os.path.join(directory, name)
            try:
                status = os.stat(place)
            except OSError:
                yield os.path.relpath(place, path), -1, -1
                continue
            yield os.path.relpath(place, path), status.st_size, status.st_mtime_ns


def _remote_versions(path: str) -> Iterator[tuple[str, int, str]]:
    from triage.remote.session import current_session

    for item in current_session().list_objects(path):
        yield item.address.removeprefix(path), item.size, item.version
