"""A page's data as JSON has it: dataclasses as objects, times of the store as ISO 8601, log text as it is."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from triage.model.diagnosis import Diagnosis
from triage.model.store import Cluster, Entry, Incident
from triage.render import clusters, incidents, json
from triage.render.table import iso

TIMES = frozenset(
    {"at", "stored_at", "seen_at", "created_at", "started_at", "ended_at", "used_at", "first", "last", "ingested_at"}
)
HIDDEN = frozenset({"pictures"})


def plain(value: Any, name: str = "") -> Any:
    """What `json.dumps` takes."""
    if isinstance(value, float):
        return iso(value) if name in TIMES else value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int, bool)):
        return value
    if isinstance(value, Incident):
        return incidents.as_dict(value)
    if isinstance(value, Cluster):
        return clusters.as_dict(value)
    if isinstance(value, Entry):
        return clusters.entry_as_dict(value)
    if isinstance(value, Diagnosis):
        return json.document(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(getattr(value, field.name), field.name)
            for field in dataclasses.fields(value)
            if field.name not in HIDDEN
        }
    if isinstance(value, Mapping):
        return {str(key): plain(item, str(key)) for key, item in value.items()}
    return [plain(item) for item in value]
