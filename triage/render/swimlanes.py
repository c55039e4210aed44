"""The moments around the first failure as a drawing, with a lane for the ranks that have the same history.

Pure functions: a diagnosis in, SVG out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from triage.base.rank_ranges import format_ranks
from triage.model.diagnosis import Diagnosis, Finding, Moment, RankState
from triage.render import phrases
from triage.render.sanitize import clip, sanitize_line, truncate
from triage.render.svg import svg_start

LANES = 24
EACH = 12  # moments of one lane
LANE, LABEL, WIDTH, TOP, BOTTOM, TEXT = 22, 130, 560, 26, 18, 300  # pixels
# Pixels of a drawing for a phone, where the text of a lane stands below its line; `EDGE` is for half of the last tick.
NARROW, NARROW_LANE, EDGE = 350, 38, 24
UNTIMED = 80  # pixels before the axis for failures without a time
NAME = 17  # letters of a lane's name
ALIKE = 5  # pixels; moments closer than this cannot be told apart
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
  .triage-lanes .gap { opacity: .8; stroke: var(--cause); stroke-width: 2; stroke-dasharray: 3 3 }
  .triage-lanes .cause { fill: var(--cause); stroke: var(--cause) }
  .triage-lanes .echo { fill: var(--echo); stroke: var(--echo) }
  .triage-lanes .later { fill: var(--page, #fff); stroke-width: 2 }
  .triage-lanes .end { fill: var(--quiet) }
  @media (prefers-color-scheme: dark) {
    .triage-lanes { color: #e6edf3; --cause: #ff7b72; --echo: #e3b341; --quiet: #6e7681 }
    .triage-lanes .later { fill: var(--page, #0d1117) }
  }
"""


@dataclass
class Lane:
    """The moments of ranks with the same history, or (no ranks) of no known rank; `state` is of the first rank.

    `untimed`: these ranks show the root cause, in lines without a time.
    """

    ranks: tuple[int, ...]
    moments: list[Moment] = field(default_factory=list)
    state: RankState | None = None
    untimed: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """The seconds from `begin` to `end`, the time that counts as 0, the pixel where the axis starts, and its width."""

    begin: float
    end: float
    zero: float
    left: int
    width: int = WIDTH

    def x(self, time: float) -> int:
        """Return the pixel of a time; of one outside of the axis, its nearer end."""
        inside = min(max(time, self.begin), self.end)
        return self.left + round(((inside - self.begin) / (self.end - self.begin)) * self.width)


