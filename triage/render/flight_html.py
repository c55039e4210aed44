"""Flight Recorder dumps as one HTML page: the faults in words, and an SVG of every group, rank by sequence number.

Drawn by runs of one state and by rows that look alike; the wheel zooms, dragging moves, a double click goes back. No other file is loaded.
"""

from __future__ import annotations

from html import escape

from triage.artifacts.flight.model import Fault
from triage.artifacts.flight.view import Lane, State, View
from triage.render import words
from triage.render.safe import safe_line

COLORS: dict[State, str] = {
    "lost": "#e8e8e8",
    "done": "#9ecf9e",
    "open": "#f0b429",
    "missing": "#ffffff",
    "differs": "#c62828",
    "unknown": "#b0b7c3",
}
SAYS: dict[State, str] = {
    "lost": "dropped from the ring",
    "done": "done",
    "open": "entered, waits",
    "missing": "not entered",
    "differs": "another call than most",
    "unknown": "the dump ends early",
}
_LEFT, _TOP, _WIDTH = 150, 24, 1000
_STYLE = """
body{font:14px/1.45 system-ui,sans-serif;margin:1.5rem auto;max-width:1240px;padding:0 1rem;color:#1c1c1c;background:#fff}
h1{font-size:1.3rem}h2{font-size:1.05rem;margin:1.6rem 0 .3rem}.fault{border-left:4px solid #c62828;padding:.2rem .8rem;margin:.8rem 0}
.follows{border-color:#bbb;color:#555}.unsure{border-color:#f0b429}code,pre{font:12px/1.4 ui-monospace,monospace}pre{background:#f6f6f6;padding:.5rem;overflow:auto}
svg{border:1px solid #ccc;width:100%;touch-action:none;background:#fafafa}text{font:11px ui-monospace,monospace}table{border-collapse:collapse}
td,th{padding:.15rem .6rem;text-align:left}.key span{display:inline-block;width:.9rem;height:.9rem;border:1px solid #999;vertical-align:-2px;margin:0 .3rem 0 1rem}
@media print{svg{break-inside:avoid}}
"""
_SCRIPT = """
document.querySelectorAll('svg').forEach(function(s){var b=s.viewBox.baseVal,o=[b.x,b.y,b.width,b.height],d=null;
function set(v){s.setAttribute('viewBox',v.join(' '))}
s.addEventListener('wheel',function(e){e.preventDefault();var r=s.getBoundingClientRect(),k=e.deltaY<0?0.8:1.25,v=s.viewBox.baseVal;
var x=v.x+(e.clientX-r.left)/r.width*v.width,y=v.y+(e.clientY-r.top)/r.height*v.height,w=Math.min(o[2],v.width*k),h=Math.min(o[3],v.height*k);
set([x-(x-v.x)*w/v.width,y-(y-v.y)*h/v.height,w,h])},{passive:false});
s.addEventListener('pointerdown',function(e){d=[e.clientX,e.clientY];s.setPointerCapture(e.pointerId)});
s.addEventListener('pointermove',function(e){if(!d)return;var r=s.getBoundingClientRect(),v=s.viewBox.baseVal;
set([v.x-(e.clientX-d[0])/r.width*v.width,v.y-(e.clientY-d[1])/r.height*v.height,v.width,v.height]);d=[e.clientX,e.clientY]});
s.addEventListener('pointerup',function(){d=null});s.addEventListener('dblclick',function(){set(o)})});
"""


def as_html(view: View) -> str:
    """The whole page."""
    faults = "".join(_fault(fault) for fault in view.analysis.faults) or "<p>No rank stands in a collective, and all calls agree.</p>"
    key = "".join(f'<span style="background:{color}"></span>{SAYS[state]}' for state, color in COLORS.items())
    first = {fault.group: number for number, fault in reversed(list(enumerate(view.analysis.faults)))}
    lanes = sorted(view.lanes, key=lambda lane: (first.get(lane.group, len(first)), lane.group))
    drawn = "".join(_lane(lane, [fault for fault in view.analysis.faults if fault.group == lane.group]) for lane in lanes)
    notes = "".join(
        f"<li>{_text(f'{w.source}: ' if w.source else '')}{_text(w.message)} <code>{_text(w.code)}</code></li>" for w in view.warnings
    )
    title = f"Flight Recorder: {words.plural(len(view.ranks), 'rank')}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
        f"<p>{_text(view.path)} · {view.entries} calls · format {_text(', '.join(view.versions) or 'unknown')}</p>"
        f'{faults}{_slow(view)}<p class="key">{key}</p>{drawn}'
        f"{f'<h2>Warnings</h2><ul>{notes}</ul>' if notes else ''}<script>{_SCRIPT}</script></body></html>\n"
    )


