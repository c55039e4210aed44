"""Flight Recorder dumps as one HTML page: the faults as text, and an SVG of every group, ranks by sequence numbers.

Runs of one state and rows that look alike are drawn as one; the wheel zooms, dragging moves, a double click goes back.
A group of thousands of rows shows its first ones until the reader zooms out. The page loads no other file.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from triage.artifacts.flight.model import Fault
from triage.artifacts.flight.view import Lane, Run, State, View
from triage.base.rank_ranges import format_range, format_ranks, to_ranges
from triage.render import phrases
from triage.render.flight import answer
from triage.render.sanitize import sanitize_line, truncate

COLORS: dict[State, str] = {
    "lost": "#e8e8e8",
    "done": "#9ecf9e",
    "open": "#f0b429",
    "missing": "#ffffff",
    "differs": "#c62828",
    "unknown": "#b0b7c3",
    "queued": "#f7dc9b",
}
STATE_MEANINGS: dict[State, str] = {
    "lost": "dropped from the ring",
    "done": "done",
    "open": "waits here",
    "missing": "not entered",
    "differs": "another call than most",
    "unknown": "the dump ends early",
    "queued": "queued behind an open call",
}
_LEFT, _TOP, _WIDTH, _HIGH = 150, 24, 1000, 16
_TALL = 700
"""Pixels of a picture. What is higher is moved and zoomed."""
_STYLE = """
body{font:14px/1.45 system-ui,sans-serif;margin:1.5rem auto;max-width:1240px;padding:0 1rem;color:#1c1c1c;
background:#fff}
h1{font-size:1.3rem}h2{font-size:1.05rem;margin:1.6rem 0 .3rem}
.fault{border-left:4px solid #c62828;padding:.2rem .8rem;margin:.8rem 0}
.follows{border-color:#bbb;color:#555}.unsure{border-color:#f0b429}code,pre{font:12px/1.4 ui-monospace,monospace}
pre{background:#f6f6f6;padding:.5rem;overflow:auto}
svg{border:1px solid #ccc;width:100%;touch-action:none;background:#fafafa}
text{font:11px ui-monospace,monospace;paint-order:stroke;stroke:#fafafa;stroke-width:3px}
table{border-collapse:collapse}td,th{padding:.15rem .6rem;text-align:left}
.key span{display:inline-block;width:.9rem;height:.9rem;border:1px solid #999;vertical-align:-2px;margin:0 .3rem 0 1rem}
@media print{svg{break-inside:avoid}}
"""
_SCRIPT = (
    """
document.querySelectorAll('svg[data-height]').forEach(function(s){
var b=s.viewBox.baseVal,o=[b.x,b.y,b.width,b.height],d=null;
var most=Math.max(o[3],+s.dataset.height),rows=s.querySelectorAll('.r'),on=rows,ends=s.querySelectorAll('.a'),q=[];
s.dataset.seqs.split(',').forEach(function(p){var m=p.trim().split('-');
for(var i=+m[0];i<=+(m[1]||m[0]);i++)q.push(i)});
function at(x){return '#'+q[Math.max(0,Math.min(q.length-1,Math.floor((x-LEFT)/WIDTH*q.length)))]}
function set(x,y,w,h){x=Math.max(0,Math.min(o[2]-w,x));y=Math.max(0,Math.min(most-h,y));
s.setAttribute('viewBox',[x,y,w,h].join(' '));
var k=w/o[2],l=h/o[3],n=Math.ceil(l*.8),t=') scale('+k+' '+l+')';
on.forEach(function(e){e.style.display='none'});on=[];
for(var i=n*Math.max(0,Math.ceil((y-TOP)/HIGH/n));i<rows.length&&TOP+HIGH*i<y+h;i+=n){var e=rows[i];on.push(e);
e.style.display='';e.setAttribute('transform','translate('+x+' '+(TOP+HIGH*i)+t)}
ends.forEach(function(e,i){e.textContent=at(i?x+w-10.001*k:x+LEFT*k);
e.setAttribute('transform','translate('+x+' '+y+t)})}
s.addEventListener('wheel',function(e){e.preventDefault();
var r=s.getBoundingClientRect(),k=e.deltaY<0?0.8:1.25,v=s.viewBox.baseVal;
var x=v.x+(e.clientX-r.left)/r.width*v.width,y=v.y+(e.clientY-r.top)/r.height*v.height;
var w=e.altKey?v.width:Math.min(o[2],v.width*k),h=e.shiftKey?v.height:Math.min(most,v.height*k);
set(x-(x-v.x)*w/v.width,y-(y-v.y)*h/v.height,w,h)},{passive:false});
s.addEventListener('pointerdown',function(e){d=[e.clientX,e.clientY];s.setPointerCapture(e.pointerId)});
s.addEventListener('pointermove',function(e){if(!d)return;var r=s.getBoundingClientRect(),v=s.viewBox.baseVal;
set(v.x-(e.clientX-d[0])/r.width*v.width,v.y-(e.clientY-d[1])/r.height*v.height,v.width,v.height);
d=[e.clientX,e.clientY]});
s.addEventListener('pointerup',function(){d=null});
s.addEventListener('dblclick',function(){set(o[0],o[1],o[2],o[3])})});
""".replace("LEFT", str(_LEFT))
    .replace("WIDTH", str(_WIDTH))
    .replace("TOP", str(_TOP))
    .replace("HIGH", str(_HIGH))
)


def as_html(view: View) -> str:
    """Return the whole page."""
    faults = "".join(_fault(fault) for fault in view.analysis.faults)
    key = "".join(f'<span style="background:{color}"></span>{STATE_MEANINGS[state]}' for state, color in COLORS.items())
    first = {fault.group: number for number, fault in reversed(list(enumerate(view.analysis.faults)))}
    lanes = sorted(view.lanes, key=lambda lane: (first.get(lane.group, len(first)), lane.group))
    drawings = "".join(
        _lane(lane, [fault for fault in view.analysis.faults if fault.group == lane.group]) for lane in lanes
    )
    notes = "".join(
        f"<li>{_text(f'{w.source}: ' if w.source else '')}{_text(w.message)} <code>{_text(w.code)}</code></li>"
        for w in view.warnings
    )
    versions = ", ".join(view.versions) or "unknown"
    title = f"Flight Recorder: {phrases.format_count(len(view.ranks), 'rank')}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title>"
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
        f"<p><b>{_text(answer(view))}</b></p>"
        f"<p>{_text(view.path)} · {phrases.format_count(view.entries, 'call')} · format {_text(versions)}</p>"
        f'{faults}{_slow(view)}<p class="key">{key}</p><p>The wheel zooms (with shift only the numbers, with alt '
        f"only the ranks), dragging moves, a double click goes back.</p>{drawings}"
        f"{f'<h2>Warnings</h2><ul>{notes}</ul>' if notes else ''}<script>{_SCRIPT}</script></body></html>\n"
    )


def _text(text: str) -> str:
    return escape(sanitize_line(text))


def _fault(fault: Fault) -> str:
    kind = "fault follows" if fault.explained_by else "fault" if fault.is_certain else "fault unsure"
    place = f" · {format_ranks(fault.ranks)} · {fault.group} #{fault.seq} {fault.op}" if fault.ranks else ""
    head = f"{fault.rule}{place}"
    call_sites = "\n".join(
        f"{format_ranks(place.ranks)}: {place.call}"
        + "".join(f"\n    {frame.file}:{frame.line} in {frame.name}" for frame in place.stack)
        for place in fault.call_sites
    )
    shown = (
        f"<pre>{chr(10).join(_with_indent(line) for line in call_sites.splitlines())}</pre>"
        if call_sites and not fault.explained_by
        else ""
    )
    reason = "" if fault.is_certain else f"<br>Not certain: {_text(fault.uncertainty)}."
    return f'<div class="{kind}"><b>{_text(head)}</b><br>{_text(fault.text)}{reason}{shown}</div>'


def _with_indent(line: str) -> str:
    """One line with its indent."""
    return " " * (len(line) - len(line.lstrip())) + _text(line)


def _slow(view: View) -> str:
    """The stragglers as a table with bars."""
    slow = view.analysis.stragglers
    if not slow:
        return ""
    most = slow[0].waited_seconds or 1.0
    rows = "".join(_slow_row(each.rank, each.times_last, each.waited_seconds, most) for each in slow[:50])
    head = "<tr><th>rank</th><th>came last</th><th>others waited</th><th></th></tr>"
    return f"<h2>Slow ranks</h2><table>{head}{rows}</table>"


def _slow_row(rank: int, times_last: int, waited: float, most: float) -> str:
    bar = f'<rect width="{max(1, round(220 * waited / most))}" height="12" fill="#f0b429"/>'
    svg = f'<svg style="width:220px;height:12px;border:0" viewBox="0 0 220 12">{bar}</svg>'
    return f"<tr><td>rank {rank}</td><td>{times_last}</td><td>{waited:.3f} s</td><td>{svg}</td></tr>"


def _lane(lane: Lane, faults: list[Fault]) -> str:
    """One group: a row for each kind of row, those of ranks at fault first, as wide as its numbers."""
    blamed = {rank for fault in faults for rank in fault.ranks}
    rows = sorted(lane.rows, key=lambda row: (blamed.isdisjoint(row.ranks), row.ranks))
    across = _WIDTH / max(1, len(lane.seqs))
    height = _TOP + _HIGH * len(rows) + 6
    parts, names = [], []
    for number, row in enumerate(rows):
        y = _TOP + _HIGH * number
        name = format_ranks(row.ranks)
        names.append(_row_name(name, y))
        parts += [_run(lane, run, name, y, across) for run in row.runs]
    parts += _fault_lines(lane, faults, across, height)
    ends = ((_LEFT, "start", lane.seqs[0]), (_LEFT + _WIDTH, "end", lane.seqs[-1]))
    names += [f'<text class="a" x="{x}" y="14" text-anchor="{side}">#{seq}</text>' for x, side, seq in ends]
    title = f"{lane.group}: {phrases.format_count(len(lane.members), 'rank')}, #{lane.seqs[0]} to #{lane.seqs[-1]}"
    shown = min(height, _TALL)
    if height > _TALL:
        title += f", {len(rows)} kinds of rows: the wheel shows them all, dragging moves"
    return (
        f'<h2>{_text(title)}</h2><svg viewBox="0 0 {_LEFT + _WIDTH + 10} {shown}"'
        f' data-height="{height}" data-seqs="{_format_sequences(lane.seqs)}"'
        f' height="{shown}" preserveAspectRatio="none">{"".join(parts)}{"".join(names)}</svg>'
    )


def _row_name(name: str, y: int) -> str:
    tag = f'<text class="r" x="4" y="12" transform="translate(0 {y})">'
    return f"{tag}<title>{escape(name)}</title>{escape(truncate(name, 21))}</text>"


def _fault_lines(lane: Lane, faults: Sequence[Fault], across: float, height: int) -> list[str]:
    """Return a vertical line at the sequence number of each fault."""
    index = {seq: number for number, seq in enumerate(lane.seqs)}
    places = [_LEFT + (index[fault.seq] + 0.5) * across for fault in faults[:20] if fault.seq in index]
    style = 'stroke="#c62828" stroke-width="1" stroke-dasharray="3 2"'
    return [f'<line x1="{x:.2f}" x2="{x:.2f}" y1="{_TOP - 6}" y2="{height}" {style}/>' for x in places]


def _format_sequences(numbers: Sequence[int]) -> str:
    """Return numbers as ranges: `4,7-36`."""
    return ",".join(format_range(low, high) for low, high in to_ranges(numbers))


def _run(lane: Lane, run: Run, name: str, y: int, across: float) -> str:
    """Some numbers of one row in one state."""
    x, wide = _LEFT + run.first * across, (run.last - run.first + 1) * across
    first, last = lane.seqs[run.first], lane.seqs[run.last]
    span = f"#{first}" if first == last else f"#{first} to #{last}"
    op = f" {lane.ops[run.first]}" if run.first == run.last else ""
    return (
        f'<rect x="{x:.2f}" y="{y}" width="{wide:.2f}" height="{_HIGH - 2}" fill="{COLORS[run.state]}">'
        f"<title>{escape(name)} {span}{_text(op)}: {STATE_MEANINGS[run.state]}</title></rect>"
    )
