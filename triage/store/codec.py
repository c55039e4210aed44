"""A diagnosis as rows and back, without loss: what is searched has columns, the rest is one compressed JSON an
incident.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from triage.model.diagnosis import Diagnosis, Finding, Job, Moment, RankState, Remediation, Stats
from triage.model.evidence import Evidence, Origin, Warning

_PLAIN = (str, int, float, bool, type(None))


@dataclasses.dataclass(frozen=True, slots=True)
class Placed:
    """A finding with the list that it stands in: findings, unknown, or root for a root cause that stands in neither."""

    list: str
    root: bool
    finding: Finding


def placed(diagnosis: Diagnosis) -> list[Placed]:
    """All findings in their order; the root cause is marked, and stands at the end if it is in neither list."""
    root = diagnosis.root_cause
    out = [Placed("findings", finding == root, finding) for finding in diagnosis.findings]
    out += [Placed("unknown", finding == root, finding) for finding in diagnosis.unknown]
    return out if root is None or any(item.root for item in out) else [*out, Placed("root", True, root)]


def body(diagnosis: Diagnosis) -> bytes:
    """All of it, compressed."""
    document = dump(diagnosis)
    for name in ("findings", "unknown", "root_cause"):
        del document[name]
    document["placed"] = [{"list": item.list, "root": item.root, **dump(item.finding)} for item in placed(diagnosis)]
    return pack(document)


def pack(document: Mapping[str, Any]) -> bytes:
    """The inverse of `unbody`."""
    return packed(json.dumps(document, ensure_ascii=False, separators=(",", ":")))


def unbody(data: bytes) -> dict[str, Any]:
    """The JSON of `body`."""
    document: dict[str, Any] = json.loads(unpacked(data))
    return document


def packed(text: str) -> bytes:
    """JSON as it lies in the store."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 6)


def unpacked(data: bytes) -> str:
    """The inverse of `packed`."""
    return zlib.decompress(data).decode("utf-8", "surrogatepass")


def diagnosis(data: bytes, clusters: Mapping[int, str]) -> Diagnosis:
    """The inverse of `body`, with the clusters that unknown findings belong to now."""
    document = unbody(data)
    lists: dict[str, list[Finding]] = {"findings": [], "unknown": [], "root": []}
    root = None
    for place, item in enumerate(document["placed"]):
        finding = _finding(item, clusters.get(place))
        lists[item["list"]].append(finding)
        root = finding if item["root"] else root
    return Diagnosis(
        tool_version=document["tool_version"],
        catalog_version=document["catalog_version"],
        job=_job(document["job"]),
        verdict=document["verdict"],
        root_cause=root,
        findings=tuple(lists["findings"]),
        unknown=tuple(lists["unknown"]),
        timeline=tuple(Moment(**item) for item in document["timeline"]),
        ranks=tuple(RankState(**item) for item in document["ranks"]),
        warnings=tuple(Warning(**item) for item in document["warnings"]),
        stats=Stats(**document["stats"]),
    )


def digest(diagnosis: Diagnosis) -> str:
    """Equal when a second ingest of the same files with the same catalog says the same; what it cost does not count."""
    still = dataclasses.replace(diagnosis, stats=Stats(), job=dataclasses.replace(diagnosis.job, name="", path=""))
    return hashlib.sha256(repr(still).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def dump(value: Any) -> Any:
    """Dataclasses, tuples and mappings as what JSON has."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return [dump(item) for item in value]
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is not None:
        return {name: dump(getattr(value, name)) for name in fields}
    if isinstance(value, Mapping):
        return {str(key): dump(item) for key, item in value.items()}
    return value


def facts(data: bytes) -> list[Evidence]:
    """The evidence of all findings of a `body`."""
    return [evidence_from(fact) for item in unbody(data)["placed"] for fact in item["evidence"]]


def evidence_from(item: Mapping[str, Any]) -> Evidence:
    """The evidence that `dump` wrote."""
    return Evidence(**{**item, "origin": Origin(**item["origin"])})


def plain(text: str) -> str:
    """Without lone surrogates, which SQLite cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8") if not text.isascii() else text


def _finding(item: Mapping[str, Any], cluster: str | None) -> Finding:
    values = {name: item[name] for name in Finding.__dataclass_fields__ if name in item}
    for name in _TUPLES:
        values[name] = tuple(values[name])
    values["evidence"] = tuple(map(evidence_from, item["evidence"]))
    values["cluster"] = cluster or values["cluster"]
    advice = item["remediation"]
    values["remediation"] = Remediation(advice["summary"], tuple(advice["steps"]), tuple(advice["references"]))
    return Finding(**values)


_TUPLES = ("ranks", "hosts", "explained_by", "why")


def _job(item: Mapping[str, Any]) -> Job:
    hosts = {host: tuple(ranks) for host, ranks in item["hosts"].items()}
    return Job(**{**item, "ranks": tuple(item["ranks"]), "hosts": hosts})


def names(items: Iterable[str]) -> str:
    """A list of texts as JSON."""
    return json.dumps(list(items), ensure_ascii=False)
