"""What a masked headline says, as a release might word it anew: its telling words, what it denies, how many values."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.clusters.rules import load_rules

CLASS_NAME = lazy_re(r"^(\w{1,80}): ")
_PLACE = lazy_re(r"@\S+")
_MASK = lazy_re(r"<[a-z]+>")
_VALUE = lazy_re(r"\S*<(?!place>)[a-z]+>\S*")
_LETTERS = lazy_re(r"[^\W\d_]+")
# `flag 'router'` and `table corpus_v2`: what kind of thing the name behind it is.
_KIND_OF_NAME = lazy_re(r"""([^\W\d_]+) ['"`]?(?:[^\W\d]\w*(?:[._:]+[\w<>]+)+|[a-z]+_\w+|['"`]\w)""")
_ENDING = lazy_re(r"(?<=\w{4})(?:ing|ed|es|ions?|[ea]nces?|s)$")
_DOUBLED = lazy_re(r"(?<=([bdgmnprt]))\1$")  # of `fitted` and `dropping`
_ABSENT, _UNSUPPORTED = "not found", "not supported"
_NORM = lazy_re(r"\b(?:must|should|expect(?:s|ed)?|needs?|requires?|required|only|at (?:most|least))\b")
_NEGATIONS = frozenset(("never", "no", "none", "not", "without"))
_REFUSAL, _AIM = "cannot", "to"


@dataclass(frozen=True, slots=True)
class Sentence:
    """`stems` are the words that say something, in their order and without endings; `kinds` those before a name or a
    quotation; `values` counts the values.

    `denied` follow a word such as `not`, `refused` follow `cannot`, `aims` follow `to`. `is_negative`: it says that
    something is not so; `is_norm`: it says what should be.
    """

    type: str
    stems: tuple[str, ...]
    kinds: frozenset[str]
    values: int
    denied: frozenset[str]
    refused: frozenset[str]
    aims: frozenset[str]
    is_negative: bool
    is_norm: bool


@functools.lru_cache(maxsize=1 << 14)
def read_sentence(headline: str) -> Sentence:
    """Return the sentence of a masked headline."""
    match = CLASS_NAME.match(headline)
    text = _PLACE.sub(" ", headline[match.end() :] if match else headline)
    values = len(_VALUE.findall(text))
    text = _MASK.sub(" ", text)
    unified = load_rules().unify(text.lower()).replace(_UNSUPPORTED, " supported ")
    rest = unified.replace(_ABSENT, " ")
    denied = frozenset(_following(rest, _NEGATIONS))
    return Sentence(
        match[1] if match else "",
        tuple(split_stems(rest)),
        frozenset(stem for kind in _KIND_OF_NAME.findall(text) for stem in split_stems(kind)),
        values,
        denied,
        frozenset(_following(rest, {_REFUSAL})),
        frozenset(_following(rest, {_AIM})),
        bool(denied) or rest != unified,
        _NORM.search(unified) is not None,
    )


def _following(text: str, openers: Collection[str]) -> Iterator[str]:
    """Yield the first telling word behind each of the openers, else the last word of the text."""
    last, is_open = "", False
    for term in _LETTERS.findall(text):
        if term in openers:
            is_open = True
        elif own := split_stems(term):
            last = own[0]
            if is_open:
                yield last
            is_open = False
    if is_open and last:
        yield last


@functools.cache
def framing_stems() -> frozenset[str]:
    """Return the stems of words that say how something is reported, not what."""
    return frozenset(map(_stem, load_rules().framing))


@functools.cache
def turning_stems(*, but_relations: bool = False) -> frozenset[str]:
    """Return the stems of words that make another statement, without those of relations where these may be left out."""
    rules = load_rules()
    turning = frozenset(map(_stem, rules.turning - rules.empty - _NEGATIONS - {_REFUSAL}))
    return turning - comparing_stems() if but_relations else turning


@functools.cache
def opposites() -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """Return the stems of words that exclude each other, as pairs."""
    return tuple((frozenset(map(_stem, one)), frozenset(map(_stem, other))) for one, other in load_rules().opposites)


@functools.cache
def relations() -> tuple[tuple[str, str], ...]:
    """Return the stems by which two things are compared: `a` exceeds `b` where `b` is below `a`."""
    return tuple((_stem(one), _stem(other)) for one, other in load_rules().relations)


@functools.cache
def comparing_stems() -> frozenset[str]:
    """Return the stems of relations, which a sentence need not name: it gives the limit, or the time."""
    return frozenset(stem for pair in relations() for stem in pair)


def split_stems(text: str) -> list[str]:
    """Return the words of a text that say something, in lower case and without endings."""
    empty = load_rules().empty
    terms = (term.lower() for term in _LETTERS.findall(text))
    return [
        _stem(term)
        for term in terms
        if len(term) > 1 and term not in empty and term not in _NEGATIONS and term != _REFUSAL
    ]


def _stem(term: str) -> str:
    """Return a word without its ending, or the first of those that say the same."""
    return _first_of_same().get(term) or _without_ending(term)


def _without_ending(term: str) -> str:
    return _DOUBLED.sub("", _ENDING.sub("", term)).rstrip("e")


@functools.cache
def _first_of_same() -> dict[str, str]:
    rules = load_rules()
    sides = (*rules.synonyms, *(side for pair in rules.opposites for side in pair))
    return {term: _without_ending(side[0]) for side in sides for term in side}
