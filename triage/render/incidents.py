"""Incidents of the store as text, JSON or CSV: lists, search hits, similar incidents, sums, feedback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triage.base.rank_ranges import format_rank_numbers
from triage.model import Diagnosis, DiagnosisChange, Feedback, Incident, StoredIncident, record_keys
from triage.render import table
from triage.render.json import document, dump_json
from triage.render.phrases import format_count
from triage.render.sanitize import sanitize_line
from triage.render.table import Cell, day, iso
from triage.render.terminal import Paint, fold, labelled
from triage.render.text import NARROWEST, WIDTH
from triage.store.retriage import RetriageResult
from triage.store.search import IncidentStats, SearchHit, SimilarIncident, StatsRow, week_start

SCHEMA = "triage.incidents/1"
_HEAD = ("incident", "failed", "verdict", "cause", "ranks", "hosts", "job", "title")


def cause(incident: Incident) -> str:
    """Return the signature, else the name or id of the cluster."""
    fallback = {"clean": "-", "inconclusive": "inconclusive"}.get(incident.verdict, "symptoms only")
    return incident.signature or incident.name or incident.cluster or fallback


def as_dict(incident: Incident) -> dict[str, Any]:
    """Return an incident as its JSON object."""
    times = {name: iso(getattr(incident, name)) for name in ("at", "stored_at", "seen_at")}
    values = {key: getattr(incident, name) for name, key in record_keys(Incident).items()}
    return {**values, "ranks": list(incident.ranks), "hosts": list(incident.hosts), **times}


def listing(incidents: Sequence[Incident], total: int, *, width: int | None = None, color: bool = False) -> str:
    """Return one line for each incident."""
    if not incidents:
        return "no incidents\n"
    rows = [_row(incident) for incident in incidents]
    lines = table.as_text(_HEAD, rows, max(width or WIDTH, NARROWEST), Paint(color))
    more = (
        f"{len(incidents)} of {format_count(total, 'incident')}; --limit shows more\n" if total > len(incidents) else ""
    )
    return "\n".join(lines) + "\n" + more


def listing_as_json(incidents: Sequence[Incident], total: int, cursor: str | None) -> str:
    """Return the incidents, their total number, and the cursor of the next page."""
    return dump_json(
        {"schema": SCHEMA, "total": total, "next": cursor, "incidents": [as_dict(incident) for incident in incidents]}
    )


def listing_as_csv(incidents: Sequence[Incident]) -> str:
    """Return one row for each incident, with all columns."""
    head = list(record_keys(Incident).values())
    rows: list[list[Cell]] = []
    for incident in incidents:
        item = as_dict(incident)
        rows.append([" ".join(map(str, item[name])) if isinstance(item[name], list) else item[name] for name in head])
    return table.as_csv(head, rows)


def hits(
    results: Sequence[SearchHit],
    others: Sequence[tuple[str, str, str]],
    query: str,
    *,
    width: int | None = None,
    color: bool = False,
) -> str:
    """Return signatures and guides as (kind, id, title) of `others`, then incidents with a marked excerpt."""
    room, paint = max(width or WIDTH, NARROWEST), Paint(color)
    lines: list[str] = []
    if others:
        lines += table.as_text(("in the catalog", "id", "title"), others, room, paint)
    for hit in results:
        incident = hit.incident
        lines += [
            "",
            *fold(sanitize_line(f"{incident.id}  {day(incident.at)}  {cause(incident)}  {incident.job_name}"), room),
        ]
        marked = hit.snippet.replace("\x02", "«").replace("\x03", "»")
        lines += [paint(line, "dim") for line in fold("  " + table.cut(sanitize_line(marked), room * 2), room)]
    return "\n".join(lines).strip("\n") + "\n" if lines else f"nothing contains {sanitize_line(query)!r}\n"


def hits_as_dict(results: Sequence[SearchHit], others: Sequence[tuple[str, str, str]], query: str) -> dict[str, Any]:
    """Return the same as JSON; in `snippet` the query's terms stand between « and »."""
    items = [
        {**as_dict(hit.incident), "snippet": hit.snippet.replace("\x02", "«").replace("\x03", "»")} for hit in results
    ]
    catalog = [{"kind": kind, "id": name, "title": title} for kind, name, title in others]
    return {"schema": "triage.search/1", "words": query, "catalog": catalog, "incidents": items}


def hits_as_json(results: Sequence[SearchHit], others: Sequence[tuple[str, str, str]], query: str) -> str:
    """Return the same as JSON text."""
    return dump_json(hits_as_dict(results, others, query))


def hits_as_csv(results: Sequence[SearchHit], others: Sequence[tuple[str, str, str]]) -> str:
    """Return one row for each hit."""
    rows: list[Sequence[Cell]] = [[kind, name, title, None, None] for kind, name, title in others]
    rows += [
        [
            "incident",
            hit.incident.id,
            hit.incident.title,
            iso(hit.incident.at),
            hit.snippet.replace("\x02", "").replace("\x03", ""),
        ]
        for hit in results
    ]
    return table.as_csv(("kind", "id", "title", "at", "snippet"), rows)


