"""Match the signatures of a catalog against evidence.

Much of a job's evidence is equal, so each distinct piece is tested once, and only against the leaves whose literals
occur in its text. RE2 runs in time linear in the text; no pattern can hang.
"""

from __future__ import annotations

import functools
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field
from itertools import chain
from typing import Any, TypeVar

from triage.base.lazy_dataclass import dataclass
from triage.catalog import digit_masking, regex
from triage.catalog.backtracking import BacktrackingSearches
from triage.catalog.distinct_evidence import NO_CAPTURES, Captures, DistinctEvidence, add_evidence, group_evidence
from triage.catalog.leaf_group import LeafGroup
from triage.catalog.mentions import ROLES, is_mention
from triage.catalog.model import Catalog, Clause, Leaf, Signature
from triage.model.evidence import Evidence

MAX_VALUES = 4096  # different values of one capture
MAX_SHAPES = 20_000  # masked texts whose test results are remembered
TEXTS_BEFORE_AUTOMATON = 64  # texts after which the automaton of all literals pays off
LITERAL_MEMORY = 64 * 1024 * 1024  # for the automaton of all literals

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")
_INDICES = operator.attrgetter("indices")
ClauseLine = tuple[str, bool, int]
_MutableHits = defaultdict[int, defaultdict[int, dict[int, Captures]]]  # signature number to `_Hits`
_Hits = Mapping[int, Mapping[int, Captures]]  # id of a leaf to evidence number to captures


@dataclass(frozen=True, slots=True)
class Match:
    """A signature that holds. `indices` are the places of its evidence in the list that was evaluated, without that
    which only context leaves match.

    `captures` has the first value of each capture, `values` all different ones in order. `clauses` are the parts of
    `match` from the outside in, indented by two blanks a level: (text, whether it held, number of hits). For a leaf of
    `none`: whether it dropped nothing, and how much it dropped.
    """

    indices: tuple[int, ...]
    captures: dict[str, str]
    clauses: tuple[ClauseLine, ...]
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)


def evaluate_signature(signature: Signature, evidence: Sequence[Evidence]) -> Match | None:
    """Match one signature, whatever its status; None if it does not hold."""
    return make_evaluator(signature)(evidence)


def make_evaluator(signature: Signature) -> Callable[[Sequence[Evidence]], Match | None]:
    """Return a function that matches one signature, for many texts."""
    plan = MatchPlan((signature,))
    return lambda evidence: MatchSession(plan).add(evidence).get(signature.id)


def explain_clauses(signature: Signature, evidence: Sequence[Evidence]) -> tuple[ClauseLine, ...]:
    """The clauses of `Match`, also for a signature that does not hold. Empty for a guide."""
    if signature.match is None:
        return ()
    groups = group_evidence(evidence)
    hits = _empty_hits()
    MatchPlan((signature,)).test(groups, hits)
    lines: list[ClauseLine] = []
    _matching_evidence(signature.match, hits.get(0, {}), groups, lines, 0)
    return tuple(lines)


class Matcher:
    """All signatures of a catalog that can match (guides and deprecated ones cannot). Build it once, use it often."""

    def __init__(self, catalog: Catalog) -> None:
        self._plan = MatchPlan([signature for signature in catalog.signatures if signature.status != "deprecated"])

    def evaluate(self, evidence: Sequence[Evidence]) -> dict[str, Match]:
        """The matches by signature id, in the catalog's order; only of signatures that hold."""
        return self.start_session().add(evidence)

    def start_session(self) -> MatchSession:
        """A session for evidence that comes in parts."""
        return MatchSession(self._plan)


def remember_last(build: Callable[[_Argument], _Result]) -> Callable[[_Argument], _Result]:
    """Return `build`, which remembers its last result: most jobs of a process have the same signatures.

    The argument is compared, not hashed: signatures contain dictionaries. Comparing the same objects is quick.
    """
    last: tuple[_Argument, _Result] | None = None

    def build_once(argument: _Argument) -> _Result:
        nonlocal last
        pair = last
        if pair is None or pair[0] != argument:
            pair = last = (argument, build(argument))
        return pair[1]

    return build_once


find_matcher = remember_last(Matcher)


