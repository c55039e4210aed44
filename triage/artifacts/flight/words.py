"""Blocks, links and rings → faults: which rule holds, who is at fault, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triage.artifacts.flight.blocks import Block
from triage.artifacts.flight.diverge import PLAIN, Extra, Shift, only_some, shift, shifted, visited_by
from triage.artifacts.flight.links import Link
from triage.artifacts.flight.model import Fault, Place, Recording, Rule
from triage.artifacts.flight.places import at, name_of, place, say, wait


def block(recording: Recording, stop: Block, idle: frozenset[int], *, explained: bool) -> Fault | None:
    """The fault of one group; None where the dumps do not suffice to say one."""
    if stop.kind in PLAIN:
        return _differing(recording, stop)
    if stop.kind == "absent":
        return _few_wait(recording, stop) if _is_extra(stop, idle, explained) else _absent(recording, stop)
    if stop.kind == "unseen":
        return _unseen(recording, stop)
    if stop.kind == "outside":
        return _outside(recording, stop)
    return _all_came(recording, stop)


def _call(recording: Recording, stop: Block, rank: int | None = None) -> tuple[int, str]:
    """A row of the column (of `rank`, or of the first that waits) and the words for it: `all_reduce #7 of default_pg`."""
    row = stop.cell(rank if rank is not None else min(stop.waiting))
    return row, f"{name_of(recording.ops[int(recording.table.op[row])])} #{stop.seq} of {stop.grid.group.label}"


def _fault(recording: Recording, stop: Block, rule: Rule, ranks: Iterable[int], text: str, **more: object) -> Fault:
    row, _ = _call(recording, stop)
    places = more.pop("places", None) or _places(recording, stop)
    waiting = tuple(sorted(stop.standing - set(ranks)))
    op = name_of(recording.ops[int(recording.table.op[row])])
    return Fault(
        rule, tuple(sorted(ranks)), waiting, stop.grid.group.label, stop.seq, op, text, places=tuple(places), **more
    )  # type: ignore[arg-type]


def _places(recording: Recording, stop: Block, most: int = 4) -> list[Place]:
    """The different calls in this column with the ranks that made them, then where the absent ranks were last."""
    calls: dict[tuple[int, ...], list[int]] = {}
    table = recording.table
    for row, rank in enumerate(stop.grid.ranks):
        cell = int(stop.grid.cell[row, stop.column])
        if cell >= 0:
            calls.setdefault(
                (int(table.op[cell]), int(table.shape[cell]), int(table.dtype[cell]), int(table.stack[cell])), []
            ).append(rank)
    ordered = sorted(calls.values(), key=lambda ranks: (not set(ranks) & stop.odd, len(ranks), ranks[0]))
    found = [place(recording, stop.cell(ranks[0]), ranks) for ranks in ordered[:most]]
    for rank in sorted(stop.absent)[:most]:
        last = _last_row(recording, rank)
        if last is not None:
            seen = place(recording, last, (rank,))
            found.append(Place(seen.ranks, f"last call: {seen.call}", seen.stack))
    return found


def _last_row(recording: Recording, rank: int) -> int | None:
    dump = recording.dumps.get(rank)
    return dump.end - 1 if dump is not None and dump.entries else None


def _last(recording: Recording, ranks: Iterable[int]) -> str:
    """What the first of the ranks did last, as the end of a sentence."""
    rank = min(ranks)
    row = _last_row(recording, rank)
    if row is None:
        return "; its dump holds no call at all" if rank in recording.dumps else ""
    table = recording.table
    name, seq = name_of(recording.ops[int(table.op[row])]), int(table.seq[row])
    state = "done" if table.done[row] else "not done"
    group = recording.groups[int(table.group[row])].label
    return f"; the last call of rank {rank} was {name} #{seq} of {group}{at(recording.stacks[int(table.stack[row])])} ({state})"


def _is_extra(stop: Block, idle: frozenset[int], explained: bool) -> bool:
    """Few wait for many that wait nowhere: the few called what is not on the others' way."""
    return not explained and len(stop.waiting) < len(stop.absent) and idle == stop.absent


