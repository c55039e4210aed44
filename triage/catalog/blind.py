"""Texts that differ only in digits, tested once.

A job with thousands of ranks says the same thousands of times with other numbers. A pattern in which no digit is
spelled out cannot tell one
digit from another: it matches a text exactly where it matches the same text with every digit replaced by 0, which is as
long. So its test is
done once for each such text, and captures are cut out of the real text at the same places.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from triage.base.lazy_re import lazy_re
from triage.catalog.model import Leaf
from triage.catalog.regex import compiled, named_groups

_ZEROS = bytes(48 if 48 <= byte <= 57 else byte for byte in range(256))
# What of a pattern is no literal digit although a digit stands in it: counts, names of groups, escapes such as \x1b do
# not occur.
_NO_LITERAL = lazy_re(r"\{\d*,?\d*\}|\(\?P<\w+>")
# A class with a range that reaches over digits in part, or over all of them together with other characters.
_RANGE = lazy_re(r"\[(?:\\.|[^\]\\])*\]")

Spans = Mapping[str, tuple[int, int]]


def is_blind(leaf: Leaf) -> bool:
    """Can the leaf not tell one digit from another? Then it has a text to search, and asks for nothing but that, kind
    and component.
    """
    return (
        leaf.text is not None
        and not leaf.fields
        and not leaf.values
        and _no_digit(leaf.text)
        and (leaf.not_text is None or _no_digit(leaf.not_text))
    )


def masked(text: bytes) -> bytes:
    """The text with every digit replaced by 0; of the same length."""
    return text.translate(_ZEROS)


def masked_literal(literal: str) -> str:
    """A literal as it stands in masked texts: a text that has the literal has this one once it is masked."""
    return literal.encode("utf-8", "replace").translate(_ZEROS).decode("utf-8")


def spans(leaf: Leaf, text: bytes) -> Spans | None:
    """Where the groups of a blind leaf match in a masked text; None if it does not hold."""
    found: Any = compiled(leaf.text or "").search(text)
    if found is None or (leaf.not_text is not None and compiled(leaf.not_text).search(text)):
        return None
    groups = named_groups(leaf.text or "")
    return {name: found.span(number) for name, number in groups if found.span(number)[0] >= 0} if groups else {}


def _no_digit(pattern: str) -> bool:
    """No digit is spelled out: [0-9] and \\d mean all of them, and so do classes without digits or with all of them."""
    bare = _RANGE.sub(lambda found: "" if _whole(found[0]) else "0", _NO_LITERAL.sub("", pattern))
    return re.search(r"[0-9]", bare) is None


def _whole(characters: str) -> bool:
    """Does a class hold all digits or none? Escapes of characters by number are taken for digits, to be safe."""
    inside = characters.replace("0-9", "")
    return re.search(r"[0-9]", inside) is None and re.search(r"\\x|[ -/]-[:-~]", inside) is None