def draw(diagnosis: Diagnosis, *, style: bool = True, narrow: bool = False) -> str:
    """Return the lanes as one SVG element, empty if fewer than two moments have a time.

    Without `style` the page's own style sheet colours it. A `narrow` one fits a phone.
    """
    zero = first_failure_time(diagnosis)
    single = _lanes_of_ranks(diagnosis)
    if zero is None or sum(len(lane.moments) for lane in single) < 2:
        return ""
    began = phrases.began(diagnosis)
    untimed = any(lane.untimed for lane in single)
    left, lane_height = LABEL + (UNTIMED if untimed else 0), NARROW_LANE if narrow else LANE
    width = NARROW - left - EDGE if narrow else WIDTH
    axis = Axis(*_window(single, zero, phrases.began_ranks(diagnosis)), zero, left, width)
    lanes, left_out = _group_lanes(diagnosis, single, axis)
    across, down = left + width + (EDGE if narrow else TEXT), TOP + lane_height * len(lanes) + BOTTOM
    name = "triage-lanes-narrow" if narrow else "triage-lanes"
    parts = [
        svg_start(across, down, "triage-lanes", role="img", aria_labelledby=f"{name}-title {name}-text"),
        f'<title id="{name}-title">What happened around the first failure</title>',
        f'<desc id="{name}-text">{escape(_describe_lanes(lanes, zero))}</desc>',
        *([f"<style>{STYLE}</style>"] if style else []),
        *([f'<text class="tick" x="{LABEL + UNTIMED // 3}" y="{TOP - 12}">no time</text>'] if untimed else []),
        *_ticks(axis, down, diagnosis.root_cause is not None and diagnosis.root_cause.first_time is not None),
    ]
    for number, lane in enumerate(lanes):
        parts += _lane(lane, TOP + lane_height * number + LANE // 2, axis, began, narrow)
    if left_out:
        parts.append(f'<text x="{axis.left}" y="{down - 4}">and {phrases.format_count(left_out, "more rank")}</text>')
    return "\n".join([*parts, "</svg>"])


def first_failure_time(diagnosis: Diagnosis) -> float | None:
    """Return the time of the root cause, else of the first moment."""
    root = diagnosis.root_cause
    times = [moment.time for moment in diagnosis.timeline if moment.time is not None]
    if root is not None and root.first_time is not None:
        return root.first_time
    return min(times, default=None)


def _lanes_of_ranks(diagnosis: Diagnosis) -> list[Lane]:
    """Return a lane for each rank, those of the root cause first, then by their first moments."""
    states: Mapping[int, RankState] = {state.rank: state for state in diagnosis.ranks}
    began, blamed = phrases.began(diagnosis), set(phrases.began_ranks(diagnosis))
    lanes: dict[int | None, Lane] = {}
    for moment in [*diagnosis.timeline, *_missing_root(diagnosis)]:
        if moment.time is not None:
            lanes.setdefault(moment.rank, _new_lane(moment.rank)).moments.append(moment)
    for cause in sorted(blamed):
        lane = lanes.setdefault(cause, _new_lane(cause))
        lane.untimed = not any(phrases.is_root_moment(moment, began) for moment in lane.moments)
    for rank, lane in lanes.items():
        lane.state = states.get(rank) if rank is not None else None
        if lane.state is not None and lane.state.last_time is not None:  # its mark shows the last line
            lane.moments = [one for one in lane.moments if not phrases.is_last_line(one)] or lane.moments
    return sorted(
        lanes.values(),
        key=lambda lane: (blamed.isdisjoint(lane.ranks), _first(lane), not lane.ranks, lane.ranks),
    )


def _new_lane(rank: int | None) -> Lane:
    return Lane(() if rank is None else (rank,))


def _missing_root(diagnosis: Diagnosis) -> list[Moment]:
    """Return the moment of the root cause where many earlier ones took its place in the timeline."""
    root = diagnosis.root_cause
    if root is None or root.first_time is None or phrases.verdict_kind(diagnosis) == "SYMPTOMS ONLY":
        return []
    if any(phrases.is_root_moment(moment, [root]) for moment in diagnosis.timeline):
        return []
    return [Moment(root.first_time, next(iter(root.ranks), None), root.title, root.signature)]


def _group_lanes(diagnosis: Diagnosis, single: Sequence[Lane], axis: Axis) -> tuple[list[Lane], int]:
    """Return one lane for all ranks whose moments look the same; and how many failed ranks no lane shows."""
    blamed = set(phrases.began_ranks(diagnosis))
    groups: dict[tuple[object, ...], list[tuple[list[int], Lane]]] = {}
    lanes: list[Lane] = []
    for lane in single:
        last = lane.state.last_time if lane.state is not None else None
        places = [axis.x(time or 0.0) for time in (last, *(moment.time for moment in lane.moments))]
        state = lane.state.state if lane.state is not None else None
        names = tuple((moment.signature or moment.what, moment.or_later) for moment in lane.moments)
        alike = groups.setdefault((names, state, blamed.isdisjoint(lane.ranks), not lane.ranks), [])
        same = next((one for at, one in alike if _look_alike(at, places)), None)
        if same is None:
            alike.append((places, lane))
            lanes.append(lane)
        else:
            same.ranks = tuple(sorted((*same.ranks, *lane.ranks)))
    shown = lanes[:LANES]
    _add_unlisted_ranks(diagnosis, shown, lanes, axis)
    count = sum(len(lane.ranks) for lane in shown)
    failed = sum(state.state != "ok" for state in diagnosis.ranks)  # of thousands the first moments only are kept
    hidden = sum(len(lane.ranks) for lane in lanes[LANES:])
    return shown, max(hidden, failed - count if count > LANES or hidden else 0)


def _add_unlisted_ranks(diagnosis: Diagnosis, shown: Sequence[Lane], lanes: Sequence[Lane], axis: Axis) -> None:
    """Add the ranks for which a timeline of thousands has no room to the lane of their finding.

    Their state and their last line must look like those of the lane.
    """
    ranks_of: dict[str, set[int]] = {}
    for finding in diagnosis.findings:
        if finding.signature is not None:
            ranks_of.setdefault(finding.signature, set()).update(finding.ranks)
    listed = {rank for lane in lanes for rank in lane.ranks}
    more: dict[int, list[int]] = {}
    for state in diagnosis.ranks:
        if state.rank not in listed:
            places = (number for number, lane in enumerate(shown) if _is_of_lane(state, lane, ranks_of, axis))
            more.setdefault(next(places, -1), []).append(state.rank)
    for number, lane in enumerate(shown):
        lane.ranks = tuple(sorted((*lane.ranks, *more.get(number, ()))))


def _is_of_lane(state: RankState, lane: Lane, ranks_of: Mapping[str, set[int]], axis: Axis) -> bool:
    first = lane.state
    if first is None or first.state != state.state or first.last_time is None or state.last_time is None:
        return False
    is_near = abs(axis.x(first.last_time) - axis.x(state.last_time)) < ALIKE
    names = {moment.signature or "" for moment in lane.moments}
    return is_near and bool(names) and all(state.rank in ranks_of.get(name, ()) for name in names)


def _look_alike(one: Sequence[int], other: Sequence[int]) -> bool:
    return all(abs(a - b) < ALIKE for a, b in zip(one, other, strict=True))


def _first(lane: Lane) -> float:
    return min((moment.time for moment in lane.moments if moment.time is not None), default=float("inf"))


def _window(lanes: Sequence[Lane], zero: float, blamed: Iterable[int]) -> tuple[float, float]:
    near, causes = [zero], set(blamed)
    for lane in lanes:
        before = BEFORE if causes.isdisjoint(lane.ranks) else AFTER
        times = [moment.time for moment in lane.moments] + ([lane.state.last_time] if lane.state is not None else [])
        near += [time for time in times if time is not None and zero - before <= time <= zero + AFTER]
    begin, end = min(near), max(near)
    room = max((end - begin) * 0.05, 0.5)
    return begin - room, end + room


def _ticks(axis: Axis, down: int, has_root_time: bool) -> list[str]:
    parts = []
    length = axis.end - axis.begin
    most = max(TICKS * axis.width // WIDTH, 2)
    step = next((size for size in STEPS if length / size <= most), length / most)
    for number in range(math.ceil((axis.begin - axis.zero) / step), math.floor((axis.end - axis.zero) / step) + 1):
        x = axis.x(axis.zero + number * step)
        after = f"{number * step:+.4g} s" if number else "0"
        parts.append(
            f'<line x1="{x}" y1="{TOP - 6}" x2="{x}" y2="{down - BOTTOM}"/>'
            f'<text class="tick" x="{x}" y="{TOP - 12}">{after}</text>'
        )
    x = axis.x(axis.zero)
    first = f'<line class="first" x1="{x}" y1="{TOP - 6}" x2="{x}" y2="{down - BOTTOM}"/>'
    return [*parts, first] if has_root_time else parts


def _lane(lane: Lane, y: int, axis: Axis, began: Sequence[Finding], narrow: bool) -> list[str]:
    parts = [
        f'<text class="rank" x="{LABEL - 8}" y="{y + 4}">{escape(_short_name(lane))}<title>{_name(lane)}</title></text>'
        f'<line x1="{axis.left}" y1="{y}" x2="{axis.left + axis.width}" y2="{y}"/>'
    ]
    causes = [moment for moment in lane.moments if phrases.is_root_moment(moment, began)]
    if lane.state is not None and lane.state.last_time is not None:
        x = axis.x(lane.state.last_time)
        first = min((moment.time for moment in causes if moment.time is not None), default=None)
        if first is not None and (end := axis.x(first)) > x:
            parts.append(f'<line class="gap" x1="{x}" y1="{y}" x2="{end}" y2="{y}"/>')
        parts.append(f'<path class="end" d="M{x - 1} {y - 7}h2v14h-2z"><title>last line of the rank</title></path>')
    if lane.untimed and began and phrases.is_failure(began[0]):
        title = escape(clip(sanitize_line(f"{began[0].title} (no time)"), 200))
        parts.append(_mark("cause later", LABEL + UNTIMED // 3, y, "", title))
    drawn: set[tuple[int, str | None]] = set()
    for moment in sorted(lane.moments, key=lambda one: one in causes):  # the root cause lies on top
        place = (axis.x(moment.time or 0.0), moment.signature)
        if place not in drawn and (len(drawn) < EACH or moment in causes):
            drawn.add(place)
            kind = ("cause" if moment in causes else "echo") + (" later" if moment.or_later else "")
            outside = _outside(moment.time or axis.begin, axis)
            parts.append(_mark(kind, place[0], y, outside, escape(_format_moment(moment))))
    label = escape(truncate(sanitize_line(_label(lane, causes, began)), 30 if narrow else 44))
    x, down = (LABEL, y + 20) if narrow else (axis.left + axis.width + 10, y + 4)
    return [*parts, f'<text x="{x}" y="{down}">{label}</text>'] if label else parts


def _outside(time: float, axis: Axis) -> str:
    return "earlier" if time < axis.begin else "later" if time > axis.end else ""


def _mark(kind: str, x: int, y: int, outside: str, title: str) -> str:
    """Return a dot, or a tip at the edge for a moment outside of the drawing."""
    if not outside:
        return f'<circle class="{kind}" cx="{x}" cy="{y}" r="5"><title>{title}</title></circle>'
    tip = f"M{x - 5} {y}l9 -6v12z" if outside == "earlier" else f"M{x + 5} {y}l-9 -6v12z"
    return f'<path class="{kind}" d="{tip}"><title>{title} ({outside})</title></path>'


def _name(lane: Lane) -> str:
    return format_ranks(lane.ranks) if lane.ranks else "no rank"


def _short_name(lane: Lane) -> str:
    """Return `ranks 0-5, 7 S`, or the number of the ranks where their names are too long."""
    name = _name(lane)
    name = name if len(name) <= NAME - 2 else phrases.format_count(len(lane.ranks), "rank")
    return name + (f" {phrases.STATE_MARKS[lane.state.state]}" if lane.state is not None else "")


def _label(lane: Lane, causes: Sequence[Moment], began: Sequence[Finding]) -> str:
    """Return the root cause if the lane shows it, else its first moment."""
    if lane.untimed and began and phrases.is_failure(began[0]):
        return f"{began[0].signature or began[0].title} (no time)"
    return next((moment.signature or moment.what for moment in (*causes, *lane.moments)), "")


def _format_moment(moment: Moment) -> str:
    text = f"{moment.signature}: {moment.what}" if moment.signature else moment.what
    return clip(sanitize_line(text), 200) + (" (then or later)" if moment.or_later else "")


def _describe_lanes(lanes: Sequence[Lane], zero: float) -> str:
    parts = []
    for lane in lanes:
        if lane.moments:
            what = clip(sanitize_line(lane.moments[0].signature or lane.moments[0].what), 80)
            later = " or later" if lane.moments[0].or_later else ""
            parts.append(f"{_name(lane)}, {(lane.moments[0].time or zero) - zero:+.0f} s{later}: {what}")
    return "; ".join(parts)
