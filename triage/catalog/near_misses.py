"""Lines that failed a signature's pattern by little: its words in order, but for a few.

Wordings change with versions: the case, punctuation, an inserted word, a torn letter. Such a line looks like a new
wording of the signature, and is never its finding. This runs on the few lines of unknown failures.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from triage.base.lazy_re import lazy_re
from triage.catalog.backtracking import search_text
from triage.catalog.match import all_leaves, remember_last
from triage.catalog.model import Clause, Leaf, Signature
from triage.catalog.regex import compile_pattern
from triage.catalog.wordings import Wording, list_wordings, split_words

LEAST_WEIGHT = 12.0  # of all words of a wording; a word of one signature alone has about 6, a common one 1
WORDS_PER_CHANGE = 4  # a wording of so many words may differ in one, and in at least one
MOST_CHANGES = 3
LEAST_TORN = 5  # letters of a word in which one may be wrong
LEAST_SHARE = 0.6  # of the weight of a wording's words that the line must have as they are
MOST_LACKING = 0.15  # of the weight, that a single word may have which the line lacks
MAX_CHARACTERS = 1000  # of the text that is compared
MAX_WORDS = 120
MOST_LEAVES_OF_WORD = 40  # a word of more leaves selects no candidate
MOST_LEAVES = 60  # leaves whose patterns are read for one text, those that share most first
MOST_COMPARED = 12  # wordings that are compared with one text
MOST_NAMED = 3  # signatures that are equally near
_SECONDS_FOR_WORD = 0.5  # of the search for one wrong letter in a word
_UNKNOWN_WEIGHT = 3.0  # of a word that a pattern spells in several ways
# With or without one of these, a message says something else.
_TURNING = frozenset(("not", "no", "never", "without", "cannot", "isn", "won", "didn", "doesn", "wasn", "t"))

_SPELLINGS = lazy_re(r"\[([A-Za-z])[A-Za-z]\]")  # `[Tt]imed` is one word


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A signature that a text nearly matches, its leaf, and the changes of the wording in words."""

    signature: Signature
    leaf: Leaf
    differences: tuple[str, ...]