def similar(
    incident_id: str, results: Sequence[SimilarIncident], *, width: int | None = None, color: bool = False
) -> str:
    """Return similar incidents with the reason for the similarity and their feedback."""
    room, paint = max(width or WIDTH, NARROWEST), Paint(color)
    lines = []
    for item in results:
        incident = item.incident
        head = f"{incident.id}  {day(incident.at)}  {incident.job_name}  {', '.join(incident.hosts[:3])}  ({item.why})"
        lines += fold(sanitize_line(head), room)
        for sentence in item.feedback_notes:
            lines += [
                paint(line, "cyan") for line in labelled("", [sanitize_line(sentence)], room, Paint(False), margin=4)
            ]
    return "\n".join(lines) + "\n" if lines else f"no similar incidents to {sanitize_line(incident_id)}\n"


def similar_as_dict(incident_id: str, results: Sequence[SimilarIncident]) -> dict[str, Any]:
    """Return the same as JSON."""
    items = [{**as_dict(item.incident), "why": item.why, "said": list(item.feedback_notes)} for item in results]
    return {"schema": "triage.similar/1", "incident": incident_id, "similar": items}


def similar_as_json(incident_id: str, results: Sequence[SimilarIncident]) -> str:
    """Return the same as JSON text."""
    return dump_json(similar_as_dict(incident_id, results))


def similar_as_csv(results: Sequence[SimilarIncident]) -> str:
    """Return one row for each incident."""
    rows = [
        [
            i.incident.id,
            iso(i.incident.at),
            i.incident.job_name,
            " ".join(i.incident.hosts),
            i.why,
            "; ".join(i.feedback_notes),
        ]
        for i in results
    ]
    return table.as_csv(("id", "at", "job", "hosts", "why", "said"), rows)


def sums(totals: IncidentStats, *, width: int | None = None, color: bool = False) -> str:
    """Return bars by cause, host, device and week."""
    room, paint = max(width or WIDTH, NARROWEST), Paint(color)
    verdicts = ", ".join(f"{item.count} {item.name}" for item in totals.verdicts)
    sections = [
        labelled("Incidents", [f"{totals.incidents}" + (f": {verdicts}" if verdicts else "")], room, paint, "bold")
    ]
    weeks = [
        StatsRow(day(week_start(item.name))[:10], item.count, item.first, item.last) for item in reversed(totals.weeks)
    ]
    for heading, counts, spread in (
        ("By cause", totals.signatures, ""),
        ("Hosts that come back", totals.hosts, "cause"),
        ("Devices that come back", totals.devices, "cause"),
        ("By week", weeks, ""),
    ):
        sections.append(_bars(heading, counts, spread, room, paint))
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def sums_as_dict(totals: IncidentStats) -> dict[str, Any]:
    """Return the same sums as JSON."""

    def items(counts: Sequence[StatsRow], weekly: bool = False) -> list[dict[str, Any]]:
        return [
            {
                "name": iso(week_start(item.name)) if weekly else item.name,
                "count": item.count,
                "first": iso(item.first),
                "last": iso(item.last),
                "causes": item.spread or None,
            }
            for item in counts
        ]

    parts = {
        name: items(getattr(totals, name), name == "weeks")
        for name in ("verdicts", "signatures", "hosts", "devices", "weeks")
    }
    return {"schema": "triage.stats/1", "incidents": totals.incidents, **parts}


def sums_as_json(totals: IncidentStats) -> str:
    """Return the same as JSON text."""
    return dump_json(sums_as_dict(totals))


def sums_as_csv(totals: IncidentStats) -> str:
    """Return one row for each sum."""
    rows: list[list[Cell]] = []
    for name in ("verdicts", "signatures", "hosts", "devices", "weeks"):
        for item in getattr(totals, name):
            label = iso(week_start(item.name)) if name == "weeks" else item.name
            rows.append([name.removesuffix("s"), label, item.count, iso(item.first), iso(item.last)])
    return table.as_csv(("by", "name", "count", "first", "last"), rows)


def remembered(stored: StoredIncident, *, width: int | None = None, color: bool = False) -> str:
    """Return what the store adds to a diagnosis: when it was stored, feedback, and earlier diagnoses."""
    room, paint = max(width or WIDTH, NARROWEST), Paint(color)
    incident = stored.incident
    times = f", seen {incident.ingests} times, last {day(incident.seen_at)}" if incident.ingests > 1 else ""
    lines = labelled("Incident", [f"{incident.id}, stored {day(incident.stored_at)}{times}"], room, paint, "bold")
    lines += (
        labelled("Feedback", [_format_opinion(item) for item in stored.feedback], room, paint, "bold")
        if stored.feedback
        else []
    )
    lines += (
        labelled("Before", [_format_change(item) for item in stored.history], room, paint, "bold")
        if stored.history
        else []
    )
    redactions = ", ".join(f"{count} × {kind}" for kind, count in stored.redacted.items())
    lines += labelled("Redacted", [redactions], room, paint, "dim") if redactions else []
    return "\n".join(line.rstrip() for line in lines) + "\n"