def _absent(recording: Recording, stop: Block) -> Fault:
    row, call = _call(recording, stop)
    where = at(recording.stacks[int(recording.table.stack[row])])
    skipped = only_some(recording, stop.grid, stop.absent, stop.waiting, stop.column - 1) if stop.column else None
    if skipped:
        return _conditional(recording, stop, skipped, stop.absent)
    moved = shifted(recording, stop.grid, min(stop.absent), min(stop.waiting), stop.column)
    if moved:
        return _shifted(recording, stop, moved, stop.absent)
    ends = [int(stop.grid.end[stop.grid.row(rank)]) for rank in stop.absent]
    before = int(stop.grid.seqs[stop.column - 1]) if stop.column else -1
    many = bool(stop.column) and max(ends) < before
    rule: Rule = "lagging-rank" if many else "never-joined"
    stopped = f" stopped at #{max(ends)} and" if many and max(ends) >= 0 else ""
    has = "has" if len(stop.absent) == 1 else "have"
    text = f"{say(stop.absent)}{stopped} {has} not entered {call}, in which {wait(stop.waiting)}{where}{_last(recording, stop.absent)}"
    if stop.unseen:
        text += f"; of {say(stop.unseen)} no dump tells"
    return _fault(recording, stop, rule, stop.absent, text)


def _shifted(recording: Recording, stop: Block, moved: tuple[Shift, int], odd: frozenset[int]) -> Fault:
    """The same places as the others, but one call off from some number on."""
    kind, column = moved
    grid, table = stop.grid, recording.table
    who = min(odd) if kind == "extra" else min(set(grid.ranks) - odd)
    row = int(grid.cell[grid.row(who), column])
    call = f"{name_of(recording.ops[int(table.op[row])])} #{int(grid.seqs[column])} of {grid.group.label}{at(recording.stacks[int(table.stack[row])])}"
    did = "made one call more" if kind == "extra" else "skipped one call"
    text = f"{say(odd)} {did}, {call}; from then on its calls met others than meant, until #{stop.seq}"
    rule: Rule = "extra-collective" if kind == "extra" else "divergent-call"
    return _fault(recording, stop, rule, odd, text, since=int(grid.seqs[column]))


def _few_wait(recording: Recording, stop: Block) -> Fault:
    row, call = _call(recording, stop)
    where = at(recording.stacks[int(recording.table.stack[row])])
    extra = only_some(recording, stop.grid, stop.waiting, stop.absent, stop.column)
    if extra:
        return _conditional(recording, stop, extra, stop.waiting)
    moved = shifted(recording, stop.grid, min(stop.waiting), min(stop.absent), stop.column)
    if moved:
        return _shifted(recording, stop, moved, stop.waiting)
    text = f"{say(stop.waiting)} called {call}{where}, which {say(stop.absent)} did not; these had finished all their calls"
    return _fault(recording, stop, "extra-collective", stop.waiting, text + _last(recording, stop.absent))


def _conditional(recording: Recording, stop: Block, extra: Extra, odd: frozenset[int]) -> Fault:
    """A call that only some ranks ever make."""
    grid = stop.grid
    row = int(grid.cell[grid.row(extra.who), extra.column])
    name = name_of(recording.ops[int(recording.table.op[row])])
    where = at(recording.stacks[int(recording.table.stack[row])])
    seq = int(grid.seqs[extra.column])
    if extra.by_odd:
        text = f"only {say(odd)} called {name} #{seq} of {grid.group.label}{where}; no other rank was ever there"
    else:
        text = f"{say(odd)} skipped {name} #{seq} of {grid.group.label}{where}, where all others were"
    if extra.column < stop.column:
        text += f"; from then on its calls met others than meant, until #{stop.seq}"
    else:
        others = sorted(set(grid.ranks) - odd)
        there = int(grid.cell[grid.row(others[0]), stop.column]) if others else -1
        if there >= 0:
            called = name_of(recording.ops[int(recording.table.op[there])])
            text += f"; {say(set(others) & stop.waiting)} called {called}{at(recording.stacks[int(recording.table.stack[there])])}"
    places = _places(recording, stop)
    if extra.column < stop.column:
        places = [place(recording, row, sorted(odd) if extra.by_odd else (extra.who,)), *places]
    return _fault(recording, stop, "rank-conditional", odd, text, since=seq, places=places)


