"""Regular expressions that compile when first used: a command needs few of the hundreds that its modules define."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

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
        compiled = re.compile(self.pattern, self._flags)
        self.__dict__.update({method: getattr(compiled, method) for method in _METHODS})
        return self.__dict__[name]
