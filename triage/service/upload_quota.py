"""How many uploads may be in progress, and how many bytes they may declare: per client and in all.

Each upload has a file with its client and its declared bytes, locked while a request sends it. The files are shared by
all processes; the lock ends with its process, so that a killed one leaves nothing behind. An interrupted upload keeps
its bytes reserved until it is complete or deleted.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from triage.service.errors import ServiceError
from triage.service.multipart import CLOSE
from triage.service.work import job_files
from triage.settings.sections import TaskSettings

_GATE = ".gate"  # locked while somebody counts and adds
INTERRUPTED_PER_OPEN = 16  # interrupted uploads for each that may be in progress: counting them takes time
RETRY = {"Retry-After": "60", **CLOSE}


@dataclass(frozen=True, slots=True)
class _Claim:
    """A reservation: whose, how many bytes, and whether a request sends it now."""

    client: str
    bytes: int
    is_in_progress: bool


@contextmanager
def reserve_upload(tasks: TaskSettings, root: Path, name: str, client: str, declared: int) -> Iterator[None]:
    """Count an upload while the block runs; its bytes stay reserved while its partial file `name` exists.

    Raises ServiceError (429) beyond a limit, and 409 while another request sends the same upload.
    """
    directory = job_files.claim_directory(root)
    with _gate(directory):
        claims = dict(_read_claims(directory, root))
        same = claims.pop(name, None)
        if same is not None and same.is_in_progress:
            hint = "ask with HEAD how much the server has, and continue later"
            raise ServiceError(409, "another request is sending this content", hint=hint)
        _check_limits(tasks, list(claims.values()), client, declared)
        file = _write_claim(directory / name, client, declared)
    try:
        yield
    finally:
        partial = job_files.partial_path(root, name)
        if partial.exists() and not partial.stat().st_size:
            partial.unlink()
        if not partial.exists():
            (directory / name).unlink(missing_ok=True)
        file.close()


@contextmanager
def _gate(directory: Path) -> Iterator[None]:
    with open(directory / _GATE, "ab") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        yield


def _write_claim(path: Path, client: str, declared: int) -> BinaryIO:
    """Return the open, locked file of a claim."""
    file = open(path, "w+b")  # noqa: SIM115 - open, and locked, as long as the request
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    file.write(json.dumps({"client": client, "bytes": declared}).encode())
    file.flush()
    return file


def _read_claims(directory: Path, root: Path) -> Iterator[tuple[str, _Claim]]:
    """Yield the claims by name; those of uploads that ended or were deleted are removed."""
    for path in directory.iterdir():
        if path.name == _GATE:
            continue
        with suppress(FileNotFoundError), open(path, "rb") as file:
            is_in_progress = not _can_lock(file)
            if not is_in_progress and not job_files.partial_path(root, path.name).exists():
                path.unlink()
                continue
            with suppress(ValueError, KeyError):  # the machine stopped while it was written
                content = json.load(file)
                yield path.name, _Claim(str(content["client"]), int(content["bytes"]), is_in_progress)


def _can_lock(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _check_limits(tasks: TaskSettings, claims: list[_Claim], client: str, declared: int) -> None:
    """Raise ServiceError if one more upload would be too many."""
    own = [claim for claim in claims if claim.client == client]
    for group, most_uploads, most_bytes, whose in (
        (own, tasks.client_open_uploads, tasks.client_open_bytes, "your"),
        (claims, tasks.open_uploads, tasks.open_bytes, "all"),
    ):
        is_full = sum(claim.is_in_progress for claim in group) >= most_uploads
        if is_full or len(group) >= most_uploads * INTERRUPTED_PER_OPEN:
            hint = "wait until one of them is complete" if is_full else "complete the interrupted ones"
            message = f"{whose} uploads are already {len(group)}, {most_uploads} may be in progress"
            raise ServiceError(429, message, hint=hint, code="too-many-uploads", headers=RETRY)
        reserved = sum(claim.bytes for claim in group)
        if reserved + declared > most_bytes:
            hint = f"complete the interrupted uploads; they are deleted after {tasks.partial_hours:g} hours"
            message = f"{whose} incomplete uploads declare {reserved} bytes, and may declare {most_bytes} with this one"
            raise ServiceError(429, message, hint=hint, code="upload-quota", headers=RETRY)
