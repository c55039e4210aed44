"""Flight Recorder dumps as text and as JSON ("triage.flight/1")."""

from __future__ import annotations

from collections.abc import Sequence

from triage.artifacts.flight.model import CallSite, Fault, Rule, innermost_user_frame
from triage.artifacts.flight.view import Lane, Row, State, View
from triage.base.rank_ranges import format_ranks
from triage.render import phrases
from triage.render.json import dump_json
from triage.render.sanitize import clip, sanitize_line
from triage.render.terminal import Paint, join_sections, labelled, wrap

SCHEMA = "triage.flight/1"
WIDTH = 100
NARROWEST = 60
MARKS: dict[State, str] = {
    "lost": " ",
    "done": "=",
    "open": "W",
    "missing": ".",
    "differs": "X",
    "unknown": "?",
    "queued": "q",
}
MEANING = (
    "= done, W waits here, q queued behind an open call, X another call, . not entered, ? the dump ends early, "
    "blank: dropped from the ring"
)
MOST_FAULTS = 12
MOST_FOLLOWING = 3
MOST_ROWS = 24
MOST_LANES = 12
_FRAMES = 5
_VERDICTS: dict[Rule, tuple[str, str]] = {
    "never-joined": ("never joined", "never joined"),
    "lagging-rank": ("lags behind at", "lag behind at"),
    "extra-collective": ("made an extra call,", "made an extra call,"),
    "rank-conditional": ("takes another way at", "take another way at"),
    "divergent-call": ("called something else at", "called something else at"),
    "shape-mismatch": ("used another size in", "used different sizes in"),
    "dtype-mismatch": ("used another type in", "used different types in"),
    "wrong-group": ("used another group for", "used another group for"),
    "group-order": ("used the groups in another order at", "used the groups in another order at"),
    "stuck-in-collective": ("is stuck in", "are stuck in"),
    "p2p-mismatch": ("has no partner for", "have no partners for"),
}
"""What the ranks of a root did, of one rank and of several."""
_DIFFERENT_CALLS: tuple[Rule, ...] = ("divergent-call", "shape-mismatch", "dtype-mismatch")


def as_json(view: View) -> str:
    """Return one JSON object, ended by a newline."""
    document = {
        "schema": SCHEMA,
        "path": view.path,
        "ranks": list(view.ranks),
        "no_dump": list(view.analysis.no_dump),
        "entries": view.entries,
        "versions": list(view.versions),
        "faults": [_fault(fault) for fault in view.analysis.faults],
        "stragglers": [
            {"rank": slow.rank, "last": slow.times_last, "waited_seconds": slow.waited_seconds}
            for slow in view.analysis.stragglers
        ],
        "groups": [_lane(lane) for lane in view.lanes],
        "warnings": [{"code": w.code, "source": w.source, "message": w.message} for w in view.warnings],
    }
    return dump_json(document, indent=1)


def _fault(fault: Fault) -> dict[str, object]:
    return {
        "rule": fault.rule,
        "ranks": list(fault.ranks),
        "waiting": list(fault.waiting),
        "group": fault.group,
        "seq": fault.seq,
        "since": fault.since,
        "op": fault.op,
        "text": fault.text,
        "sure": fault.is_certain,
        "uncertainty": fault.uncertainty,
        "explained_by": list(fault.explained_by),
        "places": [
            {
                "ranks": list(place.ranks),
                "call": place.call,
                "stack": [{"file": f.file, "line": f.line, "name": f.name} for f in place.stack],
            }
            for place in fault.call_sites
        ],
    }


def _lane(lane: Lane) -> dict[str, object]:
    """Runs are `[first number, last number, state]`."""
    rows = [
        {"ranks": list(row.ranks), "runs": [[lane.seqs[run.first], lane.seqs[run.last], run.state] for run in row.runs]}
        for row in lane.rows
    ]
    return {"group": lane.group, "members": list(lane.members), "rows": rows}


