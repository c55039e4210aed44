"""Two headlines of one cause in other words: a release changes a sentence, a caller quotes it, a check adds a message.

Where nothing is quoted, several things must agree: the guard and the class of the exception, the place that raised it,
and most words that say something. Two sentences that differ only in words that stand in each other's place (`heads by
tensor ranks`, `layers by pipeline ranks`) are two conditions written alike; and so are two that each name something
that the other does not.
"""

from __future__ import annotations

import difflib
import functools

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.clusters.known_key import CRASH_GUARD, KnownKey
from triage.clusters.rules import load_rules

_CLASS_NAME = lazy_re(r"^(\w{1,80}): ")
_MASK = lazy_re(r"<[a-z]+>|@\S+")
_LETTERS = lazy_re(r"[^\W\d_]+")
_NAME = lazy_re(r"[^\W\d]\w*(?:[._:]+\w+)+|\b[A-Z]?[a-z]+[A-Z]\w*")
_ENDING = lazy_re(r"(?<=\w{4})(?:ing|ed|es|ions?|s)$")
_NEGATIONS = frozenset(("cannot", "no", "none", "not", "without"))
_LEAST_SHARED = 2
_SAME_FUNCTION, _SAME_FILE = 0.5, 0.75
_SAME_ORDER = 0.7
_LEAST_QUOTED = 3
# Behind a condition stands its message, if no operator does.
_CONDITION_GOES_ON = lazy_re(r"\s(?:[&|+*/%<>=!?-]|and |or )")


@dataclass(frozen=True, slots=True)
class Sentence:
    """`stems` are the words of a headline that say something, in their order and without endings; `names` the parts of
    each identifier in it, as stems; `negations` the number of words such as `not`.
    """

    type: str
    stems: tuple[str, ...]
    names: tuple[frozenset[str], ...]
    negations: int


@functools.lru_cache(maxsize=1 << 14)
def read_sentence(headline: str) -> Sentence:
    """Return the sentence of a masked headline."""
    match = _CLASS_NAME.match(headline)
    text = _MASK.sub(" ", headline[match.end() :] if match else headline)
    names = tuple(frozenset(_stems(name)) for name in _NAME.findall(text))
    unified = load_rules().unify(text.lower())
    negations = sum(term in _NEGATIONS for term in _LETTERS.findall(unified))
    return Sentence(match[1] if match else "", tuple(_stems(unified)), names, negations)


@functools.cache
def _turning_stems() -> frozenset[str]:
    """Return the stems of the words that make another statement, and of `not found`."""
    rules = load_rules()
    return frozenset(map(_stem, rules.turning - rules.empty - _NEGATIONS)) | {"found"}


def _stems(text: str) -> list[str]:
    empty = load_rules().empty
    terms = (term.lower() for term in _LETTERS.findall(text))
    return [_stem(term) for term in terms if len(term) > 1 and term not in empty and term not in _NEGATIONS]


def _stem(term: str) -> str:
    return _ENDING.sub("", term).rstrip("e")


def are_reworded(new: KnownKey, known: KnownKey) -> bool:
    """Whether two keys under one guard say the same, in other words of one place or as one quotes the other."""
    if new.guard.startswith(CRASH_GUARD):
        return _is_condition_of(new, known)
    return _is_quoted(new.headline, known.headline) or _says_the_same(new, known)


def _is_quoted(one: str, other: str) -> bool:
    """Whether a headline ends with the whole other one, behind what failed outside and a colon."""
    short, long = sorted((one.lower(), other.lower()), key=len)
    inner = _CLASS_NAME.sub("", short, 1)
    return len(read_sentence(inner).stems) >= _LEAST_QUOTED and long.endswith(f": {inner}")


def _is_condition_of(new: KnownKey, known: KnownKey) -> bool:
    """Whether one is a condition that failed at a crash point, and the other the same with a message."""
    short, long = sorted((new.headline.lower(), known.headline.lower()), key=len)
    rest = long.removeprefix(short)
    return rest != long and rest[:1] == " " and _CONDITION_GOES_ON.match(rest) is None


def _says_the_same(new: KnownKey, known: KnownKey) -> bool:
    if not new.place or new.place.split(":")[0] != known.place.split(":")[0]:
        return False
    is_one_function = new.place == known.place
    if not is_one_function and f"@{new.place}" in new.headline:  # the place is a word of the headline
        return False
    least = _SAME_FUNCTION if is_one_function else _SAME_FILE
    one, other = read_sentence(new.headline), read_sentence(known.headline)
    here, there = set(one.stems), set(other.stems)
    shared = len(here & there)
    if one.type != other.type or shared < _LEAST_SHARED or shared < least * len(here | there):
        return False
    if (here ^ there) & _turning_stems() or _is_template(one, other):
        return False
    return not (_names_own(one, there) and _names_own(other, here))


def _names_own(sentence: Sentence, others: set[str]) -> bool:
    """Whether a sentence has an identifier of which the other one has not all parts."""
    return any(not parts <= others for parts in sentence.names)


def _is_template(one: Sentence, other: Sentence) -> bool:
    """Whether words stand in each other's place in a sentence that is the same otherwise, or only a `not` is added."""
    if one.stems == other.stems:
        return one.negations != other.negations
    matcher = difflib.SequenceMatcher(None, one.stems, other.stems, autojunk=False)
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    return all(_is_even(change) for change in changes) or (
        matcher.ratio() >= _SAME_ORDER and any(change[0] == "replace" for change in changes)
    )


def _is_even(change: tuple[str, int, int, int, int]) -> bool:
    """Whether as many words came as went."""
    _, start, end, first, last = change
    return end - start == last - first
