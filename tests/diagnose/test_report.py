"""What a finding tells: the texts of its signature with what the logs said put in."""

from __future__ import annotations

from triage.catalog.model import Catalog
from triage.diagnose.report import _fill


def test_braces_of_commands_stay(catalog: Catalog) -> None:
    """Only placeholders are filled in: a step that quotes a command with braces is not changed by it."""
    for signature in catalog.signatures:
        for text in (signature.summary, *signature.steps):
            assert _fill(text, {}) == text
    said = "on {host}: docker inspect -f '{{.Name}}' {0..7} {unknown}"
    assert _fill(said, {"host": "node1"}) == "on node1: docker inspect -f '{{.Name}}' {0..7} {unknown}"
