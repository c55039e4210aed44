"""The literals of a whole catalog: chosen against healthy logs, shared between patterns, complete.

The scan opens its gate where one of `Catalog.literals` stands, so every text pattern of every leaf that can bring
evidence
in must have its literals there. Evidence of the kinds in STRUCTURAL is found by its shape (a traceback, an exit line),
or
made by triage itself; there a literal only speeds up matching and a common one is kept out of the scan.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from triage.catalog import literals
from triage.catalog.model import Clause, Leaf, Signature

STRUCTURAL = frozenset({"exception", "terminate", "exit", "fatal-python", "crash", "core", "inference"})
STOP_COST = 1_000_000
_PIECE = 6
NOISE_BUDGET = 3  # times that a literal of noise or of context may stand in the healthy logs

# Words that open the gate on every other line of some healthy job, whether or not the corpus has them often.
STOP_WORDS = """
error errors failed failure warning warnings warn info debug trace fatal critical exception traceback timeout timed out
rank ranks local_rank global_rank world_size node host hostname pid process device gpu cuda npu memory step steps iteration
iter epoch loss train training batch samples time elapsed seconds size count total nccl hccl gloo torch pytorch python file
line lines true false none null start started stop stopped done finished running process group communicator collective
network socket connection timestamp message level status code value name path config model optimizer checkpoint data
"""
STOP = frozenset(STOP_WORDS.split())


@dataclass(frozen=True, slots=True)
class Weakness:
    """A text pattern the scan cannot look for well: `message` says why, `hint` what to change."""

    signature: str
    pattern: str
    message: str
    hint: str


def rarity_in(healthy: str) -> Callable[[str], int]:
    """How often a literal stands in healthy logs; a stop word counts as if it stood everywhere."""
    known: dict[str, int] = {}
    there = {healthy[index : index + _PIECE] for index in range(len(healthy))}

    def count(literal: str) -> int:
        pieces = (literal[index : index + _PIECE] for index in range(len(literal) - _PIECE + 1))
        return (
            healthy.count(literal) if there.issuperset(pieces) else 0
        )  # most are not there, and a piece of them says so sooner

    def cost(literal: str) -> int:
        if literal not in known:
            stopped = literal.strip(" \t:=,.;[](){}<>'\"-_/|#*!?").casefold() in STOP
            known[literal] = STOP_COST if stopped else count(literal)
        return known[literal]

    return cost


def equip(signatures: Iterable[Signature], healthy: str) -> tuple[list[Signature], tuple[str, ...], list[Weakness]]:
    """The signatures with literals in their leaves, what the scan must look for, and the patterns that are weak."""
    gate = _Gate(rarity_in(healthy))
    equipped = [
        dataclasses.replace(signature, match=gate.equip(signature.match, signature)) if signature.match else signature
        for signature in signatures
    ]
    return equipped, tuple(sorted(gate.pool)), gate.weak


class _Gate:
    def __init__(self, cost: Callable[[str], int]) -> None:
        self._cost = cost
        self._signature = self._path = ""
        self._said: set[tuple[str, str, str]] = set()
        self._candidates: dict[str, list[frozenset[str]]] = {}
        self.pool: set[str] = set()
        self.weak: list[Weakness] = []

    def equip(self, match: Clause | Leaf, signature: Signature) -> Clause | Leaf:
        self._signature, self._path = signature.id, signature.path
        return self._node(match, signature.role == "noise")

    def _node(self, node: Clause | Leaf, noise: bool) -> Clause | Leaf:
        """Noise, and what an `all` asks for beside the failure, stands in healthy logs by its nature: at start-up, not
        in each step.
        """
        if isinstance(node, Clause):
            noise = noise or (node.op == "all" and len(node.parts) > 1)
            return dataclasses.replace(node, parts=tuple(self._node(part, noise) for part in node.parts))
        if node.text is None:
            if node.kind not in STRUCTURAL:
                self._note(
                    node.kind or "",
                    "a leaf without `text` gives the scan nothing to look for",
                    f"add `text`, or a kind of {_kinds()}",
                )
            return node
        return dataclasses.replace(node, literals=self._choose(node, node.text, NOISE_BUDGET if noise else 0))

    def _choose(self, leaf: Leaf, pattern: str, budget: int) -> tuple[str, ...]:
        structural = leaf.kind in STRUCTURAL
        candidates = self._candidates.get(pattern)
        if candidates is None:  # the rows of a table share their pattern
            candidates = self._candidates[pattern] = literals.required_literals(pattern, self._cost)
        chosen = literals.choose(candidates, self._cost, self.pool)
        if chosen is None:
            if not structural:
                self._note(
                    pattern,
                    "no literal of four bytes follows from the pattern",
                    "spell out the words that stand in every match",
                )
            return ()
        common = sorted(literal for literal in chosen if self._cost(literal))
        if not common:
            self.pool |= chosen
        elif not structural:
            self.pool |= chosen
            words = ", ".join(repr(literal) for literal in common)
            if max(map(self._cost, common)) > budget:
                self._note(
                    pattern,
                    f"healthy logs have {words} too, so the scan would stop at many lines",
                    "spell out rarer words beside it",
                )
        return tuple(sorted(chosen))

    def _note(self, pattern: str, message: str, hint: str) -> None:
        said = (self._path, pattern, message)
        if said not in self._said:  # the rows of a table have one pattern
            self._said.add(said)
            self.weak.append(Weakness(self._signature, pattern, message, hint))


def _kinds() -> str:
    return ", ".join(sorted(STRUCTURAL))
