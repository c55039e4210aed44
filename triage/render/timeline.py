"""The merged timeline as text that fits a narrow terminal, and as JSON ("triage.timeline/1")."""

from __future__ import annotations

import dataclasses
from collections import defaultdict

from triage.base.rank_ranges import format_rank_numbers, format_ranks
from triage.model.diagnosis import Event, Timeline
from triage.render import phrases
from triage.render.json import dump_json
from triage.render.sanitize import clip, sanitize_line
from triage.render.terminal import Paint, wrap

__all__ = ["SCHEMA", "as_json", "as_text"]

SCHEMA = "triage.timeline/1"
WIDTH, NARROWEST = 100, 40
_LINES = 3
# Warnings about what the timeline itself shows: clocks that are apart, ranks that were silent before the others.
_TIME_WARNINGS = ("clock-skew", "fell-silent")


def as_json(timeline: Timeline) -> str:
    """Return one JSON object, ended by a newline."""
    document = {
        "schema": SCHEMA,
        "job": {"id": timeline.job.id, "path": timeline.job.path, "world_size": timeline.job.world_size},
        "around": _stamp(timeline.around),
        "events": [
            {
                "time": _stamp(event.time),
                "or_later": event.later,
                "ranks": list(event.ranks),
                "what": "last line" if event.last else "failure",
                "text": event.text,
                "signature": event.signature,
                "count": event.count,
                "root": event.root,
            }
            for event in timeline.events
        ],
        "ranks": [{**dataclasses.asdict(state), "last_time": _stamp(state.last_time)} for state in timeline.ranks],
        "left_out": timeline.left_out,
        "warnings": [dataclasses.asdict(warning) for warning in timeline.warnings],
    }
    return dump_json(document)


def as_text(timeline: Timeline, *, width: int | None = None, color: bool = False) -> str:
    """Return the rank states, then a line or two for each event: time, ranks, text."""
    columns, paint = max(width or WIDTH, NARROWEST), Paint(color)
    count = phrases.format_count(max(len(timeline.job.ranks), len(timeline.ranks)), "rank")
    lines = [
        clip(sanitize_line(f"{timeline.job.name}: {count}{_day(timeline)}"), columns),
        *_states(timeline, columns),
        "",
    ]
    for event in timeline.events:
        lines += _event(event, columns, paint)
    if not timeline.events:
        lines.append("no events")
    if timeline.left_out:
        lines += ["", f"{phrases.format_count(timeline.left_out, 'event')} left out (--around, --rank)"]
    if any(event.later for event in timeline.events):
        lines += ["", *wrap(phrases.OR_LATER_MEANING, columns)]
    if len({state.host for state in timeline.ranks} - {None}) > 1:
        lines += ["", *wrap("Several hosts: events are in the right order only as far as the clocks agree.", columns)]
    for warning in timeline.warnings:
        if warning.code in _TIME_WARNINGS:
            lines += ["", *wrap(sanitize_line(f"{warning.message[:1].upper()}{warning.message[1:]}."), columns)]
    return "\n".join(lines).rstrip() + "\n"


def _states(timeline: Timeline, columns: int) -> list[str]:
    groups: dict[str, list[int]] = defaultdict(list)
    for state in timeline.ranks:
        groups[state.state].append(state.rank)
    named = [
        f"{name} {format_rank_numbers(ranks)}"
        for name, ranks in sorted(groups.items(), key=lambda group: group[0] == "ok")
    ]
    return wrap("; ".join(named), columns) if named else []


def _event(event: Event, columns: int, paint: Paint) -> list[str]:
    time = phrases.to_datetime(event.time)
    fraction = (
        f".{time.microsecond // 1000:03}" if time and time.microsecond else ""
    )  # of whole seconds no more is known
    clock = f"{time:%H:%M:%S}{fraction}{'+' if event.later else ''}" if time else "no time"
    ranks = format_ranks(event.ranks) if event.ranks else "no rank"
    mark = "root cause" if event.root else "last line" if event.last else ""
    notes = ", ".join(
        part
        for part in (event.signature or "", mark, f"{event.count} lines" if event.count > 1 and not event.last else "")
        if part
    )
    head = f"{clock:<13} {ranks}" + (f"  ({notes})" if notes else "")
    styles = ("bold", "red") if event.root else ("dim",) if event.last else ("bold",)
    return [
        *(paint(line, *styles) for line in ([head] if len(head) <= columns else wrap(head, columns))),
        *(f"  {line}" for line in wrap(clip(sanitize_line(event.text), _LINES * (columns - 2)), columns - 2)),
    ]


def _stamp(seconds: float | None) -> str | None:
    time = phrases.to_datetime(seconds)
    return None if time is None else time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _day(timeline: Timeline) -> str:
    time = phrases.to_datetime(timeline.around)
    return f", {time:%Y-%m-%d} UTC" if time else ""
