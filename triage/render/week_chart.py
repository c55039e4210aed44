"""Counts by week as a bar chart, without a style of its own: the page's style sheet colours `.bars`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from triage.render.phrases import format_count
from triage.render.svg import svg_start
from triage.render.table import day
from triage.store.search import WEEK, StatsRow, week_start

WEEKS, WIDE, GAP, HIGH = 26, 20, 4, 64


@dataclass(frozen=True, slots=True)
class Bar:
    """The count of one week, named by its Monday."""

    week: str
    count: int


@dataclass(frozen=True, slots=True)
class Bars:
    """The weeks up to now with their drawing; the drawing is empty if all counts are zero."""

    bars: tuple[Bar, ...]
    svg: str


def weeks(counts: Iterable[StatsRow], now: float, *, most: int = WEEKS) -> Bars:
    """Return the last `most` weeks until `now`, from counts by week."""
    known = {round(week_start(item.name)): item.count for item in counts}
    last = max([round(now - (now - week_start("0")) % WEEK), *known])
    begins = [last - number * WEEK for number in range(most)][::-1]
    bars = tuple(Bar(day(begin)[:10], known.get(begin, 0)) for begin in begins)
    return Bars(bars, _draw(bars) if any(bar.count for bar in bars) else "")


def _draw(bars: tuple[Bar, ...]) -> str:
    top = max(bar.count for bar in bars)
    across, down = len(bars) * (WIDE + GAP) + GAP, HIGH + 34
    description = "; ".join(f"{bar.week}: {bar.count}" for bar in bars if bar.count)
    parts = [
        svg_start(across, down, "bars", role="img", aria_labelledby="bars-title bars-text")
        + '<title id="bars-title">Incidents by week</title>'
        f'<desc id="bars-text">{escape(description)}</desc><path class="base" d="M0 {HIGH + 16.5}H{across}"/>'
    ]
    for place, bar in enumerate(bars):
        x, tall = GAP + place * (WIDE + GAP), max(2, round(bar.count / top * HIGH)) if bar.count else 0
        if bar.count:
            title = f"<title>week of {bar.week}: {format_count(bar.count, 'incident')}</title>"
            parts += [
                f'<rect x="{x}" y="{HIGH + 16 - tall}" width="{WIDE}" height="{tall}" rx="2">{title}</rect>',
                f'<text class="mid" x="{x + WIDE // 2}" y="{HIGH + 12 - tall}">{bar.count}</text>',
            ]
    parts += [
        f'<text x="0" y="{down - 4}">{bars[0].week}</text>'
        f'<text class="end" x="{across}" y="{down - 4}">{bars[-1].week}</text></svg>'
    ]
    return "".join(parts)
