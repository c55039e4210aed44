"""The merged timeline as text that fits a narrow terminal, and as JSON ("triage.timeline/1")."""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict

from triage.model.diagnosis import Event, Timeline
from triage.render import words
from triage.render.json import escaped
from triage.render.layout import Paint, wrap
from triage.render.safe import clip, safe_line

__all__ = ["SCHEMA", "as_json", "as_text"]

SCHEMA = "triage.timeline/1"
WIDTH, NARROWEST = 100, 40
_LINES = 3
# Warnings about what the timeline itself shows: clocks that are apart, ranks that were silent before the others.
_OF_TIME = ("clock-skew", "fell-silent")


def as_json(told: Timeline) -> str:
    """One JSON object, ended by a newline."""
    document = {
        "schema": SCHEMA,
        "job": {"id": told.job.id, "path": told.job.path, "world_size": told.job.world_size},
        "around": _stamp(told.around),
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
            for event in told.events
        ],
        "ranks": [{**dataclasses.asdict(state), "last_time": _stamp(state.last_time)} for state in told.ranks],
        "left_out": told.left_out,
        "warnings": [dataclasses.asdict(warning) for warning in told.warnings],
    }
    return escaped(json.dumps(document, ensure_ascii=False, indent=2)) + "\n"


def as_text(told: Timeline, *, width: int | None = None, color: bool = False) -> str:
    """States, then a line or two for each event: the time, the ranks, what they say."""
    columns, paint = max(width or WIDTH, NARROWEST), Paint(color)
    lines = [
        clip(
            safe_line(
                f"{told.job.name}: {words.plural(max(len(told.job.ranks), len(told.ranks)), 'rank')}{_day(told)}"
            ),
            columns,
        ),
        *_states(told, columns),
        "",
    ]
    for event in told.events:
        lines += _event(event, columns, paint)
    if not told.events:
        lines.append("nothing happened that has a place here")
    if told.left_out:
        lines += ["", f"{words.plural(told.left_out, 'event')} left out (--around, --rank)"]
    if any(event.later for event in told.events):
        lines += ["", *wrap("+: without a stamp of its own; at the time of the stamp before it, or later.", columns)]
    if len({state.host for state in told.ranks} - {None}) > 1:
        lines += ["", *wrap("Several hosts: their order is only as good as their clocks agree.", columns)]
    for warning in told.warnings:
        if warning.code in _OF_TIME:
            lines += ["", *wrap(safe_line(f"{warning.message[:1].upper()}{warning.message[1:]}."), columns)]
    return "\n".join(lines).rstrip() + "\n"


def _states(told: Timeline, columns: int) -> list[str]:
    groups: dict[str, list[int]] = defaultdict(list)
    for state in told.ranks:
        groups[state.state].append(state.rank)
    named = [
        f"{name} {words.rank_list(ranks)}" for name, ranks in sorted(groups.items(), key=lambda group: group[0] == "ok")
    ]
    return wrap("; ".join(named), columns) if named else []


def _event(event: Event, columns: int, paint: Paint) -> list[str]:
    time = words.moment(event.time)
    fraction = (
        f".{time.microsecond // 1000:03}" if time and time.microsecond else ""
    )  # of whole seconds no more is known
    clock = f"{time:%H:%M:%S}{fraction}{'+' if event.later else ''}" if time else "no time"
    who = words.ranks(event.ranks) if event.ranks else "nobody named"
    mark = "root cause" if event.root else "last line" if event.last else ""
    known = ", ".join(
        part
        for part in (event.signature or "", mark, f"{event.count} lines" if event.count > 1 and not event.last else "")
        if part
    )
    head = f"{clock:<13} {who}" + (f"  ({known})" if known else "")
    styles = ("bold", "red") if event.root else ("dim",) if event.last else ("bold",)
    return [
        *(paint(line, *styles) for line in ([head] if len(head) <= columns else wrap(head, columns))),
        *(f"  {line}" for line in wrap(clip(safe_line(event.text), _LINES * (columns - 2)), columns - 2)),
    ]


def _stamp(seconds: float | None) -> str | None:
    time = words.moment(seconds)
    return None if time is None else time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _day(told: Timeline) -> str:
    time = words.moment(told.around)
    return f", {time:%Y-%m-%d} UTC" if time else ""
