"""Regular expressions that compile when first used: a command needs few of the hundreds that its modules define."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, AnyStr, Protocol, cast

_METHODS = (
    "search",
    "match",
    "fullmatch",
    "finditer",
    "findall",
    "sub",
    "subn",
    "split",
    "flags",
    "groups",
    "groupindex",
)


class KnownPatterns(Protocol):
    """Patterns that an earlier command compiled (compiled_patterns.py), and those that it did not, by their keys."""

    missing: dict[str, tuple[str | bytes, int]]

    def find(self, key: str) -> re.Pattern[Any] | None:
        """Return a known pattern."""


_cache: KnownPatterns | None = None


def use_cache(cache: KnownPatterns | None) -> None:
    """Take patterns from this cache from now on, in this process and its forks; compile all without one."""
    global _cache
    _cache = cache


def current_cache() -> KnownPatterns | None:
    """Return what `use_cache` got."""
    return _cache


def compile_cached(text: Any, flags: int = 0, derive: Callable[[Any], Any] | None = None) -> re.Pattern[Any]:
    """Return what `re.compile` returns for a text, or for what `derive` makes of it.

    Only for patterns that stand in the modules of this package: each is stored. Raises re.error.
    """
    if _cache is None:
        return re.compile(text if derive is None else derive(text), flags)
    form = "" if derive is None else derive.__name__
    key = f"{form} {int(flags)} {text!r}"
    pattern = _cache.find(key)
    if pattern is None:
        pattern = re.compile(text if derive is None else derive(text), flags)
        _cache.missing[key] = (pattern.pattern, int(flags))
    return pattern


def lazy_re(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what `re.compile` would return, for use at module level. The first use may raise re.error."""
    return cast("re.Pattern[AnyStr]", LazyPattern(text, flags))


class LazyPattern:
    """A pattern that is compiled when one of its methods is first used."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = compile_cached(self.pattern, self._flags)
        self.__dict__.update({method: getattr(compiled, method) for method in _METHODS})
        return self.__dict__[name]