class MatchSession:
    """Matches evidence that comes in parts; each piece is tested once."""

    def __init__(self, plan: MatchPlan) -> None:
        self._plan = plan
        self._groups: dict[Any, DistinctEvidence] = {}
        self._searches = BacktrackingSearches()
        self._hits: _MutableHits = _empty_hits()
        self._count = 0
        self._sizes: dict[int, int] = {}
        self._decided: dict[int, Match | None] = {}

    def add(self, evidence: Sequence[Evidence]) -> dict[str, Match]:
        """The matches over all evidence added so far; indices count through the parts."""
        new = add_evidence(evidence, self._groups, self._searches, self._count)
        self._count += len(evidence)
        self._plan.test(new, self._hits)
        sizes = {owner: sum(map(len, leaves.values())) for owner, leaves in self._hits.items()}
        # A signature without new hits is still decided, unless known evidence occurred again.
        all_new = len(new) == len(evidence)
        known = {
            owner: match for owner, match in self._decided.items() if all_new and sizes[owner] == self._sizes[owner]
        }
        self._sizes = sizes
        matches, self._decided = self._plan.decide(list(self._groups.values()), self._hits, known)
        return matches

    def list_timeouts(self) -> tuple[str, ...]:
        """The signatures with a pattern that needed too much time, so that it was not searched everywhere."""
        return self._plan.list_owners(self._searches.timed_out)


def positive_leaves(match: Clause | Leaf | None) -> Iterator[Leaf]:
    """The leaves whose evidence counts, that is all but those under `none`."""
    if isinstance(match, Leaf):
        yield match
    elif match is not None:
        for part in match.parts:
            yield from positive_leaves(part)


def _lone_leaves(match: Clause | Leaf | None) -> Iterator[Leaf]:
    """The leaves that need no other evidence: those that are not under `all`."""
    if isinstance(match, Leaf):
        yield match
    elif match is not None and match.op == "any":
        for part in match.parts:
            yield from _lone_leaves(part)


def all_leaves(match: Clause | Leaf | None) -> Iterator[Leaf]:
    """All leaves, also those under `none`."""
    if isinstance(match, Leaf):
        yield match
    elif match is not None:
        for part in (*match.parts, *match.none):
            yield from all_leaves(part)


def describe_clause(node: Clause | Leaf) -> str:
    """Describe the condition in one line."""
    if isinstance(node, Clause):
        return f"{'at least one' if node.op == 'any' else 'all'} of these {len(node.parts)}"
    parts = [f"kind {node.kind}"] if node.kind is not None else []
    parts += [f"component {node.component}"] if node.component is not None else []
    parts += ["engine regex"] if node.engine == "regex" else []
    parts += [f"text /{node.text}/"] if node.text is not None else []
    parts += [f"with {name} {' or '.join(values)}" for name, values in node.values.items()]
    parts += [f"not /{node.not_text}/"] if node.not_text is not None else []
    parts += [f"{name} /{pattern}/" for name, pattern in node.fields.items()]
    parts += ["only as context"] if node.context else []
    return ", ".join(parts)


