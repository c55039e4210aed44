"""New work: files that came whole, or a job of a configured source, become a task."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from triage.service.failure import ServiceError
from triage.service.principal import Principal
from triage.service.state import Service
from triage.service.work import files
from triage.store.tasks import Task


def room(service: Service, expected: int = 0) -> Path:
    """The directory of uploads, when this much may come. Raises ServiceError with 507 and 503."""
    tasks = service.settings.tasks
    root = files.uploads(service.settings)
    if shutil.disk_usage(root).free - expected < tasks.disk_free:
        raise ServiceError(507, "the disk of the uploads is nearly full")
    if service.store.tasks.counts().get("queued", 0) >= tasks.waiting:
        raise ServiceError(503, "too many tasks wait already", headers={"Retry-After": "30"})
    return root


def of_files(service: Service, who: Principal, sent: Sequence[tuple[str, str]], name: str | None) -> Task:
    """A task for files given as (SHA-256, name). Raises ServiceError for those that have not been sent."""
    if not 1 <= len(sent) <= service.settings.tasks.upload_files:
        raise ServiceError(
            400, f"a job is 1 to {service.settings.tasks.upload_files} files", hint="put more into an archive"
        )
    found = []
    for (digest, _), clean in zip(sent, files.harmless_all([given for _, given in sent]), strict=True):
        known = service.store.beside.upload(digest)
        if known is None or not files.blob(files.uploads(service.settings), digest).exists():
            raise ServiceError(
                409,
                f"{digest} has not been sent, or not to its end",
                code="missing-upload",
                hint="send it, then ask again",
            )
        service.store.beside.put_upload(digest, known.bytes)
        found.append({"name": clean, "digest": digest, "bytes": known.bytes})
    if sum(int(str(item["bytes"])) for item in found) > service.settings.tasks.upload_bytes:
        raise ServiceError(413, f"a job may hold {service.settings.tasks.upload_bytes} bytes")
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return _queued(service, who, {"place": {"files": found}}, (name or "").strip() or f"{found[0]['name']}{more}")


def of_source(service: Service, who: Principal, source: str, job: str | None, name: str | None = None) -> Task:
    """A task for a job of a configured source. Raises ServiceError for what is not there."""
    files.source_path(service.settings.sources, source, job)
    return _queued(service, who, {"place": {"source": source, "job": job}}, name or job or source)


def _queued(service: Service, who: Principal, payload: Mapping[str, Any], name: str) -> Task:
    """The task; one that waits or runs already for the same is given again."""
    room(service)
    payload = {**payload, "name": " ".join(name.split())[:200]}
    same = service.store.tasks.same("ingest", payload)
    if same is not None:
        return same
    return service.store.tasks.add("ingest", payload, actor=who.name, most=service.settings.tasks.attempts)
