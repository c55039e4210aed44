"""Rules that run patterns on texts of healthy programs: prose, everyday lines, and general texts.

A cause must not match a sentence that only has its words, nor a text that many programs print for many reasons.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

from triage.catalog import prose
from triage.catalog.check_context import EvidenceReader
from triage.catalog.match import make_evaluator, positive_leaves
from triage.catalog.model import Leaf, Signature
from triage.catalog.problems import Remark
from triage.catalog.regex import compile_pattern, remove_anchors

_HINT = "add `kind` or `component`, the prefix or punctuation of the real message, or a second fact under `all`"


class TextRules:
    """The rules, with the evidence of the texts that all signatures are run on."""

    def __init__(self, to_evidence: EvidenceReader, everyday: Sequence[str]) -> None:
        self._to_evidence = functools.lru_cache(maxsize=10_000)(to_evidence)
        self._everyday = everyday

    def check(self, signature: Signature) -> Iterator[Remark]:
        """Problems of one signature; of a table, give one row."""
        if signature.role != "cause" or signature.status == "deprecated" or signature.match is None:
            return
        evaluate, searches = make_evaluator(signature), [*map(_make_search, positive_leaves(signature.match))]

        def find_match(lines: Sequence[str]) -> str | None:
            candidates = _list_candidates(searches, lines)
            return next((line for line in candidates if evaluate(self._to_evidence(line)) is not None), None)

        line = find_match(self._everyday)
        if line is not None:
            yield "error", ("match",), f"a line of a healthy program matches: {line!r}", _HINT
        line = find_match(prose.GENERAL)
        if line is not None:
            hint = "add a word of the subject (component, path, field), or set `role: either`"
            yield "error", ("match",), f"a general text is enough for this cause: {line!r}", hint
        for leaf in positive_leaves(signature.match):
            line = find_match(_write_prose(leaf))
            if line is not None:
                yield "error", ("match",), f"prose matches: {line!r}, with the words of {leaf.text}", _HINT


def _write_prose(leaf: Leaf) -> Sequence[str]:
    return () if leaf.text is None or leaf.kind == "inference" else prose.write_prose(leaf.text)


def _list_candidates(searches: Sequence[Callable[[str], bool]], lines: Sequence[str]) -> list[str]:
    """The lines in which a search succeeds. What is not in all lines together is in none of them."""
    together = "\n".join(lines)
    promising = [search for search in searches if search(together)]
    return [line for line in lines if any(search(line) for search in promising)]


def _make_search(leaf: Leaf) -> Callable[[str], bool]:
    """A fast test that is false only for lines that the leaf cannot match, whatever is cut off from their ends."""
    if leaf.text is None:
        return lambda line: leaf.kind != "inference"
    if leaf.engine == "regex":
        return lambda line: True
    search = compile_pattern(remove_anchors(leaf.text)).search
    return lambda line: search(line) is not None
