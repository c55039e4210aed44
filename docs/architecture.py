"""Draw the rooms of triage and who imports whom, from the imports themselves: docs/img/architecture.svg.

`make docs` runs it through docs/generate.py; tests/test_docs.py fails when the picture is out of date.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "triage"
PICTURE = Path(__file__).resolve().parent / "img" / "architecture.svg"
GROUND = ("base", "model")  # every room may import them, so their arrows are not drawn
BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y, MARGIN = 168, 58, 22, 46, 24
Graph = Mapping[str, frozenset[str]]


def modules() -> Iterator[tuple[str, Path]]:
    """Yield each module with the name of its room; modules beside the rooms are rooms of their own."""
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room not in ("__init__", "__main__"):
            yield room, path


def rooms() -> list[str]:
    """Return the names of the rooms in alphabetical order."""
    return sorted({room for room, _ in modules()})


def imports() -> Graph:
    """Return which rooms each room imports, itself left out."""
    names = set(rooms())
    graph: dict[str, set[str]] = {name: set() for name in names}
    for room, path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            graph[room].update(target for target in _targets(node) if target in names)
    return {room: frozenset(targets - {room}) for room, targets in graph.items()}


def _targets(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        dotted = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module == "triage":
        dotted = [f"triage.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        dotted = [node.module or ""]
    else:
        return
    yield from (name.split(".")[1] for name in dotted if name.startswith("triage."))


def floors(graph: Graph) -> list[list[str]]:
    """Return the rooms by floor, lowest first; each imports only lower ones. Raises ValueError for a circle."""
    left, placed, result = dict(graph), set[str](), list[list[str]]()
    while left:
        floor = sorted(room for room, targets in left.items() if targets <= placed)
        if not floor:
            raise ValueError(f"rooms import each other in a circle: {', '.join(sorted(left))}")
        result.append(floor)
        placed.update(floor)
        left = {room: targets for room, targets in left.items() if room not in placed}
    return result


def direct(graph: Graph) -> list[tuple[str, str]]:
    """Return the imports that no longer way implies, without those of the ground floor."""
    return [
        (room, target)
        for room, targets in sorted(graph.items())
        for target in sorted(targets)
        if target not in GROUND and not any(target in _reachable(graph, other) for other in targets - {target})
    ]


def _reachable(graph: Graph, room: str) -> set[str]:
    reached: set[str] = set()
    pending = [room]
    while pending:
        for target in graph[pending.pop()] - reached:
            reached.add(target)
            pending.append(target)
    return reached


def summary(room: str) -> str:
    """Return the first sentence of a room's docstring."""
    path = PACKAGE / room / "__init__.py"
    text = ast.get_docstring(ast.parse((path if path.exists() else PACKAGE / f"{room}.py").read_text("utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split()).partition(". ")[0].rstrip(".")


def draw() -> str:
    """Return the picture as SVG: a box for each room, what it imports below it."""
    graph = imports()
    levels = floors(graph)
    width = max(len(floor) for floor in levels) * (BOX_WIDTH + GAP_X) - GAP_X + 2 * MARGIN
    height = len(levels) * (BOX_HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN
    places: dict[str, tuple[float, float]] = {}
    for number, floor in enumerate(levels):
        used = len(floor) * (BOX_WIDTH + GAP_X) - GAP_X
        y = height - MARGIN - BOX_HEIGHT - number * (BOX_HEIGHT + GAP_Y)
        for index, room in enumerate(floor):
            places[room] = ((width - used) / 2 + index * (BOX_WIDTH + GAP_X), y)
    arrows = [_arrow(places[room], places[target]) for room, target in direct(graph)]
    boxes = [_box(room, place) for room, place in sorted(places.items())]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0 0L8 4L0 8z" fill="#667"/></marker></defs>',
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
            *arrows,
            *boxes,
            "</svg>\n",
        ]
    )


def _arrow(above: tuple[float, float], below: tuple[float, float]) -> str:
    x1, y1 = above[0] + BOX_WIDTH / 2, above[1] + BOX_HEIGHT
    x2, y2 = below[0] + BOX_WIDTH / 2, below[1]
    middle = (y1 + y2) / 2
    curve = f"M{x1:.0f} {y1:.0f}C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} {x2:.0f} {y2:.0f}"
    return f'<path d="{curve}" fill="none" stroke="#889" marker-end="url(#head)"/>'


def _box(room: str, place: tuple[float, float]) -> str:
    x, y = place
    ground = room in GROUND
    lines = textwrap.wrap(summary(room), 30, max_lines=2, placeholder=" …")
    texts = [
        f'<text x="{x + 8:.0f}" y="{y + 34 + 13 * number:.0f}" font-size="10" fill="#445">{escape(line)}</text>'
        for number, line in enumerate(lines)
    ]
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="4" '
        f'fill="{"#e8e2d4" if ground else "#e6eef7"}" stroke="#557"/>'
        f'<text x="{x + 8:.0f}" y="{y + 18:.0f}" font-size="13" font-weight="bold">{escape(room)}</text>'
        + "".join(texts)
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
