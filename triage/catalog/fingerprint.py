"""The fingerprint of a condition, by which lock files and reports notice that a signature changed."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from triage.catalog.model import Clause, Leaf

_LEAF_KEYS = ("kind", "component", "text", "not_text", "fields", "values")


def compute_fingerprint(match: Clause | Leaf | None) -> str:
    """12 hex digits that change exactly when the condition changes."""
    condition = None if match is None else _describe_condition(match)
    data = json.dumps(condition, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _describe_condition(match: Clause | Leaf) -> dict[str, Any]:
    """The condition without empty keys, so that equal conditions give equal data."""
    if isinstance(match, Leaf):
        values = ((key, getattr(match, key)) for key in _LEAF_KEYS)
        condition = {key: value for key, value in values if value is not None and value != {}}
        condition |= {"context": True} if match.context else {}
        return condition if match.engine == "re2" else {**condition, "engine": match.engine}
    none = {"none": [_describe_condition(leaf) for leaf in match.none]} if match.none else {}
    return {match.op: [_describe_condition(part) for part in match.parts], **none}
