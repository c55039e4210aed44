"""Derive a pattern from the lines of one failure.

What all lines share stays as it is; what differs becomes a capture, and so do numbers, addresses and paths. The result
is a draft in RE2's dialect that matches every line it was derived from.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re

MAX_TOKENS = 120  # of a line; the rest is ignored
MIN_LINES_FOR_CONSTANT = 3  # lines that must agree before a number counts as a part of the message
# Digits are those of RE2, which are ASCII; others are letters here.
_TOKEN = lazy_re(
    r"(?P<address>0x[0-9a-fA-F]+)|(?P<ip>(?<![\w.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]+)?)"
    r"|(?P<path>(?<![\w/])(?:/[\w.@+=-]+){2,}/?)"
    r"|(?P<id>\b(?=[0-9a-f-]*[a-f])(?=[0-9a-f-]*[0-9])[0-9a-f]{8,}(?:-[0-9a-f]{4,}){0,4}\b)"
    r"|(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<word>[^\W0-9]+(?:[0-9]+[^\W0-9]+)*)|(?P<space>[ \t\f]+)|(?P<sign>.)"
)
_VARIABLE = {
    "address": r"0x[0-9a-fA-F]+",
    "ip": r"\d+\.\d+\.\d+\.\d+(?::\d+)?",
    "path": r"/\S+",
    "id": r"[0-9a-f-]+",
    "number": r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?",
}
_SPACE = r"[ \t\f]+"
# A number right after one of these words is a part of the message.
_BEFORE_CODE = lazy_re(
    r"(?i)(?:err(?:no|or)?|code|status|xid|signal|exitcode|retcode|version|http)\b"
    r"[^\w]{0,4}(?:code\W{1,4})?(?:is\W{1,3})?$"
)
_RESERVED = {"rank", "ranks", "host"}
_ESCAPED = lazy_re(r"([\\.^$*+?{}\[\]|()])")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


def derive_pattern(lines: Sequence[str]) -> str:
    """One pattern for all the lines (at least one), anchored at the start when all lines begin alike."""
    tokenized = [_tokenize(line) for line in dict.fromkeys(lines)]
    shared = functools.reduce(_common_tokens, tokenized)
    return _write_pattern(tokenized, shared, len(lines) >= MIN_LINES_FOR_CONSTANT)


def _tokenize(line: str) -> list[_Token]:
    return [_Token(match.lastgroup or "sign", match.group()) for match in _TOKEN.finditer(line)][:MAX_TOKENS]


def _common_tokens(one: Sequence[_Token], other: Sequence[_Token]) -> list[_Token]:
    """The tokens that both have in this order. Variable tokens only need the same kind; where they differ, the text is
    empty.
    """

    def key(token: _Token) -> str:
        return f"<{token.kind}>" if token.kind in _VARIABLE or token.kind == "space" else token.text

    matcher = difflib.SequenceMatcher(None, list(map(key, one)), list(map(key, other)), autojunk=False)
    return [
        left if left.text == right.text else _Token(left.kind, "")
        for start, other_start, size in matcher.get_matching_blocks()
        for left, right in zip(one[start : start + size], other[other_start : other_start + size], strict=True)
    ]


def _write_pattern(lines: Sequence[Sequence[_Token]], shared: Sequence[_Token], constant: bool) -> str:
    """The pattern of the shared tokens, with gaps where a line has more. `constant`: codes stay as they are."""
    gaps = _find_gaps(lines, shared)
    names: set[str] = set()
    parts: list[str] = [] if gaps[0] else ["^"]
    before = ""
    for number, token in enumerate(shared):
        if number and gaps[number]:
            parts.append(_write_group("what", r"[^\n]*?", names, before))
        if token.kind == "space":
            parts.append(" " if token.text == " " else _SPACE)
        elif token.text and (token.kind not in _VARIABLE or (constant and _belongs_to_message(before))):
            parts.append(_ESCAPED.sub(r"\\\1", token.text))
        else:
            parts.append(_write_group(token.kind, _VARIABLE.get(token.kind, r"\S+"), names, before))
        before += token.text or "…"
    return "".join(parts).strip(" ")


def _find_gaps(lines: Sequence[Sequence[_Token]], shared: Sequence[_Token]) -> list[bool]:
    """Whether some line has tokens of its own before each shared token, and after the last one."""
    gaps = [False] * (len(shared) + 1)
    for line in lines:
        index = 0
        for token in line:
            if index < len(shared) and _matches_token(token, shared[index]):
                index += 1
            else:
                gaps[index] = True
    return gaps


def _belongs_to_message(before: str) -> bool:
    """Whether a number after this text is a part of the message: a code, or the end of a word (float32)."""
    return bool(_BEFORE_CODE.search(before)) or before[-1:].isalpha()


def _matches_token(token: _Token, expected: _Token) -> bool:
    variable = token.kind in _VARIABLE or token.kind == "space"
    return token.kind == expected.kind and (variable or expected.text in (token.text, ""))


def _write_group(kind: str, inner: str, names: set[str], before: str) -> str:
    """A capture named after the word before it, else after its kind."""
    last_word = re.search(r"([a-z_]{3,20})\W{0,3}$", before)
    name = last_word[1].strip("_") if last_word else kind
    if not name or name in _RESERVED or not name.isidentifier():
        name = kind
    base, number = name, 2
    while name in names:
        name, number = f"{base}{number}", number + 1
    names.add(name)
    return f"(?P<{name}>{inner})"
