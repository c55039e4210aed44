"""Rank states as a drawing: one cell for each rank, runs of equal cells drawn as one.

Pure functions: states in, SVG out; ten thousand ranks take a few kilobytes. The colours come from the page's variables
(`--failed` …) or from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from xml.sax.saxutils import escape

from triage.base.rank_ranges import format_rank_numbers, format_ranks
from triage.model.diagnosis import RankState
from triage.render import phrases
from triage.render.svg import svg_start

CELL = 12  # pixels, the gap included
GAP = 2
LABEL = 56
TOP = 4
LABELLED = 40  # rows that carry a number at most
# Every rule is bound to the drawing's own class, for styles of an SVG inside a page reach the whole page.
STYLE = """
  .triage-ranks { color: #1f2328; font: 10px ui-monospace, monospace;
    --failed: #cf222e; --killed: #8250df; --stalled: #bc7a00; --silent: #8c959f;
    --unclear: #d0c8a8; --ok: #9fd8ae }
  .triage-ranks text { fill: currentColor; text-anchor: end }
  .triage-ranks .failed { fill: var(--failed) } .triage-ranks .killed { fill: var(--killed) }
  .triage-ranks .stalled { fill: var(--stalled) } .triage-ranks .silent { fill: var(--silent) }
  .triage-ranks .unclear { fill: var(--unclear) } .triage-ranks .ok { fill: var(--ok) }
  .triage-ranks .gaps { fill: none; stroke: var(--page, #fff); stroke-width: 2 }
  .triage-ranks .blamed { fill: none; stroke: var(--failed) }
  .triage-ranks .rim { fill: none; stroke: var(--page, #fff) }
  .triage-ranks .row { fill: var(--failed) }
  @media (prefers-color-scheme: dark) {
    .triage-ranks :is(.gaps, .rim) { stroke: var(--page, #0d1117) }
    .triage-ranks { color: #e6edf3;
      --failed: #ff7b72; --killed: #d2a8ff; --stalled: #e3b341; --silent: #6e7681;
      --unclear: #57503a; --ok: #2f6f43 }
  }
"""


def columns(count: int) -> int:
    """Return the cells of a row: 64, more for very many ranks."""
    return next((size for size in (64, 128, 256) if count <= size * size), 512)


def draw(states: Sequence[RankState], blamed: Iterable[int] = (), *, style: bool = True) -> str:
    """Return the map as one SVG element, empty for fewer than two ranks; `blamed` ranks get a frame.

    Without `style` the page's own style sheet colours it.
    """
    if len(states) < 2:
        return ""
    state_of = {state.rank: state.state for state in states}
    last = max(state_of)
    width = columns(last + 1)
    rows = last // width + 1
    across, down = LABEL + min(width, last + 1) * CELL + GAP, TOP + rows * CELL + GAP
    marked = sorted(set(blamed) & set(state_of))
    grid = {"data_columns": width, "data_cell": CELL, "data_left": LABEL, "data_top": TOP}
    labels = "triage-ranks-title triage-ranks-text"
    parts = [
        svg_start(across, down, "triage-ranks", role="img", **grid, aria_labelledby=labels),
        f'<title id="triage-ranks-title">States of {len(states)} ranks</title>',
        f'<desc id="triage-ranks-text">{escape(describe_states(states, marked))}</desc>',
        *([f"<style>{STYLE}</style>"] if style else []),
        *_labels(rows, width),
        *_states(state_of, width),
        f'<path class="gaps" d="{_gaps(min(width, last + 1), rows)}"/>',
        *(_frames(marked, width) if marked else []),
        "</svg>",
    ]
    return "\n".join(parts)


def _states(state_of: Mapping[int, str], width: int) -> Iterator[str]:
    for state in phrases.STATE_MARKS:
        path = _path([rank for rank, own in state_of.items() if own == state], width)
        if path:
            yield f'<path class="{state}" d="{path}"/>'


def _frames(marked: Sequence[int], width: int) -> Iterator[str]:
    """Yield red frames around these ranks, thicker in a large grid, and a tip before each of their rows.

    Inside each frame is a rim of the page's colour, so that it is seen around red cells too.
    """
    stroke, path = 2 * width // 64 + width // 128, _path(marked, width)
    yield f'<path class="rim" stroke-width="{stroke + 2}" d="{path}"/>'
    yield f'<path class="blamed" stroke-width="{stroke}" d="{path}"/>'
    rows = sorted({rank // width for rank in marked})
    half = CELL // 2 - 1
    tips = "".join(f"M{LABEL - 5} {TOP + row * CELL}l4 {half}l-4 {half}z" for row in rows)
    yield f'<path class="row" d="{tips}"/>'


def describe_states(states: Sequence[RankState], blamed: Sequence[int]) -> str:
    """Return the map as text."""
    parts = []
    for state in phrases.STATE_MARKS:
        ranks = [item.rank for item in states if item.state == state]
        if ranks:
            parts.append(f"{state}: {format_rank_numbers(ranks)} ({len(ranks)})")
    return (f"It began on {format_ranks(blamed)}. " if blamed else "") + "; ".join(parts)


def _labels(rows: int, width: int) -> Iterator[str]:
    for row in range(0, rows, -(-rows // LABELLED)):
        yield f'<text x="{LABEL - 6}" y="{TOP + row * CELL + CELL - GAP}">{row * width}</text>'


def _gaps(across: int, rows: int) -> str:
    """Return lines of the page's colour between cells: runs are drawn as one."""
    upright = "".join(f"M{LABEL + column * CELL - GAP // 2} {TOP}v{rows * CELL}" for column in range(1, across))
    return upright + "".join(f"M{LABEL} {TOP + row * CELL - GAP // 2}h{across * CELL}" for row in range(1, rows))


def _path(ranks: Sequence[int], width: int) -> str:
    """Return rectangles around runs of ranks; equal successive rows share one."""
    blocks: list[tuple[int, int, int, int]] = []  # first column, last column, first row, last row
    open_rows: dict[tuple[int, int], int] = {}
    for start, end, row in _runs(sorted(ranks), width):
        index = open_rows.get((start, end))
        if index is not None and blocks[index][3] == row - 1:
            blocks[index] = (*blocks[index][:3], row)
        else:
            open_rows[(start, end)] = len(blocks)
            blocks.append((start, end, row, row))
    path = ""
    for left, right, top, bottom in blocks:
        across, down = (right - left + 1) * CELL - GAP, (bottom - top + 1) * CELL - GAP
        path += f"M{LABEL + left * CELL} {TOP + top * CELL}h{across}v{down}h-{across}z"
    return path


def _runs(ranks: Sequence[int], width: int) -> Iterator[tuple[int, int, int]]:
    """Yield (first column, last column, row) of neighbours within a row."""
    start = previous = -2
    for rank in ranks:
        if rank != previous + 1 or rank % width == 0:
            if previous >= 0:
                yield start % width, previous % width, previous // width
            start = rank
        previous = rank
    if previous >= 0:
        yield start % width, previous % width, previous // width
