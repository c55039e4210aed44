"""Draw the packages of triage and their imports, from the imports themselves: docs/img/architecture.svg.

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
FOUNDATION = ("base", "model")  # every package may import them, so their arrows are not drawn
BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y, MARGIN = 168, 72, 22, 40, 24
Graph = Mapping[str, frozenset[str]]


def modules() -> Iterator[tuple[str, Path]]:
    """Yield each module with the name of its package; a module beside the packages counts as a package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        package = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if package not in ("__init__", "__main__"):
            yield package, path


def packages() -> list[str]:
    """Return the names of the packages in alphabetical order."""
    return sorted({package for package, _ in modules()})


def imports() -> Graph:
    """Return which other packages each package imports."""
    names = set(packages())
    graph: dict[str, set[str]] = {name: set() for name in names}
    for package, path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            graph[package].update(target for target in _targets(node) if target in names)
    return {package: frozenset(targets - {package}) for package, targets in graph.items()}


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


def layers(graph: Graph) -> list[list[str]]:
    """Return the packages by layer, lowest first; each imports only lower ones. Raises ValueError for a circle."""
    left, placed, result = dict(graph), set[str](), list[list[str]]()
    while left:
        layer = sorted(package for package, targets in left.items() if targets <= placed)
        if not layer:
            raise ValueError(f"packages import each other in a circle: {', '.join(sorted(left))}")
        result.append(layer)
        placed.update(layer)
        left = {package: targets for package, targets in left.items() if package not in placed}
    return result


def direct(graph: Graph) -> list[tuple[str, str]]:
    """Return the imports that no chain of other imports implies, without those of the foundation."""
    return [
        (package, target)
        for package, targets in sorted(graph.items())
        for target in sorted(targets)
        if target not in FOUNDATION and not any(target in _reachable(graph, other) for other in targets - {target})
    ]


def _reachable(graph: Graph, package: str) -> set[str]:
    reached: set[str] = set()
    pending = [package]
    while pending:
        for target in graph[pending.pop()] - reached:
            reached.add(target)
            pending.append(target)
    return reached


def summary(package: str) -> str:
    """Return the first sentence of a package's docstring."""
    path = PACKAGE / package / "__init__.py"
    text = ast.get_docstring(ast.parse((path if path.exists() else PACKAGE / f"{package}.py").read_text("utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split()).partition(". ")[0].rstrip(".")


def draw() -> str:
    """Return the picture as SVG: a box for each package, what it imports below it."""
    graph = imports()
    levels = layers(graph)
    width = max(len(layer) for layer in levels) * (BOX_WIDTH + GAP_X) - GAP_X + 2 * MARGIN
    height = len(levels) * (BOX_HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN
    places: dict[str, tuple[float, float]] = {}
    for number, layer in enumerate(levels):
        used = len(layer) * (BOX_WIDTH + GAP_X) - GAP_X
        y = height - MARGIN - BOX_HEIGHT - number * (BOX_HEIGHT + GAP_Y)
        for index, package in enumerate(layer):
            places[package] = ((width - used) / 2 + index * (BOX_WIDTH + GAP_X), y)
    arrows = [_arrow(places[package], places[target]) for package, target in direct(graph)]
    boxes = [_box(package, place) for package, place in sorted(places.items())]
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


def _box(package: str, place: tuple[float, float]) -> str:
    x, y = place
    is_foundation = package in FOUNDATION
    lines = textwrap.wrap(summary(package).replace("`", ""), 28, max_lines=3, placeholder=" …")
    texts = [
        f'<text x="{x + 8:.0f}" y="{y + 34 + 13 * number:.0f}" font-size="10" fill="#445">{escape(line)}</text>'
        for number, line in enumerate(lines)
    ]
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="4" '
        f'fill="{"#e8e2d4" if is_foundation else "#e6eef7"}" stroke="#557"/>'
        f'<text x="{x + 8:.0f}" y="{y + 18:.0f}" font-size="13" font-weight="bold">{escape(package)}</text>'
        + "".join(texts)
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
