"""Comparable names: one for a function whichever tool printed it, one for a library whatever its version.

The order of the steps matters: demangle, cut what compilers append, unify lambdas, drop arguments and template
arguments, drop the return type, drop inline namespaces, cut what the dynamic linker appends.

Demangling (C++ names of the Itanium ABI) skips arguments and template arguments, because normalisation drops them
anyway. That makes the code small, safe for hostile names, and linear in time.
"""

from __future__ import annotations

import functools
import re

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
_ABI = lazy_re(r"\[abi:\w+\]|\[\[?clone [^\]]*\]?\]|\[with [^\]]*\]")
_SUFFIX = lazy_re(
    r"(?:\.(?:isra|part|constprop|cold|lto_priv|llvm|localalias|actor|destroy|resume|\d+|warm|hot|unlikely|str|"
    r"__uniq)(?=\.|$))+.*$"
)
_VERSION = lazy_re(r"@@?(?:[A-Z][\w.]*|plt|got(?:\.plt)?|Base)$")
_THUNK = lazy_re(r"^(?:(?:non-virtual|virtual|covariant return) thunk to |static |guard variable for )+")
_LAMBDA = lazy_re(
    r"\{lambda\(|<lambda\(|'lambda\d*'\(|\$_\d+|<lambda_[0-9a-f]+>|\{lambda#\d+\}|\{closure[#\d]*\}|\{\{closure\}\}"
)
_INLINE = lazy_re(r"\b(std)::(?:__cxx11|__1|__ndk1|__debug|_V2)::|\b(absl)::(?:lts_\w+|debian\d*)::|\b(fmt)::v\d+::")
_OPERATOR = lazy_re(
    r"operator\s*(\(\)|\[\]|<=>|<<=|>>=|->\*|->|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%^&|]=?|[~!=<>,]|(?:new|"
    r"delete)\b(?:\[\])?|\"\"\s*\w+)"
)
_CONVERSION = lazy_re(r"operator\s+(?=[A-Za-z_:])")
_TRAILER = lazy_re(r"(?:\s*(?:\bconst\b|\bvolatile\b|\bnoexcept\b|&&?))+$")
_QUALIFIED = lazy_re(r"(?: ?(?:const|volatile|noexcept|&&?)){1,4}(?=::|$)")
_GLIBC = lazy_re(r"^\*?(?:__GI_|IA__)+")
_STRING = lazy_re(
    r"^_{0,2}((?:mem|str|stp|wmem|wcs|bcmp|bcopy|bzero|rawmem)[a-z]*?)(?:_(?:chk|avx2?|avx512\w*|evex\d*|sse\d\w*|"
    r"ssse3|erms|unaligned|rtm|generic|"
    r"neon|sve|mops|a64fx|falkor|thunderx2?|oryon\d|no_vzeroupper|vzeroupper|aligned|back|bsf|l|nonnull|x86|ifunc|"
    r"power\d+|512))+$"
)
_RUST = lazy_re(r"::h[0-9a-f]{16}$")
_ANONYMOUS = (
    "(anonymous namespace)",
    "(anonymous)",
    "<unnamed>",
    "{anonymous}",
    "`anonymous namespace'",
    "_GLOBAL__N_1",
)
_ANON = "{anon}"
_LONGEST = 1 << 14

_SONAME = lazy_re(r"\.so(?:\.\d+)*$")
_AUDITWHEEL = lazy_re(r"-[0-9a-f]{8}(?=$|\.|-)")
_EXTENSION = lazy_re(r"\.(?:cpython-\w+(?:-[\w-]+)?|abi3|pypy\w+(?:-[\w-]+)?)$")
_LIBRARY_VERSION = lazy_re(r"-\d+(?:\.\d+)+$")
_PROGRAM_VERSION = lazy_re(r"^(python|pypy|perl|ruby)\d+(?:\.\d+)*[a-z]?$")


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


