"""Ask once for all lines that differ only in their digits.

A rank writes thousands of lines of a few forms, and all ranks write the same ones. A question that no single digit
decides has the same answer for a line and for its mask: every digit replaced by 1, but for the 0 of 0x before a number
in hexadecimal. The mask is as long as the line.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

_ONES = bytes(49 if 48 <= byte <= 57 else byte for byte in range(256))
_MOST_ANSWERS = 1 << 12
_LONGEST_KEPT = 1 << 11  # so that answers to long lines take no memory

Answer = TypeVar("Answer")


def mask_digits(text: bytes) -> bytes:
    """Return the mask of a line, or of lines."""
    if b"0x" in text:
        return b"0x".join(part.translate(_ONES) for part in text.split(b"0x"))
    return text.translate(_ONES)


def ask_masked(question: Callable[[bytes], Answer]) -> Callable[[bytes], Answer]:
    """Return a function that asks a line's mask, and remembers the answer. No digit may decide the question."""
    remembered = functools.lru_cache(_MOST_ANSWERS)(question)

    @functools.wraps(question)
    def ask(line: bytes) -> Answer:
        masked = mask_digits(line)
        return remembered(masked) if len(masked) <= _LONGEST_KEPT else question(masked)

    return ask


def ask_masked_text(question: Callable[[str], Answer]) -> Callable[[str], Answer]:
    """The same for decoded text."""
    ask_bytes = ask_masked(lambda masked: question(masked.decode("utf-8", "surrogatepass")))

    @functools.wraps(question)
    def ask(text: str) -> Answer:
        return ask_bytes(text.encode("utf-8", "surrogatepass"))

    return ask


def ask_lines(question: Callable[[bytes], Answer], data: bytes) -> Iterator[tuple[int, int, Answer]]:
    """Yield start, end and answer of each line of `data` whose answer is true; `question` is one of `ask_masked`.

    Each mask is asked once, however many lines have it.
    """
    masks, starts = _split_masked(data)
    answers = {mask: answer for mask in dict.fromkeys(masks) if (answer := question(mask))}
    if answers:
        for mask, start in zip(masks, starts, strict=False):
            if mask in answers:
                yield start, start + len(mask), answers[mask]


@functools.lru_cache(maxsize=4)
def _split_masked(data: bytes) -> tuple[Sequence[bytes], Sequence[int]]:
    """Return the masks of the lines of `data` and where they start. The rooms ask about the same few pieces in turn."""
    masks = mask_digits(data).split(b"\n")
    return masks, list(itertools.accumulate((len(mask) + 1 for mask in masks), initial=0))