def _differing(recording: Recording, stop: Block) -> Fault:
    """Calls of one number that are not the same call."""
    others = stop.waiting - stop.odd
    if stop.tied:
        return _tied(recording, stop)
    extra = only_some(recording, stop.grid, stop.odd, others, stop.column)
    if extra:
        return _conditional(recording, stop, extra, stop.odd)
    odd, usual = min(stop.odd), min(others)
    table = recording.table
    here, there = stop.cell(odd), stop.cell(usual)
    told = f"{say(stop.odd)} called {_told(recording, here)}, {say(others)} called {_told(recording, there)} as #{stop.seq} of {stop.grid.group.label}"
    if not stop.standing:
        return _fault(
            recording,
            stop,
            PLAIN[stop.kind],
            stop.odd,
            f"{told}; it went through all the same, and its result is garbage",
        )
    moved = shift(stop, odd, usual)
    if moved == "swapped":
        return _fault(
            recording, stop, "divergent-call", stop.odd, f"{told}; the next two calls show that the order is swapped"
        )
    if moved == "extra":
        return _fault(
            recording,
            stop,
            "extra-collective",
            stop.odd,
            f"{told}; from there on its calls are one behind: it made one more",
        )
    if moved == "missing":
        return _fault(
            recording,
            stop,
            "divergent-call",
            stop.odd,
            f"{told}; from there on its calls are one ahead: it skipped one",
        )
    known = table.stack[here] != 0 and table.stack[there] != 0 and table.stack[here] != table.stack[there]
    if known and visited_by(recording, here, others) and not visited_by(recording, there, stop.odd):
        return _fault(
            recording,
            stop,
            "extra-collective",
            stop.odd,
            f"{told}; the others were at that place before and have moved on",
        )
    return _fault(recording, stop, PLAIN[stop.kind], stop.odd, told)


def _tied(recording: Recording, stop: Block) -> Fault:
    """Two halves: only where a place tells one of them apart is anybody blamed."""
    grid = stop.grid
    signature = {"calls-differ": grid.op, "sizes-differ": grid.size}.get(stop.kind, grid.dtype)
    sides: dict[int, set[int]] = {}
    for rank in stop.waiting:
        sides.setdefault(int(signature[grid.row(rank), stop.column]), set()).add(rank)
    halves = [frozenset(side) for side in sides.values()]
    if len(halves) == 2:
        extra = only_some(recording, grid, halves[0], halves[1], stop.column)
        if extra:
            odd = halves[0] if extra.by_odd else halves[1]
            return _conditional(recording, stop, Extra(extra.who, extra.column, True), odd)
    ordered = sorted(halves, key=min)
    calls = ", ".join(f"{say(half)} called {_told(recording, stop.cell(min(half)))}" for half in ordered)
    text = f"{calls} as #{stop.seq} of {grid.group.label}; nothing in the dumps says which of them is right"
    return _fault(recording, stop, PLAIN[stop.kind], stop.waiting, text, sure=False)


def _told(recording: Recording, row: int) -> str:
    """`all_reduce [64] Float at train.py:22`."""
    seen = place(recording, row, ())
    return f"{seen.call}{at(seen.stack)}"


def _unseen(recording: Recording, stop: Block) -> Fault | None:
    """Everybody with a dump waits; somebody has none."""
    if len(stop.unseen) > max(1, len(stop.waiting)):
        return None
    row, call = _call(recording, stop)
    where = at(recording.stacks[int(recording.table.stack[row])])
    has = "no dump of that moment" if stop.unseen & set(recording.dumps) else "no dump is there"
    is_ = "is" if len(stop.unseen) == 1 else "are"
    text = f"{wait(stop.waiting)} in {call}{where}, all that have a dump; {say(stop.unseen)} {is_} missing: {has}"
    return _fault(recording, stop, "never-joined", stop.unseen, text, sure=False)


def _outside(recording: Recording, stop: Block) -> Fault | None:
    """The members of the group are not stated, this is its first call, and some ranks wait nowhere."""
    if len(stop.absent) > len(stop.waiting):
        return None
    row, call = _call(recording, stop)
    where = at(recording.stacks[int(recording.table.stack[row])])
    text = (
        f"{wait(stop.waiting)} in {call}{where}, the group's first; the dumps do not state its members, "
        f"but {say(stop.absent)} {'waits' if len(stop.absent) == 1 else 'wait'} nowhere{_last(recording, stop.absent)}"
    )
    return _fault(recording, stop, "never-joined", stop.absent, text, sure=False)


def _all_came(recording: Recording, stop: Block) -> Fault:
    row, call = _call(recording, stop)
    where = at(recording.stacks[int(recording.table.stack[row])])
    if stop.kind == "not-started":
        rest = say(stop.waiting - stop.odd)
        text = f"{call}{where} has started on {rest} and is only scheduled on {say(stop.odd)}: something before it holds that device"
        return _fault(recording, stop, "lagging-rank", stop.odd, text)
    if stop.kind == "partial":
        text = f"all ranks entered {call}{where} with the same sizes; it finished on some and not on {say(stop.odd)}: the transfer, not the program"
        return _fault(recording, stop, "stuck-in-collective", stop.odd, text)
    known = "" if stop.grid.group.stated or stop.column else "; its members are only known from the entries"
    text = f"{say(stop.waiting)} all wait in {call}{where}, with the same sizes, and nobody is missing: the transfer hangs, not the program{known}"
    return _fault(recording, stop, "stuck-in-collective", stop.odd, text, sure=not known)


