"""Clusters and the audit log, as text or JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from triage.catalog.wording_draft import WordingDraft
from triage.clusters.model import NearestCluster
from triage.model import AuditEntry, Cluster, Evidence, Incident
from triage.render import table
from triage.render.json import dump_json
from triage.render.phrases import format_count
from triage.render.sanitize import sanitize_line
from triage.render.table import Cell, day, iso
from triage.render.terminal import Paint, fold, labelled
from triage.render.text import NARROWEST, WIDTH, quoted
from triage.store.rekeying import RekeyResult

Exemplar = tuple[str, str, tuple[Evidence, ...]]
_HEAD = ("cluster", "state", "incidents", "week", "jobs", "ranks", "last seen", "what")


def trend(cluster: Cluster) -> str:
    """Return the incidents of the last week, with an arrow if they are more or fewer than the week before."""
    sign = "↑" if cluster.recent > cluster.before else "↓" if cluster.recent < cluster.before else ""
    return f"{cluster.recent}{sign}"


def listing(clusters: Sequence[Cluster], *, width: int | None = None, color: bool = False) -> str:
    """Return one line for each cluster."""
    if not clusters:
        return "no clusters\n"
    rows = [
        (c.id, c.state, str(c.incidents), trend(c), str(c.jobs), str(c.ranks), day(c.last_seen)[:10], c.name or c.title)
        for c in clusters
    ]
    return (
        "\n".join(table.as_text(_HEAD, rows, max(width or WIDTH, NARROWEST), Paint(color), right=(2, 3, 4, 5))) + "\n"
    )


def listing_as_json(clusters: Sequence[Cluster]) -> str:
    """Return the clusters with their fingerprints."""
    return dump_json({"schema": "triage.clusters/1", "clusters": [as_dict(cluster) for cluster in clusters]})


def listing_as_csv(clusters: Sequence[Cluster]) -> str:
    """Return one row for each cluster."""
    names = [name for name in Cluster.__dataclass_fields__ if name != "keys"]
    rows: list[list[Cell]] = [[as_dict(cluster)[name] for name in names] for cluster in clusters]
    return table.as_csv(names, rows)


def as_dict(cluster: Cluster) -> dict[str, Any]:
    """Return a cluster as its JSON object."""
    values = {name: getattr(cluster, name) for name in Cluster.__dataclass_fields__}
    keys = [
        {
            "key": key.key,
            "version": key.version,
            "guard": key.guard,
            "headline": key.headline,
            "anchored": key.anchored,
            "trail": list(key.trail),
        }
        for key in cluster.keys
    ]
    return {**values, "keys": keys, "first_seen": iso(cluster.first_seen), "last_seen": iso(cluster.last_seen)}


@dataclass(frozen=True, slots=True)
class ClusterDetails:
    """A cluster as `triage clusters show` shows it.

    `reasons`: fingerprint key to why it belongs to the cluster. `near`: clusters that could be merged, or a `note` why
    there are none. `wordings`: signatures that its lines look like a new wording of.
    """

    cluster: Cluster
    exemplars: Sequence[Exemplar]
    incidents: Sequence[Incident] = ()
    log: Sequence[AuditEntry] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    near: Sequence[tuple[NearestCluster, Cluster]] = ()
    note: str = ""
    wordings: Sequence[WordingDraft] = ()


def page(details: ClusterDetails, *, width: int | None = None, color: bool = False) -> str:
    """Return everything about one cluster."""
    room, paint = max(width or WIDTH, NARROWEST), Paint(color)
    cluster = details.cluster
    lines = [paint(sanitize_line(f"{cluster.id}  {cluster.name or cluster.title}"), "bold")]
    size = f"{format_count(cluster.incidents, 'incident')} in {format_count(cluster.jobs, 'job')}"
    summary = f"{cluster.state}, {size}, {trend(cluster)} in the last week, last {day(cluster.last_seen)}"
    lines += fold(summary + (f", promoted to {cluster.signature}" if cluster.signature else ""), room)
    lines += labelled("Note", [sanitize_line(cluster.note)], room, paint, "bold") if cluster.note else []
    lines.append("")
    for key in cluster.keys:
        lines += labelled("Fingerprint", [sanitize_line(f"{key.key}  {key.headline}")], room, paint, "bold")
        lines += ["  " + line for line in fold(sanitize_line(details.reasons.get(key.key, "")), room - 2)]
        for _, incident, facts in [item for item in details.exemplars if item[0] == key.key][:2]:
            lines.append(f"  {incident}")
            lines += quoted(facts[0].excerpt or facts[0].text, room, "    ") if facts else []
    lines += _wordings(details, room, paint)
    lines += _near(details, room, paint)
    lines += ["", paint("Incidents", "bold")] if details.incidents else []
    lines += [
        sanitize_line(f"  {item.id}  {day(item.at)}  {item.job_name}  {', '.join(item.hosts[:3])}")
        for item in details.incidents
    ]
    lines += ["", paint("Log", "bold"), *entries(details.log)] if details.log else []
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _wordings(details: ClusterDetails, room: int, paint: Paint) -> list[str]:
    """Return the signatures that could learn this wording, with what to add to their files."""
    lines: list[str] = []
    for draft in details.wordings:
        lines += ["", *fold(sanitize_line(draft.summary), room)]
        lines.append(paint(sanitize_line(f"  if it is the same failure, change {draft.path}:"), "dim"))
        lines += [f"    {sanitize_line(line)}" for line in draft.yaml.splitlines()]
    return lines


def _near(details: ClusterDetails, room: int, paint: Paint) -> list[str]:
    """Return the clusters that could be merged, with the words that differ."""
    lines = ["", paint("Similar clusters", "bold")] if details.near or details.note else []
    lines += fold(f"  {sanitize_line(details.note)}", room) if details.note else []
    for near, other in details.near:
        name = other.name or other.title
        lines += fold(
            sanitize_line(f"  similarity {near.score:.2f}  {other.id}  {other.state}  {name}"),
            room,
        )
        for sign, terms, style in (("-", near.only_there, "red"), ("+", near.only_here, "green")):
            lines += (
                [paint(line, style) for line in fold(sanitize_line(f"        {sign} {' '.join(terms)}"), room)]
                if terms
                else []
            )
    if details.near:
        note = (
            "- words only there, + words only here. If they are the same failure: "
            f"`triage clusters merge {details.cluster.id} ID`, else `reject`"
        )
        lines += [paint(line, "dim") for line in fold(f"  {note}", room)]
    return lines


def page_as_dict(details: ClusterDetails) -> dict[str, Any]:
    """Return the same as JSON."""
    exemplars = [
        {"key": key, "incident": incident, "text": [fact.excerpt or fact.text for fact in facts]}
        for key, incident, facts in details.exemplars
    ]
    values = as_dict(details.cluster)
    values["keys"] = [{**key, "why": details.reasons.get(key["key"])} for key in values["keys"]]
    near = [
        {
            "cluster": other.id,
            "state": other.state,
            "title": other.name or other.title,
            "score": near.score,
            "only_here": list(near.only_here),
            "only_there": list(near.only_there),
        }
        for near, other in details.near
    ]
    return {
        "schema": "triage.cluster/1",
        **values,
        "exemplars": exemplars,
        "wordings": [
            {"signature": one.signature, "summary": one.summary, "path": one.path, "yaml": one.yaml}
            for one in details.wordings
        ],
        "near": near,
        "members": [
            {"id": item.id, "at": iso(item.at), "job": item.job_name, "hosts": list(item.hosts)}
            for item in details.incidents
        ],
        "log": [entry_as_dict(entry) for entry in details.log],
    }


def page_as_json(details: ClusterDetails) -> str:
    """Return the same as JSON text."""
    return dump_json(page_as_dict(details))


def rekeyed(result: RekeyResult, dry_run: bool) -> str:
    """Return how new fingerprint rules change the clusters."""
    verb = "would get" if dry_run else "got"
    head = (
        f"rules of version {result.version} (before: {result.before}): "
        f"{format_count(result.examples, 'example')}, {result.added} {verb} a new fingerprint"
    )
    lines = [
        head,
        *(f"collision: {line}" for line in result.collisions),
        *(f"divergence: {line}" for line in result.divergences),
    ]
    return "".join(f"{sanitize_line(line)}\n" for line in lines)


def rekeyed_as_json(result: RekeyResult, dry_run: bool) -> str:
    """Return the same as JSON."""
    values = {name: getattr(result, name) for name in RekeyResult.__dataclass_fields__}
    lists = {"collisions": list(result.collisions), "divergences": list(result.divergences), "dry_run": dry_run}
    return dump_json({"schema": "triage.rekeyed/1", **values, **lists})


def entries(log: Sequence[AuditEntry]) -> list[str]:
    """Return one line for each audit entry; an undone one names the entry that undid it."""
    out = []
    for entry in log:
        details = ", ".join(f"{name} {value}" for name, value in entry.details.items() if value)
        undone = f" [undone by {entry.undone_by}]" if entry.undone_by is not None else ""
        out.append(
            sanitize_line(
                f"{entry.id:>5}  {day(entry.at)}  {entry.actor}  {entry.action} {entry.subject}  {details}{undone}"
            )
        )
    return out


def log_as_json(log: Sequence[AuditEntry]) -> str:
    """Return the same as JSON."""
    return dump_json({"schema": "triage.audit/1", "entries": [entry_as_dict(entry) for entry in log]})


def entry_as_dict(entry: AuditEntry) -> dict[str, Any]:
    """Return an entry as its JSON object."""
    return {name: getattr(entry, name) for name in AuditEntry.__dataclass_fields__} | {
        "at": iso(entry.at),
        "details": dict(entry.details),
    }
