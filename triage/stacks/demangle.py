"""Demangles C++ names (Itanium ABI) to their path of names.

Arguments and template arguments are skipped, because normalisation drops them anyway. That makes the code small, safe
for hostile names, and linear in time.
"""

from __future__ import annotations

import functools

from triage.base.lazy_re import lazy_re

_MAX_LENGTH = 4096
_NUMBER = lazy_re(r"\d+")
_MAX_DEPTH = 48
_OPERATORS = {
    "cl": "()",
    "ix": "[]",
    "ls": "<<",
    "rs": ">>",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "gt": ">",
    "le": "<=",
    "ge": ">=",
    "aS": "=",
    "pl": "+",
    "mi": "-",
    "ml": "*",
    "dv": "/",
    "pL": "+=",
    "mI": "-=",
    "pp": "++",
    "mm": "--",
    "pt": "->",
    "de": "*",
    "nw": " new",
    "na": " new[]",
    "dl": " delete",
    "da": " delete[]",
    "nt": "!",
    "aa": "&&",
    "oo": "||",
}
_SHORT = {
    "St": "std",
    "Sa": "std::allocator",
    "Ss": "std::basic_string<T>",
    "Sb": "std::basic_string",
    "Si": "std::basic_istream<T>",
    "So": "std::basic_ostream<T>",
    "Sd": "std::basic_iostream<T>",
}


@functools.lru_cache(maxsize=1 << 14)
def demangle(name: str) -> str:
    """Return `c10::Error::Error` for `_ZN3c105ErrorC1ESs`; the name itself when it cannot be read."""
    symbol = name.removeprefix("_") if name.startswith("__Z") else name
    if not symbol.startswith("_Z") or len(symbol) > _MAX_LENGTH:
        return name
    symbol = symbol.partition(".")[0]
    return _path(symbol) or name


def _path(symbol: str) -> str:
    """The path of names: `_ZN4c10d4X1fI…E…` is `c10d::X::f<T>`, whatever the arguments are."""
    try:
        names, _ = _encoding(symbol, 2, 0)
    except (IndexError, ValueError):
        return ""
    return "::".join(names)


def _encoding(symbol: str, position: int, depth: int) -> tuple[list[str], int]:
    """The names of what starts at `position`: nested, local or plain. Raises ValueError for what it cannot read."""
    if depth > _MAX_DEPTH:
        raise ValueError(symbol)
    if symbol[position] == "Z":  # a thing inside a function: Z function E thing
        outer, position = _encoding(symbol, position + 1, depth + 1)
        while symbol[position] != "E":
            position = _skip(symbol, position, depth + 1)
        inner, position = _encoding(symbol, position + 1, depth + 1)
        return outer + inner, position
    nested = symbol[position] == "N"
    position += nested
    names: list[str] = []
    while position < len(symbol):
        part = _part(symbol, position, names, nested, depth)
        if part is None:
            break
        position, ends_name = part
        if ends_name and not nested and symbol[position : position + 1] not in ("I", "B"):
            return names, position
    if not names or (nested and symbol[position] != "E"):
        raise ValueError(symbol)
    return names, position + nested


def _part(symbol: str, position: int, names: list[str], nested: bool, depth: int) -> tuple[int, bool] | None:
    """Add one part of a path to `names`; return the position after it and whether it ends a name, None for no part."""
    letter, pair = symbol[position], symbol[position : position + 2]
    if letter.isdigit():
        name, position = _source(symbol, position)
        names.append(name)
    elif letter == "I" and names:
        names[-1] += "<T>"
        return _list(symbol, position + 1, depth + 1), False
    elif pair in _SHORT:
        names.append(_SHORT[pair])
        position += 2
        return position, names[-1] != "std" and symbol[position : position + 1] != "I"
    elif letter in "CD" and names and symbol[position + 1].isdigit():
        names.append(("~" if letter == "D" else "") + names[-1].removesuffix("<T>"))
        position += 2
    elif letter == "B" and names:  # an ABI tag
        return _source(symbol, position + 1)[1], False
    elif letter == "U":
        position = _skip(symbol, position, depth + 1)
        names.append("{lambda}")
    elif (letter in "VKrRO" and nested) or letter == "L":
        return position + 1, False
    elif pair == "cv":
        names.append("operator-conversion")
        position = _skip(symbol, position + 2, depth + 1)
    elif pair in _OPERATORS:
        names.append("operator" + _OPERATORS[pair])
        position += 2
    else:
        return None
    return position, True


def _source(symbol: str, position: int) -> tuple[str, int]:
    match = _NUMBER.match(symbol, position)
    length = int(match.group()) if match and len(match.group()) < 5 else 0
    if match is None or not 0 < length <= len(symbol) - match.end():
        raise ValueError(symbol)
    name = symbol[match.end() : match.end() + length]
    return ("(anonymous namespace)" if name.startswith("_GLOBAL__N_") else name), match.end() + length


def _list(symbol: str, position: int, depth: int) -> int:
    """The position after the E that ends a list."""
    while symbol[position] != "E":
        position = _skip(symbol, position, depth)
    return position + 1


def _skip(symbol: str, position: int, depth: int) -> int:
    """The position after one type or template argument."""
    if depth > _MAX_DEPTH:
        raise ValueError(symbol)
    letter, pair = symbol[position], symbol[position : position + 2]
    if letter.isdigit():
        _, position = _source(symbol, position)
    elif letter in "PRKOVrCG" or pair in ("Dp", "sp"):
        return _skip(symbol, position + (2 if pair in ("Dp", "sp") else 1), depth + 1)
    elif pair == "St":
        return _skip(symbol, position + 2, depth + 1)
    elif letter == "S" and pair in _SHORT:
        position += 2
    elif letter in "ST":
        position = symbol.index("_", position) + 1
    elif letter in "NIJFX" or pair in ("DT", "Dt"):
        return _list(symbol, position + (2 if letter == "D" else 1), depth + 1)
    elif letter == "L":
        return symbol.index("E", position) + 1
    elif letter == "Z":
        return _encoding(symbol, position, depth + 1)[1]
    elif pair == "Ul":
        return symbol.index("_", _list(symbol, position + 2, depth + 1)) + 1
    elif pair == "Ut" or letter == "A":
        position = symbol.index("_", position) + 1
        return _skip(symbol, position, depth + 1) if letter == "A" else position
    elif letter == "M":
        return _skip(symbol, _skip(symbol, position + 1, depth + 1), depth + 1)
    elif letter == "D" or pair in _OPERATORS:
        return position + 2
    elif letter.islower():
        return position + 1
    else:
        raise ValueError(symbol)
    return _list(symbol, position + 1, depth + 1) if symbol[position : position + 1] == "I" else position
