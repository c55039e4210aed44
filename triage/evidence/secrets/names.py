"""Which names mean a secret, in the styles of all languages: dbPassword, DB_PASSWORD, x.api_key, apikey."""

from __future__ import annotations

import functools
from enum import IntEnum
from itertools import pairwise

from triage.base.lazy_re import lazy_re
from triage.evidence.secrets.vocabulary import load_vocabulary


class Strength(IntEnum):
    """Which values of a name are secrets: none, random ones, those that are no identifier, quoted ones, any."""

    NONE = 0
    RANDOM = 1
    UNUSUAL = 2
    QUOTED = 3
    ANY = 4


_PART = lazy_re(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")


@functools.lru_cache(maxsize=4096)
def judge_name(name: str) -> Strength:
    """Return which values of the name are secrets."""
    lists = load_vocabulary()
    parts = [part.lower() for part in _PART.findall(name)]
    if not parts or parts[-1] in lists["heads"]:
        return Strength.NONE
    joined = ("".join(parts[-3:]), *map("".join, pairwise(parts)))
    if not lists["passwords"].isdisjoint((*parts, *joined)) or parts[-1].endswith(tuple(lists["endings"])):
        return Strength.ANY
    while len(parts) > 1 and (parts[-1] in lists["tails"] or parts[-1].isdigit()):
        parts.pop()
    return _judge_noun(parts, name.replace("_", "").replace("-", "").isupper() and len(parts) > 1)


def _judge_noun(parts: list[str], capitals: bool) -> Strength:
    *qualifiers, noun = parts
    lists = load_vocabulary()
    if noun.endswith(tuple(lists["endings"])):
        return Strength.ANY
    if noun == "key":
        return _judge_qualified(qualifiers, lists["keys"], lists["other_keys"], capitals)
    if noun == "token":
        strength = _judge_qualified(qualifiers, lists["tokens"], lists["other_tokens"], capitals)
        strength = Strength.ANY if strength is Strength.UNUSUAL else strength
        return strength if qualifiers else Strength.RANDOM
    if noun in ("pass", "pw"):
        return _judge_short_password(qualifiers, capitals)
    return Strength.RANDOM if noun in lists["random"] else Strength.NONE


def _judge_short_password(qualifiers: list[str], capitals: bool) -> Strength:
    """`pass` also means a run over data: `SMTP_PASS` and `db_pass` are passwords, `backward_pass` is not."""
    if not qualifiers:
        return Strength.QUOTED
    return Strength.ANY if capitals or qualifiers[-1] in load_vocabulary()["accounts"] else Strength.UNUSUAL


def _judge_qualified(qualifiers: list[str], sure: frozenset[str], never: frozenset[str], capitals: bool) -> Strength:
    if not qualifiers:
        return Strength.NONE
    if qualifiers[-1] in sure:
        return Strength.ANY
    if qualifiers[-1] in never or qualifiers[0] in ("num", "max", "min"):
        return Strength.NONE
    return Strength.UNUSUAL if capitals else Strength.RANDOM