def describe_near_misses(misses: Sequence[NearMiss]) -> str:
    """A sentence for the reasons of a finding. The misses are equally near."""
    names = " or ".join(miss.signature.id for miss in misses)
    details = "; ".join(misses[0].differences) or "only case, punctuation or values differ"
    return f"Looks like a new wording of {names}: {details}"


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A wording of a leaf, in lower case too; `droppable` are words of which a text may lack one."""

    signature: Signature
    leaf: Leaf
    wording: Wording
    terms: tuple[str, ...]
    weight: float
    droppable: frozenset[str]


class NearMissIndex:
    """The leaves of a catalog by the words of their patterns. Patterns are read only where a text has such words."""

    def __init__(self, signatures: Iterable[Signature]) -> None:
        self._leaves = [(signature, leaf) for signature in signatures for leaf in _list_leaves(signature)]
        owners: defaultdict[str, set[str]] = defaultdict(set)
        self._by_word: defaultdict[str, list[int]] = defaultdict(list)
        for number, (signature, leaf) in enumerate(self._leaves):
            for term in {term.lower() for term in split_words(_SPELLINGS.sub(r"\1", leaf.text or ""))}:
                owners[term].add(signature.id)
                self._by_word[term].append(number)
        count = len({signature.id for signature, _ in self._leaves})
        self._weight = {term: math.log((count + 1) / len(ids)) for term, ids in owners.items()}

    def find(self, text: str) -> tuple[NearMiss, ...]:
        """The signatures whose wording is nearest to the text; empty if none is near.

        The limits above bound the work: a limit of time would let the answer depend on what else the machine does.
        """
        terms = split_words(text[:MAX_CHARACTERS])[:MAX_WORDS]
        best: dict[str, tuple[int, float, NearMiss]] = {}
        for one in self._choose_candidates(frozenset(term.lower() for term in terms)):
            differences = _compare(one, terms)
            if differences is not None and not _is_decided(one, text):
                miss = NearMiss(one.signature, one.leaf, differences)
                ranked = (len(differences), -one.weight, miss)
                best[one.signature.id] = min(ranked, best.get(one.signature.id, ranked), key=lambda item: item[:2])
        fewest = min((changes for changes, _, _ in best.values()), default=0)
        nearest = sorted((weight, name) for name, (changes, weight, _) in best.items() if changes == fewest)
        return tuple(best[name][2] for _, name in nearest[:MOST_NAMED])

    def _choose_candidates(self, terms: frozenset[str]) -> list[_Candidate]:
        """The wordings that share most with these words, in a fixed order."""
        shared: defaultdict[int, float] = defaultdict(float)
        for term in sorted(terms):
            numbers = self._by_word.get(term, ())
            for number in numbers if len(numbers) <= MOST_LEAVES_OF_WORD else ():
                shared[number] += self._weight[term]
        nearest = sorted(shared, key=lambda number: (-shared[number], number))[:MOST_LEAVES]
        candidates = [(self._share(one, terms), one) for number in nearest for one in self._list_wordings(number)]
        near = [pair for pair in candidates if pair[0] >= LEAST_SHARE and pair[1].weight >= LEAST_WEIGHT]
        return [one for _, one in sorted(near, key=lambda pair: (-pair[0], pair[1].signature.id))[:MOST_COMPARED]]

    def _list_wordings(self, number: int) -> list[_Candidate]:
        signature, leaf = self._leaves[number]
        candidates = []
        for wording in list_wordings(leaf.text or ""):
            terms = tuple(term.lower() for term in wording.terms)
            weight = sum(map(self._weigh, terms))
            common = frozenset(term for term in terms if self._weigh(term) <= MOST_LACKING * weight)
            candidates.append(_Candidate(signature, leaf, wording, terms, weight, common - _TURNING))
        return candidates

    def _share(self, one: _Candidate, terms: frozenset[str]) -> float:
        return sum(self._weigh(term) for term in one.terms if term in terms) / (one.weight or 1.0)

    def _weigh(self, term: str) -> float:
        return self._weight.get(term, _UNKNOWN_WEIGHT)


find_index = remember_last(NearMissIndex)


def _list_leaves(signature: Signature) -> Iterator[Leaf]:
    """The leaves that name one failure by their text; a row of a table is known by its code alone."""
    if signature.status != "deprecated" and signature.role != "noise":
        for leaf in _sufficient_leaves(signature.match):
            if leaf.text is not None and not leaf.values and leaf.kind != "inference":
                yield leaf


def _sufficient_leaves(match: Clause | Leaf | None) -> Iterator[Leaf]:
    """The leaves that make the signature hold by themselves."""
    if isinstance(match, Leaf):
        yield match
    elif match is not None and (match.op == "any" or len(match.parts) == 1):
        for part in match.parts:
            yield from _sufficient_leaves(part)


def _is_decided(one: _Candidate, text: str) -> bool:
    """Whether the pattern itself decides about the text: it matches, or the signature excludes such a text."""
    excluding = [leaf.not_text for leaf in all_leaves(one.signature.match) if leaf.not_text is not None]
    if isinstance(one.signature.match, Clause):
        excluding += [leaf.text for leaf in one.signature.match.none if leaf.text is not None]
    return any(_is_found(pattern, text) for pattern in (one.leaf.text or "", *excluding))


def _is_found(pattern: str, text: str) -> bool:
    try:
        return compile_pattern(pattern).search(text) is not None
    except ValueError:  # a pattern of the other engine
        return search_text(pattern, text) is not None


_States = dict[int, tuple[int, tuple[str, ...]]]  # words of the line that are read to (changes, what they are)


def _compare(one: _Candidate, line: Sequence[str]) -> tuple[str, ...] | None:
    """The fewest changes that make a wording out of a part of the line, None if it takes too many."""
    most = min(max(len(one.terms) // WORDS_PER_CHANGE, 1), MOST_CHANGES)
    states: _States = dict.fromkeys(range(len(line) + 1), (0, ()))
    for number, term in enumerate(one.wording.terms):
        states = _skip_words(states, line, most, is_free=one.wording.after_gap[number])
        states = _read_word(states, line, term, most, may_lack=term.lower() in one.droppable)
    return min(states.values(), default=(0, None))[1]


def _skip_words(states: _States, line: Sequence[str], most: int, *, is_free: bool) -> _States:
    """The states after any words of the line that the wording does not have."""
    reached = dict(states)
    for place, term in enumerate(line):
        if place in reached and (is_free or term.lower() not in _TURNING):
            costs = not is_free and not term.isdecimal()
            changes, details = reached[place]
            _keep_best(reached, place + 1, most, changes + costs, (*details, f"with {term!r}") if costs else details)
    return reached


def _read_word(states: _States, line: Sequence[str], term: str, most: int, *, may_lack: bool) -> _States:
    """The states after this word of the wording: the line has it, has it torn, or lacks it."""
    reached: _States = {}
    for place, (changes, details) in states.items():
        if place < len(line) and line[place].lower() == term.lower():
            _keep_best(reached, place + 1, most, changes, details)
        elif changes < most:
            if place < len(line) and _is_torn(line[place], term):
                _keep_best(reached, place + 1, most, changes + 1, (*details, f"{line[place]!r} for {term!r}"))
            if may_lack:
                _keep_best(reached, place, most, changes + 1, (*details, f"without {term!r}"))
    return reached


def _keep_best(states: _States, place: int, most: int, changes: int, details: tuple[str, ...]) -> None:
    if changes <= most and (place not in states or states[place][0] > changes):
        states[place] = (changes, details)


def _is_torn(one: str, other: str) -> bool:
    """Whether two words differ in one letter. Codes and names in capitals are equal or different."""
    is_name = (one.isupper() and other.isupper()) or not (one.isalpha() and other.isalpha())
    if is_name or min(len(one), len(other)) < LEAST_TORN or abs(len(one) - len(other)) > 1:
        return False
    return _compile_torn(other.lower()).fullmatch(one.lower(), timeout=_SECONDS_FOR_WORD) is not None


@lru_cache(maxsize=4096)
def _compile_torn(term: str) -> Any:
    import regex

    return regex.compile(f"(?:{regex.escape(term)}){{e<=1}}")
