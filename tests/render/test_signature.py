"""Signatures as JSON: advice without the placeholders that only a job fills."""

from __future__ import annotations

import json
import re

from triage.catalog.model import Catalog
from triage.catalog.remediation import PLACEHOLDERS
from triage.mcp.responses import advice
from triage.render.signature import as_json

PLACEHOLDER = re.compile(
    r"(?<![$'{\w])\{(" + "|".join(sorted({*PLACEHOLDERS, "pid", "path", "busid", "peer"})) + r")\}"
)


def test_advice_in_json_has_no_raw_placeholder(catalog: Catalog) -> None:
    """No sentence of any signature reaches a program with `{rank}` in it, and every summary says something."""
    for signature in catalog.signatures:
        shown = json.loads(as_json(signature))
        for shown_advice in (shown, advice(signature)):
            assert shown_advice["summary"]
            assert not [text for text in (shown_advice["summary"], *shown_advice["steps"]) if PLACEHOLDER.search(text)]
