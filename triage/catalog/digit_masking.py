"""Test texts that differ only in digits once.

A job with thousands of ranks writes the same line thousands of times with other numbers. A pattern without a literal
digit matches a text exactly where it matches the same text with every digit replaced by 0, which is as long. So it is
tested once for all such texts, and captures are cut out of the real text at the same places.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from triage.base.lazy_re import lazy_re
from triage.catalog.model import Leaf
from triage.catalog.regex import compile_pattern, list_named_groups

_ZEROS = bytes(48 if 48 <= byte <= 57 else byte for byte in range(256))
# Parts of a pattern whose digits are not literal: counts and names of groups.
_NOT_LITERAL = lazy_re(r"\{\d*,?\d*\}|\(\?P<\w+>")
_CHARACTER_CLASS = lazy_re(r"\[(?:\\.|[^\]\\])*\]")

GroupSpans = Mapping[str, tuple[int, int]]


def ignores_digits(leaf: Leaf) -> bool:
    """Whether the leaf treats all digits alike: a RE2 `text` without literal digits, no `fields`, no `values`."""
    return (
        leaf.text is not None
        and leaf.engine == "re2"
        and not leaf.fields
        and not leaf.values
        and _spells_no_digit(leaf.text)
        and (leaf.not_text is None or _spells_no_digit(leaf.not_text))
    )


def mask_digits(text: bytes) -> bytes:
    """Replace every digit by 0; the length stays."""
    return text.translate(_ZEROS)


def mask_literal(literal: str) -> bytes:
    """Mask a literal: a text that contains the literal contains this one once it is masked."""
    return literal.encode("utf-8", "replace").translate(_ZEROS)


def find_group_spans(leaf: Leaf, text: bytes) -> GroupSpans | None:
    """Where the groups of a digit-ignoring leaf match in a masked text; None if the leaf does not hold."""
    match: Any = compile_pattern(leaf.text or "").search(text)
    if match is None or (leaf.not_text is not None and compile_pattern(leaf.not_text).search(text)):
        return None
    groups = list_named_groups(leaf.text or "")
    return {name: match.span(number) for name, number in groups if match.span(number)[0] >= 0}


def _spells_no_digit(pattern: str) -> bool:
    """Whether the pattern has no literal digit. [0-9], \\d and classes with all digits or none have none."""
    without_counts = _NOT_LITERAL.sub("", pattern)
    bare = _CHARACTER_CLASS.sub(lambda match: "" if _has_all_digits_or_none(match[0]) else "0", without_counts)
    return re.search(r"[0-9]", bare) is None


def _has_all_digits_or_none(character_class: str) -> bool:
    """Whether a class holds all digits or none. Escapes by number count as digits, to be safe."""
    inside = character_class.replace("0-9", "")
    return re.search(r"[0-9]", inside) is None and re.search(r"\\x|[ -/]-[:-~]", inside) is None
