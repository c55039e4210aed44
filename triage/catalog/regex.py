"""The pattern dialect: what RE2 and Python's own parser both read, and read the same way.

RE2 runs the patterns in linear time, so no contributed file can hang an ingest; Python's parser finds the literals in
them
(see `literals`). A construct that only one of them knows, or that they read differently, is refused by name.
"""

from __future__ import annotations

import functools
import re
import warnings
from re import _parser  # type: ignore[attr-defined]
from typing import Any

MAX_PATTERN = 2000  # characters; a longer one belongs into several leaves
CACHED_PATTERNS = 4096

# How RE2 refuses what `re` knows: the construct as written, its name, and what to write instead.
_REFUSED = (
    (r"\(\?=", "look-ahead (?=…)", "match the text that follows, or use another leaf in an `all`"),
    (r"\(\?!", "negative look-ahead (?!…)", "use `not_text`, or a leaf under `none`"),
    (r"\(\?<=", "look-behind (?<=…)", "match the text before it, outside the capture"),
    (r"\(\?<!", "negative look-behind (?<!…)", "use `not_text`, or a leaf under `none`"),
    (r"\(\?P=|\\[1-9]", "back-reference", "spell the text out; RE2 cannot remember what a group matched"),
    (r"\(\?>", "atomic group (?>…)", "use a plain group (?:…); RE2 never backtracks"),
    (r"\(\?\(", "conditional group (?(…)…)", "write two leaves under `any`"),
    (r"[*+?}]\+", "possessive quantifier", "drop the second +; RE2 never backtracks"),
    (r"\(\?#", "comment group (?#…)", "put the comment into the YAML file"),
    (r"\(\?[a-z]*x", "verbose flag (?x)", "write the pattern in one line"),
    (r"\\Z", r"\Z", "use $, which is the end of the text in RE2"),
)
# What RE2 accepts but `re` does not, or reads otherwise.
_FOREIGN = (
    (r"\[\[[:.=]", "POSIX class [[:…:]]", r"use \d, \w, \s or a class like [a-z]"),
    (r"\(\?<[A-Za-z_]", "group (?<name>…)", "write (?P<name>…)"),
    (r"\\[pP]", r"Unicode class \p", "use a class like [^ ]"),
    (r"\\[QEzC]", r"one of \Q \E \z \C", "escape the characters one by one, use $ for the end"),
    (r"\{,\d+\}", "repeat {,n}", "write {0,n}"),
)


class PatternError(ValueError):
    """The pattern cannot be used; `hint` says how to mend it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def verify(pattern: str) -> None:
    """Raise PatternError unless both RE2 and Python's parser accept the pattern."""
    if not pattern:
        raise PatternError("the pattern is empty and would match everything", "write the text to look for")
    if len(pattern) > MAX_PATTERN:
        raise PatternError(
            f"the pattern has {len(pattern)} characters, at most {MAX_PATTERN} are read",
            "split it into leaves under `any`",
        )
    bare = _without_classes_and_escapes(pattern)
    for construct, name, hint in _FOREIGN:
        if re.search(construct, pattern if construct.startswith(r"\[\[") else bare):
            raise PatternError(f"{name} is not part of the common dialect", hint)
    try:
        compiled(pattern)
    except ValueError as error:
        raise _refusal(bare, str(error)) from None
    try:
        parsed(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(
            f"Python's parser does not read the pattern: {error}", "use only what RE2 and Python share"
        ) from None


@functools.lru_cache(maxsize=CACHED_PATTERNS)
def compiled(pattern: str) -> Any:
    """The RE2 object of the pattern, for texts as str or as UTF-8 bytes. ValueError with RE2's words if it refuses."""
    import re2  # type: ignore[import-untyped, unused-ignore]

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        raise ValueError(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)) from None


@functools.lru_cache(maxsize=CACHED_PATTERNS)
def parsed(pattern: str) -> Any:
    """Python's parse tree of the pattern. re.error, OverflowError or RecursionError if it does not read it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _parser.parse(pattern)


@functools.lru_cache(maxsize=CACHED_PATTERNS)
def named_groups(pattern: str) -> tuple[tuple[str, int], ...]:
    """The names and numbers of the groups of a pattern that `verify` has passed."""
    return tuple(compiled(pattern).groupindex.items())


def _refusal(bare: str, reason: str) -> PatternError:
    for construct, name, hint in _REFUSED:
        if re.search(construct, bare):
            return PatternError(f"{name} is not possible in RE2", hint)
    return PatternError(f"RE2 refuses the pattern: {reason}", "see github.com/google/re2/wiki/Syntax")


def _without_classes_and_escapes(pattern: str) -> str:
    r"""The pattern with character classes and escaped punctuation blanked, so that `\(\?=` is not taken for a
    look-ahead."""
    return re.sub(r"\\[^A-Za-z0-9]|\[\^?\]?(?:\\.|[^\]\\])*\]", "_", pattern, flags=re.DOTALL)
