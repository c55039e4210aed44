"""Uploads on disk: files named by their SHA-256, and per task a directory with links to them.

A name from a client is never used as a path. Only its safe characters are kept, because a log's name can hold its
rank (`rank3.log`), as the name of a link in the task's own directory.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from triage.base.addresses import displayed_address, has_secret
from triage.base.lazy_re import lazy_re
from triage.service.errors import ServiceError
from triage.settings import Settings
from triage.settings.sections import Source
from triage.store.location import DatabaseUrl, data_directory, store_location

SHA256 = lazy_re(r"[0-9a-f]{64}")
JOB_NAME = lazy_re(r"[A-Za-z0-9_][A-Za-z0-9_.@:+=-]{0,199}")
_UNSAFE = lazy_re(r"[^A-Za-z0-9._@:+=-]+")
_MAX_NAME = 120


def upload_directory(settings: Settings) -> Path:
    """Return the directory of uploads: as set, else `uploads` next to the store, or in the user's data directory."""
    if settings.tasks.uploads is not None:
        return settings.tasks.uploads
    location = store_location(settings.store.path)
    assert location is not None
    return (data_directory() if isinstance(location, DatabaseUrl) else location.parent) / "uploads"


def make_upload_directories(root: Path) -> None:
    """Make the directories, readable by their owner alone."""
    for path in (root, root / "blobs", root / "parts", root / "jobs", claim_directory(root)):
        path.mkdir(parents=True, exist_ok=True, mode=0o700)


def blob_path(root: Path, digest: str) -> Path:
    """Return the path of a complete file by its SHA-256. Raises ServiceError for an invalid digest."""
    if SHA256.fullmatch(digest) is None:
        raise ServiceError(400, "invalid SHA-256", hint="send 64 hexadecimal digits in lower case")
    return root / "blobs" / digest[:2] / digest


def partial_path(root: Path, name: str) -> Path:
    """Return the path of a file that is incomplete."""
    return root / "parts" / name


def claim_directory(root: Path) -> Path:
    """Return the directory with one file per upload that is in progress or was interrupted."""
    return root / "claims"


def task_directory(root: Path, attempt: str) -> Path:
    """Return the directory with the links of one attempt at a task."""
    return root / "jobs" / attempt


def safe_name(name: str) -> str:
    """Return a file name without directories and without characters that a path or a shell would interpret."""
    safe = _UNSAFE.sub("_", re.split(r"[/\\\\]", name)[-1]).lstrip(".-")
    if len(safe) > _MAX_NAME:
        safe = safe[: _MAX_NAME // 2] + safe[-(_MAX_NAME // 2) :]
    return safe or "file"


def safe_names(names: Iterable[str]) -> list[str]:
    """Return safe file names, each of them once."""
    unique: list[str] = []
    for name in names:
        candidate = safe_name(name)
        stem, dot, suffix = candidate.partition(".")
        number = 2
        while candidate in unique:
            candidate, number = f"{stem}-{number}{dot}{suffix}", number + 1
        unique.append(candidate)
    return unique


@contextmanager
def open_job(
    root: Path, place_: Mapping[str, Any], settings: Settings, attempt: str
) -> Iterator[tuple[Path, list[str]]]:
    """Provide (directory, paths in it) of a job: links to uploads, the directory of a source, or an allowed address.

    Raises ServiceError if the files are gone.
    """
    if "source" in place_:
        path = source_path(settings.sources, place_["source"], place_.get("job"))
        yield path.parent, [path.name]
        return
    if "address" in place_:
        yield root, [allowed_address(settings, place_["address"])]
        return
    directory = task_directory(root, attempt)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True, mode=0o700)
    try:
        yield directory, [_link_upload(root, item, directory) for item in place_["files"]]
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def allowed_address(settings: Settings, address: str) -> str:
    """Return the address of a job if the settings allow to read it. Raises ServiceError."""
    if has_secret(address):
        hint = "leave out passwords and signatures: the service reads with its own credentials"
        raise ServiceError(400, "the address holds a secret", hint=hint)
    if not settings.remote.allows(address):
        shown = displayed_address(address)[:200]
        raise ServiceError(
            403, f"this service does not read {shown}", hint="ask its operator to add it to remote.allow"
        )
    return address


def _link_upload(root: Path, item: Mapping[str, Any], directory: Path) -> str:
    """Link an upload into a directory. Returns its name there."""
    name = safe_name(item["name"])
    try:
        os.link(blob_path(root, item["digest"]), directory / name)
    except FileNotFoundError:
        raise ServiceError(
            404,
            "the upload was deleted",
            hint="uploads are deleted after tasks.keep_days; send it again. Several nodes must share tasks.uploads",
        ) from None
    return name


def source_path(sources: Mapping[str, Source], name: str, job: str | None) -> Path:
    """Return the directory or file of a job in a configured source. Raises ServiceError if it is not in there."""
    source = sources.get(name)
    if source is None:
        raise ServiceError(404, "no source with this name is configured", hint="GET /api/v1/sources lists them")
    root = source.path.resolve()
    missing = ServiceError(404, f"{job or 'the job'} is not in the source {name}")
    if source.one:
        if job is not None:
            raise ServiceError(400, f"the source {name} is one job", hint="leave `job` out")
        path = root
    else:
        if job is None or JOB_NAME.fullmatch(job) is None or ".." in job:
            hint = "send the name of an entry in the source: letters, digits and ._@:+=-"
            raise ServiceError(400, "invalid name of a job", hint=hint)
        path = (root / job).resolve()
        if path == root or root not in path.parents:
            raise missing
    if not path.exists():
        raise missing
    return path
