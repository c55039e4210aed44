"""Collectives of a Flight Recorder recording as drawings, a row for ranks that look alike. Pure: the JSON of
`triage.flight/1` in, SVG out.

Like `chain`, without a style of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from triage.render import words
from triage.render.safe import clip, safe_line

LEFT, TOP, WIDTH, HIGH = 150, 22, 620, 17
BEFORE, AFTER = 40, 12  # numbers around the first fault that are drawn
ROWS, GROUPS = 48, 8
CLEAR = 60  # pixels that two labels above the calls need between them
SAYS: Mapping[str, str] = {
    "lost": "dropped from the ring",
    "done": "done",
    "open": "entered, waits",
    "missing": "not entered",
    "differs": "another call than most",
    "unknown": "the dump ends early",
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """One group: its name, its drawing, and the same in words."""

    group: str
    ranks: int
    svg: str
    text: tuple[str, ...]


def draw(document: Mapping[str, Any]) -> tuple[Drawn, ...]:
    """The groups, those with a fault first."""
    faults = document["faults"]
    first = {fault["group"]: fault for fault in reversed(faults)}
    order = {fault["group"]: number for number, fault in reversed(list(enumerate(faults)))}
    groups = sorted(document["groups"], key=lambda group: (order.get(group["group"], len(order)), group["group"]))
    return tuple(
        _group(group, first.get(group["group"]), number)
        for number, group in enumerate(groups[:GROUPS])
        if group["rows"]
    )


def _group(group: Mapping[str, Any], fault: Mapping[str, Any] | None, number: int) -> Drawn:
    begin, end = _window(group["rows"], fault)
    rows = sorted(group["rows"], key=lambda row: (_quiet(row), row["ranks"]))
    across = WIDTH / max(1, end - begin + 1)
    down = TOP + HIGH * min(len(rows), ROWS) + 4
    name = safe_line(f"{group['group']}: {words.plural(len(group['members']), 'rank')}, calls #{begin} to #{end}")
    told = [text for row in rows[:ROWS] if (text := _told(row, begin, end))]
    parts = [
        f'<svg class="matrix" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 6} {down}" width="{LEFT + WIDTH + 6}"'
        f' height="{down}" role="img" aria-labelledby="matrix-{number}-title matrix-{number}-text">',
        f'<title id="matrix-{number}-title">{escape(name)}</title>',
        f'<desc id="matrix-{number}-text">{escape(clip("; ".join(told), 1500))}</desc>',
    ]
    for place, row in enumerate(rows[:ROWS]):
        parts += _row(row, TOP + place * HIGH, begin, end, across)
    if fault is not None and begin <= fault["seq"] <= end:
        x = LEFT + (fault["seq"] - begin + 0.5) * across
        parts.append(f'<path class="mark" d="M{x:.1f} {TOP - 5}V{down}"/>')
        parts.append(f'<text class="mid" x="{x:.1f}" y="14">#{fault["seq"]}</text>')
    else:
        x = LEFT + WIDTH / 2
    parts += [f'<text x="{LEFT}" y="14">#{begin}</text>'] if x > LEFT + CLEAR else []
    parts += [f'<text class="end" x="{LEFT + WIDTH}" y="14">#{end}</text>'] if x < LEFT + WIDTH - CLEAR else []
    return Drawn(name, len(group["members"]), "\n".join([*parts, "</svg>"]), tuple(told))


def _window(rows: Sequence[Mapping[str, Any]], fault: Mapping[str, Any] | None) -> tuple[int, int]:
    """All of it when it is short, else what lies around the fault, or the end."""
    begin = min((run[0] for row in rows for run in row["runs"]), default=0)
    end = max((run[1] for row in rows for run in row["runs"]), default=0)
    at = fault["seq"] if fault is not None else end
    return max(begin, min(at - BEFORE, end - BEFORE)), min(end, max(at + AFTER, begin + BEFORE))


def _quiet(row: Mapping[str, Any]) -> bool:
    return all(run[2] in ("done", "lost") for run in row["runs"])


def _row(row: Mapping[str, Any], y: int, begin: int, end: int, across: float) -> list[str]:
    name = words.ranks(row["ranks"])
    parts = [
        f'<text x="{LEFT - 8}" y="{y + 12}" class="end">{escape(clip(name, 22) if len(name) > 22 else name)}</text>'
    ]
    for first, last, state in row["runs"]:
        if last < begin or first > end or state not in SAYS:
            continue
        x, wide = LEFT + (max(first, begin) - begin) * across, (min(last, end) - max(first, begin) + 1) * across
        title = f"{name}, #{first}{f' to #{last}' if last > first else ''}: {SAYS[state]}"
        cells = min(last, end) - max(first, begin) + 1
        gaps = "".join(f"M{x + place * across:.1f} {y}v{HIGH - 3}" for place in range(1, cells)) if across >= 6 else ""
        parts.append(
            f'<rect class={quoteattr(state)} x="{x:.1f}" y="{y}" width="{max(wide - 1, 0.6):.1f}" height="{HIGH - 3}">'
            f"<title>{escape(title)}</title></rect>" + (f'<path class="gaps" d="{gaps}"/>' if gaps else "")
        )
    return parts


def _told(row: Mapping[str, Any], begin: int, end: int) -> str:
    """`rank 2: #5 to #9 done, #10 not entered`."""
    runs = [run for run in row["runs"] if run[1] >= begin and run[0] <= end and run[2] in SAYS]
    said = [f"#{first}{f' to #{last}' if last > first else ''} {SAYS[state]}" for first, last, state in runs]
    return f"{words.ranks(row['ranks'])}: {', '.join(said)}" if said else ""
