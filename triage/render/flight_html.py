"""Flight Recorder dumps as one HTML page: the faults in words, and an SVG of every group, rank by sequence number.

Drawn by runs of one state and by rows that look alike; the wheel zooms, dragging moves, a double click goes back. A
group of thousands of rows
begins with its first ones, and the wheel goes back from them until all rows are in the picture. No other file is
loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from triage.artifacts.flight.model import Fault
from triage.artifacts.flight.view import Lane, Run, State, View
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
_LEFT, _TOP, _WIDTH, _HIGH = 150, 24, 1000, 16
_TALL = 700
"""Pixels of a picture. What is higher is moved and zoomed."""
_STYLE = """
body{font:14px/1.45 system-ui,sans-serif;margin:1.5rem auto;max-width:1240px;padding:0 1rem;color:#1c1c1c;background:#fff}
h1{font-size:1.3rem}h2{font-size:1.05rem;margin:1.6rem 0 .3rem}.fault{border-left:4px solid #c62828;padding:.2rem .8rem;margin:.8rem 0}
.follows{border-color:#bbb;color:#555}.unsure{border-color:#f0b429}code,pre{font:12px/1.4 ui-monospace,monospace}pre{background:#f6f6f6;padding:.5rem;overflow:auto}
svg{border:1px solid #ccc;width:100%;touch-action:none;background:#fafafa}text{font:11px ui-monospace,monospace;paint-order:stroke;stroke:#fafafa;stroke-width:3px}table{border-collapse:collapse}
td,th{padding:.15rem .6rem;text-align:left}.key span{display:inline-block;width:.9rem;height:.9rem;border:1px solid #999;vertical-align:-2px;margin:0 .3rem 0 1rem}
@media print{svg{break-inside:avoid}}
"""
_SCRIPT = (
    """
document.querySelectorAll('svg[data-height]').forEach(function(s){var b=s.viewBox.baseVal,o=[b.x,b.y,b.width,b.height],d=null;
var most=Math.max(o[3],+s.dataset.height),rows=s.querySelectorAll('.r'),on=rows,ends=s.querySelectorAll('.a'),q=[];
s.dataset.seqs.split(',').forEach(function(p){var m=p.trim().split('-');for(var i=+m[0];i<=+(m[1]||m[0]);i++)q.push(i)});
function at(x){return '#'+q[Math.max(0,Math.min(q.length-1,Math.floor((x-LEFT)/WIDTH*q.length)))]}
function set(x,y,w,h){x=Math.max(0,Math.min(o[2]-w,x));y=Math.max(0,Math.min(most-h,y));s.setAttribute('viewBox',[x,y,w,h].join(' '));
var k=w/o[2],l=h/o[3],n=Math.ceil(l*.8),t=') scale('+k+' '+l+')';
on.forEach(function(e){e.style.display='none'});on=[];
for(var i=n*Math.max(0,Math.ceil((y-TOP)/HIGH/n));i<rows.length&&TOP+HIGH*i<y+h;i+=n){var e=rows[i];on.push(e);
e.style.display='';e.setAttribute('transform','translate('+x+' '+(TOP+HIGH*i)+t)}
ends.forEach(function(e,i){e.textContent=at(i?x+w-10.001*k:x+LEFT*k);e.setAttribute('transform','translate('+x+' '+y+t)})}
s.addEventListener('wheel',function(e){e.preventDefault();var r=s.getBoundingClientRect(),k=e.deltaY<0?0.8:1.25,v=s.viewBox.baseVal;
var x=v.x+(e.clientX-r.left)/r.width*v.width,y=v.y+(e.clientY-r.top)/r.height*v.height;
var w=e.altKey?v.width:Math.min(o[2],v.width*k),h=e.shiftKey?v.height:Math.min(most,v.height*k);
set(x-(x-v.x)*w/v.width,y-(y-v.y)*h/v.height,w,h)},{passive:false});
s.addEventListener('pointerdown',function(e){d=[e.clientX,e.clientY];s.setPointerCapture(e.pointerId)});
s.addEventListener('pointermove',function(e){if(!d)return;var r=s.getBoundingClientRect(),v=s.viewBox.baseVal;
set(v.x-(e.clientX-d[0])/r.width*v.width,v.y-(e.clientY-d[1])/r.height*v.height,v.width,v.height);d=[e.clientX,e.clientY]});
s.addEventListener('pointerup',function(){d=null});s.addEventListener('dblclick',function(){set(o[0],o[1],o[2],o[3])})});
""".replace("LEFT", str(_LEFT))
    .replace("WIDTH", str(_WIDTH))
    .replace("TOP", str(_TOP))
    .replace("HIGH", str(_HIGH))
)


def as_html(view: View) -> str:
    """The whole page."""
    faults = (
        "".join(_fault(fault) for fault in view.analysis.faults)
        or "<p>No rank stands in a collective, and all calls agree.</p>"
    )
    key = "".join(f'<span style="background:{color}"></span>{SAYS[state]}' for state, color in COLORS.items())
    first = {fault.group: number for number, fault in reversed(list(enumerate(view.analysis.faults)))}
    lanes = sorted(view.lanes, key=lambda lane: (first.get(lane.group, len(first)), lane.group))
    drawn = "".join(
        _lane(lane, [fault for fault in view.analysis.faults if fault.group == lane.group]) for lane in lanes
    )
    notes = "".join(
        f"<li>{_text(f'{w.source}: ' if w.source else '')}{_text(w.message)} <code>{_text(w.code)}</code></li>"
        for w in view.warnings
    )
    title = f"Flight Recorder: {words.plural(len(view.ranks), 'rank')}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
        f"<p>{_text(view.path)} · {view.entries} calls · format {_text(', '.join(view.versions) or 'unknown')}</p>"
        f'{faults}{_slow(view)}<p class="key">{key}</p><p>The wheel zooms (with shift only the numbers, with alt only the ranks), dragging moves, '
        f"a double click goes back.</p>{drawn}"
        f"{f'<h2>Warnings</h2><ul>{notes}</ul>' if notes else ''}<script>{_SCRIPT}</script></body></html>\n"
    )


def _text(text: str) -> str:
    return escape(safe_line(text))


def _fault(fault: Fault) -> str:
    kind = "fault follows" if fault.explained_by else "fault" if fault.sure else "fault unsure"
    head = f"{fault.rule} · {words.ranks(fault.ranks)} · {fault.group} #{fault.seq} {fault.op}"
    places = "\n".join(
        f"{words.ranks(place.ranks)}: {place.call}"
        + "".join(f"\n    {frame.file}:{frame.line} in {frame.name}" for frame in place.stack)
        for place in fault.places
    )
    shown = (
        f"<pre>{chr(10).join(_kept(line) for line in places.splitlines())}</pre>"
        if places and not fault.explained_by
        else ""
    )
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
    """One group: a row for each kind of row, those of ranks at fault first, as wide as its numbers."""
    blamed = {rank for fault in faults for rank in fault.ranks}
    rows = sorted(lane.rows, key=lambda row: (blamed.isdisjoint(row.ranks), row.ranks))
    across = _WIDTH / max(1, len(lane.seqs))
    height = _TOP + _HIGH * len(rows) + 6
    parts, names = [], []
    for number, row in enumerate(rows):
        y = _TOP + _HIGH * number
        name = words.ranks(row.ranks)
        short = name if len(name) <= 21 else name[:20] + "…"
        names.append(
            f'<text class="r" x="4" y="12" transform="translate(0 {y})"><title>{escape(name)}</title>{escape(short)}</text>'
        )
        parts += [_run(lane, run, name, y, across) for run in row.runs]
    index = {seq: number for number, seq in enumerate(lane.seqs)}
    for fault in faults[:20]:
        if fault.seq in index:
            x = _LEFT + (index[fault.seq] + 0.5) * across
            parts.append(
                f'<line x1="{x:.2f}" x2="{x:.2f}" y1="{_TOP - 6}" y2="{height}" stroke="#c62828" stroke-width="1" stroke-dasharray="3 2"/>'
            )
    ends = ((_LEFT, "start", lane.seqs[0]), (_LEFT + _WIDTH, "end", lane.seqs[-1]))
    names += [f'<text class="a" x="{x}" y="14" text-anchor="{side}">#{seq}</text>' for x, side, seq in ends]
    title = f"{lane.group}: {words.plural(len(lane.members), 'rank')}, #{lane.seqs[0]} to #{lane.seqs[-1]}"
    shown = min(height, _TALL)
    if height > _TALL:
        title += f", {len(rows)} kinds of rows: the wheel shows them all, dragging moves"
    return (
        f'<h2>{_text(title)}</h2><svg viewBox="0 0 {_LEFT + _WIDTH + 10} {shown}" data-height="{height}" data-seqs="{_spans(lane.seqs)}"'
        f' height="{shown}" preserveAspectRatio="none">{"".join(parts)}{"".join(names)}</svg>'
    )


def _spans(seqs: Sequence[int]) -> str:
    """Ascending numbers as ranges, `4,7-36`."""
    starts = [i for i in range(len(seqs)) if i == 0 or seqs[i] != seqs[i - 1] + 1]
    ends = [*(i - 1 for i in starts[1:]), len(seqs) - 1]
    return ",".join(f"{seqs[i]}-{seqs[j]}" if i < j else str(seqs[i]) for i, j in zip(starts, ends, strict=True))


def _run(lane: Lane, run: Run, name: str, y: int, across: float) -> str:
    """Some numbers of one row in one state."""
    x, wide = _LEFT + run.first * across, (run.last - run.first + 1) * across
    first, last = lane.seqs[run.first], lane.seqs[run.last]
    span = f"#{first}" if first == last else f"#{first} to #{last}"
    op = f" {lane.ops[run.first]}" if run.first == run.last else ""
    return (
        f'<rect x="{x:.2f}" y="{y}" width="{wide:.2f}" height="{_HIGH - 2}" fill="{COLORS[run.state]}">'
        f"<title>{escape(name)} {span}{_text(op)}: {SAYS[run.state]}</title></rect>"
    )
