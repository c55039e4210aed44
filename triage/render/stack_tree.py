"""The stacks of all ranks merged from their outermost frame on, as one SVG: the place where most are is blue, what only
others are in is orange.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from html import escape

from triage.artifacts.stacks.model import Board, Group
from triage.render import words
from triage.render.safe import safe_line
from triage.stacks.live.model import State, phrase

_ROW, _WIDE, _MOST_ROWS, _EDGE = 20, 1200, 200, 12
_LETTER = 6.7
_LEAST = 5
"""A group is drawn as if at least a fifth of all were in it, for those few are who matters."""
_USUAL, _OTHER = ("#dbe7f3", "#b9d0e8"), ("#fbdcae", "#f9c784")
"""Of a frame, and of the box that says what those ranks are doing."""


@dataclass
class _Node:
    """A frame and the groups in it; `leaf` says what a group does at the inner end of its stack."""

    name: str
    groups: list[Group] = field(default_factory=list)
    children: dict[str, _Node] = field(default_factory=dict)
    weight: float = 0.0
    leaf: bool = False


def as_svg(board: Board) -> str:
    """What follows from the stacks, then the tree; every box tells its frame and ranks when it is pointed at."""
    root = _tree(board)
    found = [safe_line(conclusion.text) for conclusion in board.conclusions[:1]] or ["Stacks of all ranks"]
    head = [*_lines(found[0]), *_legend(board)]
    top = _EDGE + len(head) * _ROW
    parts = [text for row, line in enumerate(head) for text in _headline(line, row)]
    parts += _boxes(root, top)
    high, wide = top + _depth(root) * _ROW + _EDGE, _WIDE + 2 * _EDGE
    start = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" font-family="monospace" font-size="11">'
    ground = f'<rect width="{wide}" height="{high}" fill="#ffffff"/>'
    return "\n".join([f"{start}<title>Stacks of all ranks</title>{ground}", *parts, "</svg>"]) + "\n"


def who(group: Group) -> str:
    """`ranks 0, 2-3`, and processes without a rank by their pid."""
    ranks = [member.rank for member in group.members if member.rank is not None]
    others = [member.label for member in group.members if member.rank is None]
    return ", ".join(
        [
            *([words.ranks(ranks)] if ranks else []),
            *others[:6],
            *([f"{len(others) - 6} more"] if len(others) > 6 else []),
        ]
    )


def shared(group: Group) -> State:
    """The state of all in the group: descriptors and times are each one's own."""
    return group.state if len(group.members) == 1 else replace(group.state, detail="")


def _tree(board: Board) -> _Node:
    total = sum(len(group.members) for group in board.groups)
    root = _Node("all")
    for group in board.groups:
        weight = max(len(group.members), total / _LEAST)
        node = _entered(root, group, weight)
        for name in reversed(group.key[:_MOST_ROWS]):
            node = _entered(node.children.setdefault(name, _Node(name)), group, weight)
        says = phrase(shared(group))
        leaf = node.children.setdefault(f"\0{says}", _Node(says, leaf=True))
        _entered(leaf, group, weight)
    return root


def _entered(node: _Node, group: Group, weight: float) -> _Node:
    node.groups.append(group)
    node.weight += weight
    return node


def _depth(root: _Node) -> int:
    deepest, level = 0, [root]
    while level:
        deepest, level = deepest + 1, [child for node in level for child in node.children.values()]
    return deepest


def _lines(text: str) -> list[tuple[str, str]]:
    """The conclusion in at most three lines."""
    out = [""]
    for word in text.split(" "):
        if len(out[-1]) + len(word) > _WIDE / _LETTER / 1.2:
            out.append("")
        out[-1] = f"{out[-1]} {word}".strip()
    return [("bold", line) for line in (out if len(out) <= 3 else [*out[:2], out[2] + " …"])]


def _legend(board: Board) -> list[tuple[str, str]]:
    usual = [group for group in board.groups if group.usual]
    return [("legend", who(usual[0]))] if usual and len(board.groups) > 1 else []


def _headline(line: tuple[str, str], row: int) -> list[str]:
    kind, text = line
    base = _EDGE + row * _ROW + 13
    if kind == "bold":
        return [f'<text x="{_EDGE}" y="{base}" font-size="13" font-weight="bold">{escape(text)}</text>']
    first = f"where most are ({safe_line(text)})"
    middle = _EDGE + 14 + (len(first) + 3) * _LETTER
    marks = ((_EDGE, _USUAL[1], first), (middle, _OTHER[1], "where only others are"))
    return [
        f'<rect x="{x:.1f}" y="{base - 9}" width="10" height="10" fill="{colour}"/><text x="{x + 14:.1f}" y="{base}">{escape(told)}</text>'
        for x, colour, told in marks
    ]


def _boxes(root: _Node, top: int) -> list[str]:
    parts = []
    pending = [(root, float(_EDGE), float(_WIDE), 0)]
    while pending:
        node, left, width, row = pending.pop()
        parts.append(_box(node, left, width, top + row * _ROW))
        for child in sorted(node.children.values(), key=lambda each: (-each.weight, each.name)):
            share = width * child.weight / node.weight
            pending.append((child, left, share, row + 1))
            left += share
    return parts


def _box(node: _Node, left: float, width: float, y: int) -> str:
    members = tuple(member for group in node.groups for member in group.members)
    ranks = who(Group(members, (), State("unknown", ""))) if members else "nobody"
    told = f"{ranks}: {node.name}" if node.leaf else f"{node.name} [{ranks}]"
    usual = not node.groups or any(group.usual for group in node.groups)
    colour = (_USUAL if usual else _OTHER)[node.leaf]
    fits = int(width / _LETTER) - 1
    text = safe_line(told if len(told) <= fits else told[: max(0, fits - 1)] + "…") if fits > 3 else ""
    weight = ' font-weight="bold"' if node.leaf else ""
    box = f'<rect x="{left:.1f}" y="{y}" width="{max(width - 1, 0.5):.1f}" height="{_ROW - 1}" fill="{colour}"/>'
    label = f'<text x="{left + 3:.1f}" y="{y + 13}"{weight}>{escape(text)}</text>' if text else ""
    return f"<g><title>{escape(safe_line(told))}</title>{box}{label}</g>"
