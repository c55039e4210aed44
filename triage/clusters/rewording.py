"""Two headlines of one cause in other words: a release changes a sentence, a caller quotes it, a check adds a message.

Where nothing is quoted, several things must agree: the guard and the class of the exception, the place that raised it,
and most words that say something. A function raises several sentences about the same things. So two of its sentences
are two causes where each says something that the other does not, where one denies what the other says, where one has
the opposite of a word (`input`, `output`), and where words stand in each other's place (`heads by tensor ranks`,
`layers by pipeline ranks`).
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from triage.base.lazy_re import lazy_re
from triage.clusters.known_key import CRASH_GUARD, KnownKey
from triage.clusters.sentence import (
    ABSENCE,
    CLASS_NAME,
    Sentence,
    alike_states,
    comparing_stems,
    framing_stems,
    implied_stems,
    opposites,
    read_sentence,
    relations,
    turning_stems,
)

_ANY_COMPONENT = "any|"
_LEAST_SHARED, _LEAST_WITHOUT_CLASS = 2, 3
_SAME_FUNCTION, _PLACE_OF_ONE, _SAME_FILE = 0.5, 0.6, 0.75
_SAME_IN_OTHER_FORM = 0.6
_SAME_ORDER = 0.7
_LEAST_QUOTED, _LEAST_IN_REASON = 3, 6
_COLON = lazy_re(r": ")
_PLACE_BEHIND = lazy_re(r" @\S+$")
_SAME_BEGINNING, _SHARE_OF_BEGINNING = 4, 0.6
# Behind a condition stands its message, if no operator does.
_CONDITION_GOES_ON = lazy_re(r"\s(?:[&|+*/%<>=!?-]|and |or )")


def are_reworded(new: KnownKey, known: KnownKey) -> bool:
    """Whether two keys under one guard say the same, in other words of one place or as one quotes the other."""
    if new.guard.startswith(CRASH_GUARD):
        return _is_condition_of(new, known)
    return _is_quoted(new.headline, known.headline) or _says_the_same(new, known)


def are_contrary(new: KnownKey, known: KnownKey) -> bool:
    """Whether of two headlines, of which one has all words of the other, the longer one denies what the other says, or
    has fewer values.
    """
    if len(new.terms) == len(known.terms):
        return False
    short, long = sorted((new, known), key=lambda key: len(key.terms))
    one, other = read_sentence(short.headline), read_sentence(long.headline)
    if one.states & other.states and not other.objects <= set(one.stems):
        return True
    return not (other.denied - one.denied).isdisjoint(one.stems) or one.stated_values > other.values


def _is_quoted(one: str, other: str) -> bool:
    """Whether a headline ends with the whole other one, behind what failed outside and a colon."""
    here, there = map(_PLACE_BEHIND.search, (one, other))
    if here and there and here[0] != there[0]:
        return False
    short, long = sorted((_PLACE_BEHIND.sub("", text.lower()) for text in (one, other)), key=len)
    inner = CLASS_NAME.sub("", short, 1)
    if len(read_sentence(inner).stems) >= _LEAST_QUOTED and long.endswith(f": {inner}"):
        return True
    reason = _common_reason(short, long)
    return len(set(read_sentence(reason).stems) - framing_stems()) >= _LEAST_IN_REASON


def _common_reason(one: str, other: str) -> str:
    """Return the longest text behind a colon with which both headlines end."""
    starts = (match.end() for match in _COLON.finditer(one))
    return next((one[start:] for start in starts if other.endswith(f": {one[start:]}")), "")


def _is_condition_of(new: KnownKey, known: KnownKey) -> bool:
    """Whether one is a condition that failed at a crash point, and the other the same with a message."""
    short, long = sorted((new.headline.lower(), known.headline.lower()), key=len)
    rest = long.removeprefix(short)
    return rest != long and rest[:1] == " " and _CONDITION_GOES_ON.match(rest) is None


def _says_the_same(new: KnownKey, known: KnownKey) -> bool:
    if not new.guard.startswith(_ANY_COMPONENT):  # where NCCL or CUDA reports an error is chance
        return False
    return any(
        here.split(":")[0] == there.split(":")[0] and _says_the_same_at(new, here, known, there)
        for here in sorted(new.places)
        for there in sorted(known.places)
    )


def _says_the_same_at(new: KnownKey, here: str, known: KnownKey, there: str) -> bool:
    """Whether two keys say the same, one at a place and the other at a place of the same file."""
    is_one_function = here == there
    is_word = [f"@{place}" in key.headline for key, place in ((new, here), (known, there))]
    if any(is_word) and not is_one_function:
        return False
    least = _SAME_FILE if not is_one_function else _SAME_FUNCTION if is_word[0] == is_word[1] else _PLACE_OF_ONE
    # Which of the two came first must not matter.
    one, other = map(read_sentence, sorted((new.headline, known.headline)))
    if one.type != other.type:
        return False
    if one.is_negative or other.is_negative:
        least = max(least, _SAME_IN_OTHER_FORM)
    return _share_enough(one, other, least) and not _say_something_else(one, other)


def _say_something_else(one: Sentence, other: Sentence) -> bool:
    """Whether two sentences of one function are two statements, whatever words they share."""
    here, there = set(one.stems), set(other.stems)
    exchanged = _exchanged(one, other)
    mine, theirs = here - there - exchanged, there - here - exchanged
    return (
        not (mine | theirs).isdisjoint(turning_stems(but_relations=True))
        or _are_opposite(mine, theirs)
        or _deny_other_things(one, other)
        or _is_template(one, other)
        or _affirms(one, other)
        or (one.is_negative != other.is_negative and not _is_counterpart(one, other))
        or _have_other_states(one, other)
        or bool(_own_statement(one, other, mine, theirs) and _own_statement(other, one, theirs, mine))
    )


def _affirms(one: Sentence, other: Sentence) -> bool:
    """Whether one says of a thing what the other denies: it is set, it is not set."""
    return not _have_alike_states(one, other) and any(
        not (a.denied - b.denied - b.refused - b.pending).isdisjoint(b.stems) and not (b.is_norm or b.is_negative)
        for a, b in ((one, other), (other, one))
    )


def _have_other_states(one: Sentence, other: Sentence) -> bool:
    """Whether both say in common words what is wrong, and not the same: one is missing, the other unknown."""
    if not (one.states and other.states):
        return False
    return not _have_alike_states(one, other) or any(
        not a.objects <= set(b.stems) for a, b in ((one, other), (other, one))
    )


def _have_alike_states(one: Sentence, other: Sentence) -> bool:
    return not one.states.isdisjoint(other.states) or any(
        not group.isdisjoint(one.states) and not group.isdisjoint(other.states) for group in alike_states()
    )


def _own_statement(one: Sentence, other: Sentence, mine: Set[str], theirs: Set[str]) -> Set[str]:
    """Return what only the first of two sentences says: its own words, and what is wrong with a thing."""
    own = _own_words(one, mine, theirs)
    return own if _have_alike_states(one, other) else own | (one.states - implied_stems())


def _telling(sentence: Sentence) -> Set[str]:
    """Return what a sentence denies, without words that only report."""
    return sentence.denied - framing_stems()


def _are_opposite(mine: Set[str], theirs: Set[str]) -> bool:
    """Whether one sentence has a word and the other its opposite instead."""
    return any((mine & one and theirs & other) or (mine & other and theirs & one) for one, other in opposites())


def _exchanged(one: Sentence, other: Sentence) -> Set[str]:
    """Return the words of a relation that both say from its two ends: `a` exceeds `b`, `b` is below `a`."""
    for pair in relations():
        for here, there in (pair, pair[::-1]):
            if here in one.stems and there in other.stems and here not in other.stems and there not in one.stems:
                (first, last), (start, end) = _around(one.stems, here), _around(other.stems, there)
                if len(first & end) + len(last & start) > len(first & start) + len(last & end):
                    return frozenset(pair)
    return frozenset()


def _around(stems: Sequence[str], stem: str) -> tuple[set[str], set[str]]:
    """Return the words before and behind a word."""
    at = stems.index(stem)
    return set(stems[:at]), set(stems[at + 1 :])


def _deny_other_things(one: Sentence, other: Sentence) -> bool:
    """Whether both deny something and not the same, or one refuses what the other says."""
    if (
        one.is_negative
        and other.is_negative
        and not (_telling(one) <= set(other.stems) and _telling(other) <= set(one.stems))
    ):
        return True
    return any(
        not b.is_negative
        and (b.is_norm or set(a.stems) != set(b.stems))
        and not (a.refused - b.refused - b.denied - b.aims - comparing_stems()).isdisjoint(b.stems)
        for a, b in ((one, other), (other, one))
    )


def _own_words(sentence: Sentence, mine: Set[str], theirs: Set[str]) -> set[str]:
    """Return the words of a sentence that say what the other does not."""
    own = mine - framing_stems() - sentence.kinds
    return {stem for stem in own if not any(_begin_alike(stem, another) for another in theirs)}


def _begin_alike(one: str, other: str) -> bool:
    """Whether two stems are forms of one word, as `froz` and `frozen`."""
    if one[:_SAME_BEGINNING] != other[:_SAME_BEGINNING]:
        return False
    pairs = enumerate(zip(one, other, strict=False))
    beginning = next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))
    return beginning >= _SAME_BEGINNING and beginning >= _SHARE_OF_BEGINNING * max(len(one), len(other))


def _share_enough(one: Sentence, other: Sentence, least: float) -> bool:
    """Whether two sentences share most words that say what is wrong; where they have not as many values, the one with
    fewer values has not more words, and no word that makes another statement is added.
    """
    exchanged = _exchanged(one, other)
    here, there = set(one.stems) - exchanged, set(other.stems) - exchanged
    if len(here & there) < (_LEAST_SHARED if one.type else _LEAST_WITHOUT_CLASS):
        return False
    if one.values != other.values:
        few, many = sorted((one, other), key=lambda sentence: sentence.values)
        if not (here ^ there).isdisjoint(turning_stems()):
            return False
        if {*many.stems} - framing_stems() < {*few.stems} - framing_stems() - few.refused:
            return False
    here, there = here - framing_stems(), there - framing_stems()
    return here == there or len(here & there) >= least * len(here | there)


def _is_counterpart(one: Sentence, other: Sentence) -> bool:
    """Whether one says that something is not so, and the other the same by `cannot`, `before`, `unknown`, or that it
    should be so.
    """
    return any(b.is_negative and _says_negatively(a, b) for a, b in ((one, other), (other, one)))


def _says_negatively(one: Sentence, negative: Sentence) -> bool:
    """Whether a sentence without a denial says what the `negative` one says."""
    denied = _telling(negative)
    if one.denied or not denied:
        return _have_alike_states(one, negative) or bool(one.denied and denied)
    is_of_any = bool(one.refused) and ABSENCE in negative.states and one.refused <= set(negative.stems)
    return is_of_any or denied <= one.refused | one.pending or (one.is_norm and denied <= set(one.stems))


def _is_template(one: Sentence, other: Sentence) -> bool:
    """Whether words stand in each other's place in a sentence that is the same otherwise."""
    import difflib  # few jobs need it

    forms = {stem: form for stem in other.stems for form in one.stems if _begin_alike(stem, form)}
    matcher = difflib.SequenceMatcher(None, one.stems, [forms.get(stem, stem) for stem in other.stems], autojunk=False)
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    replaced = [
        change for change in changes if change[0] == "replace" and not _is_moved(one.stems, other.stems, change)
    ]
    return bool(replaced) and (all(_is_even(change) for change in changes) or matcher.ratio() >= _SAME_ORDER)


def _is_moved(one: Sequence[str], other: Sequence[str], change: tuple[str, int, int, int, int]) -> bool:
    """Whether words only stand elsewhere in one sentence, and in the other no more than `after` stands there."""
    _, start, end, first, last = change
    sides = ((set(one[start:end]), set(other)), (set(other[first:last]), set(one)))
    return any(
        here <= elsewhere and there <= comparing_stems() | framing_stems()
        for (here, elsewhere), (there, _) in (sides, sides[::-1])
    )


def _is_even(change: tuple[str, int, int, int, int]) -> bool:
    """Whether as many words came as went."""
    _, start, end, first, last = change
    return end - start == last - first
