"""Bytes from clients to disk, as they come: counted, hashed, never held in memory, and named by their content only."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from python_multipart import MultipartParser
from python_multipart.multipart import parse_options_header

from triage.service.failure import ServiceError
from triage.service.state import Service
from triage.service.work import files

FIELD_BYTES = 1000
PART_HEADER_BYTES = 8 << 10
BATCH = 512 << 10


@dataclass(slots=True)
class Received:
    """Files as (SHA-256, name given by the client), and the text fields."""

    files: list[tuple[str, str]] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Part:
    """One part of a form while it comes."""

    header: str = ""
    value: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    header_bytes: int = 0
    name: str = ""
    filename: str | None = None
    text: bytearray = field(default_factory=bytearray)
    path: Path | None = None
    file: BinaryIO | None = None
    hash: Any = None
    bytes: int = 0


class Form:
    """A multipart/form-data body, fed as it comes. Raises ServiceError for what is none, for too much, and for too
    many.
    """

    def __init__(self, service: Service, root: Path, content_type: str) -> None:
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary or len(boundary) > 200:
            raise ServiceError(415, "this is no multipart/form-data", hint="send files as fields called `file`")
        self._limits = service.settings.tasks
        self._root = root
        self._part = _Part()
        self._bytes = 0
        self._fields = 0
        self.done: list[_Part] = []
        self.received = Received()
        self._ended = False
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._header_field,
                "on_header_value": self._header_value,
                "on_header_end": self._header_end,
                "on_headers_finished": self._headers_finished,
                "on_part_data": self._data,
                "on_part_end": self._end,
                "on_end": self._finish,
            },
        )

    def feed(self, data: bytes) -> None:
        """More of the body."""
        self._bytes += len(data)
        if self._bytes > self._limits.upload_bytes + (1 << 20):
            raise self._too_large()
        try:
            self._parser.write(data)
        except ValueError as error:
            raise ServiceError(400, f"this is no multipart/form-data: {error}"[:300]) from None

    def close(self) -> Received:
        """The body has ended."""
        if not self._ended:
            raise ServiceError(400, "the form ends too early", hint="send it again")
        return self.received

    def drop(self) -> None:
        """Remove what has come."""
        for part in (*self.done, self._part):
            if part.file is not None:
                part.file.close()
            if part.path is not None:
                part.path.unlink(missing_ok=True)

    def _too_large(self) -> ServiceError:
        return ServiceError(
            413, f"an upload may hold {self._limits.upload_bytes} bytes", headers={"Connection": "close"}
        )

    def _begin(self) -> None:
        self._part = _Part()
        self._fields += 1
        if self._fields > self._limits.upload_files + 20:
            raise ServiceError(
                413, f"an upload may hold {self._limits.upload_files} files", headers={"Connection": "close"}
            )

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._part.header += data[start:end].decode("latin-1")
        self._count(end - start)

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._part.value += data[start:end].decode("latin-1")
        self._count(end - start)

    def _count(self, size: int) -> None:
        self._part.header_bytes += size
        if self._part.header_bytes > PART_HEADER_BYTES:
            raise ServiceError(400, "the headers of a part are too large")

    def _header_end(self) -> None:
        part = self._part
        part.headers[part.header.lower()] = part.value
        part.header = part.value = ""

    def _headers_finished(self) -> None:
        part = self._part
        _, options = parse_options_header(part.headers.get("content-disposition", ""))
        part.name = options.get(b"name", b"").decode("utf-8", "replace")
        if b"filename" in options:
            part.filename = options[b"filename"].decode("utf-8", "replace")
            part.path = files.part(self._root, f"form-{secrets.token_hex(12)}")
            part.file = open(part.path, "xb")  # noqa: SIM115 - closed when the part ends, or by drop
            part.hash = hashlib.sha256()

    def _data(self, data: bytes, start: int, end: int) -> None:
        part, piece = self._part, data[start:end]
        if part.file is None:
            part.text += piece
            if len(part.text) > FIELD_BYTES:
                raise ServiceError(422, f"a field may hold {FIELD_BYTES} bytes", headers={"Connection": "close"})
            return
        part.bytes += len(piece)
        if part.bytes > self._limits.upload_bytes:
            raise self._too_large()
        part.file.write(piece)
        part.hash.update(piece)

    def _end(self) -> None:
        part, self._part = self._part, _Part()
        if part.file is None:
            if part.name in self.received.fields:
                raise ServiceError(422, "a field is there twice")
            self.received.fields[part.name[:100]] = part.text.decode("utf-8", "replace")
            return
        part.file.close()
        self.done.append(part)
        if part.filename:
            self.received.files.append((part.hash.hexdigest(), part.filename))

    def _finish(self) -> None:
        self._ended = True


async def batches(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes in larger pieces, so that hashing and writing them is worth a thread: the loop answers readers
    meanwhile.

    What has come when the client breaks off is given before the error.
    """
    held = bytearray()
    try:
        async for piece in body:
            held += piece
            if len(held) >= BATCH:
                whole, held = bytes(held), bytearray()
                yield whole
    except Exception:
        if held:
            yield bytes(held)
        raise
    if held:
        yield bytes(held)


