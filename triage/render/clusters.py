"""Clusters and the audit log, as text or JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from triage.clusters.model import Near
from triage.model.evidence import Evidence
from triage.model.store import Cluster, Entry, Incident
from triage.render import table
from triage.render.incidents import dumped
from triage.render.layout import Paint, fold, labelled
from triage.render.safe import safe_line
from triage.render.table import Cell, day, iso
from triage.render.text import NARROWEST, WIDTH, quoted
from triage.render.words import plural
from triage.store.rekeying import Rekeyed

Exemplar = tuple[str, str, tuple[Evidence, ...]]
_HEAD = ("cluster", "state", "incidents", "week", "jobs", "ranks", "last seen", "what")


def trend(cluster: Cluster) -> str:
    """Incidents of the last week, and whether that is more or less than the week before."""
    sign = "↑" if cluster.recent > cluster.before else "↓" if cluster.recent < cluster.before else ""
    return f"{cluster.recent}{sign}"


def listing(clusters: Sequence[Cluster], *, width: int | None = None, color: bool = False) -> str:
    """A line a cluster."""
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
    """The clusters with their fingerprints."""
    return dumped({"schema": "triage.clusters/1", "clusters": [as_dict(cluster) for cluster in clusters]})


def listing_as_csv(clusters: Sequence[Cluster]) -> str:
    """A row a cluster."""
    names = [name for name in Cluster.__dataclass_fields__ if name != "keys"]
    rows: list[list[Cell]] = [[as_dict(cluster)[name] for name in names] for cluster in clusters]
    return table.as_csv(names, rows)


def as_dict(cluster: Cluster) -> dict[str, Any]:
    """A cluster as JSON has it."""
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
class Page:
    """What `triage clusters show` shows: `reasons` why each fingerprint is in it, `near` the clusters that could be
    merged, `note` why there are none.
    """

    cluster: Cluster
    exemplars: Sequence[Exemplar]
    incidents: Sequence[Incident] = ()
    log: Sequence[Entry] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    near: Sequence[tuple[Near, Cluster]] = ()
    note: str = ""


def page(shown: Page, *, width: int | None = None, color: bool = False) -> str:
    """Everything about one cluster."""
    room, paint = max(width or WIDTH, NARROWEST), Paint(color)
    cluster = shown.cluster
    lines = [paint(safe_line(f"{cluster.id}  {cluster.name or cluster.title}"), "bold")]
    told = f"{cluster.state}, {cluster.incidents} incidents in {cluster.jobs} jobs, {trend(cluster)} in the last week, last {day(cluster.last_seen)}"
    lines += fold(told + (f", promoted to {cluster.signature}" if cluster.signature else ""), room)
    lines += labelled("Note", [safe_line(cluster.note)], room, paint, "bold") if cluster.note else []
    lines.append("")
    for key in cluster.keys:
        lines += labelled("Fingerprint", [safe_line(f"{key.key}  {key.headline}")], room, paint, "bold")
        lines += ["  " + line for line in fold(safe_line(shown.reasons.get(key.key, "")), room - 2)]
        for _, incident, facts in [item for item in shown.exemplars if item[0] == key.key][:2]:
            lines.append(f"  {incident}")
            lines += quoted(facts[0].excerpt or facts[0].text, room, "    ") if facts else []
    lines += _near(shown, room, paint)
    lines += ["", paint("Incidents", "bold")] if shown.incidents else []
    lines += [
        safe_line(f"  {item.id}  {day(item.at)}  {item.job_name}  {', '.join(item.hosts[:3])}")
        for item in shown.incidents
    ]
    lines += ["", paint("Log", "bold"), *entries(shown.log)] if shown.log else []
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _near(shown: Page, room: int, paint: Paint) -> list[str]:
    """The suggestions with the words that tell them apart."""
    lines = ["", paint("Near", "bold")] if shown.near or shown.note else []
    lines += fold(f"  {safe_line(shown.note)}", room) if shown.note else []
    for near, other in shown.near:
        lines += fold(safe_line(f"  {near.score:.2f}  {other.id}  {other.state}  {other.name or other.title}"), room)
        for sign, words, style in (("-", near.only_there, "red"), ("+", near.only_here, "green")):
            lines += (
                [paint(line, style) for line in fold(safe_line(f"        {sign} {' '.join(words)}"), room)]
                if words
                else []
            )
    if shown.near:
        said = (
            f"- only there, + only here. `triage clusters merge {shown.cluster.id} ID` if they are one, `reject` if not"
        )
        lines += [paint(line, "dim") for line in fold(f"  {said}", room)]
    return lines


def page_as_dict(shown: Page) -> dict[str, Any]:
    """The same for a program."""
    exemplars = [
        {"key": key, "incident": incident, "text": [fact.excerpt or fact.text for fact in facts]}
        for key, incident, facts in shown.exemplars
    ]
    values = as_dict(shown.cluster)
    values["keys"] = [{**key, "why": shown.reasons.get(key["key"])} for key in values["keys"]]
    near = [
        {
            "cluster": other.id,
            "state": other.state,
            "title": other.name or other.title,
            "score": near.score,
            "only_here": list(near.only_here),
            "only_there": list(near.only_there),
        }
        for near, other in shown.near
    ]
    return {
        "schema": "triage.cluster/1",
        **values,
        "exemplars": exemplars,
        "near": near,
        "members": [
            {"id": item.id, "at": iso(item.at), "job": item.job_name, "hosts": list(item.hosts)}
            for item in shown.incidents
        ],
        "log": [entry_as_dict(entry) for entry in shown.log],
    }


def page_as_json(shown: Page) -> str:
    """The same, written."""
    return dumped(page_as_dict(shown))


def rekeyed(found: Rekeyed, dry_run: bool) -> str:
    """What new rules made of the clusters."""
    would = "would get" if dry_run else "got"
    head = f"rules of version {found.version} (before: {found.before}): {plural(found.examples, 'example')}, {found.added} {would} a new fingerprint"
    lines = [
        head,
        *(f"collision: {line}" for line in found.collisions),
        *(f"divergence: {line}" for line in found.divergences),
    ]
    return "".join(f"{safe_line(line)}\n" for line in lines)


def rekeyed_as_json(found: Rekeyed, dry_run: bool) -> str:
    """The same for a program."""
    values = {name: getattr(found, name) for name in Rekeyed.__dataclass_fields__}
    told = {"collisions": list(found.collisions), "divergences": list(found.divergences), "dry_run": dry_run}
    return dumped({"schema": "triage.rekeyed/1", **values, **told})


def entries(log: Sequence[Entry]) -> list[str]:
    """A line an entry; those that were taken back say by which."""
    out = []
    for entry in log:
        details = ", ".join(f"{name} {value}" for name, value in entry.details.items() if value)
        undone = f" [taken back by {entry.undone_by}]" if entry.undone_by is not None else ""
        out.append(
            safe_line(
                f"{entry.id:>5}  {day(entry.at)}  {entry.actor}  {entry.action} {entry.subject}  {details}{undone}"
            )
        )
    return out


def log_as_json(log: Sequence[Entry]) -> str:
    """The same for a program."""
    return dumped({"schema": "triage.audit/1", "entries": [entry_as_dict(entry) for entry in log]})


def entry_as_dict(entry: Entry) -> dict[str, Any]:
    """An entry as JSON has it."""
    return {name: getattr(entry, name) for name in Entry.__dataclass_fields__} | {
        "at": iso(entry.at),
        "details": dict(entry.details),
    }
