"""A diagnosis as rows and back, without loss: what is searched has columns, the rest is one compressed JSON an incident."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from triage.model import Diagnosis, Evidence, Finding, Job, Moment, Origin, RankState, Remediation, Stats, Warning

EVIDENCE_COLUMNS = (
    "incident, finding, place, kind, component, text, excerpt, fields, rank, host, time, attempt, origin, source, line, end_line, "
    "start, stop, count"
)


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
    """Everything but the evidence, compressed."""
    document = dump(diagnosis)
    for name in ("findings", "unknown"):
        del document[name]
    del document["root_cause"]
    document["placed"] = [{"list": item.list, "root": item.root, **dump(item.finding), "evidence": None} for item in placed(diagnosis)]
    return pack(document)


def pack(document: Mapping[str, Any]) -> bytes:
    """The inverse of `unbody`."""
    return zlib.compress(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"), 6)


def unbody(data: bytes) -> dict[str, Any]:
    """The JSON of `body`."""
    document: dict[str, Any] = json.loads(zlib.decompress(data).decode("utf-8", "surrogatepass"))
    return document


def diagnosis(data: bytes, evidence: Mapping[int, Sequence[Evidence]], clusters: Mapping[int, str]) -> Diagnosis:
    """The inverse of `body`, with the evidence of each finding by its place, and the clusters that unknown findings belong to now."""
    document = unbody(data)
    lists: dict[str, list[Finding]] = {"findings": [], "unknown": [], "root": []}
    root = None
    for place, item in enumerate(document["placed"]):
        finding = _finding(item, tuple(evidence.get(place, ())), clusters.get(place))
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
    if dataclasses.is_dataclass(value):
        return {name: dump(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return {str(key): dump(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [dump(item) for item in value]
    return value


def evidence_row(incident: int, finding: int, place: int, item: Evidence) -> tuple[Any, ...]:
    """In the order of EVIDENCE_COLUMNS. What is not searched of the origin is one JSON."""
    origin = item.origin
    rest = {name: value for name in ("local_rank", "pid", "stream") if (value := getattr(origin, name)) is not None}
    return (
        incident,
        finding,
        place,
        item.kind,
        item.component,
        plain(item.text),
        None if item.excerpt == item.text else plain(item.excerpt),
        json.dumps(dict(item.fields)) if item.fields else None,
        origin.rank,
        origin.host,
        origin.time,
        origin.attempt,
        json.dumps(rest) if rest else None,
        plain(item.source),
        item.line,
        item.end_line,
        item.offset,
        item.end,
        item.count,
    )


def evidence(row: Any) -> Evidence:
    """The inverse of `evidence_row`."""
    rest = json.loads(row["origin"]) if row["origin"] else {}
    return Evidence(
        kind=row["kind"],
        component=row["component"],
        text=row["text"],
        origin=Origin(rank=row["rank"], host=row["host"], time=row["time"], attempt=row["attempt"], **rest),
        source=row["source"],
        offset=row["start"],
        end=row["stop"],
        fields=json.loads(row["fields"]) if row["fields"] else {},
        excerpt=row["text"] if row["excerpt"] is None else row["excerpt"],
        count=row["count"],
        line=row["line"],
        end_line=row["end_line"],
    )


def evidence_from(item: Mapping[str, Any]) -> Evidence:
    """The evidence that `dump` wrote."""
    return Evidence(**{**item, "origin": Origin(**item["origin"])})


def plain(text: str) -> str:
    """Without lone surrogates, which SQLite cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8") if not text.isascii() else text


def _finding(item: Mapping[str, Any], evidence: tuple[Evidence, ...], cluster: str | None) -> Finding:
    values = {name: item[name] for name in Finding.__dataclass_fields__ if name in item}
    for name in _TUPLES:
        values[name] = tuple(values[name])
    values["evidence"] = evidence
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
