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
NAME = 22  # letters of the name of a row
NARROW_LEFT, NARROW_WIDTH, NARROW_NAME = 102, 240, 14  # on a phone
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
    """One process group: its name, its drawing, the same for a phone, and as text."""

    group: str
    ranks: int
    svg: str
    narrow: str
    text: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Frame:
    """The numbers of the calls that are drawn, where their pixels begin, and the pixels of all and of each."""

    begin: int
    end: int
    left: int
    width: int
    letters: int

    @property
    def across(self) -> float:
        return self.width / max(1, self.end - self.begin + 1)

    def x(self, number: float) -> float:
        return self.left + (number - self.begin) * self.across


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
    rows = sorted(group["rows"], key=lambda row: (_is_uneventful(row), row["ranks"]))[:ROWS]
    name = sanitize_line(
        f"{group['group']}: {phrases.format_count(len(group['members']), 'rank')}, calls #{begin} to #{end}"
    )
    texts = tuple(text for row in rows if (text := _describe_row(row, begin, end)))
    desc = clip("; ".join(texts), 1500)
    wide = _drawing(rows, fault, _Frame(begin, end, LEFT, WIDTH, NAME), f"matrix-{number}", name, desc)
    frame = _Frame(begin, end, NARROW_LEFT, NARROW_WIDTH, NARROW_NAME)
    narrow = _drawing(rows, fault, frame, f"matrix-narrow-{number}", name, desc)
    return GroupDrawing(name, len(group["members"]), wide, narrow, texts)


def _drawing(
    rows: Sequence[Mapping[str, Any]],
    fault: Mapping[str, Any] | None,
    frame: _Frame,
    identifier: str,
    name: str,
    desc: str,
) -> str:
    right, down = frame.left + frame.width, TOP + HIGH * len(rows) + 4
    labels = f"{identifier}-title {identifier}-text"
    parts = [
        svg_start(right + 6, down, "matrix", role="img", aria_labelledby=labels),
        f'<title id="{identifier}-title">{escape(name)}</title>',
        f'<desc id="{identifier}-text">{escape(desc)}</desc>',
    ]
    is_drawn = fault is not None and frame.begin <= fault["seq"] <= frame.end
    began = set(fault.get("ranks", ())) if fault is not None and not fault.get("explained_by") else set()
    for place, row in enumerate(rows):
        y, is_root = TOP + place * HIGH, not began.isdisjoint(row["ranks"])
        parts += _row(row, y, frame, is_root)
        if is_root and is_drawn and fault is not None:
            x = frame.x(fault["seq"])
            parts.append(f'<rect class="root" x="{x:.1f}" y="{y}" width="{frame.across - 1:.1f}" height="{HIGH - 3}"/>')
    x = frame.left + frame.width / 2
    if is_drawn and fault is not None:
        x = frame.x(fault["seq"] + 0.5)
        parts += [
            f'<path class="mark" d="M{x:.1f} {TOP - 5}V{down}"/>',
            f'<text class="mid" x="{x:.1f}" y="14">#{fault["seq"]}</text>',
        ]
    parts += [f'<text x="{frame.left}" y="14">#{frame.begin}</text>'] if x > frame.left + CLEAR else []
    parts += [f'<text class="end" x="{right}" y="14">#{frame.end}</text>'] if x < right - CLEAR else []
    return "\n".join([*parts, "</svg>"])


def _window(rows: Sequence[Mapping[str, Any]], fault: Mapping[str, Any] | None) -> tuple[int, int]:
    """Return the sequence numbers to draw: all of few, else those around the fault or the last."""
    begin = min((run[0] for row in rows for run in row["runs"]), default=0)
    end = max((run[1] for row in rows for run in row["runs"]), default=0)
    at = fault["seq"] if fault is not None else end
    return max(begin, min(at - BEFORE, end - BEFORE)), min(end, max(at + AFTER, begin + BEFORE))


def _is_uneventful(row: Mapping[str, Any]) -> bool:
    return all(run[2] in ("done", "lost") for run in row["runs"])


def _row(row: Mapping[str, Any], y: int, frame: _Frame, is_root: bool) -> list[str]:
    name, across = format_ranks(row["ranks"]), frame.across
    short = name if len(name) <= frame.letters else phrases.format_count(len(row["ranks"]), "rank")
    parts = [f'<text x="{frame.left - 8}" y="{y + 12}" class="end{" root" if is_root else ""}">{escape(short)}</text>']
    for first, last, state in row["runs"]:
        if last < frame.begin or first > frame.end or state not in STATE_MEANINGS:
            continue
        cells = min(last, frame.end) - max(first, frame.begin) + 1
        x = frame.x(max(first, frame.begin))
        title = f"{name}, #{first}{f' to #{last}' if last > first else ''}: {STATE_MEANINGS[state]}"
        gaps = "".join(f"M{x + place * across:.1f} {y}v{HIGH - 3}" for place in range(1, cells)) if across >= 6 else ""
        parts.append(
            f'<rect class={quoteattr(state)} x="{x:.1f}" y="{y}" width="{max(cells * across - 1, 0.6):.1f}" '
            f'height="{HIGH - 3}"><title>{escape(title)}</title></rect>'
            + (f'<path class="gaps" d="{gaps}"/>' if gaps else "")
        )
    return parts


def _describe_row(row: Mapping[str, Any], begin: int, end: int) -> str:
    """Return `rank 2: #5 to #9 done, #10 not entered`."""
    runs = [run for run in row["runs"] if run[1] >= begin and run[0] <= end and run[2] in STATE_MEANINGS]
    parts = [f"#{first}{f' to #{last}' if last > first else ''} {STATE_MEANINGS[state]}" for first, last, state in runs]
    return f"{format_ranks(row['ranks'])}: {', '.join(parts)}" if parts else ""