@functools.lru_cache(maxsize=1 << 16)
def normalise_function(function: str) -> str:
    """Return the comparable name, "" for an unknown function; takes time linear in the length, cut at 16 Ki."""
    name = function.strip()[:_LONGEST].partition("<<<")[0]  # how a kernel was launched
    if name in ("", "??", "???", "<unknown function>", "(unknown)", "<unknown>", "_fini", "unknown"):
        return ""
    if name.startswith("<") and name.endswith(">") and "lambda" not in name and "unnamed" not in name:
        return name  # <signal handler called>, <python>
    name = _VERSION.sub("", name)
    if name.startswith(("_Z", "__Z", "_R")):
        name = demangle(name)
    name = _THUNK.sub("", _ABI.sub("", name))
    if "." in name and "(" not in name[: name.find(".")]:
        name = _SUFFIX.sub("", name.removeprefix("."))
    for spelling in _ANONYMOUS:
        name = name.replace(spelling, _ANON)
    name = _drop_arguments(_unify_lambdas(name))
    name = _INLINE.sub(lambda match: f"{match[1] or match[2] or match[3]}::", name)
    name = name.replace("std::string::", "std::basic_string<T>::")
    name = re.sub(r"\{lambda\}(?:::(?:operator\(\)|_FUN|__invoke))+", "{lambda}", name)
    name = name.removesuffix("_FUN") + "{lambda}" if name.endswith("::_FUN") else name
    name = _RUST.sub("", _GLIBC.sub("", name))
    name = _SUFFIX.sub("", name) if "." in name else name
    string = _STRING.match(name)
    return string[1] if string else name


def _unify_lambdas(name: str) -> str:
    """Replace every spelling of a lambda by `{lambda}`."""
    match = _LAMBDA.search(name)
    if match is None:
        return name
    out = []
    position = 0
    while match is not None:
        out += [name[position : match.start()], "{lambda}"]
        position = match.end()
        bracket = match.group()
        if bracket.endswith("("):
            position = _closing(name, position, "(", ")")
            closer = {"{": "}", "<": ">"}.get(bracket[0])
            if closer:
                end = name.find(closer, position)
                position = end + 1 if end >= 0 else len(name)
        match = _LAMBDA.search(name, position)
    out.append(name[position:])
    return "".join(out)


def _closing(text: str, position: int, opener: str, closer: str) -> int:
    """The position after the closer of what was opened just before `position`."""
    depth = 1
    while position < len(text):
        letter = text[position]
        position += 1
        if letter == opener:
            depth += 1
        elif letter == closer:
            if closer == ">" and position >= 2 and text[position - 2] == "-":
                continue
            depth -= 1
            if not depth:
                break
    return position


def _drop_arguments(name: str) -> str:
    """The name without arguments, template arguments, return type and trailing qualifiers."""
    out: list[str] = []
    position = 0
    while position < len(name):
        letter = name[position]
        if letter == "o" and name.startswith("operator", position) and not _inside_word(name, position):
            operator, end = _operator(name, position)
            if operator:
                out.append(operator)
                position = end
                continue
        if letter == "(":
            position = _closing(name, position + 1, "(", ")")
            # `foo(int) const::bar`: qualifiers of the arguments are dropped with them.
            qualified = _QUALIFIED.match(name, position)
            position = qualified.end() if qualified else position
            continue
        if letter == "<":
            if out and out[-1] == " ":
                out.pop()  # `operator<< <int>`
            position = _closing(name, position + 1, "<", ">")
            out.append("<T>")
            continue
        out.append(letter)
        position += 1
    # Before the last blank is a return type, or a word such as `static`.
    return _TRAILER.sub("", "".join(out)).strip().rsplit(" ", 1)[-1].lstrip("*&")


def _operator(name: str, position: int) -> tuple[str, int]:
    """The name of the operator that starts at `position` and the position after it; "" for another word."""
    match = _OPERATOR.match(name, position)
    if match is not None:
        return f"operator{match[1].replace(' ', '')}", match.end()
    if _CONVERSION.match(name, position) is None:
        return "", position
    end = name.find("(", position)
    return "operator-conversion", end if end >= 0 else len(name)


def _inside_word(name: str, position: int) -> bool:
    return position > 0 and (name[position - 1].isalnum() or name[position - 1] == "_")


@functools.lru_cache(maxsize=4096)
def library_name(module: str) -> str:
    """Return the comparable name of a library or program: `libnccl` for `/usr/lib/libnccl.so.2`."""
    name = module.strip().removesuffix(" (deleted)").rstrip("/").rsplit("/", 1)[-1].rsplit("\\", 1)[-1]
    stem = _SONAME.sub("", name)
    stem = _EXTENSION.sub("", stem)
    stem = _LIBRARY_VERSION.sub("", _AUDITWHEEL.sub("", stem))
    program = _PROGRAM_VERSION.match(stem)
    return program[1] if program else stem


def source_name(file: str) -> str:
    """Return the base name of a source file."""
    return file.rstrip("/").rsplit("/", 1)[-1].rsplit("\\", 1)[-1]
