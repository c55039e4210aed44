"""What a catalog says about a list of evidence.

Many evidences of a job say the same, so each distinct one is tested once, and only against the leaves whose literals
stand
in its text. RE2 runs in time linear in the text; nothing here can hang.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from triage.catalog import blind
from triage.catalog.facts import NO_CAPTURES, Captures, Fact, distinct, gather
from triage.catalog.model import Catalog, Clause, Leaf, Signature
from triage.catalog.together import Together
from triage.model.evidence import Evidence

MAX_VALUES = 4096  # different values kept of one capture
MAX_SHAPES = 20_000  # texts without their digits, whose tests are kept
LITERAL_MEMORY = 64 * 1024 * 1024  # for the automaton of all literals

_INDICES = operator.attrgetter("indices")
ClauseLine = tuple[str, bool, int]
_Found = defaultdict[int, defaultdict[int, dict[int, Captures]]]  # signature number to the same
_Hits = Mapping[int, Mapping[int, Captures]]  # id of a leaf to fact number to captures


@dataclass(frozen=True, slots=True)
class Match:
    """A signature that holds. `indices` point into the evidence given, in its order.

    `captures` has the value of the first evidence that has one, `values` all the different ones in order. `clauses` are
    the
    parts of `match` from the outside in, depth by two blanks: text of the clause, whether it held, its number of hits
    (for
    `none`: whether nothing was dropped, and how much was).
    """

    indices: tuple[int, ...]
    captures: dict[str, str]
    clauses: tuple[ClauseLine, ...]
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)


def evaluate(signature: Signature, evidence: Sequence[Evidence]) -> Match | None:
    """Whether this one signature holds over the evidence, whatever its status."""
    return _Plan((signature,)).run(evidence).get(signature.id)


def explain(signature: Signature, evidence: Sequence[Evidence]) -> tuple[ClauseLine, ...]:
    """The clauses of `Match`, also for a signature that does not hold. Empty for a guide."""
    return _Plan((signature,)).clauses(evidence)


class Matcher:
    """All signatures of a catalog that can match (guides and deprecated ones cannot). To be built once and used often."""

    def __init__(self, catalog: Catalog) -> None:
        self._plan = _Plan([signature for signature in catalog.signatures if signature.status != "deprecated"])

    def evaluate(self, evidence: Sequence[Evidence]) -> dict[str, Match]:
        """Signature id to match, in the catalog's order; signatures that do not hold are not there."""
        return self._plan.run(evidence)

    def begin(self) -> Session:
        """For evidence that comes in parts."""
        return Session(self._plan)


class Session:
    """Evidence in parts: each is tested once, however often more is added."""

    def __init__(self, plan: _Plan) -> None:
        self._plan = plan
        self._facts: dict[Any, Fact] = {}
        self._hits: _Found = _found()
        self._count = 0
        self._sizes: dict[int, int] = {}
        self._decided: dict[int, Match | None] = {}

    def add(self, evidence: Sequence[Evidence]) -> dict[str, Match]:
        """What the catalog says about all evidence given so far; indices count through the parts."""
        new = gather(evidence, self._facts, self._count)
        self._count += len(evidence)
        self._plan.test(new, self._hits)
        sizes = {owner: sum(map(len, leaves.values())) for owner, leaves in self._hits.items()}
        # What no new fact touches is as it was, unless a known one was said again.
        same = len(new) == len(evidence)
        known = {owner: match for owner, match in self._decided.items() if same and sizes[owner] == self._sizes[owner]}
        self._sizes = sizes
        found, self._decided = self._plan.decide(list(self._facts.values()), self._hits, known)
        return found


def positive_leaves(match: Clause | Leaf | None) -> Iterator[Leaf]:
    """The leaves that can bring evidence in, so without those under `none`."""
    if isinstance(match, Leaf):
        yield match
    elif match is not None:
        for part in match.parts:
            yield from positive_leaves(part)


def describe(node: Clause | Leaf) -> str:
    """One line that says what the clause asks for."""
    if isinstance(node, Clause):
        return f"{node.op} of {len(node.parts)}"
    said = [
        f"{name} {value}" for name, value in (("kind", node.kind), ("component", node.component)) if value is not None
    ]
    said += [f"text /{node.text}/"] if node.text is not None else []
    said += [f"with {name} {' or '.join(values)}" for name, values in node.values.items()]
    said += [f"not /{node.not_text}/"] if node.not_text is not None else []
    said += [f"{name} /{pattern}/" for name, pattern in node.fields.items()]
    return ", ".join(said)


