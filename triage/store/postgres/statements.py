"""Statements as psycopg wants them: `?` becomes %s, `:name` becomes %(name)s. Texts in quotes stay as they are."""

from __future__ import annotations

import re
from functools import lru_cache

from triage.base.lazy_re import lazy_re

_PIECE = lazy_re(r"'(?:[^']|'')*'|\?|(?<!:):[a-z_]\w*|%")


@lru_cache(maxsize=1000)
def translate(sql: str) -> str:
    """Return the statement with psycopg's placeholders."""
    return _PIECE.sub(_replace, sql)


def _replace(match: re.Match[str]) -> str:
    piece = match[0]
    if piece == "?":
        return "%s"
    return f"%({piece[1:]})s" if piece[0] == ":" else piece.replace("%", "%%")