def _text(text: str) -> str:
    return escape(safe_line(text))


def _fault(fault: Fault) -> str:
    kind = "fault follows" if fault.explained_by else "fault" if fault.sure else "fault unsure"
    head = f"{fault.rule} · {words.ranks(fault.ranks)} · {fault.group} #{fault.seq} {fault.op}"
    places = "\n".join(
        f"{words.ranks(place.ranks)}: {place.call}" + "".join(f"\n    {frame.file}:{frame.line} in {frame.name}" for frame in place.stack)
        for place in fault.places
    )
    shown = f"<pre>{chr(10).join(_kept(line) for line in places.splitlines())}</pre>" if places and not fault.explained_by else ""
    unsure = "" if fault.sure else " (not sure)"
    return f'<div class="{kind}"><b>{_text(head)}</b>{unsure}<br>{_text(fault.text)}{shown}</div>'


def _kept(line: str) -> str:
    """One line with its indent."""
    return " " * (len(line) - len(line.lstrip())) + _text(line)


def _slow(view: View) -> str:
    """The stragglers as a table with bars."""
    slow = view.analysis.stragglers
    if not slow:
        return ""
    most = slow[0].waited or 1.0
    rows = "".join(
        f"<tr><td>rank {each.rank}</td><td>{each.last}</td><td>{each.waited:.3f} s</td>"
        f'<td><svg style="width:220px;height:12px;border:0" viewBox="0 0 220 12"><rect width="{max(1, round(220 * each.waited / most))}" '
        f'height="12" fill="#f0b429"/></svg></td></tr>'
        for each in slow[:50]
    )
    return f"<h2>Slow ranks</h2><table><tr><th>rank</th><th>came last</th><th>others waited</th><th></th></tr>{rows}</table>"


def _lane(lane: Lane, faults: list[Fault]) -> str:
    """One group: a row for each kind of row, as wide as its numbers."""
    rows = sorted(lane.rows, key=lambda row: row.ranks)
    high = 16
    across = _WIDTH / max(1, len(lane.seqs))
    height = _TOP + high * len(rows) + 6
    parts = [f'<text x="{_LEFT}" y="14">#{lane.seqs[0]}</text><text x="{_LEFT + _WIDTH}" y="14" text-anchor="end">#{lane.seqs[-1]}</text>']
    index = {seq: number for number, seq in enumerate(lane.seqs)}
    for number, row in enumerate(rows):
        y = _TOP + high * number
        name = words.ranks(row.ranks)
        short = name if len(name) <= 21 else name[:20] + "…"
        parts.append(f'<text x="4" y="{y + 12}"><title>{escape(name)}</title>{escape(short)}</text>')
        for run in row.runs:
            x, wide = _LEFT + run.first * across, (run.last - run.first + 1) * across
            first, last = lane.seqs[run.first], lane.seqs[run.last]
            span = f"#{first}" if first == last else f"#{first} to #{last}"
            op = f" {lane.ops[run.first]}" if run.first == run.last else ""
            parts.append(
                f'<rect x="{x:.2f}" y="{y}" width="{wide:.2f}" height="{high - 2}" fill="{COLORS[run.state]}">'
                f"<title>{escape(name)} {span}{_text(op)}: {SAYS[run.state]}</title></rect>"
            )
    for fault in faults[:20]:
        if fault.seq in index:
            x = _LEFT + (index[fault.seq] + 0.5) * across
            parts.append(
                f'<line x1="{x:.2f}" x2="{x:.2f}" y1="{_TOP - 6}" y2="{height}" stroke="#c62828" stroke-width="1" stroke-dasharray="3 2"/>'
            )
    title = f"{lane.group}: {words.plural(len(lane.members), 'rank')}, #{lane.seqs[0]} to #{lane.seqs[-1]}"
    drawn = "".join(parts)
    shown = min(height, 700)
    return f'<h2>{_text(title)}</h2><svg viewBox="0 0 {_LEFT + _WIDTH + 10} {height}" height="{shown}" preserveAspectRatio="xMinYMin meet">{drawn}</svg>'
