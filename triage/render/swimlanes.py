"""The moments around the first failure as a drawing, with a lane for each rank that had a part in it.

Pure functions: a diagnosis in, SVG out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from triage.model.diagnosis import Diagnosis, Finding, Moment, RankState
from triage.render import phrases
from triage.render.sanitize import clip, sanitize_line, truncate
from triage.render.svg import svg_start

LANES = 24
EACH = 12  # moments of one lane
LANE, LABEL, WIDTH, TOP, BOTTOM, TEXT = 22, 120, 560, 26, 18, 300  # pixels
# Seconds around the first failure; the ranks of the root cause are shown as long before as after.
BEFORE, AFTER = 60.0, 3600.0
STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200)  # seconds between ticks
TICKS = 7
STYLE = """
  .triage-lanes { color: #1f2328; font: 11px ui-monospace, monospace;
    --cause: #cf222e; --echo: #bc7a00; --quiet: #8c959f }
  .triage-lanes text { fill: currentColor } .triage-lanes .rank { text-anchor: end }
  .triage-lanes .tick { text-anchor: middle; opacity: .7 }
  .triage-lanes line { stroke: currentColor; opacity: .2 }
  .triage-lanes .first { opacity: .8; stroke: var(--cause) }
  .triage-lanes .cause { fill: var(--cause) } .triage-lanes .echo { fill: var(--echo) }
  .triage-lanes .end { fill: var(--quiet) }
  @media (prefers-color-scheme: dark) {
    .triage-lanes { color: #e6edf3; --cause: #ff7b72; --echo: #e3b341; --quiet: #6e7681 }
  }
"""


@dataclass
class Lane:
    """The moments of one rank, or (None) of no known rank."""

    rank: int | None
    moments: list[Moment] = field(default_factory=list)
    state: RankState | None = None


def draw(diagnosis: Diagnosis, *, style: bool = True) -> str:
    """Return the lanes as one SVG element, empty if no moment has a time.

    Without `style` the page's own style sheet colours it.
    """
    lanes, left_out = build_lanes(diagnosis)
    first = first_failure_time(diagnosis)
    if first is None or not lanes:
        return ""
    begin, end = _window(lanes, first, diagnosis.root_cause.ranks if diagnosis.root_cause is not None else ())
    across, down = LABEL + WIDTH + TEXT, TOP + LANE * len(lanes) + BOTTOM
    parts = [
        svg_start(across, down, "triage-lanes", role="img", aria_labelledby="triage-lanes-title triage-lanes-text"),
        '<title id="triage-lanes-title">What happened around the first failure</title>',
        f'<desc id="triage-lanes-text">{escape(_describe_lanes(lanes, first))}</desc>',
        *([f"<style>{STYLE}</style>"] if style else []),
        *_ticks(begin, end, first, down),
    ]
    for number, lane in enumerate(lanes):
        parts += _lane(lane, TOP + LANE * number + LANE // 2, begin, end, diagnosis.root_cause)
    if left_out:
        parts.append(f'<text x="{LABEL}" y="{down - 4}">and {phrases.format_count(left_out, "more rank")}</text>')
    return "\n".join([*parts, "</svg>"])


def first_failure_time(diagnosis: Diagnosis) -> float | None:
    """Return the time of the root cause, else of the first moment."""
    root = diagnosis.root_cause
    times = [moment.time for moment in diagnosis.timeline if moment.time is not None]
    if root is not None and root.first_time is not None:
        return root.first_time
    return min(times, default=None)


def build_lanes(diagnosis: Diagnosis) -> tuple[list[Lane], int]:
    """Return the lanes, ranks of the root cause first, then by first moment; and how many ranks are left out."""
    states: Mapping[int, RankState] = {state.rank: state for state in diagnosis.ranks}
    lanes: dict[int | None, Lane] = {}
    for moment in diagnosis.timeline:
        if moment.time is not None:
            lanes.setdefault(moment.rank, Lane(moment.rank)).moments.append(moment)
    blamed = diagnosis.root_cause.ranks if diagnosis.root_cause is not None else ()
    for rank in blamed[:LANES]:
        lanes.setdefault(rank, Lane(rank))
    for lane in lanes.values():
        lane.state = states.get(lane.rank) if lane.rank is not None else None
    ordered = sorted(
        lanes.values(), key=lambda lane: (lane.rank not in blamed, _first(lane), lane.rank is None, lane.rank or 0)
    )
    failed_count = sum(state.state != "ok" for state in diagnosis.ranks)  # of thousands the first moments only are kept
    return ordered[:LANES], max(0, max(failed_count, len(ordered)) - LANES) if len(ordered) > LANES else 0


def _first(lane: Lane) -> float:
    return min((moment.time for moment in lane.moments if moment.time is not None), default=float("inf"))


def _window(lanes: Sequence[Lane], first: float, blamed: Sequence[int]) -> tuple[float, float]:
    near = [first]
    for lane in lanes:
        before = AFTER if lane.rank in blamed else BEFORE
        times = [moment.time for moment in lane.moments] + ([lane.state.last_time] if lane.state is not None else [])
        near += [time for time in times if time is not None and first - before <= time <= first + AFTER]
    begin, end = min(near), max(near)
    room = max((end - begin) * 0.05, 0.5)
    return begin - room, end + room


def _is_cause(moment: Moment, root: Finding | None) -> bool:
    if root is None or (root.signature is None and root.role == "symptom"):
        return False
    return moment.signature == root.signature and (root.signature is not None or moment.rank in root.ranks)


def _x(time: float, begin: float, end: float) -> int:
    return LABEL + round(((min(max(time, begin), end) - begin) / (end - begin)) * WIDTH)


def _ticks(begin: float, end: float, first: float, down: int) -> list[str]:
    parts = []
    step = next((size for size in STEPS if (end - begin) / size <= TICKS), (end - begin) / TICKS)
    for number in range(math.ceil((begin - first) / step), math.floor((end - first) / step) + 1):
        x = _x(first + number * step, begin, end)
        after = f"{number * step:+.4g} s" if number else "0"
        parts.append(
            f'<line x1="{x}" y1="{TOP - 6}" x2="{x}" y2="{down - BOTTOM}"/>'
            f'<text class="tick" x="{x}" y="{TOP - 12}">{after}</text>'
        )
    x = _x(first, begin, end)
    return [*parts, f'<line class="first" x1="{x}" y1="{TOP - 6}" x2="{x}" y2="{down - BOTTOM}"/>']


def _lane(lane: Lane, y: int, begin: float, end: float, root: Finding | None) -> list[str]:
    name = "no rank" if lane.rank is None else f"rank {lane.rank}"
    state = f" {phrases.STATE_MARKS[lane.state.state]}" if lane.state is not None else ""
    parts = [
        f'<text class="rank" x="{LABEL - 8}" y="{y + 4}">{name}{state}</text>'
        f'<line x1="{LABEL}" y1="{y}" x2="{LABEL + WIDTH}" y2="{y}"/>'
    ]
    if lane.state is not None and lane.state.last_time is not None:
        x = _x(lane.state.last_time, begin, end)
        parts.append(f'<path class="end" d="M{x - 1} {y - 7}h2v14h-2z"><title>last line of the rank</title></path>')
    drawn: set[tuple[int, str | None]] = set()
    for moment in lane.moments:
        place = (_x(moment.time or 0.0, begin, end), moment.signature)
        if place not in drawn and len(drawn) < EACH:
            drawn.add(place)
            kind = "cause" if _is_cause(moment, root) else "echo"
            is_inside = begin <= (moment.time or begin) <= end
            parts.append(_mark(kind, place[0], y, is_inside, escape(_format_moment(moment))))
    label = _label(lane, root)
    if label:
        parts.append(f'<text x="{LABEL + WIDTH + 10}" y="{y + 4}">{escape(truncate(sanitize_line(label), 44))}</text>')
    return parts


def _mark(kind: str, x: int, y: int, inside: bool, title: str) -> str:
    """Return a dot, or a tip at the edge for a moment outside of the drawing."""
    if inside:
        return f'<circle class="{kind}" cx="{x}" cy="{y}" r="5"><title>{title}</title></circle>'
    tip = f"M{x - 5} {y}l9 -6v12z" if x == LABEL else f"M{x + 5} {y}l-9 -6v12z"
    return f'<path class="{kind}" d="{tip}"><title>{title} ({"earlier" if x == LABEL else "later"})</title></path>'


def _label(lane: Lane, root: Finding | None) -> str:
    """Return the first moment of the lane; for a rank of the root cause without a time, the root cause."""
    if lane.moments:
        return lane.moments[0].signature or lane.moments[0].what
    return f"{root.signature or root.title} (no time)" if root is not None else ""


def _format_moment(moment: Moment) -> str:
    return clip(sanitize_line(f"{moment.signature}: {moment.what}" if moment.signature else moment.what), 200)


def _describe_lanes(lanes: Sequence[Lane], first: float) -> str:
    parts = []
    for lane in lanes:
        if lane.moments:
            name = "no rank" if lane.rank is None else f"rank {lane.rank}"
            what = clip(sanitize_line(lane.moments[0].signature or lane.moments[0].what), 80)
            parts.append(f"{name}, {(lane.moments[0].time or first) - first:+.0f} s: {what}")
    return "; ".join(parts)