def as_text(view: View, *, width: int | None = None, color: bool = False) -> str:
    """Return the faults for a terminal of `width` columns, without control characters of the files."""
    columns, paint = max(width or WIDTH, NARROWEST), Paint(color)
    blocks = [wrap(sanitize_line(answer(view)), columns) + wrap(sanitize_line(_head(view)), columns)]
    faults = view.analysis.faults
    roots = sum(not fault.explained_by for fault in faults)
    most = min(MOST_FAULTS, roots + MOST_FOLLOWING)
    blocks += [_format_fault(number, fault, columns, paint) for number, fault in enumerate(faults[:most])]
    if len(faults) > most:
        blocks.append([f"… and {phrases.format_count(len(faults) - most, 'more fault')}; --format json shows all"])
    blocks += _slow(view, columns, paint)
    ordered = _ordered(view)
    shown = [lane for lane in ordered if not faults or not all(map(_is_uneventful, lane.rows))]
    blocks += [_table(lane, view, columns, paint) for lane in shown[:MOST_LANES]]
    if len(shown) > MOST_LANES:
        more = phrases.format_count(len(shown) - MOST_LANES, "more group")
        blocks.append([f"… and {more}; --group NAME shows one, --format html all"])
    if len(shown) < len(ordered):
        blocks.append([f"{phrases.format_count(len(ordered) - len(shown), 'group')} without an open call"])
    if shown:
        blocks.append(wrap(MEANING, columns))
    notes = [f"- {w.source + ': ' if w.source else ''}{w.message} ({w.code})" for w in view.warnings]
    if notes:
        blocks.append(
            labelled(
                "Warnings",
                [clip(sanitize_line(note), columns * 3) for note in notes[:8]],
                columns,
                paint,
                "bold",
                "yellow",
            )
        )
    return join_sections(blocks)


def answer(view: View) -> str:
    """Return one sentence: which ranks are at fault in which call, and who waits for them."""
    roots = [fault for fault in view.analysis.faults if not fault.explained_by]
    if not roots:
        return _answer_without_root(view)
    first, others = roots[0], len(roots) - 1
    if not others and (sides := _list_sides(first)):
        return f"{', '.join(sides)} as #{first.seq} of {first.group}. {_capitalise(first.uncertainty)}."
    ranks = {rank for fault in roots for rank in fault.ranks} if _is_same(roots) else set(first.ranks)
    subject = _capitalise(format_ranks(ranks))
    waiting = {rank for fault in view.analysis.faults for rank in fault.waiting} - ranks
    place = f" {first.op} #{first.seq} of {first.group}{_format_more_groups(roots)}"
    waits = f", and {phrases.format_count(len(waiting), 'rank')} {'waits' if len(waiting) == 1 else 'wait'}"
    doubt = "" if first.is_certain else "Probably: "
    more = f" {phrases.format_count(others, 'more root')} below." if others and not _is_same(roots) else ""
    return f"{doubt}{subject} {_VERDICTS[first.rule][len(ranks) > 1]}{place}{waits if waiting else ''}.{more}"


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def _list_sides(fault: Fault) -> list[str]:
    """Return who called what, if each rank made one of a few calls and either may be wrong."""
    sides = fault.call_sites
    ranks = {rank for side in sides for rank in side.ranks}
    if fault.is_certain or fault.rule not in _DIFFERENT_CALLS or len(sides) < 2 or ranks != set(fault.ranks):
        return []
    first, *others = (f"{format_ranks(side.ranks)} called {side.call}" for side in sides)
    return [_capitalise(first), *others]


def _answer_without_root(view: View) -> str:
    """Return one sentence where no rank is at fault: nobody waits, or the dumps do not show for whom."""
    waiting = {
        lane.group: ranks
        for lane in view.lanes
        if (ranks := {rank for row in lane.rows if any(run.state == "open" for run in row.runs) for rank in row.ranks})
    }
    if not waiting:
        return "No rank waits in a collective, and all calls agree. The dumps do not show what ended the job."
    ranks = set().union(*waiting.values())
    others = phrases.format_count(len(waiting) - 1, "other group")
    places = next(iter(waiting)) + (f" and {others}" if len(waiting) > 1 else "")
    verb = "waits" if len(ranks) == 1 else "wait"
    return f"{_capitalise(format_ranks(ranks))} {verb} in calls of {places}. The dumps do not show for whom."


def _format_more_groups(roots: Sequence[Fault]) -> str:
    """Return how many other groups the first sentence speaks for, where its ranks are those of all roots."""
    others = {fault.group for fault in roots} - {roots[0].group} if _is_same(roots) else ()
    return f" and in {phrases.format_count(len(others), 'other group')}" if others else ""


def _is_same(roots: Sequence[Fault]) -> bool:
    return len({fault.rule for fault in roots}) == 1


def _head(view: View) -> str:
    calls = f"{phrases.format_count(view.entries, 'call')} in {phrases.format_count(len(view.lanes), 'group')}"
    return f"{phrases.format_count(len(view.ranks), 'dump')}, {format_ranks(view.ranks)}, {calls}"