class _Plan:
    """The leaves of some signatures, arranged by what an evidence must have for them to be worth a test."""

    def __init__(self, signatures: Iterable[Signature]) -> None:
        self._signatures = [signature for signature in signatures if signature.match is not None]
        self._numbers = {signature.id: number for number, signature in enumerate(self._signatures)}
        self._leaves: list[tuple[int, Leaf]] = []  # with the number of the signature
        by_literal: dict[str, list[int]] = {}
        self._by_kind: dict[str | None, list[int]] = {}
        for owner, signature in enumerate(self._signatures):
            for leaf in positive_leaves(signature.match):
                for literal in leaf.literals:
                    by_literal.setdefault(literal, []).append(len(self._leaves))
                if not leaf.literals:
                    self._by_kind.setdefault(leaf.kind, []).append(len(self._leaves))
                self._leaves.append((owner, leaf))
        self._literals = list(by_literal)
        self._behind = list(by_literal.values())
        self._blind = {number for number, (_, leaf) in enumerate(self._leaves) if blind.is_blind(leaf)}
        self._shapes: dict[tuple[str, str, bytes], _Shape] = {}
        self._together: dict[frozenset[int], Together] = {}
        self._present: dict[bool, Callable[[bytes], Iterable[int]]] = {}

    def run(self, evidence: Sequence[Evidence]) -> dict[str, Match]:
        return Session(self).add(evidence)

    def decide(
        self, facts: Sequence[Fact], hits: Mapping[int, _Hits], known: Mapping[int, Match | None]
    ) -> tuple[dict[str, Match], dict[int, Match | None]]:
        """Which signatures hold, given where their leaves do; and the same by number. `known` are decided already, as
        far as they yield to none.
        """
        decided: dict[int, Match | None] = {}
        found: dict[int, Match] = {}
        # Those that yield come last: what they yield to is known then.
        for owner in sorted(hits, key=lambda number: (bool(self._signatures[number].yields_to), number)):
            signature = self._signatures[owner]
            given = {
                index
                for name in signature.yields_to
                if (at := self._numbers.get(name, -1)) in found
                for index in found[at].indices
            }
            if owner in known and not signature.yields_to:
                match = known[owner]
            else:
                match = _decide(signature.match, _without(hits[owner], given, facts), facts)
            decided[owner] = match
            if match is not None:
                found[owner] = match
        return {self._signatures[owner].id: found[owner] for owner in sorted(found)}, decided

    def clauses(self, evidence: Sequence[Evidence]) -> tuple[ClauseLine, ...]:
        facts = distinct(evidence)
        hits: _Found = _found()
        self.test(facts, hits)
        lines: list[ClauseLine] = []
        for owner, signature in enumerate(self._signatures):
            if signature.match is not None:
                _holding(signature.match, hits.get(owner, {}), facts, lines, 0)
        return tuple(lines)

    def test(self, facts: Sequence[Fact], hits: _Found) -> None:
        """Add to `hits`: signature number to leaf to the facts that it matches, with their captures."""
        alike: defaultdict[tuple[str, str, bytes], list[Fact]] = defaultdict(list)
        for fact in facts:
            alike[fact.kind, fact.component, blind.masked(fact.bytes)].append(fact)
        for key, same in alike.items():
            shape = self._shapes.get(key)
            if shape is None:
                shape = self._shape(same[0], key[2])
                if len(self._shapes) < MAX_SHAPES:
                    self._shapes[key] = shape
            for owner, leaf, spans in shape.holding:
                hits[owner][leaf].update(
                    (fact.number, _cut(fact.bytes, spans) if spans else NO_CAPTURES) for fact in same
                )
            if shape.open is not None:
                for fact in same:
                    for owner, asked, captures in shape.open.holding(fact):
                        hits[owner][id(asked)][fact.number] = captures

    def _shape(self, fact: Fact, zeros: bytes) -> _Shape:
        """What holds for all texts that differ from this one only in digits: which leaves match, and which have to be
        asked for each.
        """
        holding, asked = [], []
        for number in sorted(self._candidates(zeros, fact.kind, masked=True)):
            owner, leaf = self._leaves[number]
            if leaf.kind not in (None, fact.kind) or leaf.component not in (None, fact.component):
                continue
            if number not in self._blind:
                asked.append(number)
            elif (spans := blind.spans(leaf, zeros)) is not None:
                holding.append((owner, id(leaf), spans))
        numbers = frozenset(asked)
        if numbers not in self._together:
            self._together[numbers] = Together([self._leaves[number] for number in asked])
        return _Shape(tuple(holding), self._together[numbers] if asked else None)

    def _candidates(self, text: bytes, kind: str, *, masked: bool = False) -> set[int]:
        """The leaves with a literal in the text (both with their digits replaced by 0 if `masked`), and those that have
        none to look for.
        """
        present = self._present.get(masked)
        if present is None:
            literals = [blind.masked_literal(literal) for literal in self._literals] if masked else self._literals
            present = self._present[masked] = _finder(literals)
        numbers = {number for found in present(text) for number in self._behind[found]}
        numbers.update(self._by_kind.get(kind, ()), self._by_kind.get(None, ()))
        return numbers


