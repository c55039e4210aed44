"""Tables that benchmarks write to documents, between two comments with their name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path


def as_markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write(page: Path, name: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write the table between `<!-- name: … -->` and `<!-- /name -->`."""
    text = page.read_text(encoding="utf-8")
    place = re.compile(rf"(<!-- {name}: [^>]*-->\n).*?(<!-- /{name} -->)", re.DOTALL)
    assert place.search(text), f"{page} has no place for the table {name}"
    page.write_text(place.sub(lambda match: match[1] + as_markdown(head, rows) + match[2], text), encoding="utf-8")
