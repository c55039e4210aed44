"""Patterns of leaves with `engine: regex`, which may use look-around and back-references.

The package `regex` backtracks, so a search can take very long. Each search sees the start of a text only, and has a
time limit; a pattern that needs too much time in one job is given up, and the report says so.
"""

from __future__ import annotations

import functools
import re
import time
import warnings
from collections.abc import Mapping
from typing import Any

from triage.base.lazy_re import lazy_re
from triage.catalog.regex import PatternError

MAX_PATTERN = 500  # characters
MAX_TEXT = 4000  # characters of a text that these patterns see
SEARCH_SECONDS = 0.25  # time limit of one search
JOB_SECONDS = 2.0  # time limit of all searches of one pattern in one job
_CACHED_PATTERNS = 256
# What the package reads otherwise than a person who knows RE2 or Python expects.
_ONLY_IN_REGEX = (
    (lazy_re(r"\{[^{}]*[a-z<=][^{}]*\}"), "fuzzy match {e<=1}", "spell the variants out"),
    (lazy_re(r"\(\?(?:R|&|\d|P>|\|)|\(\*|\\L<"), "recursion or a named list", "spell the alternatives out"),
    (lazy_re(r"\(\?<[A-Za-z_]"), "group (?<name>…)", "write (?P<name>…)"),
    (lazy_re(r"\[\[|&&|\|\||~~"), "set operation", "use a plain class such as [^ ]"),
    (lazy_re(r"\(\?\("), "conditional group (?(…)…)", "write two leaves under `any`"),
)


def verify_backtracking_pattern(pattern: str) -> None:
    """Raise PatternError unless the pattern is one that this engine may run."""
    if not pattern:
        raise PatternError("the pattern is empty and would match everything", "write the text to look for")
    if len(pattern) > MAX_PATTERN:
        message = f"the pattern has {len(pattern)} characters; at most {MAX_PATTERN} are allowed with `engine: regex`"
        raise PatternError(message, "split it into leaves under `any`")
    from triage.catalog import pattern_tree

    for construct, name, hint in _ONLY_IN_REGEX:
        if construct.search(pattern):
            raise PatternError(f"{name} is not allowed in a pattern", hint)
    try:
        compile_backtracking(pattern)
        pattern_tree.parse_pattern(pattern)
    except (ValueError, re.error, RecursionError) as error:
        raise PatternError(f"the engine regex refuses the pattern: {error}", "see pypi.org/project/regex") from None


@functools.lru_cache(maxsize=_CACHED_PATTERNS)
def compile_backtracking(pattern: str) -> Any:
    """The compiled pattern, for texts as str; classes such as \\w are those of ASCII, as in RE2. ValueError if bad."""
    import regex

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as "possible set difference"
            return regex.compile(pattern, regex.ASCII | regex.VERSION0)
    except regex.error as error:
        raise ValueError(str(error)) from None


def list_group_names(pattern: str) -> tuple[str, ...]:
    """The names of the groups of a pattern that `verify_backtracking_pattern` has passed."""
    return tuple(compile_backtracking(pattern).groupindex)


def search_text(pattern: str, text: str, seconds: float = SEARCH_SECONDS) -> Mapping[str, str] | None:
    """The captures of the first match, None without a match. Raises TimeoutError after so many seconds."""
    match = compile_backtracking(pattern).search(text[:MAX_TEXT], timeout=seconds)
    return None if match is None else {name: value for name, value in match.groupdict().items() if value is not None}


class BacktrackingSearches:
    """The searches of one job: each pattern has its share of time, and is not tried again after that."""

    def __init__(self, search_seconds: float = SEARCH_SECONDS, job_seconds: float = JOB_SECONDS) -> None:
        self._search_seconds = search_seconds
        self._job_seconds = job_seconds
        self._spent: dict[str, float] = {}
        self.timed_out: set[str] = set()

    def search(self, pattern: str, text: str) -> Mapping[str, str] | None:
        """The captures of the first match, None without a match. Raises TimeoutError when the time is over."""
        left = self._job_seconds - self._spent.get(pattern, 0.0)
        started = time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError(pattern)
            return search_text(pattern, text, min(left, self._search_seconds))
        except TimeoutError:
            self.timed_out.add(pattern)
            raise
        finally:
            self._spent[pattern] = self._spent.get(pattern, 0.0) + time.monotonic() - started
