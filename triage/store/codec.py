"""Encode a diagnosis for the store and decode it without loss.

What is searched has columns of its own; all else is one compressed JSON document per incident.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from triage.base.shared_types import share_type
from triage.model import Diagnosis, Evidence, Finding, Stats

_PLAIN = (str, int, float, bool, type(None))


@dataclasses.dataclass(frozen=True, slots=True)
class PlacedFinding:
    """A finding and its list: findings, unknown, or root for a root cause that is in neither list."""

    list: str
    root: bool
    finding: Finding


def place_findings(diagnosis: Diagnosis) -> list[PlacedFinding]:
    """Return all findings in order, with the root cause marked; it comes last if it is in neither list."""
    root = diagnosis.root_cause
    out = [PlacedFinding("findings", finding == root, finding) for finding in diagnosis.findings]
    out += [PlacedFinding("unknown", finding == root, finding) for finding in diagnosis.unknown]
    return out if root is None or any(item.root for item in out) else [*out, PlacedFinding("root", True, root)]


def encode_diagnosis(diagnosis: Diagnosis) -> bytes:
    """Return the diagnosis as a compressed JSON document."""
    document = to_json(diagnosis)
    for name in ("findings", "unknown", "root_cause"):
        del document[name]
    document["placed"] = [
        {"list": item.list, "root": item.root, **to_json(item.finding)} for item in place_findings(diagnosis)
    ]
    return encode_document(document)


def encode_document(document: Mapping[str, Any]) -> bytes:
    """Return a JSON document in compressed form; the inverse of `decode_document`."""
    return compress_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")))


def decode_document(data: bytes) -> dict[str, Any]:
    """Return the JSON document that `encode_diagnosis` wrote."""
    document: dict[str, Any] = json.loads(decompress_text(data))
    return document


def compress_text(text: str) -> bytes:
    """Compress text for the store."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 6)


def decompress_text(data: bytes) -> str:
    """Return the text that `compress_text` compressed."""
    return zlib.decompress(data).decode("utf-8", "surrogatepass")


def decode_diagnosis(data: bytes, clusters: Mapping[int, str]) -> Diagnosis:
    """Return the diagnosis that `encode_diagnosis` wrote; `clusters` are the current ones by the finding's place."""
    document = decode_document(data)
    lists: dict[str, list[Finding]] = {"findings": [], "unknown": [], "root": []}
    root = None
    for place, item in enumerate(document["placed"]):
        finding = msgspec.convert({**item, "cluster": clusters.get(place) or item.get("cluster")}, share_type(Finding))
        lists[item["list"]].append(finding)
        root = finding if item["root"] else root
    diagnosis = msgspec.convert({**document, "root_cause": None}, share_type(Diagnosis))
    findings, unknown = tuple(lists["findings"]), tuple(lists["unknown"])
    return dataclasses.replace(diagnosis, root_cause=root, findings=findings, unknown=unknown)


def diagnosis_digest(diagnosis: Diagnosis) -> str:
    """Return a digest that is equal when the same files give the same diagnosis; statistics do not count."""
    job = dataclasses.replace(diagnosis.job, name="", path="")
    content = dataclasses.replace(diagnosis, stats=Stats(), job=job)
    text = repr(content) + (repr(dict(job.facts)) if job.facts else "")  # equal to that of versions without facts
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def to_json(value: Any) -> Any:
    """Return dataclasses, tuples and mappings as JSON values."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return [to_json(item) for item in value]
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is not None:
        # Fields that are not compared serve the reasoning only and are not stored.
        return {name: to_json(getattr(value, name)) for name, item in fields.items() if item.compare}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    return value


def decode_evidence(data: bytes) -> list[Evidence]:
    """Return the evidence of all findings of a document by `encode_diagnosis`."""
    return msgspec.convert(
        [fact for item in decode_document(data)["placed"] for fact in item["evidence"]], share_type(list[Evidence])
    )


def without_surrogates(text: str) -> str:
    """Return the text without lone surrogates, which SQLite cannot store."""
    return text.encode("utf-8", "replace").decode("utf-8") if not text.isascii() else text


def json_list(items: Iterable[str]) -> str:
    """Return a list of texts as JSON."""
    return json.dumps(list(items), ensure_ascii=False)