def remembered_as_dict(stored: StoredIncident, diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the report of `triage.diagnosis/2`, with a key `incident` for what the store adds."""
    opinions = [feedback_as_dict(item) for item in stored.feedback]
    history = [
        {name: getattr(item, name) for name in DiagnosisChange.__dataclass_fields__} | {"at": iso(item.at)}
        for item in stored.history
    ]
    more = {**as_dict(stored.incident), "feedback": opinions, "history": history, "redacted": dict(stored.redacted)}
    return {**document(diagnosis), "incident": more}


def remembered_as_json(stored: StoredIncident, diagnosis: Diagnosis) -> str:
    """Return the same as JSON text."""
    return dump_json(remembered_as_dict(stored, diagnosis))


def retriaged(result: RetriageResult, dry_run: bool, *, width: int | None = None, color: bool = False) -> str:
    """Return the changes, counted by kind, then each."""
    room, paint = max(width or WIDTH, NARROWEST), Paint(color)
    verb = "would change" if dry_run else "changed"
    head = f"{format_count(result.checked, 'incident')} diagnosed again, {len(result.changed)} {verb}"
    lines = [head, *(f"  {count:>6}  {kind}" for kind, count in result.kinds.items())]
    rows = [(item.incident, item.old, "→", item.new, item.job_name) for item in result.changed]
    return (
        "\n".join(
            [
                *lines,
                *([""] if rows else []),
                *(table.as_text(("incident", "old", "", "new", "job"), rows, room, paint) if rows else []),
            ]
        )
        + "\n"
    )


def retriaged_as_json(result: RetriageResult, dry_run: bool) -> str:
    """Return the same as JSON."""
    changes = [
        {"incident": item.incident, "job": item.job_name, "old": item.old, "new": item.new, "kind": item.kind}
        for item in result.changed
    ]
    return dump_json(
        {
            "schema": "triage.retriage/1",
            "dry_run": dry_run,
            "asked": result.checked,
            "kinds": dict(result.kinds),
            "changes": changes,
        }
    )


def feedback(opinions: Sequence[Feedback], *, width: int | None = None, color: bool = False) -> str:
    """Return one line for each feedback entry."""
    rows = [
        (
            item.incident,
            day(item.at),
            item.verdict,
            item.diagnosed or "-",
            item.signature or "-",
            item.actor,
            item.because,
        )
        for item in opinions
    ]
    head = ("incident", "given at", "verdict", "diagnosis", "should be", "by", "because")
    return (
        "\n".join(table.as_text(head, rows, max(width or WIDTH, NARROWEST), Paint(color))) + "\n"
        if rows
        else "no feedback\n"
    )


def feedback_as_json(opinions: Sequence[Feedback]) -> str:
    """Return the same as JSON."""
    return dump_json({"schema": "triage.feedback/1", "feedback": [feedback_as_dict(item) for item in opinions]})


def feedback_as_dict(item: Feedback) -> dict[str, Any]:
    """Return a feedback entry as its JSON object."""
    return {key: getattr(item, name) for name, key in record_keys(Feedback).items()} | {"at": iso(item.at)}


def _row(incident: Incident) -> tuple[str, ...]:
    mark = "!" if incident.wrong else ""
    hosts = ", ".join(incident.hosts[:2]) + (f" +{len(incident.hosts) - 2}" if len(incident.hosts) > 2 else "")
    ranks = table.cut(format_rank_numbers(incident.ranks), 12)
    return (
        incident.id,
        day(incident.at),
        incident.verdict + mark,
        cause(incident),
        ranks or "-",
        hosts or "-",
        table.cut(sanitize_line(incident.job_name), 24),
        incident.title,
    )


def _format_opinion(item: Feedback) -> str:
    should = f", should be {item.signature}" if item.signature else ""
    because = f": {item.because}" if item.because else ""
    return f"{item.verdict} ({item.actor}, {day(item.at)}; the diagnosis was {item.diagnosed}{should}){because}"


def _format_change(item: DiagnosisChange) -> str:
    before = f"{item.old} until {day(item.at)} ({item.reason}, catalog {item.old_catalog})"
    return f"{before}, then {item.new} (catalog {item.new_catalog})"


def _bars(heading: str, counts: Sequence[StatsRow], spread: str, room: int, paint: Paint) -> list[str]:
    if not counts:
        return []
    most = max(item.count for item in counts)
    wide = min(max(len(sanitize_line(item.name)) for item in counts), max(room // 2, 12))
    cells = max(min(room - wide - 26, 40), 6)
    lines = [paint(heading, "bold")]
    for item in counts:
        more = f"  {format_count(item.spread, spread)}, last {day(item.last)[:10]}" if spread else ""
        name, bar = table.cut(sanitize_line(item.name), wide), table.bar(item.count, most, cells)
        lines.append(f"  {name:<{wide}}  {item.count:>5}  {bar}{more}")
    return lines
