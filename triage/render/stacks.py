"""The stacks of all ranks: text for a terminal, JSON ("triage.stacks/1"), and a merge tree as SVG."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape

from triage.artifacts.stacks.model import Board, Group, Member
from triage.model import Warning
from triage.render import words
from triage.render.json import escaped
from triage.render.layout import Paint, labelled, wrap
from triage.render.safe import clip, safe_line
from triage.stacks.live.model import State, phrase

__all__ = ["SCHEMA", "as_json", "as_svg", "as_text"]

SCHEMA = "triage.stacks/1"
WIDTH, NARROWEST, FRAMES = 100, 40, 12
_ROW, _WIDE, _MOST_ROWS = 18, 1200, 200


def as_json(board: Board, warnings: Sequence[Warning] = ()) -> str:
    """One JSON object, ended by a newline."""
    document = {
        "schema": SCHEMA,
        "groups": [{**_group(group), "members": [_member(member) for member in group.members]} for group in board.groups],
        "helpers": [_member(member) for member in board.helpers],
        "conclusions": [{"rule": found.rule, "ranks": list(found.ranks), "text": found.text} for found in board.conclusions],
        "notes": list(board.notes),
        "warnings": [{"code": w.code, "source": w.source, "message": w.message} for w in warnings],
    }
    return escaped(json.dumps(document, ensure_ascii=False, indent=2)) + "\n"


def _group(group: Group) -> dict[str, object]:
    return {"usual": group.usual, "state": group.state.kind, "text": phrase(group.state), "stack": list(group.key)}


def _member(member: Member) -> dict[str, object]:
    dump, state = member.process, member.state
    known = {"label": member.label, "rank": member.rank, "pid": dump.pid, "host": dump.host, "source": dump.source}
    return {**known, "state": state.kind, "text": phrase(state), "op": state.op, "place": state.place, "moved": member.moved}


def as_text(board: Board, warnings: Sequence[Warning] = (), *, width: int | None = None, color: bool = False) -> str:
    """The answer first, then every group with its stack; no control character in it comes from a file."""
    columns, paint = max(width or WIDTH, NARROWEST), Paint(color)
    count = sum(len(group.members) for group in board.groups)
    blocks = [wrap(f"{words.plural(count, 'stack')} at {words.plural(len(board.groups), 'place')}", columns)]
    found = [safe_line(conclusion.text) for conclusion in board.conclusions[:8]]
    if found:
        blocks.append(labelled("Found", found, columns, paint, "bold", "red"))
    blocks += [_shown(group, columns, paint) for group in board.groups]
    if board.helpers:
        told = [f"{member.label}: {phrase(member.state)}" for member in board.helpers]
        blocks.append(labelled("No ranks", [safe_line(clip(line, columns)) for line in told[:8]], columns, paint, "bold"))
    notes = [*board.notes, *(f"{w.source + ': ' if w.source else ''}{w.message}" for w in warnings)]
    if notes:
        blocks.append(
            labelled("Warnings", [f"- {safe_line(clip(note, 2 * columns))}" for note in notes[:8]], columns, paint, "bold", "yellow")
        )
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks) + "\n"


def _shown(group: Group, columns: int, paint: Paint) -> list[str]:
    label = "Most" if group.usual else "Elsewhere"
    lines = labelled(
        label, [safe_line(f"{_who(group)}: {phrase(_shared(group))}")], columns, paint, "bold", *(() if group.usual else ("yellow",))
    )
    stack = [clip(safe_line(frame), columns - 15) for frame in group.key[:FRAMES]]
    more = [f"… {len(group.key) - FRAMES} more frames"] if len(group.key) > FRAMES else []
    return [*lines, *(f"             | {frame}" for frame in [*stack, *more])]


def _shared(group: Group) -> State:
    """The state of all in the group: descriptors and times are each one's own."""
    return group.state if len(group.members) == 1 else replace(group.state, detail="")


def _who(group: Group) -> str:
    ranks = [member.rank for member in group.members if member.rank is not None]
    others = [member.label for member in group.members if member.rank is None]
    return ", ".join([*([words.ranks(ranks)] if ranks else []), *others[:6], *([f"{len(others) - 6} more"] if len(others) > 6 else [])])


@dataclass
class _Node:
    """A frame and all who are in it, one under another from the outermost frame on."""

    name: str
    members: list[Member] = field(default_factory=list)
    usual: bool = False
    children: dict[str, _Node] = field(default_factory=dict)


def as_svg(board: Board) -> str:
    """All stacks merged from their outermost frame on, as wide as the number of ranks in them; what only outliers are in is orange."""
    root = _Node("all")
    for group in board.groups:
        node = root
        for name in ("all", *reversed(group.key[:_MOST_ROWS])):
            node = root if name == "all" and node is root else node.children.setdefault(name, _Node(name))
            node.members.extend(group.members)
            node.usual = node.usual or group.usual
    depth = _depth(root)
    parts: list[str] = []
    _draw(root, 0.0, float(_WIDE), 0, parts)
    high = depth * _ROW + 2
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {high}" width="{_WIDE}" height="{high}" font-family="monospace" font-size="11">'
    return head + "<title>Stacks of all ranks</title>\n" + "\n".join(parts) + "\n</svg>\n"


def _depth(root: _Node) -> int:
    deepest, level = 0, [root]
    while level:
        deepest, level = deepest + 1, [child for node in level for child in node.children.values()]
    return deepest


def _draw(root: _Node, left: float, width: float, row: int, parts: list[str]) -> None:
    pending = [(root, left, width, row)]
    while pending:
        node, left, width, row = pending.pop()
        count = max(1, len(node.members))
        parts.append(_box(node, left, width, row))
        for child in sorted(node.children.values(), key=lambda each: (-len(each.members), each.name)):
            share = width * len(child.members) / count
            pending.append((child, left, share, row + 1))
            left += share


def _box(node: _Node, left: float, width: float, row: int) -> str:
    who = _who(Group(tuple(node.members), (), node.members[0].state)) if node.members else "nobody"
    told = f"{node.name} [{who}]"
    colour = "#dbe7f3" if node.usual else "#f9c784"
    fits = int(width / 6.8) - 1
    text = safe_line(told if len(told) <= fits else told[: max(0, fits - 1)] + "…") if fits > 3 else ""
    box = f'<rect x="{left:.1f}" y="{row * _ROW + 1}" width="{max(width - 1, 0.5):.1f}" height="{_ROW - 1}" fill="{colour}"/>'
    label = f'<text x="{left + 3:.1f}" y="{row * _ROW + 13}">{escape(text)}</text>' if text else ""
    return f"<g><title>{escape(safe_line(told))}</title>{box}{label}</g>"
