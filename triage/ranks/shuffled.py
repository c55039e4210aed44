"""The same text by several writers who cut into each other's words: `RuntimeErrorRuntimeError: : NCCLNCCL error error`.

Nothing but the text tells. It is taken apart where there is exactly one text that so many writers can have written,
each in its order.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence

from triage.base.lazy_re import lazy_re

_MOST_WRITERS = 8
_SHORTEST, _LONGEST, _LETTERS, _DIFFERENT = 12, 1200, 6, 4
_MOST_STATES = 1 << 15
_COMMON = "etaoinsr"
_QUICK, _PRIMES = (b"e", b"t", b"a", b"o", b"r", b"n", b"i", b"s"), (2, 3, 5, 7)
_TORN = lazy_re(r"(?:^|[\s.:])([\w.]{0,80}(?:Error|Exception|Traceback))\1")


def may_be(data: bytes) -> bool:
    """A quick look: does each of some letters stand in it as often as it must?"""
    return 2 * _SHORTEST <= len(data) <= 4 * _LONGEST and any(
        not any(data.count(letter) % writers for letter in _QUICK) for writers in _PRIMES
    )


@functools.lru_cache(1 << 12)
def unshuffled(text: str) -> tuple[str, int]:
    """What several writers wrote as `text`, and how many; ("", 0) where it is not such a text, or not only one fits."""
    if not 2 * _SHORTEST <= len(text) <= _LONGEST:
        return "", 0
    for writers in range(_MOST_WRITERS, 1, -1):
        if len(text) % writers or any(text.count(letter) % writers for letter in _COMMON):
            continue
        counts = Counter(text)
        if any(count % writers for count in counts.values()):
            continue
        size = len(text) // writers
        if text == text[:size] * writers:
            return (text[:size], writers) if _telling(text[:size]) else ("", 0)
        found = _texts(text, writers, {letter: count // writers for letter, count in counts.items()})
        if len(found) == 1 and _telling(found[0]):
            return found[0], writers
    return "", 0


def lines_of(data: bytes) -> Iterator[tuple[int, int, str, Sequence[str]]]:
    """The lines of several writers in a source that is held whole: where they begin and end, the text of each writer,
    and the line.
    """
    at = 0
    for line in data.split(b"\n"):
        if may_be(line) and (text := unshuffled(shown := line.decode("utf-8", "replace"))[0]):
            yield at, at + len(line), text, [shown]
        at += len(line) + 1


def is_torn(text: str) -> bool:
    """Does the line show that two wrote it, who are not told apart: the name of an exception twice without a blank?"""
    return _TORN.search(text) is not None


def _telling(text: str) -> bool:
    letters = [letter for letter in text if letter.isalpha()]
    return len(text) >= _SHORTEST and len(letters) >= _LETTERS and len(set(letters)) >= _DIFFERENT


def _texts(text: str, writers: int, each: dict[str, int]) -> list[str]:
    """The texts that every writer can have written, two at most; none where there are too many ways to tell.

    A state is what the first of them has written so far, and how far the others are in the same.
    """
    states: set[tuple[str, tuple[int, ...]]] = {("", (0,) * (writers - 1))}
    left = _MOST_STATES
    for letter in text:
        following = set()
        for told, behind in states:
            if told.count(letter) < each[letter]:
                following.add((told + letter, behind))
            for index, at in enumerate(behind):
                if at < len(told) and told[at] == letter and (not index or behind[index - 1] > at):
                    following.add((told, (*behind[:index], at + 1, *behind[index + 1 :])))
        left -= len(following)
        if left < 0:
            return []
        states = following
    return sorted({told for told, behind in states if all(at == len(told) for at in behind)})