def settle(service: Service, root: Path, form: Form) -> None:
    """Give the files of a form their places."""
    for part in form.done:
        if part.path is not None and part.filename:
            place(service, root, part.path, part.hash.hexdigest(), part.bytes)


def place(service: Service, root: Path, path: Path, digest: str, size: int) -> None:
    """A whole file goes to its place by its content, and the store knows of it."""
    target = files.blob(root, digest)
    target.parent.mkdir(exist_ok=True, mode=0o700)
    os.replace(path, target)
    service.store.beside.put_upload(digest, size)


def progress(service: Service, digest: str) -> tuple[int, bool]:
    """(bytes that have come, are they all)."""
    root = files.uploads(service.settings)
    whole = files.blob(root, digest)
    known = service.store.beside.upload(digest)
    if known is not None and whole.exists():
        return known.bytes, True
    unfinished = files.part(root, digest)
    return (unfinished.stat().st_size if unfinished.exists() else 0), False


async def append(
    service: Service, digest: str, offset: int, length: int, body: AsyncIterator[bytes]
) -> tuple[int, bool]:
    """Go on with an upload at `offset`. What has come stays when the client breaks off. Raises ServiceError."""
    from starlette.concurrency import run_in_threadpool

    if length > service.settings.tasks.upload_bytes:
        raise ServiceError(
            413, f"an upload may hold {service.settings.tasks.upload_bytes} bytes", headers={"Connection": "close"}
        )
    root = await run_in_threadpool(room_for, service, length - offset)
    have, complete = await run_in_threadpool(progress, service, digest)
    if complete:
        return have, True
    path = files.part(root, digest)
    with open(path, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ServiceError(
                409, "somebody is sending this content just now", hint="ask with HEAD how far it is, and go on later"
            ) from None
        have = file.tell()
        if have != offset:
            raise ServiceError(409, f"it goes on at {have}", code="wrong-offset", headers={"Upload-Offset": str(have)})
        async for piece in batches(body):
            have += len(piece)
            if have > length:
                raise ServiceError(413, "more came than Upload-Length says", headers={"Connection": "close"})
            await run_in_threadpool(file.write, piece)
        file.flush()
        if have < length:
            return have, False
        found = await run_in_threadpool(_digest, path)
        if found != digest:
            path.unlink(missing_ok=True)
            raise ServiceError(
                422, "the content has another SHA-256", code="wrong-digest", hint="send it again from the beginning"
            )
        await run_in_threadpool(place, service, root, path, digest, length)
    return have, True


def room_for(service: Service, size: int) -> Path:
    """`ingest.room`, which imports this room's neighbours."""
    from triage.service import ingest

    return ingest.room(service, size)


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
