"""One incident as a zip archive, to send or to keep: its report, the quoted lines, and what people said about it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

from triage.model import StoredIncident
from triage.render import incidents, json, render
from triage.render.sanitize import sanitize
from triage.store.codec import place_findings

_DATE = (2000, 1, 1, 0, 0, 0)  # of every entry, so that the same incident gives the same bytes


def make_bundle(stored: StoredIncident, documents: Mapping[str, Mapping[str, Any]]) -> bytes:
    """Return the archive. `documents` are those stored with the incident, by kind."""
    files = {
        "README.txt": _describe(stored),
        "report.json": incidents.remembered_as_json(stored, stored.diagnosis),
        "report.txt": render(stored.diagnosis, "text", width=120),
        "evidence.txt": _quote(stored),
        **{f"{kind}.json": json.dump_json(document) for kind, document in sorted(documents.items())},
    }
    buffer, folder = io.BytesIO(), f"triage-{stored.incident.id}"
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(f"{folder}/{name}", _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text.encode("utf-8", "replace"))
    return buffer.getvalue()


def _describe(stored: StoredIncident) -> str:
    return (
        f"Incident {stored.incident.id}, diagnosed by triage {stored.diagnosis.tool_version}.\n\n"
        "report.json    the diagnosis (triage.diagnosis/2), feedback and earlier diagnoses; `triage show` reads it\n"
        "report.txt     the same as text\n"
        "evidence.txt   the quoted lines with file and line number; secrets are redacted\n"
        "other files    documents of the service: lines around the evidence, environment, flight matrix\n"
    )


def _quote(stored: StoredIncident) -> str:
    """Return the quoted lines of all findings with their places."""
    parts = []
    for item in place_findings(stored.diagnosis):
        for fact in item.finding.evidence:
            rank = f", rank {fact.origin.rank}" if fact.origin.rank is not None else ""
            line = f":{fact.line}" if fact.line is not None else ""
            name = item.finding.signature or item.finding.cluster or item.finding.title
            parts.append(f"=== {fact.source}{line}{rank} ({name})\n{fact.excerpt or fact.text}\n")
    return sanitize("\n".join(parts))
