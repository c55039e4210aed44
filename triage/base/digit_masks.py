"""Ask once for all lines that differ only in their digits.

A rank writes thousands of lines of a few forms, and all ranks write the same ones. A question that no single digit
decides has the same answer for a line and for its mask: every digit replaced by 1, but for the 0 of 0x before a number
in hexadecimal. The mask is as long as the line.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar, cast

_ONES = bytes(49 if 48 <= byte <= 57 else byte for byte in range(256))
_MOST_ANSWERS = 1 << 12
_MOST_TEXTS = 1 << 14  # of which a process remembers the masks
_LONGEST_KEPT = 1 << 11  # so that answers to long lines take no memory
_LONGEST_FEW, _MOST_LONG_TEXTS = 1 << 13, 1 << 6

Answer = TypeVar("Answer")
AnswerOf = TypeVar("AnswerOf", covariant=True)


class MaskedQuestion(Protocol[AnswerOf]):
    """A question about a line that no digit decides."""

    def __call__(self, line: bytes) -> AnswerOf:
        """Return the answer for a line."""

    def of_mask(self, mask: bytes) -> AnswerOf:
        """Return the answer for all lines with a mask."""

    def of_masks(self, masks: Sequence[bytes]) -> Sequence[AnswerOf]:
        """Return the answers for several masks."""


def mask_digits(text: bytes) -> bytes:
    """Return the mask of a line, or of lines."""
    first = text.find(b"x")  # a letter is found far sooner than two characters of which one is a digit
    if first >= 0 and text.find(b"0x", max(0, first - 1)) >= 0:
        return b"0x".join(map(mask_every_digit, text.split(b"0x")))
    return text.translate(_ONES)


def mask_every_digit(text: bytes) -> bytes:
    """Return a text with every digit replaced by 1: what a part of it becomes does not depend on the rest."""
    return text.translate(_ONES)


def mask_digits_of(text: str) -> str:
    """Return the mask of a decoded text; it is as long as the text."""
    return mask_digits(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


class _RememberedMasks(dict[str, str]):
    """The masks of texts. Equal masks are one object, so that they take no memory, and are compared quickly."""

    def __init__(self) -> None:
        super().__init__()
        self.most = _MOST_TEXTS
        self._distinct: dict[str, str] = {}

    def __missing__(self, text: str) -> str:
        if len(self) >= self.most:
            self.clear()
        mask = mask_digits_of(text)
        mask = self[text] = self._distinct.setdefault(mask, mask)
        return mask

    def clear(self) -> None:
        """Forget all."""
        super().clear()
        self._distinct.clear()


_REMEMBERED = _RememberedMasks()
mask_text: Callable[[str], str] = _REMEMBERED.__getitem__
"""The same, remembered."""


@contextmanager
def remember_masks(texts: int) -> Iterator[None]:
    """Remember the masks of at least so many texts meanwhile: several rules in turn ask for those of all facts."""
    _REMEMBERED.most = max(_MOST_TEXTS, texts)
    try:
        yield
    finally:
        _REMEMBERED.most = _MOST_TEXTS
        if len(_REMEMBERED) > _MOST_TEXTS:
            _REMEMBERED.clear()


def translate_digits(text: str, table: bytes) -> str:
    """Return a text with the digits of `table`, of `bytes.maketrans`: `str.translate` takes five times as long."""
    return text.encode("utf-8", "surrogatepass").translate(table).decode("utf-8", "surrogatepass")


mask_long_text = functools.lru_cache(_MOST_LONG_TEXTS)(mask_digits_of)
"""The same for texts of which few are remembered."""


def ask_masked(question: Callable[[bytes], Answer]) -> MaskedQuestion[Answer]:
    """Return a function that asks a line's mask, and remembers the answer. No digit may decide the question."""
    answers: dict[bytes, Answer] = {}  # quicker than a cache of functools, which makes a tuple of each line

    @functools.wraps(question)
    def ask(line: bytes) -> Answer:
        return of_mask(mask_digits(line))

    def of_mask(mask: bytes) -> Answer:
        try:
            return answers[mask]
        except KeyError:
            answer = question(mask)
        if len(mask) <= _LONGEST_KEPT:
            if len(answers) >= _MOST_ANSWERS:
                answers.clear()
            answers[mask] = answer
        return answer

    def of_masks(masks: Sequence[bytes]) -> Sequence[Answer]:
        try:
            return list(map(answers.__getitem__, masks))
        except KeyError:
            return list(map(of_mask, masks))

    ask.of_mask, ask.of_masks = of_mask, of_masks  # type: ignore[attr-defined]
    return cast("MaskedQuestion[Answer]", ask)


def ask_masked_text(question: Callable[[str], Answer]) -> Callable[[str], Answer]:
    """The same for decoded text. Of long texts, such as the last lines of a rank together, few are remembered."""
    remembered = functools.lru_cache(_MOST_ANSWERS)(question)
    remembered_long = functools.lru_cache(_MOST_LONG_TEXTS)(question)

    @functools.wraps(question)
    def ask(text: str) -> Answer:
        if len(text) <= _LONGEST_KEPT:
            return remembered(mask_text(text))
        return remembered_long(mask_long_text(text)) if len(text) <= _LONGEST_FEW else question(mask_digits_of(text))

    return ask


def ask_lines(question: MaskedQuestion[Answer], data: bytes) -> Iterator[tuple[int, int, Answer]]:
    """Yield start, end and answer of each line of `data` whose answer is true.

    Each mask is asked once, however many lines have it.
    """
    masks = list_masks(data)
    every = question.of_masks(masks)
    if any(every):
        answers = {mask: answer for mask, answer in zip(masks, every, strict=True) if answer}
        for mask, start in split_lines(data):
            if mask in answers:
                yield start, start + len(mask), answers[mask]


@functools.lru_cache(maxsize=8)
def split_lines(data: bytes) -> Sequence[tuple[bytes, int]]:
    """Return the mask of each line of `data`, and where the line starts.

    The rooms ask about the same few pieces in turn.
    """
    masks = mask_digits(data).split(b"\n")
    lengths = map((1).__add__, map(len, masks))  # with the newline
    return list(zip(masks, itertools.accumulate(lengths, initial=0), strict=False))


@functools.lru_cache(maxsize=8)
def list_masks(data: bytes) -> Sequence[bytes]:
    """Return the masks of the lines of `data`, each once."""
    return list(dict.fromkeys([mask for mask, _ in split_lines(data)]))
