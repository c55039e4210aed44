"""What one task does, inside the cage: files of a job → the diagnosis and the documents beside it, as JSON in a file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from triage import pipeline
from triage.base.errors import InputError
from triage.base.options import Options, Progress
from triage.model.diagnosis import Diagnosis
from triage.render import environment, flight
from triage.service.work.context import around
from triage.service.work.files import laid_out
from triage.settings import Settings
from triage.store import codec

Say = Callable[[Mapping[str, Any]], None]


def ingest(settings: Settings, root: Path, payload: Mapping[str, Any], name: str, out: Path, say: Say) -> None:
    """Diagnose what the payload names and write {"diagnosis", "documents"} to `out`. Raises TriageError."""

    def told(progress: Progress) -> None:
        say({"stage": progress.stage, "done": progress.done, "total": progress.total})

    options = Options(workers=settings.tasks.scan_threads)
    with laid_out(root, payload["place"], settings.sources, name) as (directory, paths):
        os.chdir(directory)
        say({"stage": "read", "done": 0, "total": None})
        diagnosis, audit = pipeline.examine(paths, options, told)
        say({"stage": "finish", "done": 0, "total": None})
        documents = {"environment": json.loads(environment.as_json(audit)), "context": around(paths, diagnosis)}
        matrix = _flight(paths, diagnosis)
        if matrix is not None:
            documents["flight"] = matrix
    named = dataclasses.replace(
        diagnosis.job, name=payload.get("name") or diagnosis.job.name, path=called(payload["place"])
    )
    diagnosis = dataclasses.replace(diagnosis, job=named)
    out.write_bytes(codec.pack({"body": codec.unbody(codec.body(diagnosis)), "documents": documents}))


def called(place: Mapping[str, Any]) -> str:
    """Where a job came from, the same each time: its name in a source, or of an upload the content and the name, if it
    is one file.
    """
    if "source" in place:
        return "/".join(filter(None, (place["source"], place.get("job"))))
    sent = place["files"]
    digests = sorted(item["digest"] for item in sent)
    content = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    return "/".join((f"upload {content[:12]}", *(item["name"] for item in sent if len(sent) == 1)))


def warm() -> None:
    """Load what every task needs, once, before the processes for them are forked."""
    with tempfile.TemporaryDirectory(prefix="triage-warm-") as scratch:
        path = Path(scratch) / "rank0.log"
        path.write_text("[rank0]: Traceback (most recent call last):\n[rank0]: ValueError: nothing\n", encoding="utf-8")
        pipeline.examine([str(path)], Options(workers=1))


def read_back(out: Path) -> tuple[Diagnosis, dict[str, Any]]:
    """What `ingest` wrote."""
    document = codec.unbody(out.read_bytes())
    return codec.diagnosis(codec.pack(document["body"]), {}), document["documents"]


def _flight(paths: list[str], diagnosis: Diagnosis) -> dict[str, Any] | None:
    """The matrix of the Flight Recorder dumps, where there are any."""
    from triage.artifacts.flight.analyse import analyse
    from triage.artifacts.flight.gather import gather
    from triage.artifacts.flight.view import view

    try:
        recording, warnings = gather(paths)
    except InputError:
        return None
    found: dict[str, Any] = json.loads(
        flight.as_json(view(recording, analyse(recording), path=paths[0], warnings=warnings))
    )
    return found
