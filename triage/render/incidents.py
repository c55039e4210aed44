"""What the store found, as text, JSON or CSV: lists, hits, likenesses, sums, and what people said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from triage.model.diagnosis import Diagnosis
from triage.model.store import Change, Feedback, Incident, Remembered
from triage.render import table
from triage.render.json import document, escaped
from triage.render.layout import Paint, fold, labelled
from triage.render.safe import safe_line
from triage.render.table import Cell, day, iso
from triage.render.text import NARROWEST, WIDTH
from triage.render.words import plural, rank_list
from triage.store.retriage import Retriaged
from triage.store.search import Count, Hit, Likeness, Sums, week_start

SCHEMA = "triage.incidents/1"
_HEAD = ("incident", "failed", "verdict", "cause", "ranks", "hosts", "job", "title")


def dumped(value: dict[str, Any]) -> str:
    """One JSON object, safe on a terminal."""
    return escaped(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)) + "\n"


def cause(incident: Incident) -> str:
    """The signature, or the cluster with its name."""
    return (
        incident.signature
        or incident.name
        or incident.cluster
        or ("-" if incident.verdict == "clean" else "symptoms only")
    )


def as_dict(incident: Incident) -> dict[str, Any]:
    """An incident as JSON has it."""
    times = {name: iso(getattr(incident, name)) for name in ("at", "stored_at", "seen_at")}
    values = {name: getattr(incident, name) for name in Incident.__dataclass_fields__}
    return {**values, "ranks": list(incident.ranks), "hosts": list(incident.hosts), **times}


def listing(incidents: Sequence[Incident], total: int, *, width: int | None = None, color: bool = False) -> str:
    """A line an incident."""
    if not incidents:
        return "no incidents\n"
    rows = [_row(incident) for incident in incidents]
    lines = table.as_text(_HEAD, rows, max(width or WIDTH, NARROWEST), Paint(color))
    more = f"{len(incidents)} of {plural(total, 'incident')}; --limit shows more\n" if total > len(incidents) else ""
    return "\n".join(lines) + "\n" + more


def listing_as_json(incidents: Sequence[Incident], total: int, cursor: str | None) -> str:
    """The incidents, how many there are in all, and where the next page begins."""
    return dumped(
        {"schema": SCHEMA, "total": total, "next": cursor, "incidents": [as_dict(incident) for incident in incidents]}
    )


def listing_as_csv(incidents: Sequence[Incident]) -> str:
    """A row an incident, every column of it."""
    head = [*(name for name in Incident.__dataclass_fields__)]
    rows: list[list[Cell]] = []
    for incident in incidents:
        item = as_dict(incident)
        rows.append([" ".join(map(str, item[name])) if isinstance(item[name], list) else item[name] for name in head])
    return table.as_csv(head, rows)


def hits(
    found: Sequence[Hit],
    others: Sequence[tuple[str, str, str]],
    words: str,
    *,
    width: int | None = None,
    color: bool = False,
) -> str:
    """Signatures and guides first, then incidents with the words around what was found. `others` are (kind, id, title)."""
    room, paint = max(width or WIDTH, NARROWEST), Paint(color)
    lines: list[str] = []
    if others:
        lines += table.as_text(("in the catalog", "id", "title"), others, room, paint)
    for hit in found:
        incident = hit.incident
        lines += [
            "",
            *fold(safe_line(f"{incident.id}  {day(incident.at)}  {cause(incident)}  {incident.job_name}"), room),
        ]
        marked = hit.snippet.replace("\x02", "«").replace("\x03", "»")
        lines += [paint(line, "dim") for line in fold("  " + table.cut(safe_line(marked), room * 2), room)]
    return "\n".join(lines).strip("\n") + "\n" if lines else f"nothing has {safe_line(words)!r}\n"


def hits_as_dict(found: Sequence[Hit], others: Sequence[tuple[str, str, str]], words: str) -> dict[str, Any]:
    """The same; in `snippet` the words stand between « and »."""
    items = [
        {**as_dict(hit.incident), "snippet": hit.snippet.replace("\x02", "«").replace("\x03", "»")} for hit in found
    ]
    catalog = [{"kind": kind, "id": name, "title": title} for kind, name, title in others]
    return {"schema": "triage.search/1", "words": words, "catalog": catalog, "incidents": items}


def hits_as_json(found: Sequence[Hit], others: Sequence[tuple[str, str, str]], words: str) -> str:
    """The same, written."""
    return dumped(hits_as_dict(found, others, words))


def hits_as_csv(found: Sequence[Hit], others: Sequence[tuple[str, str, str]]) -> str:
    """A row a hit."""
    rows: list[Sequence[Cell]] = [[kind, name, title, None, None] for kind, name, title in others]
    rows += [
        [
            "incident",
            hit.incident.id,
            hit.incident.title,
            iso(hit.incident.at),
            hit.snippet.replace("\x02", "").replace("\x03", ""),
        ]
        for hit in found
    ]
    return table.as_csv(("kind", "id", "title", "at", "snippet"), rows)


def similar(to: str, found: Sequence[Likeness], *, width: int | None = None, color: bool = False) -> str:
    """Each with why, and what people said then."""
    room, paint = max(width or WIDTH, NARROWEST), Paint(color)
    lines = []
    for item in found:
        incident = item.incident
        said = f"{incident.id}  {day(incident.at)}  {incident.job_name}  {', '.join(incident.hosts[:3])}  ({item.why})"
        lines += fold(safe_line(said), room)
        for sentence in item.said:
            lines += [paint(line, "cyan") for line in labelled("", [safe_line(sentence)], room, Paint(False), margin=4)]
    return "\n".join(lines) + "\n" if lines else f"nothing in the store is like {safe_line(to)}\n"


def similar_as_dict(to: str, found: Sequence[Likeness]) -> dict[str, Any]:
    """The same for a program."""
    items = [{**as_dict(item.incident), "why": item.why, "said": list(item.said)} for item in found]
    return {"schema": "triage.similar/1", "incident": to, "similar": items}


def similar_as_json(to: str, found: Sequence[Likeness]) -> str:
    """The same, written."""
    return dumped(similar_as_dict(to, found))


def similar_as_csv(found: Sequence[Likeness]) -> str:
    """A row an incident."""
    rows = [
        [i.incident.id, iso(i.incident.at), i.incident.job_name, " ".join(i.incident.hosts), i.why, "; ".join(i.said)]
        for i in found
    ]
    return table.as_csv(("id", "at", "job", "hosts", "why", "said"), rows)


def sums(found: Sums, *, width: int | None = None, color: bool = False) -> str:
    """Bars by cause, host, device and week."""
    room, paint = max(width or WIDTH, NARROWEST), Paint(color)
    said = ", ".join(f"{item.count} {item.name}" for item in found.verdicts)
    sections = [labelled("Incidents", [f"{found.incidents}" + (f": {said}" if said else "")], room, paint, "bold")]
    weeks = [
        Count(day(week_start(item.name))[:10], item.count, item.first, item.last) for item in reversed(found.weeks)
    ]
    for heading, counts, spread in (
        ("By cause", found.signatures, ""),
        ("Hosts that come back", found.hosts, "cause"),
        ("Devices that come back", found.devices, "cause"),
        ("By week", weeks, ""),
    ):
        sections.append(_bars(heading, counts, spread, room, paint))
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def sums_as_dict(found: Sums) -> dict[str, Any]:
    """The same sums for a program."""

    def items(counts: Sequence[Count], weekly: bool = False) -> list[dict[str, Any]]:
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
        name: items(getattr(found, name), name == "weeks")
        for name in ("verdicts", "signatures", "hosts", "devices", "weeks")
    }
    return {"schema": "triage.stats/1", "incidents": found.incidents, **parts}


def sums_as_json(found: Sums) -> str:
    """The same, written."""
    return dumped(sums_as_dict(found))


def sums_as_csv(found: Sums) -> str:
    """A row a sum."""
    rows: list[list[Cell]] = []
    for name in ("verdicts", "signatures", "hosts", "devices", "weeks"):
        for item in getattr(found, name):
            called = iso(week_start(item.name)) if name == "weeks" else item.name
            rows.append([name.removesuffix("s"), called, item.count, iso(item.first), iso(item.last)])
    return table.as_csv(("by", "name", "count", "first", "last"), rows)


def remembered(found: Remembered, *, width: int | None = None, color: bool = False) -> str:
    """What stands below a stored diagnosis: since when it is known, what people said, what it was held for before."""
    room, paint = max(width or WIDTH, NARROWEST), Paint(color)
    incident = found.incident
    times = f", seen {incident.seen} times, last {day(incident.seen_at)}" if incident.seen > 1 else ""
    lines = labelled("Incident", [f"{incident.id}, stored {day(incident.stored_at)}{times}"], room, paint, "bold")
    lines += (
        labelled("People said", [_spoken(item) for item in found.feedback], room, paint, "bold")
        if found.feedback
        else []
    )
    lines += (
        labelled("Before", [_changed(item) for item in found.history], room, paint, "bold") if found.history else []
    )
    taken = ", ".join(f"{count} × {kind}" for kind, count in found.redacted.items())
    lines += labelled("Taken out", [taken], room, paint, "dim") if taken else []
    return "\n".join(line.rstrip() for line in lines) + "\n"


def remembered_as_dict(found: Remembered, diagnosis: Diagnosis) -> dict[str, Any]:
    """The report of `triage.diagnosis/1`, with a key `incident` for what the store adds."""
    said = [feedback_as_dict(item) for item in found.feedback]
    history = [
        {name: getattr(item, name) for name in Change.__dataclass_fields__} | {"at": iso(item.at)}
        for item in found.history
    ]
    more = {**as_dict(found.incident), "feedback": said, "history": history, "redacted": dict(found.redacted)}
    return {**document(diagnosis), "incident": more}


def remembered_as_json(found: Remembered, diagnosis: Diagnosis) -> str:
    """`remembered_as_dict`, written."""
    return dumped(remembered_as_dict(found, diagnosis))


def retriaged(found: Retriaged, dry_run: bool, *, width: int | None = None, color: bool = False) -> str:
    """What changed, by kind, then each."""
    room, paint = max(width or WIDTH, NARROWEST), Paint(color)
    would = "would change" if dry_run else "changed"
    head = f"{plural(found.asked, 'incident')} asked again, {len(found.changed)} {would}"
    lines = [head, *(f"  {count:>6}  {kind}" for kind, count in found.kinds.items())]
    rows = [(item.incident, item.old, "→", item.new, item.job_name) for item in found.changed]
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


def retriaged_as_json(found: Retriaged, dry_run: bool) -> str:
    """The same for a program."""
    changes = [
        {"incident": item.incident, "job": item.job_name, "old": item.old, "new": item.new, "kind": item.kind}
        for item in found.changed
    ]
    return dumped(
        {
            "schema": "triage.retriage/1",
            "dry_run": dry_run,
            "asked": found.asked,
            "kinds": dict(found.kinds),
            "changes": changes,
        }
    )


def feedback(found: Sequence[Feedback], *, width: int | None = None, color: bool = False) -> str:
    """A line a sentence."""
    rows = [
        (item.incident, day(item.at), item.verdict, item.said or "-", item.signature or "-", item.actor, item.because)
        for item in found
    ]
    head = ("incident", "said at", "verdict", "diagnosis", "should be", "by", "because")
    return (
        "\n".join(table.as_text(head, rows, max(width or WIDTH, NARROWEST), Paint(color))) + "\n"
        if rows
        else "no feedback\n"
    )


def feedback_as_json(found: Sequence[Feedback]) -> str:
    """The same for a program."""
    return dumped({"schema": "triage.feedback/1", "feedback": [feedback_as_dict(item) for item in found]})


def feedback_as_dict(item: Feedback) -> dict[str, Any]:
    """What a person said, as JSON has it."""
    return {name: getattr(item, name) for name in Feedback.__dataclass_fields__} | {"at": iso(item.at)}


def _row(incident: Incident) -> tuple[str, ...]:
    mark = "!" if incident.wrong else ""
    hosts = ", ".join(incident.hosts[:2]) + (f" +{len(incident.hosts) - 2}" if len(incident.hosts) > 2 else "")
    ranks = table.cut(rank_list(incident.ranks), 12)
    job = table.cut(safe_line(incident.job_name), 24)
    return (
        incident.id,
        day(incident.at),
        incident.verdict + mark,
        cause(incident),
        ranks or "-",
        hosts or "-",
        job,
        incident.title,
    )


def _spoken(item: Feedback) -> str:
    should = f", should be {item.signature}" if item.signature else ""
    because = f": {item.because}" if item.because else ""
    return f"{item.verdict} ({item.actor}, {day(item.at)}; the diagnosis was {item.said}{should}){because}"


def _changed(item: Change) -> str:
    return f"{item.old} until {day(item.at)} ({item.reason}, catalog {item.old_catalog}), then {item.new} (catalog {item.new_catalog})"


def _bars(heading: str, counts: Sequence[Count], spread: str, room: int, paint: Paint) -> list[str]:
    if not counts:
        return []
    most = max(item.count for item in counts)
    wide = min(max(len(safe_line(item.name)) for item in counts), max(room // 2, 12))
    cells = max(min(room - wide - 26, 40), 6)
    lines = [paint(heading, "bold")]
    for item in counts:
        more = f"  {plural(item.spread, spread)}, last {day(item.last)[:10]}" if spread else ""
        lines.append(
            f"  {table.cut(safe_line(item.name), wide):<{wide}}  {item.count:>5}  {table.bar(item.count, most, cells)}{more}"
        )
    return lines
