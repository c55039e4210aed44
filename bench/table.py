"""Tables that benchmarks write into documents, between two comments that name them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write(page: Path, name: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Put the table where the page has `<!-- name: … -->` and `<!-- /name -->`."""
    text = page.read_text(encoding="utf-8")
    place = re.compile(rf"(<!-- {name}: [^>]*-->\n).*?(<!-- /{name} -->)", re.DOTALL)
    assert place.search(text), f"{page} has no place for the table {name}"
    page.write_text(place.sub(lambda match: match[1] + markdown(head, rows) + match[2], text), encoding="utf-8")