def ring(recording: Recording, parts: Sequence[Block], sides: Sequence[Link]) -> Fault:
    """Knots that wait for each other: groups used in another order, a wrong group, or sends that all wait for a
    receive.
    """
    if not parts:
        return _ring_of_links(recording, sides)
    ordered = sorted(parts, key=lambda stop: (len(stop.waiting), stop.grid.group.label))
    odd = ordered[0]
    tied = len(ordered) > 1 and len(ordered[1].waiting) == len(odd.waiting)
    first = ordered[1] if len(ordered) > 1 else odd
    here, there = odd.cell(min(odd.waiting)), first.cell(min(first.waiting))
    table = recording.table
    same_place = (
        table.stack[here] != 0 and recording.stacks[int(table.stack[here])] == recording.stacks[int(table.stack[there])]
    )
    rule: Rule = "p2p-mismatch" if sides else "wrong-group" if same_place else "group-order"
    waits = "; ".join(
        f"{wait(stop.waiting)} in {_call(recording, stop)[1]}{at(recording.stacks[int(table.stack[stop.cell(min(stop.waiting))])])}"
        f" for {say(stop.absent)}"
        for stop in ordered[:6]
    )
    how = "the same line was given another group" if rule == "wrong-group" else "each waits for the other"
    ranks = sorted({rank for stop in ordered for rank in stop.waiting} if tied else odd.waiting)
    places = [each for stop in ordered[:4] for each in _places(recording, stop)[:1]]
    fault = _fault(recording, odd, rule, ranks, f"{waits}: {how}", places=places, sure=not tied)
    everybody = {rank for stop in ordered for rank in stop.waiting}
    return Fault(
        fault.rule, fault.ranks, tuple(sorted(everybody - set(ranks))), fault.group, fault.seq, fault.op, fault.text,
        places=fault.places, sure=fault.sure,
    )  # fmt: skip


def _ring_of_links(recording: Recording, sides: Sequence[Link]) -> Fault:
    everybody = sorted({rank for side in sides for rank in side.waiting})
    told = ", ".join(f"{min(side.waiting)} for {min(side.absent)}" for side in sides[:8])
    kind = "send and nobody receives" if all(side.kind == "no-receive" for side in sides) else "wait for each other"
    text = f"{say(everybody)} {kind}, in a ring: rank {told}"
    return _link_fault(recording, sides[0], "p2p-mismatch", everybody, text)


def link(recording: Recording, side: Link) -> Fault:
    """The fault between two ranks."""
    pair = side.pair
    where = at(recording.stacks[int(recording.table.stack[side.row])])
    if side.kind == "no-receive":
        text = f"rank {pair.source} sends to rank {pair.target}{where}, which has posted no receive for it{_last(recording, side.absent)}"
        return _link_fault(recording, side, "never-joined", side.absent, text)
    if side.kind == "no-send":
        text = f"rank {pair.target} waits to receive from rank {pair.source}{where}, which has sent nothing more{_last(recording, side.absent)}"
        return _link_fault(recording, side, "never-joined", side.absent, text)
    if side.kind == "wrong-target":
        text = f"rank {pair.source} sends to rank {pair.target}{where}, but rank {side.instead} is the one that waits to receive from it"
        return _link_fault(recording, side, "p2p-mismatch", side.odd, text)
    if side.kind == "wrong-source":
        text = f"rank {pair.target} waits to receive from rank {pair.source}{where}, but rank {side.instead} is the one that sends to it"
        return _link_fault(recording, side, "p2p-mismatch", side.odd, text)
    if side.kind == "sizes-differ":
        sent, taken = _told(recording, pair.send), _told(recording, pair.recv)
        return _link_fault(
            recording,
            side,
            "shape-mismatch",
            side.odd,
            f"rank {pair.source}: {sent}; rank {pair.target}: {taken}; the sizes differ",
        )
    text = f"the transfer from rank {pair.source} to rank {pair.target}{where} hangs; both sides are there with the same size"
    return _link_fault(recording, side, "stuck-in-collective", side.odd, text)


def _link_fault(recording: Recording, side: Link, rule: Rule, ranks: Iterable[int], text: str) -> Fault:
    table, row = recording.table, side.row
    rows = [row for row in (side.pair.send, side.pair.recv) if row >= 0]
    return Fault(
        rule, tuple(sorted(ranks)), tuple(sorted(side.waiting - set(ranks))), recording.groups[side.pair.group].label, int(table.p2p[row]),
        name_of(recording.ops[int(table.op[row])]), text, places=tuple(place(recording, each, (int(table.rank[each]),)) for each in rows),
    )  # fmt: skip