class MatchPlan:
    """The leaves of some signatures, indexed so that evidence is tested only against those that may match."""

    def __init__(self, signatures: Iterable[Signature]) -> None:
        self._signatures = [signature for signature in signatures if signature.match is not None]
        self._numbers = {signature.id: number for number, signature in enumerate(self._signatures)}
        self._leaves: list[tuple[int, Leaf]] = [  # with the number of the signature
            (owner, leaf)
            for owner, signature in enumerate(self._signatures)
            for leaf in positive_leaves(signature.match)
        ]
        by_literal: dict[str, list[int]] = {}
        self._by_kind: dict[str | None, list[int]] = {}
        for number, (_, leaf) in enumerate(self._leaves):
            for literal in leaf.literals:
                by_literal.setdefault(literal, []).append(number)
            if not leaf.literals:
                self._by_kind.setdefault(leaf.kind, []).append(number)
        self._literals = list(by_literal)
        self._leaves_by_literal = list(by_literal.values())
        self._ignores_digits: dict[int, bool] = {}
        self._shapes: dict[tuple[str, str, bytes], _Shape] = {}
        self._leaf_groups: dict[frozenset[int], LeafGroup] = {}
        self._literal_finder = _LiteralFinder(self._literals)

    @functools.cached_property
    def _claims(self) -> set[int]:
        """The numbers of the leaves that state a cause without other evidence."""
        stating = (signature for signature in self._signatures if signature.role in ROLES)
        alone = {id(leaf) for signature in stating for leaf in _lone_leaves(signature.match)}
        return {number for number, (_, leaf) in enumerate(self._leaves) if id(leaf) in alone}

    def decide(
        self, groups: Sequence[DistinctEvidence], hits: Mapping[int, _Hits], known: Mapping[int, Match | None]
    ) -> tuple[dict[str, Match], dict[int, Match | None]]:
        """Which signatures hold, from the hits of their leaves; the second value has all decisions by number.

        `known` are decisions that are still valid, except for signatures that yield to others.
        """
        decided: dict[int, Match | None] = {}
        matches: dict[int, Match] = {}
        # Signatures that yield come last: the matches they yield to are known by then.
        for owner in sorted(hits, key=lambda number: (bool(self._signatures[number].yields_to), number)):
            signature = self._signatures[owner]
            if owner in known and not signature.yields_to:
                match = known[owner]
            else:
                numbers = (self._numbers.get(name, -1) for name in signature.yields_to)
                taken = {index for number in numbers if number in matches for index in matches[number].indices}
                match = _decide(signature.match, _drop_yielded(hits[owner], taken, groups), groups)
            decided[owner] = match
            if match is not None:
                matches[owner] = match
        return {self._signatures[owner].id: matches[owner] for owner in sorted(matches)}, decided

    def list_owners(self, patterns: Set[str]) -> tuple[str, ...]:
        """The ids of the signatures that have one of these patterns, in order."""
        if not patterns:
            return ()
        return tuple(
            signature.id
            for signature in self._signatures
            if any(patterns & {leaf.text, leaf.not_text} for leaf in all_leaves(signature.match))
        )

    def test(self, groups: Sequence[DistinctEvidence], hits: _MutableHits) -> None:
        """Add to `hits`: signature number to leaf to the evidence that it matches, with captures."""
        by_shape: defaultdict[tuple[str, str, bytes], list[DistinctEvidence]] = defaultdict(list)
        for group in groups:
            by_shape[group.kind, group.component, digit_masking.mask_digits(group.bytes)].append(group)
        for key, same in by_shape.items():
            shape = self._shapes.get(key)
            if shape is None:
                shape = self._test_shape(same[0], key[2])
                if len(self._shapes) < MAX_SHAPES:
                    self._shapes[key] = shape
            for owner, leaf_id, spans in shape.matches:
                hits[owner][leaf_id].update(
                    (group.number, _cut_captures(group.bytes, spans) if spans else NO_CAPTURES) for group in same
                )
            if shape.digit_leaves is not None:
                for group in same:
                    for owner, leaf, captures in shape.digit_leaves.find_matches(group):
                        hits[owner][id(leaf)][group.number] = captures

    def _test_shape(self, group: DistinctEvidence, masked: bytes) -> _Shape:
        """Test the leaves that ignore digits, and collect the others that may match."""
        matches, digit_leaves = [], []
        excluded = self._claims if is_mention(group) else set[int]()
        for number in sorted(self._candidates(masked, group.kind)):
            owner, leaf = self._leaves[number]
            if leaf.kind not in (None, group.kind) or leaf.component not in (None, group.component):
                continue
            if number in excluded:
                continue
            if number not in self._ignores_digits:
                self._ignores_digits[number] = digit_masking.ignores_digits(leaf)
            if not self._ignores_digits[number]:
                digit_leaves.append(number)
            elif (spans := digit_masking.find_group_spans(leaf, masked)) is not None:
                matches.append((owner, id(leaf), spans))
        numbers = frozenset(digit_leaves)
        if numbers not in self._leaf_groups:
            self._leaf_groups[numbers] = LeafGroup([self._leaves[number] for number in digit_leaves])
        return _Shape(tuple(matches), self._leaf_groups[numbers] if digit_leaves else None)

    def _candidates(self, masked: bytes, kind: str) -> set[int]:
        """Numbers of the leaves with a literal in a masked text, and of those without literals."""
        occurring = self._literal_finder.find(masked)
        numbers = {number for literal in occurring for number in self._leaves_by_literal[literal]}
        numbers.update(self._by_kind.get(kind, ()), self._by_kind.get(None, ()))
        return numbers


@dataclass(frozen=True, slots=True)
class _Shape:
    """Test results of all texts that differ only in digits.

    `matches`: signature number, id of a leaf that matches all of them, spans of its groups. `digit_leaves`: the leaves
    that have to be tested on each text.
    """

    matches: tuple[tuple[int, int, digit_masking.GroupSpans], ...]
    digit_leaves: LeafGroup | None


