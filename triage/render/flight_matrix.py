"""The collectives of a Flight Recorder recording as drawings, a row for ranks with equal calls.

Pure functions: the JSON of `triage.flight/1` in, SVG out. The page's style sheet colours `.matrix`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from triage.base.rank_ranges import format_ranks
from triage.render import phrases
from triage.render.sanitize import clip, sanitize_line
from triage.render.svg import svg_start

LEFT, TOP, WIDTH, HIGH = 150, 22, 620, 17
BEFORE, AFTER = 40, 12  # numbers around the first fault that are drawn
ROWS, GROUPS = 48, 8
CLEAR = 60  # pixels that two labels above the calls need between them
STATE_MEANINGS: Mapping[str, str] = {
    "lost": "dropped from the ring",
    "done": "done",
    "open": "waits here",
    "missing": "not entered",
    "differs": "another call than most",
    "unknown": "the dump ends early",
    "queued": "queued behind an open call",
}


@dataclass(frozen=True, slots=True)
class GroupDrawing:
    """One process group: its name, its drawing, and the same as text."""

    group: str
    ranks: int
    svg: str
    text: tuple[str, ...]


def draw(document: Mapping[str, Any]) -> tuple[GroupDrawing, ...]:
    """Return the drawings of the groups, those with a fault first."""
    faults = document["faults"]
    first = {fault["group"]: fault for fault in reversed(faults)}
    order = {fault["group"]: number for number, fault in reversed(list(enumerate(faults)))}
    groups = sorted(document["groups"], key=lambda group: (order.get(group["group"], len(order)), group["group"]))
    return tuple(
        _group(group, first.get(group["group"]), number)
        for number, group in enumerate(groups[:GROUPS])
        if group["rows"]
    )


def _group(group: Mapping[str, Any], fault: Mapping[str, Any] | None, number: int) -> GroupDrawing:
    begin, end = _window(group["rows"], fault)
    rows = sorted(group["rows"], key=lambda row: (_is_uneventful(row), row["ranks"]))
    across = WIDTH / max(1, end - begin + 1)
    down = TOP + HIGH * min(len(rows), ROWS) + 4
    name = sanitize_line(
        f"{group['group']}: {phrases.format_count(len(group['members']), 'rank')}, calls #{begin} to #{end}"
    )
    texts = [text for row in rows[:ROWS] if (text := _describe_row(row, begin, end))]
    identifier = f"matrix-{number}"
    parts = [
        svg_start(
            LEFT + WIDTH + 6, down, "matrix", role="img", aria_labelledby=f"{identifier}-title {identifier}-text"
        ),
        f'<title id="{identifier}-title">{escape(name)}</title>',
        f'<desc id="{identifier}-text">{escape(clip("; ".join(texts), 1500))}</desc>',
    ]
    for place, row in enumerate(rows[:ROWS]):
        parts += _row(row, TOP + place * HIGH, begin, end, across)
    if fault is not None and begin <= fault["seq"] <= end:
        x = LEFT + (fault["seq"] - begin + 0.5) * across
        parts += [
            f'<path class="mark" d="M{x:.1f} {TOP - 5}V{down}"/>',
            f'<text class="mid" x="{x:.1f}" y="14">#{fault["seq"]}</text>',
        ]
    else:
        x = LEFT + WIDTH / 2
    parts += [f'<text x="{LEFT}" y="14">#{begin}</text>'] if x > LEFT + CLEAR else []
    parts += [f'<text class="end" x="{LEFT + WIDTH}" y="14">#{end}</text>'] if x < LEFT + WIDTH - CLEAR else []
    return GroupDrawing(name, len(group["members"]), "\n".join([*parts, "</svg>"]), tuple(texts))


def _window(rows: Sequence[Mapping[str, Any]], fault: Mapping[str, Any] | None) -> tuple[int, int]:
    """Return the sequence numbers to draw: all of few, else those around the fault or the last."""
    begin = min((run[0] for row in rows for run in row["runs"]), default=0)
    end = max((run[1] for row in rows for run in row["runs"]), default=0)
    at = fault["seq"] if fault is not None else end
    return max(begin, min(at - BEFORE, end - BEFORE)), min(end, max(at + AFTER, begin + BEFORE))


def _is_uneventful(row: Mapping[str, Any]) -> bool:
    return all(run[2] in ("done", "lost") for run in row["runs"])


def _row(row: Mapping[str, Any], y: int, begin: int, end: int, across: float) -> list[str]:
    name = format_ranks(row["ranks"])
    parts = [
        f'<text x="{LEFT - 8}" y="{y + 12}" class="end">{escape(clip(name, 22) if len(name) > 22 else name)}</text>'
    ]
    for first, last, state in row["runs"]:
        if last < begin or first > end or state not in STATE_MEANINGS:
            continue
        x, wide = LEFT + (max(first, begin) - begin) * across, (min(last, end) - max(first, begin) + 1) * across
        title = f"{name}, #{first}{f' to #{last}' if last > first else ''}: {STATE_MEANINGS[state]}"
        cells = min(last, end) - max(first, begin) + 1
        gaps = "".join(f"M{x + place * across:.1f} {y}v{HIGH - 3}" for place in range(1, cells)) if across >= 6 else ""
        parts.append(
            f'<rect class={quoteattr(state)} x="{x:.1f}" y="{y}" width="{max(wide - 1, 0.6):.1f}" height="{HIGH - 3}">'
            f"<title>{escape(title)}</title></rect>" + (f'<path class="gaps" d="{gaps}"/>' if gaps else "")
        )
    return parts


def _describe_row(row: Mapping[str, Any], begin: int, end: int) -> str:
    """Return `rank 2: #5 to #9 done, #10 not entered`."""
    runs = [run for run in row["runs"] if run[1] >= begin and run[0] <= end and run[2] in STATE_MEANINGS]
    parts = [f"#{first}{f' to #{last}' if last > first else ''} {STATE_MEANINGS[state]}" for first, last, state in runs]
    return f"{format_ranks(row['ranks'])}: {', '.join(parts)}" if parts else ""
