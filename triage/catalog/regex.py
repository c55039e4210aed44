"""The pattern dialect: what RE2 and Python's `re` both read, and read the same way.

RE2 runs the patterns in linear time, so no contributed file can hang an ingest. A construct that only one of the two
knows, or that they read differently, is refused by name: signatures stay portable, and `pattern_tree` stays small.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any

MAX_PATTERN = 2000  # characters; a longer one belongs into several leaves
CACHED_PATTERNS = 4096

# How RE2 refuses what `re` knows: the construct as written, its name, and what to write instead.
_NOT_IN_RE2 = (
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
_NOT_IN_PYTHON = (
    (r"\[\[[:.=]", "POSIX class [[:…:]]", r"use \d, \w, \s or a class like [a-z]"),
    (r"\(\?<[A-Za-z_]", "group (?<name>…)", "write (?P<name>…)"),
    (r"\\[pP]", r"Unicode class \p", "use a class like [^ ]"),
    (r"\\[QEzC]", r"one of \Q \E \z \C", "escape the characters one by one, use $ for the end"),
    (r"\{,\d+\}", "repeat {,n}", "write {0,n}"),
)


class PatternError(ValueError):
    """The pattern cannot be used; `hint` says how to fix it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@functools.lru_cache(maxsize=CACHED_PATTERNS)
def verify_pattern(pattern: str) -> None:
    """Raise PatternError unless both RE2 and Python accept the pattern."""
    if not pattern:
        raise PatternError("the pattern is empty and would match everything", "write the text to look for")
    if len(pattern) > MAX_PATTERN:
        message = f"the pattern has {len(pattern)} characters; at most {MAX_PATTERN} are allowed"
        raise PatternError(message, "split it into leaves under `any`")
    bare = _blank_classes_and_escapes(pattern)
    for construct, name, hint in _NOT_IN_PYTHON:
        if re.search(construct, pattern if construct.startswith(r"\[\[") else bare):
            raise PatternError(f"{name} is not common to RE2 and Python", hint)
    try:
        compile_pattern(pattern)
    except ValueError as error:
        raise _explain_refusal(bare, str(error)) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as "possible nested set"
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"Python does not read the pattern: {error}", "use only what RE2 and Python share") from None


@functools.lru_cache(maxsize=CACHED_PATTERNS)
def compile_pattern(pattern: str) -> Any:
    """The RE2 object of the pattern, for texts as str or as UTF-8 bytes. ValueError with RE2's reason if it refuses."""
    import re2  # type: ignore[import-untyped, unused-ignore]

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        raise ValueError(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)) from None


def build_set_search(
    patterns: Iterable[str], max_memory: int, *, literal: bool = False
) -> Callable[[bytes], Iterable[int]] | None:
    """A function that returns the numbers of the patterns that match in a text, in one pass; None if RE2 cannot.

    `max_memory` in bytes bounds the automaton. With `literal` the patterns are plain strings.
    """
    import re2  # type: ignore[import-untyped, unused-ignore]

    options = re2.Options()
    options.log_errors = False
    options.literal = literal
    options.max_mem = max_memory
    automaton = re2.Set.SearchSet(options)
    try:
        for pattern in patterns:
            automaton.Add(pattern)
        automaton.Compile()
    except re2.error:
        return None
    return lambda text: automaton.Match(text) or ()  # None if nothing matches


@functools.lru_cache(maxsize=CACHED_PATTERNS)
def list_named_groups(pattern: str) -> tuple[tuple[str, int], ...]:
    """The names and numbers of the groups of a pattern that `verify_pattern` has passed."""
    return tuple(compile_pattern(pattern).groupindex.items())


def remove_anchors(pattern: str) -> str:
    r"""Return the pattern without `^`, `$` and `\A`: it is found in each text of which a part matches the pattern."""
    pieces = r"(?s)\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[\^$]"
    return re.sub(pieces, lambda piece: "(?:)" if piece.group() in ("^", "$", r"\A") else piece.group(), pattern)


def _explain_refusal(bare: str, reason: str) -> PatternError:
    for construct, name, hint in _NOT_IN_RE2:
        if re.search(construct, bare):
            return PatternError(f"{name} is not possible in RE2", hint)
    return PatternError(f"RE2 refuses the pattern: {reason}", "see github.com/google/re2/wiki/Syntax")


def _blank_classes_and_escapes(pattern: str) -> str:
    r"""The pattern with character classes and escaped punctuation blanked, so that `\(\?=` is not taken for a
    look-ahead."""
    return re.sub(r"\\[^A-Za-z0-9]|\[\^?\]?(?:\\.|[^\]\\])*\]", "_", pattern, flags=re.DOTALL)