def _empty_hits() -> _MutableHits:
    return defaultdict(lambda: defaultdict(dict))


def _cut_captures(text: bytes, spans: digit_masking.GroupSpans) -> Captures:
    return {name: text[start:end].decode("utf-8", "replace") for name, (start, end) in spans.items()}


class _LiteralFinder:
    """Finds the masked literals that occur in masked texts.

    After some texts it builds an automaton, which finds them in one pass, 30 times faster than one search each.
    """

    def __init__(self, literals: Sequence[str]) -> None:
        self._needles = list(map(digit_masking.mask_literal, literals))
        self._text_count = 0
        self._search: Callable[[bytes], Iterable[int]] = self._search_each

    def find(self, text: bytes) -> Iterable[int]:
        """The numbers of the literals in a text, in any order."""
        self._text_count += 1
        if self._text_count == TEXTS_BEFORE_AUTOMATON:
            literals = [needle.decode("utf-8") for needle in self._needles]
            automaton = regex.build_set_search(literals, LITERAL_MEMORY, literal=True) if literals else None
            self._search = automaton or self._search_each  # None: too many for the memory
        return self._search(text)

    def _search_each(self, text: bytes) -> list[int]:
        return [number for number, needle in enumerate(self._needles) if needle in text]


def _drop_yielded(hits: _Hits, taken: set[int], groups: Sequence[DistinctEvidence]) -> _Hits:
    """The hits without evidence whose every index is taken by the signatures that this one yields to."""
    if not taken:
        return hits
    remaining = {
        leaf: {number: captures for number, captures in of_leaf.items() if not taken.issuperset(groups[number].indices)}
        for leaf, of_leaf in hits.items()
    }
    return {leaf: of_leaf for leaf, of_leaf in remaining.items() if of_leaf}


def _decide(match: Clause | Leaf | None, hits: _Hits, groups: Sequence[DistinctEvidence]) -> Match | None:
    clauses: list[ClauseLine] = []
    numbers = sorted(_matching_evidence(match, hits, groups, clauses, 0)) if match is not None else []
    if not numbers:
        return None
    values = _collect_values(match, hits, numbers)
    showing = {number for leaf in positive_leaves(match) if not leaf.context for number in hits.get(id(leaf), ())}
    shown = filter(showing.__contains__, numbers)
    return Match(
        indices=tuple(sorted(chain.from_iterable(map(_INDICES, map(groups.__getitem__, shown))))),
        captures={name: of_name[0] for name, of_name in values.items()},
        clauses=tuple(clauses),
        values=values,
    )


def _collect_values(match: Clause | Leaf | None, hits: _Hits, numbers: Iterable[int]) -> dict[str, tuple[str, ...]]:
    values: dict[str, dict[str, None]] = {}
    leaves = [of_leaf for leaf in positive_leaves(match) if (of_leaf := hits.get(id(leaf))) and any(of_leaf.values())]
    for number in numbers:
        for of_leaf in leaves:
            for name, value in of_leaf.get(number, NO_CAPTURES).items():
                known = values.setdefault(name, {})
                if len(known) < MAX_VALUES:
                    known[value] = None
    return {name: tuple(known) for name, known in values.items()}


def _matching_evidence(
    node: Clause | Leaf, hits: _Hits, groups: Sequence[DistinctEvidence], clauses: list[ClauseLine], depth: int
) -> set[int]:
    """Numbers of the evidence that the node matches; add its line, and those of its parts, to `clauses`."""
    place = len(clauses)
    clauses.append(("", False, 0))
    if isinstance(node, Leaf):
        numbers = set(hits.get(id(node), ()))
    else:
        parts = [_matching_evidence(part, hits, groups, clauses, depth + 1) for part in node.parts]
        dropped: set[int] = set()
        for leaf in node.none:
            hit = {number for part in parts for number in part if groups[number].test(leaf) is not None}
            line = f"{'  ' * (depth + 1)}none: {describe_clause(leaf)}"
            clauses.append((line, not hit, _count_evidence(hit, groups)))
            dropped |= hit
        parts = [part - dropped for part in parts]
        numbers = set().union(*parts) if node.op == "any" or all(parts) else set()
    clauses[place] = ("  " * depth + describe_clause(node), bool(numbers), _count_evidence(numbers, groups))
    return numbers


def _count_evidence(numbers: Iterable[int], groups: Sequence[DistinctEvidence]) -> int:
    return sum(map(len, map(_INDICES, map(groups.__getitem__, numbers))))
