"""Questions to lines that differ only in their digits."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from triage.base import digit_masks
from triage.base.digit_masks import (
    ask_lines,
    ask_masked,
    ask_masked_text,
    list_masks,
    mask_digits,
    mask_text,
    remember_masks,
    split_lines,
    translate_digits,
)

LINES = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=40)


def test_lines_that_differ_only_in_digits_are_masks_once() -> None:
    """The question is masks with the digits replaced, once for all such lines."""
    masks: list[bytes] = []

    @ask_masked
    def ends_in_step(line: bytes) -> bool:
        masks.append(line)
        return line.endswith(b"steps")

    assert [ends_in_step(line) for line in (b"12 steps", b"99 steps", b"7 steps", b"7")] == [True, True, True, False]
    assert masks == [b"11 steps", b"1 steps", b"1"]


def test_a_long_line_is_not_remembered() -> None:
    """The answer to a line of more than 2 KiB is right, and takes no memory."""
    masks: list[int] = []

    @ask_masked
    def length(line: bytes) -> int:
        masks.append(len(line))
        return len(line)

    assert [length(b"x" * 2048), length(b"x" * 2048), length(b"x" * 2049), length(b"x" * 2049)] == [2048] * 2 + [
        2049
    ] * 2
    assert masks == [2048, 2049, 2049]


def test_answers_stay_right_when_old_ones_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """More masks than are remembered get the same answers, one at a time and together."""
    monkeypatch.setattr(digit_masks, "_MOST_ANSWERS", 3)
    length = ask_masked(len)
    masks = [b"x" * size for size in (1, 2, 3, 4, 1, 5, 2)]
    assert [length(mask) for mask in masks] == [1, 2, 3, 4, 1, 5, 2]
    assert list(length.of_masks(masks)) == [1, 2, 3, 4, 1, 5, 2]


@given(st.text("0x1a9", max_size=12))
def test_every_digit_is_masked_but_the_0_of_0x(text: str) -> None:
    """The mask is the text with 1 for each digit; only a 0 right before an x stays."""
    assert mask_digits(text.encode()) == re.sub(rb"(?!0x)\d", b"1", text.encode())


@given(LINES)
def test_text_is_masks_as_its_bytes_are(text: str) -> None:
    """Decoded text gets the answer of its bytes, whatever characters it holds."""
    read = ask_masked_text(lambda mmasks: mmasks)
    assert read(text).encode() == mask_digits(text.encode())


@given(st.lists(LINES, max_size=8))
def test_lines_are_yielded_where_they_stand(lines: list[str]) -> None:
    """Start and end are those of the line in the data; lines without an answer are left out."""
    data = "\n".join(lines).encode()
    places = [(start, end) for start, end, _ in ask_lines(ask_masked(lambda line: b"a" in line), data)]
    assert [data[start:end] for start, end in places] == [line for line in data.split(b"\n") if b"a" in line]


@given(st.lists(LINES, max_size=8))
def test_masks_of_lines_are_those_of_each_line(lines: list[str]) -> None:
    """The lines of a piece are masked at once, with their places, and each mask is listed once."""
    data = "\n".join(lines).encode()
    parts = data.split(b"\n")
    split = split_lines(data)
    assert [mask for mask, _ in split] == list(map(mask_digits, parts))
    assert [data[start : start + len(mask)] for mask, start in split] == parts
    assert list_masks(data) == list(dict.fromkeys(map(mask_digits, parts)))


def test_a_mask_is_asked_as_its_lines_are() -> None:
    """A mask that was made before has the remembered answer of its lines."""
    masks: list[bytes] = []

    @ask_masked
    def length(line: bytes) -> int:
        masks.append(line)
        return len(line)

    assert [length(b"step 12"), length.of_mask(b"step 11"), length.of_mask(b"x" * 2049)] == [7, 7, 2049]
    assert masks == [b"step 11", b"x" * 2049]


@pytest.mark.parametrize(("length", "times"), [(1 << 11, 1), (1 << 13, 1), ((1 << 13) + 1, 2)])
def test_of_texts_that_are_not_too_long_the_answer_is_remembered(length: int, times: int) -> None:
    """Two texts that differ in their digits are one question, up to eight thousand characters."""
    questions: list[str] = []

    @ask_masked_text
    def count_characters(text: str) -> int:
        questions.append(text)
        return len(text)

    assert count_characters("7" * length) == count_characters("8" * length) == length
    assert questions == ["1" * length] * times


@given(st.text(st.characters(exclude_categories=[])))
def test_digits_are_translated_as_the_standard_method_does(text: str) -> None:
    """In any text, a lone surrogate included."""
    table = bytes.maketrans(b"23456789", b"1" * 8)
    assert translate_digits(text, table) == text.translate(str.maketrans("23456789", "1" * 8))


def test_equal_masks_are_one_object() -> None:
    """The masks of many texts that differ only in digits take the memory of one."""
    assert mask_text("rank 17 of 64 is late") is mask_text("rank 23 of 64 is late")


def test_masks_of_many_texts_are_remembered_only_where_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within `remember_masks` each text is masked once; behind it, and before, only a few texts are remembered."""
    texts = [f"line {'x' * (number % 7)} {number}" for number in range(digit_masks._MOST_TEXTS + 1)]
    masked: list[str] = []
    monkeypatch.setattr(digit_masks, "mask_digits_of", lambda text: masked.append(text) or text)

    def count_masked() -> int:
        masked.clear()
        for _ in range(2):
            for text in texts:
                mask_text(text)
        return len(masked)

    digit_masks._REMEMBERED.clear()
    assert count_masked() > len(texts)
    digit_masks._REMEMBERED.clear()
    with remember_masks(len(texts)):
        assert count_masked() == len(texts)
    assert len(digit_masks._REMEMBERED) == 0
    assert count_masked() > len(texts)
    digit_masks._REMEMBERED.clear()