def _format_fault(number: int, fault: Fault, columns: int, paint: Paint) -> list[str]:
    root = not fault.explained_by
    label = "FAULT" if root else "Follows"
    head = (
        f"{fault.rule} · {format_ranks(fault.ranks)} · {fault.group} #{fault.seq} {fault.op}"
        if fault.ranks
        else fault.rule
    )
    lines = [
        sanitize_line(head),
        sanitize_line(clip(fault.text, 12 * columns)),
        *([] if fault.is_certain else [sanitize_line(f"Not certain: {fault.uncertainty}.")]),
    ]
    if not root:
        return labelled(label, lines[1:2], columns, paint, "dim")
    out = labelled(label, lines, columns, paint, "bold", "red")
    if len(fault.call_sites) > 1 or any(place.stack for place in fault.call_sites):
        out.append("")
        for place in fault.call_sites:
            out += _format_call_site(place, columns)
    return out


def _format_call_site(place: CallSite, columns: int) -> list[str]:
    """Return the ranks, their call, and the frames from the user's innermost one on."""
    indent = " " * 13
    lines = [
        indent
        + clip(sanitize_line(f"{format_ranks(place.ranks)}: {place.call}" if place.ranks else place.call), columns - 13)
    ]
    user_frame = innermost_user_frame(place.stack)
    start = place.stack.index(user_frame) if user_frame is not None else 0
    frames = (f"{frame.file}:{frame.line} in {frame.name}" for frame in place.stack[start : start + _FRAMES])
    return lines + [indent + "    " + clip(sanitize_line(frame), columns - 17) for frame in frames]


def _slow(view: View, columns: int, paint: Paint) -> list[list[str]]:
    if not view.analysis.stragglers:
        return []
    most = view.analysis.stragglers[0].waited_seconds or 1.0
    lines = [
        f"rank {slow.rank}: others waited {slow.waited_seconds:.3f} s for it, "
        f"it came last {phrases.format_count(slow.times_last, 'time')}  "
        + "#"
        * max(1, round(20 * slow.waited_seconds / most))
        for slow in view.analysis.stragglers[:10]
    ]
    return [labelled("Slow", lines, columns, paint, "bold", "yellow")]


def _ordered(view: View) -> list[Lane]:
    """Return groups with a fault first, in the order of the faults."""
    first = {fault.group: number for number, fault in reversed(list(enumerate(view.analysis.faults)))}
    return sorted(view.lanes, key=lambda lane: (first.get(lane.group, len(first)), lane.group))


def _table(lane: Lane, view: View, columns: int, paint: Paint) -> list[str]:
    """Return a window of the group: the sequence numbers around its first fault, or the last ones."""
    wide = columns - 26
    fault = next((fault for fault in view.analysis.faults if fault.group == lane.group), None)
    at = next((index for index, seq in enumerate(lane.seqs) if fault and seq >= fault.seq), len(lane.seqs) - 1)
    end = min(len(lane.seqs), max(at + wide // 4, wide))
    start = max(0, end - wide)
    last, op = end - 1, lane.ops[at]
    head = f"{lane.group}: {phrases.format_count(len(lane.members), 'rank')}, #{lane.seqs[start]} to #{lane.seqs[last]}"
    lines = [paint(sanitize_line(head), "bold")]
    lines.append(
        " " * 26 + " " * max(0, at - start) + "v" + sanitize_line(f" #{lane.seqs[at]} {op}")
    ) if fault else None
    blamed = {rank for fault in view.analysis.faults if fault.group == lane.group for rank in fault.ranks}
    rows = sorted(lane.rows, key=lambda row: (blamed.isdisjoint(row.ranks), _is_uneventful(row), row.ranks))
    for row in rows[:MOST_ROWS]:
        lines.append(f"{_name_row(row):<26}" + _line(row, start, end))
    if len(rows) > MOST_ROWS:
        lines.append(f"… and {phrases.format_count(len(rows) - MOST_ROWS, 'more row')}")
    return lines


def _name_row(row: Row) -> str:
    """Return the ranks of a row in at most 24 characters; of those that do not fit, their number first."""
    name = format_ranks(row.ranks)
    return name if len(name) <= 24 else clip(f"{len(row.ranks):,} {name}", 24)


def _is_uneventful(row: Row) -> bool:
    return all(run.state in ("done", "lost") for run in row.runs)


def _line(row: Row, start: int, end: int) -> str:
    return "".join(
        MARKS[run.state] * (min(run.last, end - 1) - max(run.first, start) + 1)
        for run in row.runs
        if run.last >= start and run.first < end
    )
