"""Receive files from clients, and queue tasks for them or for jobs of configured sources."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, BinaryIO

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from triage.evidence.job_facts import parse_labels
from triage.evidence.redact import redact
from triage.service.access import Principal
from triage.service.dependencies import ServiceState
from triage.service.errors import ServiceError
from triage.service.multipart import CLOSE, FORM_OVERHEAD_BYTES, MultipartUpload, upload_too_large
from triage.service.upload_quota import reserve_upload
from triage.service.work import job_files
from triage.store.tasks import Task

BATCH_BYTES = 512 << 10


async def receive_form(request: Request, state: ServiceState, user: Principal) -> Task:
    """Write the files of a form to disk as they come, and queue a task for them. Raises ServiceError."""
    tasks = state.settings.tasks
    length = request.headers.get("content-length", "")
    expected = int(length) if length.isdigit() else 0
    if expected > tasks.upload_bytes + FORM_OVERHEAD_BYTES:
        raise upload_too_large(tasks)
    root = await run_in_threadpool(check_capacity, state, expected)
    form = MultipartUpload(tasks, root, request.headers.get("content-type", ""))
    claim, declared = f"form-{secrets.token_hex(12)}", expected if length else tasks.upload_bytes
    async with _reserved(state, root, claim, user, declared):
        files = await _receive_files(request, state, root, form)
    return await run_in_threadpool(
        queue_files, state, user, files, form.fields.get("name"), _split_labels(form.fields.get("labels", ""))
    )


@asynccontextmanager
async def _reserved(state: ServiceState, root: Path, name: str, user: Principal, declared: int) -> AsyncIterator[None]:
    """Reserve an upload; counting and locking files is work for a thread."""
    reservation = reserve_upload(state.settings.tasks, root, name, user.client_key or user.name, declared)
    await run_in_threadpool(reservation.__enter__)
    try:
        yield
    finally:
        reservation.__exit__(None, None, None)


async def _receive_files(
    request: Request, state: ServiceState, root: Path, form: MultipartUpload
) -> list[tuple[str, str]]:
    """Write the files of a form to disk. Returns (SHA-256, name) of each."""
    try:
        async for batch in batches(request.stream()):
            await run_in_threadpool(form.feed, batch)
        form.close()
        named = [part for part in form.files if part.filename]
        if not named:
            raise ServiceError(400, "the form has no file", hint="send files as fields named `file`")
        if len(form.fields.get("name", "")) > 200:
            raise ServiceError(422, "the name of a job may have at most 200 characters")
        for part in named:
            assert part.path is not None
            await run_in_threadpool(_store_file, state, root, part.path, part.hash.hexdigest(), part.bytes)
    except BaseException:
        form.delete_files()
        raise
    return [(part.hash.hexdigest(), str(part.filename)) for part in named]


async def batches(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the body in larger pieces, so that hashing and writing them is worth a thread.

    If the client disconnects, what came is yielded before the error.
    """
    buffer = bytearray()
    try:
        async for piece in body:
            buffer += piece
            if len(buffer) >= BATCH_BYTES:
                batch, buffer = bytes(buffer), bytearray()
                yield batch
    except Exception:
        if buffer:
            yield bytes(buffer)
        raise
    if buffer:
        yield bytes(buffer)


def upload_progress(state: ServiceState, digest: str) -> tuple[int, bool]:
    """Return (bytes received, whether the file is complete) of an upload by its SHA-256."""
    root = job_files.upload_directory(state.settings)
    upload = state.store.service_data.get_upload(digest)
    if upload is not None and job_files.blob_path(root, digest).exists():
        return upload.bytes, True
    partial = job_files.partial_path(root, digest)
    return (partial.stat().st_size if partial.exists() else 0), False


async def append_upload(
    state: ServiceState, user: Principal, digest: str, offset: int, length: int, body: AsyncIterator[bytes]
) -> tuple[int, bool]:
    """Continue an upload at `offset`; what came before a disconnect stays. Returns the progress; or ServiceError."""
    if length > state.settings.tasks.upload_bytes:
        raise upload_too_large(state.settings.tasks)
    root = await run_in_threadpool(check_capacity, state, length - offset)
    received, is_complete = await run_in_threadpool(upload_progress, state, digest)
    if is_complete:
        return received, True
    async with _reserved(state, root, digest, user, length):
        return await _receive_upload(state, root, digest, offset, length, body)


async def _receive_upload(
    state: ServiceState, root: Path, digest: str, offset: int, length: int, body: AsyncIterator[bytes]
) -> tuple[int, bool]:
    path = job_files.partial_path(root, digest)
    with open(path, "ab") as file:
        received = await _append_body(file, offset, length, body)
        if received < length:
            return received, False
        file.flush()
        if await run_in_threadpool(_hash_file, path) != digest:
            path.unlink(missing_ok=True)
            raise ServiceError(
                422, "the content has another SHA-256", code="wrong-digest", hint="send it again from the beginning"
            )
        await run_in_threadpool(_store_file, state, root, path, digest, length)
    return received, True


