"""Regular expressions that are compiled when first used: a command needs few of the hundreds that its modules name."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

_TAKEN = (
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
    """What `re.compile` would give, for the module level. It raises re.error at its first use."""
    return cast("re.Pattern[AnyStr]", Lazy(text, flags))


class Lazy:
    """Stands for `re.compile(pattern, flags)`, whose methods become its own when one is asked for."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name not in _TAKEN:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self._flags)
        self.__dict__.update({taken: getattr(compiled, taken) for taken in _TAKEN})
        return self.__dict__[name]
