"""Start tags of the drawings."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr


def svg_start(width: int, height: int, css_class: str = "", **attributes: object) -> str:
    """Return the start tag of a drawing of this size in pixels; `_` in an attribute's name becomes `-`."""
    names = {"class": css_class} if css_class else {}
    values = {**names, "xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {width} {height}"}
    values |= {"width": str(width), "height": str(height)}
    values |= {name.replace("_", "-"): str(value) for name, value in attributes.items()}
    return f"<svg {' '.join(f'{name}={quoteattr(value)}' for name, value in values.items())}>"