async def _append_body(file: BinaryIO, offset: int, length: int, body: AsyncIterator[bytes]) -> int:
    """Lock the file until it is closed, and append the body. Returns the size of the file."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        hint = "ask with HEAD how much the server has, and continue later"
        raise ServiceError(409, "another request is sending this content", hint=hint) from None
    received = file.tell()
    if received != offset:
        headers = {"Upload-Offset": str(received)}
        raise ServiceError(409, f"the upload continues at {received}", code="wrong-offset", headers=headers)
    async for batch in batches(body):
        received += len(batch)
        if received > length:
            raise ServiceError(413, "the body is longer than Upload-Length", headers=CLOSE)
        await run_in_threadpool(file.write, batch)
    return received


def _store_file(state: ServiceState, root: Path, path: Path, digest: str, size: int) -> None:
    """Move a complete file to the place of its SHA-256, and record it in the store."""
    target = job_files.blob_path(root, digest)
    target.parent.mkdir(exist_ok=True, mode=0o700)
    os.replace(path, target)
    state.store.service_data.save_upload(digest, size)


def _hash_file(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_capacity(state: ServiceState, expected_bytes: int = 0) -> Path:
    """Return the upload directory. Raises ServiceError if the disk is full (507) or too many tasks wait (503)."""
    tasks = state.settings.tasks
    root = job_files.upload_directory(state.settings)
    if shutil.disk_usage(root).free - expected_bytes < tasks.disk_free:
        raise ServiceError(507, "the disk for uploads is nearly full")
    if state.store.tasks.counts().get("queued", 0) >= tasks.waiting:
        raise ServiceError(503, "too many tasks are waiting", headers={"Retry-After": "30"})
    return root


def queue_files(
    state: ServiceState, user: Principal, files: Sequence[tuple[str, str]], name: str | None, labels: Sequence[str] = ()
) -> Task:
    """Queue a task for uploaded files, given as (SHA-256, name). Raises ServiceError."""
    limits = state.settings.tasks
    if not 1 <= len(files) <= limits.upload_files:
        message = f"a job must have 1 to {limits.upload_files} files"
        raise ServiceError(400, message, hint="send an archive instead of many files")
    root = job_files.upload_directory(state.settings)
    listed: list[dict[str, Any]] = []
    for (digest, _), safe_name in zip(files, job_files.safe_names([redact(name) for _, name in files]), strict=True):
        upload = state.store.service_data.get_upload(digest)
        if upload is None or not job_files.blob_path(root, digest).exists():
            hint = "upload the file first, then try again"
            raise ServiceError(409, f"the upload {digest} is missing or incomplete", code="missing-upload", hint=hint)
        state.store.service_data.save_upload(digest, upload.bytes)
        listed.append({"name": safe_name, "digest": digest, "bytes": upload.bytes})
    if sum(item["bytes"] for item in listed) > limits.upload_bytes:
        raise ServiceError(413, f"a job may have at most {limits.upload_bytes} bytes")
    more = f" and {len(listed) - 1} more" if len(listed) > 1 else ""
    return _queue(
        state, user, {"place": {"files": listed}}, (name or "").strip() or f"{listed[0]['name']}{more}", labels
    )


def queue_source(
    state: ServiceState,
    user: Principal,
    source: str,
    job: str | None,
    name: str | None = None,
    labels: Sequence[str] = (),
) -> Task:
    """Queue a task for a job of a configured source. Raises ServiceError."""
    refuse_part(user)
    job_files.source_path(state.settings.sources, source, job)
    return _queue(state, user, {"place": {"source": source, "job": job}}, name or job or source, labels)


def queue_address(
    state: ServiceState, user: Principal, address: str, name: str | None = None, labels: Sequence[str] = ()
) -> Task:
    """Queue a task for a job at an address. Raises ServiceError if the settings do not allow it."""
    refuse_part(user)
    address = job_files.allowed_address(state.settings, address)
    return _queue(state, user, {"place": {"address": address}}, name or address.rstrip("/").rpartition("/")[2], labels)


def _queue(state: ServiceState, user: Principal, payload: Mapping[str, Any], name: str, labels: Sequence[str]) -> Task:
    """Return the task that waits or runs for the same payload, or a new one."""
    check_capacity(state)
    labels = _visible_labels(user, labels)
    payload = {**payload, "name": redact(" ".join(name.split()))[:200], **({"labels": list(labels)} if labels else {})}
    tasks = state.store_for(user).tasks
    same = tasks.find_same("ingest", payload)
    return same or tasks.add("ingest", payload, actor=user.name, most=state.settings.tasks.attempts)


def _visible_labels(user: Principal, labels: Sequence[str]) -> Sequence[str]:
    """Return the labels of a job that somebody sends; with one that lets them see it, if they see a part."""
    pairs = parse_labels(labels)
    if not user.sees or any(value in pairs.get(name, ()) for name, value in user.sees):
        return labels
    return [*labels, "=".join(user.sees[0])]


def refuse_part(user: Principal) -> None:
    """Raise ServiceError for somebody who sees a part of the incidents: sources and addresses are those of all."""
    if user.sees is not None:
        hint = "send the files of the job instead"
        raise ServiceError(403, "sources and addresses are for those who see all incidents", hint=hint)


def _split_labels(text: str) -> list[str]:
    """Return the labels in a text field, with commas between them."""
    return [label.strip() for label in text.split(",") if label.strip()]
