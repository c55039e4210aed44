"""The stacks of all ranks merged from their outermost frame on, as SVG: blue where most ranks are, orange elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from html import escape

from triage.artifacts.stacks.comparison import StackComparison
from triage.artifacts.stacks.members import Group
from triage.base.rank_ranges import format_ranks
from triage.render.sanitize import sanitize_line
from triage.render.svg import svg_start
from triage.stacks.live.model import State, format_state

_ROW, _WIDE, _MOST_ROWS, _EDGE = 20, 1200, 200, 12
_LETTER = 6.7
_LEAST = 5
"""A group is drawn as if at least a fifth of all were in it, for those few are who matters."""
_USUAL, _OTHER = ("#dbe7f3", "#b9d0e8"), ("#fbdcae", "#f9c784")
"""Of a frame, and of the box that says what those ranks are doing."""


@dataclass
class _Node:
    """A frame and the groups in it; a `leaf` is the state of a group at the inner end of its stack."""

    name: str
    groups: list[Group] = field(default_factory=list)
    children: dict[str, _Node] = field(default_factory=dict)
    weight: float = 0.0
    leaf: bool = False


def as_svg(board: StackComparison) -> str:
    """Return the first conclusion, then the tree; pointing at a box shows its frame and ranks."""
    root = _tree(board)
    inferences = [sanitize_line(conclusion.text) for conclusion in board.inferences[:1]] or ["Stacks of all ranks"]
    head = [*_lines(inferences[0]), *_legend(board)]
    top = _EDGE + len(head) * _ROW
    parts = [text for row, line in enumerate(head) for text in _headline(line, row)]
    parts += _boxes(root, top)
    high, wide = top + _depth(root) * _ROW + _EDGE, _WIDE + 2 * _EDGE
    start = svg_start(wide, high, font_family="monospace", font_size=11)
    background = f'<rect width="{wide}" height="{high}" fill="#ffffff"/>'
    return "\n".join([f"{start}<title>Stacks of all ranks</title>{background}", *parts, "</svg>"]) + "\n"


def format_members(group: Group) -> str:
    """Return `ranks 0, 2-3`, and processes without a rank by their label."""
    ranks = [member.rank for member in group.members if member.rank is not None]
    others = [member.label for member in group.members if member.rank is None]
    return ", ".join(
        [
            *([format_ranks(ranks)] if ranks else []),
            *others[:6],
            *([f"{len(others) - 6} more"] if len(others) > 6 else []),
        ]
    )


def shared_state(group: Group) -> State:
    """Return the state that the whole group shares, without the details of one member."""
    return group.state if len(group.members) == 1 else replace(group.state, remark="")


def _tree(board: StackComparison) -> _Node:
    total = sum(len(group.members) for group in board.groups)
    root = _Node("all")
    for group in board.groups:
        weight = max(len(group.members), total / _LEAST)
        node = _add_group(root, group, weight)
        for name in reversed(group.key[:_MOST_ROWS]):
            node = _add_group(node.children.setdefault(name, _Node(name)), group, weight)
        state = format_state(shared_state(group))
        _add_group(node.children.setdefault(f"\0{state}", _Node(state, leaf=True)), group, weight)
    return root


def _add_group(node: _Node, group: Group, weight: float) -> _Node:
    node.groups.append(group)
    node.weight += weight
    return node


def _depth(root: _Node) -> int:
    deepest, level = 0, [root]
    while level:
        deepest, level = deepest + 1, [child for node in level for child in node.children.values()]
    return deepest


def _lines(text: str) -> list[tuple[str, str]]:
    """Return the conclusion in at most three lines."""
    out = [""]
    for part in text.split(" "):
        if len(out[-1]) + len(part) > _WIDE / _LETTER / 1.2:
            out.append("")
        out[-1] = f"{out[-1]} {part}".strip()
    return [("bold", line) for line in (out if len(out) <= 3 else [*out[:2], out[2] + " …"])]


def _legend(board: StackComparison) -> list[tuple[str, str]]:
    usual = [group for group in board.groups if group.is_usual]
    return [("legend", format_members(usual[0]))] if usual and len(board.groups) > 1 else []


def _headline(line: tuple[str, str], row: int) -> list[str]:
    kind, text = line
    base = _EDGE + row * _ROW + 13
    if kind == "bold":
        return [f'<text x="{_EDGE}" y="{base}" font-size="13" font-weight="bold">{escape(text)}</text>']
    first = f"where most are ({sanitize_line(text)})"
    middle = _EDGE + 14 + (len(first) + 3) * _LETTER
    return [
        f'<rect x="{x:.1f}" y="{base - 9}" width="10" height="10" fill="{colour}"/>'
        f'<text x="{x + 14:.1f}" y="{base}">{escape(label)}</text>'
        for x, colour, label in (((_EDGE, _USUAL[1], first), (middle, _OTHER[1], "where only others are")))
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
    ranks = format_members(Group(members, (), State("unknown", ""))) if members else "nobody"
    title = f"{ranks}: {node.name}" if node.leaf else f"{node.name} [{ranks}]"
    is_usual = not node.groups or any(group.is_usual for group in node.groups)
    colour = (_USUAL if is_usual else _OTHER)[node.leaf]
    fits = int(width / _LETTER) - 1
    text = sanitize_line(title if len(title) <= fits else title[: max(0, fits - 1)] + "…") if fits > 3 else ""
    weight = ' font-weight="bold"' if node.leaf else ""
    box = f'<rect x="{left:.1f}" y="{y}" width="{max(width - 1, 0.5):.1f}" height="{_ROW - 1}" fill="{colour}"/>'
    label = f'<text x="{left + 3:.1f}" y="{y + 13}"{weight}>{escape(text)}</text>' if text else ""
    return f"<g><title>{escape(sanitize_line(title))}</title>{box}{label}</g>"
