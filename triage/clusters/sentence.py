"""What a masked headline says, as a release might word it anew: its telling words, what it denies, how many values."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.clusters.rules import load_rules

CLASS_NAME = lazy_re(r"^(\w{1,80}): ")
_PLACE = lazy_re(r"@\S+")
# `(device <n>, queue <n>)`: names and values in brackets add nothing to a sentence.
REMARK = lazy_re(
    r"\((?:[a-z_]{1,24}[ =:]{1,2})?<[a-z]+>(?:(?:, | of |/| vs\.? )(?:[a-z_]{1,24}[ =:]{1,2})?<[a-z]+>){0,6}\)"
)
_MASK = lazy_re(r"<[a-z]+>")
_VALUE = lazy_re(r"\S*<(?!place>)[a-z]+>\S*")
_DENYING = lazy_re(r"(?:non-|read-)?[^\W\d_]+")
_NOT_A_VALUE = lazy_re(r"\b(?:not|no) (?:(?:to|at|of|from) )?(?=<[a-z]+>)")
_NONE_LEFT = lazy_re(r"\bno (?:more )?(\w+(?: \w+)?) (?:is |are )?(?:left|remain(?:s|ing)?|available|free)\b")
_LETTERS = lazy_re(r"[^\W\d_]+")
# `flag 'router'` and `table corpus_v2`: what kind of thing the name behind it is.
_KIND_OF_NAME = lazy_re(r"""([^\W\d_]+) ['"`]?(?:[^\W\d]\w*(?:[._:]+[\w<>]+)+|[a-z]+_\w+|['"`]\w)""")
_ENDING = lazy_re(r"(?<=\w{4})(?:at(?:ed?|es|ing|ions?|ors?)|ing|ed|es|ions?|[ea]nces?|ables?|s)$")
_DOUBLED = lazy_re(r"(?<=([bdgmnprt]))\1$")  # of `fitted` and `dropping`
_ABSENT, _UNSUPPORTED, ABSENCE = "not found", "not supported", "absent"
_NORM = lazy_re(r"\b(?:must|should|expect(?:s|ed)?|needs?|requires?|required|only|at (?:most|least))\b")
_NEGATIONS = frozenset(("never", "no", "none", "not", "without"))
# What is missing stands behind these words, where it does not stand before them.
_OBJECT = lazy_re(
    r"\b(?:(?<!is )(?<!are )missing|lack(?:s|ing)?|no) (?:such |the |an? |any )?"
    r"((?!(?:at|by|for|from|in|of|on|to)\b)[^\W\d_]+)"
)
_NO = lazy_re(r"\b(?:no|none) \w")
_PENDING = frozenset(("before", "until"))
_REFUSAL, _AIM = "cannot", "to"


@dataclass(frozen=True, slots=True)
class Sentence:
    """`stems` are the words that say something, in their order and without endings; `kinds` those before a name or a
    quotation; `values` counts the values, `stated_values` those that are not in brackets.

    `denied` follow a word such as `not`, or are denied by a word such as `unknown`; `refused` follow `cannot`, `aims`
    follow `to`, `pending` follow `before`. `states` say in common words what is wrong with a thing, `objects` are
    missing. `is_negative`: it says that something is absent, or denies more than a common word; `is_norm`: it says what
    should be.
    """

    type: str
    stems: tuple[str, ...]
    kinds: frozenset[str]
    values: int
    stated_values: int
    denied: frozenset[str]
    refused: frozenset[str]
    aims: frozenset[str]
    states: frozenset[str]
    objects: frozenset[str]
    pending: frozenset[str]
    is_negative: bool
    is_norm: bool


@functools.lru_cache(maxsize=1 << 14)
def read_sentence(headline: str) -> Sentence:
    """Return the sentence of a masked headline."""
    match = CLASS_NAME.match(headline)
    text = _PLACE.sub(" ", headline[match.end() :] if match else headline)
    values = len(_VALUE.findall(text))
    stated_values = len(_VALUE.findall(REMARK.sub(" ", text.lower())))
    text = _MASK.sub(" ", _NOT_A_VALUE.sub(" ", text))
    unified = load_rules().unify(text.lower())
    rest = _NONE_LEFT.sub(r"exhausted \1", unified.replace("no longer ", " ")).replace(_UNSUPPORTED, " not supported ")
    plain = _DENYING.sub(_deny, rest)
    shown = plain.replace(_ABSENT, " ")
    denied = frozenset(_following(shown, _NEGATIONS))
    refused = frozenset(_following(shown, {_REFUSAL}))
    stems = tuple(split_stems(shown))
    states = (denied & framing_stems()) | plain_state_stems().intersection(stems)
    if _ABSENT in plain or _NO.search(shown):
        states |= {ABSENCE}
    objects = frozenset(stem for term in _OBJECT.findall(text.lower()) for stem in split_stems(term)) - framing_stems()
    kinds = frozenset(stem for kind in _KIND_OF_NAME.findall(text) for stem in split_stems(kind))
    return Sentence(
        match[1] if match else "",
        stems,
        kinds,
        values,
        stated_values,
        denied,
        refused,
        frozenset(_following(shown, {_AIM})),
        states,
        objects - kinds,
        frozenset(_following(shown, _PENDING)),
        _ABSENT in plain or bool(denied - framing_stems()),
        _NORM.search(unified) is not None,
    )


def _deny(match: re.Match[str]) -> str:
    """Return `not same` for `differs`."""
    denied = _denied_words().get(match[0])
    return f"not {denied}" if denied else match[0]


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
def _denied_words() -> dict[str, str]:
    """Return what each word denies that says in itself that something is not so."""
    return {term: denied[0] for terms, denied in load_rules().denials for term in terms}


@functools.cache
def plain_state_stems() -> frozenset[str]:
    """Return the stems of words that say by themselves what is wrong with a thing."""
    return frozenset(map(_stem, load_rules().plain_states))


@functools.cache
def implied_stems() -> frozenset[str]:
    """Return the stems of words whose denial two values show without a word."""
    return frozenset(map(_stem, load_rules().implied))


@functools.cache
def alike_states() -> tuple[frozenset[str], ...]:
    """Return the groups of states of which one may stand for another."""
    return tuple(frozenset(_stem(term) for term in group) | ({ABSENCE} & set(group)) for group in load_rules().states)


@functools.cache
def framing_stems() -> frozenset[str]:
    """Return the stems of words that say how something is reported, not what."""
    return frozenset(map(_stem, load_rules().framing))


@functools.cache
def turning_stems(*, but_relations: bool = False) -> frozenset[str]:
    """Return the stems of words that make another statement, without those of relations where these may be left out."""
    rules = load_rules()
    turning = frozenset(map(_stem, rules.turning - rules.empty - _NEGATIONS - {_REFUSAL}))
    return turning - comparing_stems() - frozenset(map(_stem, rules.casual)) if but_relations else turning


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
    sides = (
        *rules.synonyms,
        *(denied for _, denied in rules.denials),
        *(side for pair in rules.opposites for side in pair),
    )
    return {term: _without_ending(side[0]) for side in sides for term in side}
