"""Choose the literals of a whole catalog: rare in healthy logs, shared between patterns, complete.

The scan stops at a line only where it contains one of `Catalog.literals`, so every text pattern of every positive leaf
needs its literals there. Evidence of the kinds in STRUCTURAL is found by its shape (a traceback, an exit line) or made
by triage itself; there a literal only speeds up matching, and a common one is not added to the scan.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from triage.catalog import literals
from triage.catalog.model import Clause, Leaf, Signature
from triage.catalog.regex import CACHED_PATTERNS

# Facts that are found by their form, wherever the scan finds nothing.
STRUCTURAL = frozenset({"exception", "terminate", "exit", "ending", "fatal-python", "crash", "core", "inference"})
STOP_WORD_COST = 1_000_000
_PIECE_LENGTH = 6
NOISE_BUDGET = 3  # times that a literal of noise or of context may occur in the healthy logs

# Words on every other line of some healthy job, whether or not the corpus has them often.
STOP_WORDS = """
error errors failed failure warning warnings warn info debug trace fatal critical exception traceback timeout timed
out rank ranks local_rank global_rank world_size node host hostname pid process device gpu cuda npu memory step steps
iteration iter epoch loss train training batch samples time elapsed seconds size count total nccl hccl gloo torch
pytorch python file line lines true false none null start started stop stopped done finished running process group
communicator collective network socket connection timestamp message level status code value name path config model
optimizer checkpoint data
"""
_STOP_SET = frozenset(STOP_WORDS.split())


@dataclass(frozen=True, slots=True)
class WeakPattern:
    """A pattern that the scan cannot look for well: `message` says why, `hint` what to change."""

    signature: str
    pattern: str
    message: str
    hint: str


@functools.lru_cache(maxsize=1)
def literal_cost(healthy: str) -> Callable[[str], int]:
    """A function that counts a literal in healthy logs; a stop word counts as if it stood everywhere."""
    healthy_pieces = {healthy[index : index + _PIECE_LENGTH] for index in range(len(healthy))}

    @functools.cache
    def cost(literal: str) -> int:
        if literal.strip(" \t:=,.;[](){}<>'\"-_/|#*!?").casefold() in _STOP_SET:
            return STOP_WORD_COST
        # Most literals do not occur, and one of their pieces shows that faster than a search of the whole text.
        pieces = (literal[index : index + _PIECE_LENGTH] for index in range(len(literal) - _PIECE_LENGTH + 1))
        return healthy.count(literal) if healthy_pieces.issuperset(pieces) else 0

    return cost


def assign_literals(
    signatures: Iterable[Signature], healthy: str
) -> tuple[list[Signature], tuple[str, ...], list[WeakPattern]]:
    """Return the signatures with literals in their leaves, all literals for the scan, and the weak patterns."""
    assigner = _LiteralAssigner(literal_cost(healthy))
    return [assigner.assign(signature) for signature in signatures], tuple(sorted(assigner.pool)), assigner.weak


class _LiteralAssigner:
    def __init__(self, cost: Callable[[str], int]) -> None:
        self._cost = cost
        self._signature: Signature
        self._reported: set[tuple[str, str, str]] = set()
        self.pool: set[str] = set()
        self.weak: list[WeakPattern] = []

    def assign(self, signature: Signature) -> Signature:
        """The signature with literals in its leaves."""
        if signature.match is None:
            return signature
        self._signature = signature
        return replace(signature, match=self._assign(signature.match, signature.role == "noise"))

    def _assign(self, node: Clause | Leaf, may_be_healthy: bool) -> Clause | Leaf:
        """Noise, and the context that an `all` requires beside the failure, occur in healthy logs a few times."""
        if isinstance(node, Clause):
            may_be_healthy = may_be_healthy or (node.op == "all" and len(node.parts) > 1)
            return structs.replace(node, parts=tuple(self._assign(part, may_be_healthy) for part in node.parts))
        if node.text is None:
            if node.kind not in STRUCTURAL:
                message = "a leaf without `text` gives the scan nothing to look for"
                self._report(
                    node.kind or "", message, f"add `text`, or one of the kinds {', '.join(sorted(STRUCTURAL))}"
                )
            return node
        budget = NOISE_BUDGET if may_be_healthy else 0
        return structs.replace(node, literals=self._choose(node, node.text, budget))

    def _choose(self, leaf: Leaf, pattern: str, budget: int) -> tuple[str, ...]:
        structural = leaf.kind in STRUCTURAL
        chosen = literals.choose_literals(_list_candidates(pattern, self._cost), self._cost, self.pool)
        if chosen is None:
            if not structural:
                message = "no text of four bytes or more stands in every match of the pattern"
                self._report(pattern, message, "spell out the words that stand in every match")
            return ()
        common = sorted(literal for literal in chosen if self._cost(literal))
        if not common:
            self.pool |= chosen
        elif not structural:
            self.pool |= chosen
            if max(map(self._cost, common)) > budget:
                texts = ", ".join(repr(literal) for literal in common)
                message = f"healthy logs contain {texts} too, so the scan would stop at many lines"
                self._report(pattern, message, "spell out rarer words next to it")
        return tuple(sorted(chosen))

    def _report(self, pattern: str, message: str, hint: str) -> None:
        key = (self._signature.path, pattern, message)
        if key not in self._reported:  # the rows of a table have one pattern
            self._reported.add(key)
            self.weak.append(WeakPattern(self._signature.id, pattern, message, hint))


# The rows of a table share their pattern, and a catalog that is compiled again has mostly the same patterns.
@functools.lru_cache(maxsize=CACHED_PATTERNS)
def _list_candidates(pattern: str, cost: Callable[[str], int]) -> Sequence[frozenset[str]]:
    return literals.required_literals(pattern, cost)