@dataclass(frozen=True, slots=True)
class _Shape:
    """Texts that differ only in digits. `holding`: signature number, id of a leaf that matches all of them, and where
    its groups are; `open`:
    the leaves that have to be asked for each text.
    """

    holding: tuple[tuple[int, int, blind.Spans], ...]
    open: Together | None


def _found() -> _Found:
    return defaultdict(lambda: defaultdict(dict))


def _cut(text: bytes, spans: blind.Spans) -> Captures:
    return {name: text[start:end].decode("utf-8", "replace") for name, (start, end) in spans.items()}


def _finder(literals: Sequence[str]) -> Callable[[bytes], Iterable[int]]:
    """Which of the literals stand in a text, in one pass: 30 times faster than to ask for each."""
    if not literals:
        return lambda text: ()
    import re2  # type: ignore[import-untyped, unused-ignore]

    options = re2.Options()
    options.log_errors = False
    options.literal = True
    options.max_mem = LITERAL_MEMORY
    automaton = re2.Set.SearchSet(options)
    try:
        for literal in literals:
            automaton.Add(literal)
        automaton.Compile()
    except re2.error:  # too many for the memory: slow, but right
        needles = [literal.encode("utf-8", "replace") for literal in literals]
        return lambda text: [number for number, needle in enumerate(needles) if needle in text]
    return lambda text: automaton.Match(text) or ()  # RE2 says None for nothing


def _without(hits: _Hits, given: set[int], facts: Sequence[Fact]) -> _Hits:
    """The hits without facts all of whose evidence is given to others."""
    if not given:
        return hits
    kept = {
        leaf: {number: found for number, found in of.items() if not given.issuperset(facts[number].indices)}
        for leaf, of in hits.items()
    }
    return {leaf: of for leaf, of in kept.items() if of}


def _decide(match: Clause | Leaf | None, hits: _Hits, facts: Sequence[Fact]) -> Match | None:
    clauses: list[ClauseLine] = []
    kept = sorted(_holding(match, hits, facts, clauses, 0)) if match is not None else []
    if not kept:
        return None
    values = _values(match, hits, kept)
    return Match(
        indices=tuple(sorted(chain.from_iterable(map(_INDICES, map(facts.__getitem__, kept))))),
        captures={name: found[0] for name, found in values.items()},
        clauses=tuple(clauses),
        values=values,
    )


def _values(match: Clause | Leaf | None, hits: _Hits, kept: Iterable[int]) -> dict[str, tuple[str, ...]]:
    values: dict[str, dict[str, None]] = {}
    leaves = [found for leaf in positive_leaves(match) if (found := hits.get(id(leaf))) and any(found.values())]
    for number in kept:
        for found in leaves:
            for name, value in found.get(number, NO_CAPTURES).items():
                known = values.setdefault(name, {})
                if len(known) < MAX_VALUES:
                    known[value] = None
    return {name: tuple(known) for name, known in values.items()}


def _holding(
    node: Clause | Leaf, hits: _Hits, facts: Sequence[Fact], clauses: list[ClauseLine], depth: int
) -> set[int]:
    """The facts that the node brings in; its line, and those of its parts, are added to `clauses`."""
    place = len(clauses)
    clauses.append(("", False, 0))
    if isinstance(node, Leaf):
        kept = set(hits.get(id(node), ()))
    else:
        parts = [_holding(part, hits, facts, clauses, depth + 1) for part in node.parts]
        dropped: set[int] = set()
        for leaf in node.none:
            hit = {number for part in parts for number in part if facts[number].test(leaf) is not None}
            clauses.append((f"{'  ' * (depth + 1)}none: {describe(leaf)}", not hit, _count(hit, facts)))
            dropped |= hit
        parts = [part - dropped for part in parts]
        kept = set().union(*parts) if node.op == "any" or all(parts) else set()
    clauses[place] = ("  " * depth + describe(node), bool(kept), _count(kept, facts))
    return kept


def _count(numbers: Iterable[int], facts: Sequence[Fact]) -> int:
    return sum(map(len, map(_INDICES, map(facts.__getitem__, numbers))))
