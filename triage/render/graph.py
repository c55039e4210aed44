"""The causal graph of the catalog as Graphviz text or as SVG: causes left, consequences right.

Titles are escaped for XML or for a quoted string of Graphviz. The drawing takes the colours of the page around it, or
of the reader's scheme where it stands alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from xml.sax.saxutils import escape, quoteattr

from triage.catalog.graph import Graph, GraphEdge
from triage.catalog.model import Signature
from triage.render.graph_layout import GraphLayout, lay_out
from triage.render.sanitize import sanitize_line
from triage.render.svg import svg_start

# In pixels: width of a box, room between layers, height of a row with a box, of a row with a joint.
BOX, GAP, ROW, JOINT = 250, 90, 30, 8
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
    """Return a Graphviz digraph; edges to other ranks are dashed."""
    lines = ["digraph triage {", "  rankdir=LR;", "  node [shape=box, fontname=monospace];"]
    for node in graph.nodes:
        bold = ", penwidth=3" if node.id == chosen else ""
        lines.append(f"  {_quoted(node.id)} [tooltip={_quoted(_tooltip(node))}, class={_quoted(node.role)}{bold}];")
    for arrow in graph.edges:
        style = "" if arrow.is_strong else ", style=dashed"
        lines.append(f"  {_quoted(arrow.cause)} -> {_quoted(arrow.effect)} [tooltip={_quoted(arrow.scope)}{style}];")
    return "\n".join([*lines, "}"]) + "\n"


def as_svg(graph: Graph, chosen: str | None = None) -> str:
    """Return a drawing with a box for each signature and a curve for each edge."""
    drawing = lay_out(graph)
    points, width, bottom = _points(drawing)
    places, height = _place_boxes(drawing, points, bottom)
    width = max([width, *(int(x) + BOX + MARGIN for x, _ in places.values())])
    counts = f"{len(graph.nodes)} signatures, {len(graph.edges)} edges" + (
        f" ({graph.implied_count} implied ones left out)" if graph.implied_count else ""
    )
    curves = [_curve(arrow, drawing, points) for arrow in graph.edges]
    boxes = [_box(node, *places[node.id], node.id == chosen) for node in graph.nodes]
    return (
        "\n".join(
            [
                svg_start(width, height, "triage-graph", role="img"),
                f"<title>Causes and consequences: {counts}</title>",
                f"<style>{STYLE}</style>",
                '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4"'
                ' markerWidth="7" markerHeight="7" orient="auto">'
                '<polygon points="0,0 8,4 0,8" fill="currentColor"/></marker></defs>',
                *curves,
                *boxes,
                "</svg>",
            ]
        )
        + "\n"
    )


def _points(drawing: GraphLayout) -> tuple[dict[object, tuple[float, float]], int, int]:
    """Return the left end and middle of every box and joint, and width and height of all; layers are centred."""
    heights = [sum(ROW if isinstance(item, str) else JOINT for item in layer) for layer in drawing.layers]
    tallest = max(heights, default=0)
    points: dict[object, tuple[float, float]] = {}
    for number, layer in enumerate(drawing.layers):
        y = MARGIN + (tallest - heights[number]) / 2
        for item in layer:
            size = ROW if isinstance(item, str) else JOINT
            points[item] = (MARGIN + number * (BOX + GAP), y + size / 2)
            y += size
    return points, 2 * MARGIN + max(len(drawing.layers) * (BOX + GAP) - GAP, 0), 2 * MARGIN + tallest


def _place_boxes(
    drawing: GraphLayout, points: Mapping[object, tuple[float, float]], bottom: int
) -> tuple[dict[str, tuple[float, float]], int]:
    """Return the places of all boxes and the height of the drawing; boxes without edges stand in rows below."""
    places = {item: point for item, point in points.items() if isinstance(item, str)}
    for number, name in enumerate(drawing.loose):
        row, column = divmod(number, LOOSE_COLUMNS)
        places[name] = (MARGIN + column * (BOX + MARGIN), bottom + ROW / 2 + row * ROW)
    return places, bottom + (-(-len(drawing.loose) // LOOSE_COLUMNS) * ROW + MARGIN if drawing.loose else 0)


def _curve(arrow: GraphEdge, drawing: GraphLayout, points: Mapping[object, tuple[float, float]]) -> str:
    (x, y), (end, bottom) = points[arrow.cause], points[arrow.effect]
    kind = "" if arrow.is_strong else ' class="weak"'
    if arrow in drawing.against:  # out to the right, around, and in from the left
        path = f"M{x + BOX:g} {y:g}C{x + BOX + GAP:g} {y + ROW:g} {end - GAP:g} {bottom + ROW:g} {end:g} {bottom:g}"
    else:
        path = _forward(
            (x + BOX, y),
            [points[arrow, number] for number in range(1, len(drawing.layers)) if (arrow, number) in points],
            (end, bottom),
        )
    title = escape(f"{arrow.cause} causes {arrow.effect} ({arrow.scope})")
    return f'<path{kind} d="{path}" marker-end="url(#tip)"><title>{title}</title></path>'


def _forward(start: tuple[float, float], joints: list[tuple[float, float]], end: tuple[float, float]) -> str:
    """Return a smooth path that crosses the layer of each joint on a level line."""
    path, point_before = f"M{start[0]:g} {start[1]:g}", start
    for point in [*joints, end]:
        half = (point_before[0] + point[0]) / 2
        path += f"C{half:g} {point_before[1]:g} {half:g} {point[1]:g} {point[0]:g} {point[1]:g}"
        point_before = point
        if point is not end:
            point_before = (point[0] + BOX, point[1])
            path += f"H{point_before[0]:g}"
    return path


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
    return sanitize_line(f"{node.title} ({node.role}, {node.severity})")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


WRITERS: Mapping[str, Callable[[Graph, str | None], str]] = {"svg": as_svg, "dot": as_dot}
