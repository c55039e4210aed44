"""Uploads on disk: blobs named by their SHA-256, and for one task a directory with links to them under harmless names.

No name that a client sends is ever used as a path: of a file's name only what a log's name may hold is kept, for it
tells of ranks
(`rank3.log`), and it becomes a name inside a directory of the task's own.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from triage.base.lazy_re import lazy_re
from triage.service.failure import ServiceError
from triage.settings import Settings
from triage.settings.sources import Source
from triage.store.place import place

DIGEST = lazy_re(r"[0-9a-f]{64}")
JOB = lazy_re(r"[A-Za-z0-9_][A-Za-z0-9_.@:+=-]{0,199}")
_STRANGE = lazy_re(r"[^A-Za-z0-9._@:+=-]+")
_LONGEST = 120


def uploads(settings: Settings) -> Path:
    """The directory of uploads: as set, else `uploads` beside the store."""
    if settings.tasks.uploads is not None:
        return settings.tasks.uploads
    found = place(settings.store.path)
    assert found is not None
    return found.parent / "uploads"


def blob(root: Path, digest: str) -> Path:
    """Where the content with this SHA-256 lies. Raises ServiceError for a text that is none."""
    if DIGEST.fullmatch(digest) is None:
        raise ServiceError(400, "this is no SHA-256", hint="64 digits and letters a to f")
    return root / "blobs" / digest[:2] / digest


def part(root: Path, name: str) -> Path:
    """Where an upload lies that has not come to its end."""
    return root / "parts" / name


def ready(root: Path) -> None:
    """Make the directories, readable by their owner alone."""
    for path in (root, root / "blobs", root / "parts", root / "jobs"):
        path.mkdir(parents=True, exist_ok=True, mode=0o700)


def harmless(name: str) -> str:
    """The name of a file as it may stand in a directory: without directories, without what a path or a shell would read
    in it.
    """
    last = re.split(r"[/\\\\]", name)[-1]
    clean = _STRANGE.sub("_", last).lstrip(".-")
    if len(clean) > _LONGEST:
        clean = clean[: _LONGEST // 2] + clean[-(_LONGEST // 2) :]
    return clean or "file"


def harmless_all(names: Iterable[str]) -> list[str]:
    """The same, each name once."""
    found: list[str] = []
    for name in names:
        clean = harmless(name)
        number = 2
        while clean in found:
            stem, dot, rest = harmless(name).partition(".")
            clean, number = f"{stem}-{number}{dot}{rest}", number + 1
        found.append(clean)
    return found


@contextmanager
def laid_out(
    root: Path, place_: Mapping[str, Any], sources: Mapping[str, Source], name: str
) -> Iterator[tuple[Path, list[str]]]:
    """(directory, paths relative to it) of the files of a job: links to uploads, or the directory of a configured
    source.

    Raises ServiceError when they are gone.
    """
    if "source" in place_:
        path = source_path(sources, place_["source"], place_.get("job"))
        yield path.parent, [path.name]
        return
    directory = root / "jobs" / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True, mode=0o700)
    try:
        for item in place_["files"]:
            try:
                os.link(blob(root, item["digest"]), directory / harmless(item["name"]))
            except FileNotFoundError:
                raise ServiceError(
                    404, "the upload is gone", hint="uploads are kept for tasks.keep_days; send it again"
                ) from None
        yield directory, [harmless(item["name"]) for item in place_["files"]]
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def source_path(sources: Mapping[str, Source], name: str, job: str | None) -> Path:
    """The directory or file of a job in a configured source. Raises ServiceError for whatever is not in it."""
    source = sources.get(name)
    if source is None:
        raise ServiceError(404, "no source of this name is configured", hint="GET /api/v1/sources lists them")
    root = source.path.resolve()
    if source.one:
        if job is not None:
            raise ServiceError(400, f"the source {name} is one job", hint="leave `job` out")
        found = root
    else:
        if job is None or JOB.fullmatch(job) is None or ".." in job:
            raise ServiceError(
                400, "this is no name of a job", hint="the name of an entry in the source: letters, digits and ._@:+=-"
            )
        found = (root / job).resolve()
        if found == root or root not in found.parents:
            raise ServiceError(404, f"{job} is not in the source {name}")
    if not found.exists():
        raise ServiceError(404, f"{job or 'the job'} is not in the source {name}")
    return found
