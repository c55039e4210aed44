from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ElementTree

import pytest

from triage.catalog.graph import build_graph, build_neighbourhood
from triage.catalog.model import Catalog, CausalEdge, Signature
from triage.render.graph import BOX, HEIGHT, as_dot, as_svg
from triage.render.graph_layout import lay_out

SVG = "{http://www.w3.org/2000/svg}"


def signature(identifier: str, *effects: str, title: str = "A title", scope: str = "any-rank") -> Signature:
    edges = tuple(CausalEdge(effect, scope) for effect in effects)
    return Signature(identifier, 1, title, "stable", "cause", "error", None, causal_edges=edges)


CHAIN = [signature("a.a", "b.b", "c.c"), signature("b.b", "c.c"), signature("c.c"), signature("d.d")]


def boxes(svg: str) -> dict[str, tuple[float, float]]:
    """Text of each box to its left upper corner."""
    places = {}
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        rect, text = group.find(f"{SVG}rect"), group.find(f"{SVG}text")
        assert rect is not None
        assert text is not None
        places[str(text.text)] = (float(rect.attrib["x"]), float(rect.attrib["y"]))
    return places


def test_causes_are_left_of_effects() -> None:
    """Along every edge the boxes go to the right."""
    places = boxes(as_svg(build_graph(CHAIN)))
    assert places["a.a"][0] < places["b.b"][0] < places["c.c"][0]


def test_every_signature_has_one_box(catalog: Catalog) -> None:
    """Also those that no edge touches, but not the rows of tables; and no two boxes overlap, nor leave the drawing."""
    drawn = ElementTree.fromstring(as_svg(build_graph(catalog.signatures)))
    assert len(list(drawn.iter(f"{SVG}g"))) == sum(not signature.table for signature in catalog.signatures)
    places = sorted((float(rect.attrib["x"]), float(rect.attrib["y"])) for rect in drawn.iter(f"{SVG}rect"))
    for (x, y), (other_x, other_y) in itertools.combinations(places, 2):
        assert abs(other_x - x) >= BOX or abs(other_y - y) >= HEIGHT
    assert max(x for x, _ in places) + BOX <= float(drawn.attrib["width"])
    assert max(y for _, y in places) + HEIGHT <= float(drawn.attrib["height"])


def test_every_edge_is_drawn(catalog: Catalog) -> None:
    """One curve an arrow, that begins and ends where a box does."""
    drawn = build_graph(catalog.signatures)
    paths = list(ElementTree.fromstring(as_svg(drawn)).iter(f"{SVG}path"))
    assert len(paths) == len(drawn.edges)
    assert all(re.fullmatch(r"M[\d. ]+([CH][-\d. ]+)+", path.attrib["d"]) for path in paths)


def test_no_arrow_of_the_layout_runs_back(catalog: Catalog) -> None:
    """Each edge goes to a later layer, except those in `against`."""
    whole = build_graph(catalog.signatures)
    placed = lay_out(whole)
    level = {item: number for number, layer in enumerate(placed.layers) for item in layer if isinstance(item, str)}
    assert all((level[arrow.cause] < level[arrow.effect]) or arrow in placed.against for arrow in whole.edges)


def test_drawing_is_the_same_each_time(catalog: Catalog) -> None:
    """A drawing in a repository changes only with the catalog."""
    assert as_svg(build_graph(catalog.signatures)) == as_svg(build_graph(tuple(reversed(catalog.signatures))))


@pytest.mark.parametrize(
    "title", ["</title><script>alert(1)</script>", "a & b <c> \"d\" 'e'", "\x1b[2J\x00 control", "]]>"]
)
def test_text_stays_text(title: str) -> None:
    """A title ends neither its element nor its quoted string, and brings no control characters."""
    nodes = build_graph([signature("a.a", title=title)])
    drawn = ElementTree.fromstring(as_svg(nodes))
    assert {element.tag.removeprefix(SVG) for element in drawn.iter()} <= {
        "svg",
        "title",
        "style",
        "defs",
        "marker",
        "polygon",
        "g",
        "rect",
        "text",
    }
    (line,) = [line for line in as_dot(nodes).splitlines() if "a.a" in line]
    assert re.fullmatch(r'  "(?:[^"\\]|\\.)*" \[tooltip="(?:[^"\\]|\\.)*", class="cause"\];', line)
    assert "\x1b" not in line


def test_title_is_the_tooltip() -> None:
    """The tooltip of its box."""
    group = next(ElementTree.fromstring(as_svg(build_graph([signature("a.a", title="Ran <out>")]))).iter(f"{SVG}g"))
    assert group[0].tag == f"{SVG}title"
    assert (group[0].text or "").startswith("Ran <out>")


def test_it_is_readable_light_and_dark() -> None:
    """Lines and text take the colour of the page or of the reader's scheme, and no style applies outside of it."""
    svg = as_svg(build_graph(CHAIN))
    assert "currentColor" in svg
    assert "prefers-color-scheme: dark" in svg
    rules = re.findall(r"^\s*([^{}@]+) \{", svg.partition("<style>")[2].partition("</style>")[0], re.MULTILINE)
    assert rules
    assert all(part.strip().startswith(".triage-graph") for rule in rules for part in re.split(r",(?![^(]*\))", rule))


def test_cycles_are_drawn() -> None:
    """An edge that runs back ends at its box."""
    svg = as_svg(build_graph([signature("a.a", "b.b"), signature("b.b", "a.a", scope="other-ranks")]))
    assert len(re.findall("<path", svg)) == 2
    assert svg.count('class="weak"') == 1


def test_the_chosen_signature_is_marked() -> None:
    """In SVG and in Graphviz."""
    part = build_neighbourhood(CHAIN, "b.b")
    assert as_svg(part, "b.b").count("cause chosen") == 1
    assert as_dot(part, "b.b").count("penwidth=3") == 1


def test_an_empty_catalog_has_a_drawing() -> None:
    """It has no box and no edge."""
    assert ElementTree.fromstring(as_svg(build_graph([]))).tag == f"{SVG}svg"
    assert as_dot(build_graph([])).startswith("digraph")


def test_dot_lists_nodes_and_edges() -> None:
    """Nodes and edges in Graphviz's words."""
    text = as_dot(build_graph(CHAIN))
    assert '"a.a" -> "b.b" [tooltip="any-rank"];' in text
    assert '"d.d" [' in text
