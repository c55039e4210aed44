"""Failures that no signature knows, grouped by what they say.

The group's id comes from the masked headline alone, so the same failure has the same id in every job.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from triage.diagnose.facts import ECHOES
from triage.model import Evidence

_KINDS = ("exception", "terminate", "fatal-python", "exit")
_MASKS = (
    (re.compile(r"0x[0-9a-fA-F]+"), "<hex>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), "<ip>"),
    (re.compile(r"(?<![\w])(?:/[\w.@+-]+){2,}/?"), "<path>"),
    (re.compile(r"\b(?=\d*[a-f])[0-9a-f]{8,}\b"), "<id>"),  # with a letter in it: a long number is a number
    (re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"), "<n>"),
)


def masked(text: str) -> str:
    """The first line of `text` with addresses, paths and numbers taken out."""
    line = text.strip().split("\n", 1)[0].strip()[:400].strip()
    for pattern, mask in _MASKS:
        line = pattern.sub(mask, line)
    return line


def cluster_id(headline: str) -> str:
    """A stable id for a masked headline."""
    return "u-" + hashlib.sha256(headline.encode()).hexdigest()[:6]


def group(facts: Sequence[Evidence], known: set[int]) -> dict[str, list[Evidence]]:
    """Cluster id to the facts of failures that no signature explains; `known` are the indices of those that one does."""
    if all(index in known or fact.kind not in _KINDS for index, fact in enumerate(facts)):
        return {}
    explained = {_place(facts[index]) for index in known}
    speaking = {fact.origin.rank for fact in facts if fact.kind in _KINDS[:3]}
    groups: dict[str, list[Evidence]] = {}
    for index, fact in enumerate(facts):
        if index in known or fact.kind not in _KINDS or _place(fact) in explained or not _is_failure(fact, speaking):
            continue
        groups.setdefault(cluster_id(masked(fact.text)), []).append(fact)
    return groups


def _place(fact: Evidence) -> tuple[str, int, int]:
    """Facts of one block share its end: when a signature knows one exception of a chain, the chain is known."""
    return (fact.source, fact.end, 0) if fact.kind == "exception" else (fact.source, fact.end, fact.offset)


def _is_failure(fact: Evidence, speaking: set[int | None]) -> bool:
    if fact.kind == "exit":
        code = fact.fields.get("exitcode", "0")
        said = fact.origin.rank in speaking or (None in speaking and not fact.fields.get("signal"))
        return code not in ("0", "") and fact.fields.get("by") != "agent" and fact.origin.rank is not None and not said
    if fact.kind == "exception":
        return fact.fields.get("chain") in ("final", "cause") and fact.fields.get("type") not in ECHOES
    return True
