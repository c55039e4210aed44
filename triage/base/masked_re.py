"""Regular expressions that remember the masks of texts in which they find nothing.

All ranks write the same lines but for their digits, and most patterns find nothing in most lines. So a pattern asks the
mask of a text (digit_masks.py) once, in a wider form that takes any digit for each of its digits: where the wider form
finds nothing in the mask, the pattern finds nothing in any text with this mask.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from triage.base.digit_masks import mask_long_text, mask_text
from triage.base.lazy_re import compile_cached, lazy_re

_MOST_ANSWERS = 1 << 12
_LONGEST_KEPT = 1 << 11  # characters of a text whose answer is remembered
# The same of few texts, such as the last lines of a rank together.
_LONGEST_FEW, _MOST_FEW = 1 << 13, 1 << 6
_DIGITS = "0123456789"
_TOKEN = lazy_re(
    r"(?P<escape>\\(?:x\w{2}|u\w{4}|U\w{8}|.))|(?P<count>\{\d*,?\d*\})|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<group_start>\((?:\?(?:P?<\w+>|P=\w+\)|<?[=!]|[aiLmsux-]*[:)]))?)|(?P<digit>\d)|(?P<other>[A-Za-z _-]+|.)",
    re.S,
)

_MAY_WIDEN = lazy_re(r"\d|\[|\(\?(?:<?!|<=|P=)")


def masked_re(text: str, flags: int = 0) -> MaskedPattern:
    """Return a pattern for use at module level that rarely finds something in the lines that it is asked about."""
    return MaskedPattern(text, flags)


class MaskedPattern:
    """A pattern that compiles when first used, and searches a text only if its mask may match.

    Its methods are those of `re.Pattern` without places.
    """

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags
        self._answers: dict[str, bool] = {}
        self._answers_of_few: dict[str, bool] = {}

    def search(self, text: str) -> re.Match[str] | None:
        """Return what `re.Pattern.search` returns."""
        return self._exact.search(text) if self.may_match(text) else None

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Return what `re.Pattern.finditer` returns."""
        return self._exact.finditer(text) if self.may_match(text) else iter(())

    def findall(self, text: str) -> list[Any]:
        """Return what `re.Pattern.findall` returns."""
        return self._exact.findall(text) if self.may_match(text) else []

    def sub(self, replacement: str | Callable[[re.Match[str]], str], text: str) -> str:
        """Return what `re.Pattern.sub` returns."""
        return self._exact.sub(replacement, text) if self.may_match(text) else text

    @property
    def groupindex(self) -> Mapping[str, int]:
        """The numbers of the named groups."""
        return self._exact.groupindex

    def may_match(self, text: str) -> bool:
        """May the pattern be found in a text with these digits or others?"""
        if len(text) <= _LONGEST_KEPT:
            mask, answers, most = mask_text(text), self._answers, _MOST_ANSWERS
        elif len(text) <= _LONGEST_FEW:
            mask, answers, most = mask_long_text(text), self._answers_of_few, _MOST_FEW
        else:
            return True
        answer = answers.get(mask)
        if answer is None:
            if len(answers) >= most:
                answers.clear()
            answer = answers[mask] = self._wide.search(mask) is not None
        return answer

    @functools.cached_property
    def _exact(self) -> re.Pattern[str]:
        return compile_cached(self.pattern, self._flags)

    @functools.cached_property
    def _wide(self) -> re.Pattern[str]:
        wide = compile_cached(self.pattern, self._flags, widen_digits)
        return self._exact if wide.pattern == self.pattern else wide


class MaskedPatterns:
    """Several patterns of which a text is asked at once."""

    def __init__(self, patterns: Sequence[MaskedPattern]) -> None:
        self._patterns = patterns
        self._candidates: dict[str, tuple[int, ...]] = {}

    def search(self, text: str) -> Iterator[tuple[int, re.Match[str]]]:
        """Yield the number and the first match of each pattern that is found, in order."""
        for number in self._list_numbers(text):
            if (match := self._patterns[number].search(text)) is not None:
                yield number, match

    def list_candidates(self, text: str) -> list[MaskedPattern]:
        """Return the patterns that may be found in a text with these digits or others, in order."""
        return [self._patterns[number] for number in self._list_numbers(text)]

    def _list_numbers(self, text: str) -> Sequence[int]:
        """Return the numbers of the patterns that may be found in a text with these digits or others."""
        if len(text) > _LONGEST_KEPT:
            return range(len(self._patterns))
        mask = mask_text(text)
        numbers = self._candidates.get(mask)
        if numbers is None:
            if len(self._candidates) >= _MOST_ANSWERS:
                self._candidates.clear()
            numbers = tuple(number for number, one in enumerate(self._patterns) if one.may_match(text))
            self._candidates[mask] = numbers
        return numbers


def widen_digits(pattern: str) -> str:
    """Return a pattern that is found in the mask of each text in which `pattern` is found.

    A digit becomes any digit, a set with some digits has all, a back-reference becomes any text, since equal digits may
    have different masks; assertions that look behind or forbid and tell digits apart are left out.
    """
    return "".join(_widen_tokens(_TOKEN.finditer(pattern))) if _MAY_WIDEN.search(pattern) else pattern


def _widen_tokens(tokens: Iterator[re.Match[str]]) -> Iterator[str]:
    """Yield the parts of the wide pattern up to the end of the group that the tokens begin in."""
    for token in tokens:
        text = token.group()
        if token["digit"]:
            yield r"\d"
        elif token["set"]:
            yield _widen_set(text)
        elif token["group_start"] in ("(?!", "(?<!", "(?<="):
            yield _widen_assertion(text, tokens)
        elif _refers_back(token):
            yield "(?s:.*)"
        elif token["group_start"] and not text.endswith(")"):
            yield text
            yield from _widen_tokens(tokens)
        else:
            yield text
            if text == ")":
                return


def _refers_back(token: re.Match[str]) -> bool:
    return token.group().startswith("(?P=") or (token["escape"] or "")[1:2] in set("123456789")


def _widen_assertion(start: str, tokens: Iterator[re.Match[str]]) -> str:
    """Return an assertion, or nothing if it tells digits apart."""
    depth, parts, is_of_digits = 1, [start], False
    while depth:
        token = next(tokens)
        text = token.group()
        parts.append(text)
        depth += (1 if token["group_start"] and not text.endswith(")") else 0) - (text == ")")
        is_of_digits |= bool(token["digit"]) or _refers_back(token)
        is_of_digits |= bool(token["set"]) and _widen_set(text) != text
    return "" if is_of_digits else "".join(parts)


@functools.lru_cache(1 << 10)
def _widen_set(text: str) -> str:
    matching = re.compile(text).match
    digits = [digit for digit in _DIGITS if matching(digit)]
    if len(digits) in (0, len(_DIGITS)):
        return text
    if text.startswith("[^"):
        return r"(?s:.)"
    return rf"{text[:-1]}\d]" if text.startswith("[]") else rf"[\d{text[1:]}"
