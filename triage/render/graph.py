"""The causal graph as Graphviz text, or drawn as SVG without any program: causes left, what follows from them right.

Nothing in a title can leave its place: text is escaped for XML or for a quoted string of Graphviz. The drawing takes
the
colour of the page around it, and of the reader's scheme where it stands alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from xml.sax.saxutils import escape, quoteattr

from triage.catalog.graph import Arrow, Graph
from triage.catalog.model import Signature
from triage.render.layers import Layout, layout
from triage.render.safe import safe_line

BOX, GAP, ROW, JOINT = (
    250,
    90,
    30,
    8,
)  # pixels: width of a box, room between layers, height of a row with a box, with a joint
HEIGHT, MARGIN, CHARACTER = 22, 20, 7.0
LOOSE_COLUMNS = 4
# Every rule is bound to the drawing's own class, for styles of an SVG inside a page reach the whole page.
STYLE = """
  .triage-graph { color: #1f2328; background: #fff; font: 11px ui-monospace, monospace }
  .triage-graph rect { fill: #f6f8fa; stroke: currentColor }
  .triage-graph text { fill: currentColor }
  .triage-graph path { fill: none; stroke: currentColor; opacity: .45 }
  .triage-graph .weak { stroke-dasharray: 4 3 }
  .triage-graph .cause rect { stroke-width: 2 }
  .triage-graph :is(.symptom, .noise, .guide) rect { stroke-dasharray: 3 2 }
  .triage-graph .chosen rect, .triage-graph g:hover rect { stroke-width: 3 }
  @media (prefers-color-scheme: dark) {
    .triage-graph { color: #e6edf3; background: #0d1117 }
    .triage-graph rect { fill: #161b22 }
  }
"""


def as_dot(graph: Graph, chosen: str | None = None) -> str:
    """A digraph; edges to other ranks are dashed."""
    lines = ["digraph triage {", "  rankdir=LR;", "  node [shape=box, fontname=monospace];"]
    for node in graph.nodes:
        bold = ", penwidth=3" if node.id == chosen else ""
        lines.append(f"  {_quoted(node.id)} [tooltip={_quoted(_tooltip(node))}, class={_quoted(node.role)}{bold}];")
    for arrow in graph.arrows:
        style = "" if arrow.strong else ", style=dashed"
        lines.append(f"  {_quoted(arrow.cause)} -> {_quoted(arrow.effect)} [tooltip={_quoted(arrow.scope)}{style}];")
    return "\n".join([*lines, "}"]) + "\n"


def as_svg(graph: Graph, chosen: str | None = None) -> str:
    """One box a signature with its title as tooltip, one curve an arrow."""
    found = layout(graph)
    points, width, bottom = _points(found)
    places, height = _loose(found, points, bottom)
    width = max([width, *(int(x) + BOX + MARGIN for x, _ in places.values())])
    said = f"{len(graph.nodes)} signatures, {len(graph.arrows)} edges" + (
        f" ({graph.implied} implied ones left out)" if graph.implied else ""
    )
    curves = [_curve(arrow, found, points) for arrow in graph.arrows]
    boxes = [_box(node, *places[node.id], node.id == chosen) for node in graph.nodes]
    return (
        "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" class="triage-graph" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">',
                f"<title>What leads to what: {said}</title>",
                f"<style>{STYLE}</style>",
                '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
                '<polygon points="0,0 8,4 0,8" fill="currentColor"/></marker></defs>',
                *curves,
                *boxes,
                "</svg>",
            ]
        )
        + "\n"
    )


def _points(found: Layout) -> tuple[dict[object, tuple[float, float]], int, int]:
    """Left end and middle of every box and joint; width and height of all. Layers are centred on each other."""
    heights = [sum(ROW if isinstance(item, str) else JOINT for item in layer) for layer in found.layers]
    tallest = max(heights, default=0)
    points: dict[object, tuple[float, float]] = {}
    for number, layer in enumerate(found.layers):
        y = MARGIN + (tallest - heights[number]) / 2
        for item in layer:
            size = ROW if isinstance(item, str) else JOINT
            points[item] = (MARGIN + number * (BOX + GAP), y + size / 2)
            y += size
    return points, 2 * MARGIN + max(len(found.layers) * (BOX + GAP) - GAP, 0), 2 * MARGIN + tallest


def _loose(
    found: Layout, points: Mapping[object, tuple[float, float]], bottom: int
) -> tuple[dict[str, tuple[float, float]], int]:
    """The places of all boxes: those that no arrow touches stand in rows below the others. With the height of the
    drawing.
    """
    places = {item: point for item, point in points.items() if isinstance(item, str)}
    for number, name in enumerate(found.loose):
        row, column = divmod(number, LOOSE_COLUMNS)
        places[name] = (MARGIN + column * (BOX + MARGIN), bottom + ROW / 2 + row * ROW)
    return places, bottom + (-(-len(found.loose) // LOOSE_COLUMNS) * ROW + MARGIN if found.loose else 0)


def _curve(arrow: Arrow, found: Layout, points: Mapping[object, tuple[float, float]]) -> str:
    (x, y), (end, bottom) = points[arrow.cause], points[arrow.effect]
    kind = "" if arrow.strong else ' class="weak"'
    if arrow in found.against:  # out to the right, around, and in from the left
        way = f"M{x + BOX:g} {y:g}C{x + BOX + GAP:g} {y + ROW:g} {end - GAP:g} {bottom + ROW:g} {end:g} {bottom:g}"
    else:
        way = _forward(
            (x + BOX, y),
            [points[arrow, number] for number in range(1, len(found.layers)) if (arrow, number) in points],
            (end, bottom),
        )
    title = escape(f"{arrow.cause} leads to {arrow.effect} ({arrow.scope})")
    return f'<path{kind} d="{way}" marker-end="url(#tip)"><title>{title}</title></path>'


def _forward(start: tuple[float, float], joints: list[tuple[float, float]], end: tuple[float, float]) -> str:
    """A smooth way that passes each joint's layer on a level line."""
    way, here = f"M{start[0]:g} {start[1]:g}", start
    for point in [*joints, end]:
        half = (here[0] + point[0]) / 2
        way += f"C{half:g} {here[1]:g} {half:g} {point[1]:g} {point[0]:g} {point[1]:g}"
        here = point
        if point is not end:
            here = (point[0] + BOX, point[1])
            way += f"H{here[0]:g}"
    return way


def _box(node: Signature, x: float, y: float, chosen: bool) -> str:
    kind = node.role + (" chosen" if chosen else "")
    room = int((BOX - 12) / CHARACTER)
    name = node.id if len(node.id) <= room else node.id[: room - 1] + "…"
    return (
        f"<g class={quoteattr(kind)}><title>{escape(_tooltip(node))}</title>"
        f'<rect x="{x:g}" y="{y - HEIGHT / 2:g}" width="{BOX}" height="{HEIGHT}" rx="4"/>'
        f'<text x="{x + 6:g}" y="{y + 4:g}">{escape(name)}</text></g>'
    )


def _tooltip(node: Signature) -> str:
    return safe_line(f"{node.title} ({node.role}, {node.severity})")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


WRITERS: Mapping[str, Callable[[Graph, str | None], str]] = {"svg": as_svg, "dot": as_dot}
