"""Rules that run patterns on texts of healthy programs: prose, everyday lines, and general texts.

A cause must not match a sentence that only has its words, nor a text that many programs print for many reasons.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence

from triage.catalog import prose
from triage.catalog.check_context import EvidenceReader
from triage.catalog.match import make_evaluator, positive_leaves
from triage.catalog.model import Leaf, Signature
from triage.catalog.problems import Remark
from triage.catalog.regex import compile_pattern

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
        evaluate, may_match = make_evaluator(signature), _make_filter(signature)

        def matches(line: str) -> bool:
            return evaluate(self._to_evidence(line)) is not None

        for line in filter(may_match, self._everyday):
            if matches(line):
                message = f"a line of a healthy program matches: {line!r}"
                yield "error", ("match",), message, _HINT
                break
        for line in prose.GENERAL:
            if matches(line):
                message = f"a general text is enough for this cause: {line!r}"
                hint = "add a word of the subject (component, path, field), or set `role: either`"
                yield "error", ("match",), message, hint
                break
        for leaf in positive_leaves(signature.match):
            sentence = next(filter(matches, filter(may_match, _write_prose(leaf))), None)
            if sentence is not None:
                yield "error", ("match",), f"prose matches: {sentence!r}, with the words of {leaf.text}", _HINT


def _write_prose(leaf: Leaf) -> Iterable[str]:
    return () if leaf.text is None or leaf.kind == "inference" else prose.write_prose(leaf.text)


def _make_filter(signature: Signature) -> Callable[[str], bool]:
    filters = [_make_leaf_filter(leaf) for leaf in positive_leaves(signature.match)]
    return lambda line: any(may_match(line) for may_match in filters)


def _make_leaf_filter(leaf: Leaf) -> Callable[[str], bool]:
    """A fast test that is false only for lines that the leaf cannot match, whatever is cut off from their ends."""
    if leaf.text is None:
        return lambda line: leaf.kind != "inference"
    if leaf.engine == "regex" or any(anchor in leaf.text for anchor in ("^", "$", "\\A")):
        return lambda line: True
    search = compile_pattern(leaf.text).search
    return lambda line: search(line) is not None
