"""A name that means a secret, with its value, in the styles of languages, formats and prose.

`password=…`, `"clientSecret": "…"`, `:token => '…'`, `{Password:… Host:…}`, `<password>…</password>`,
`('password', '…')`, `ENV API_KEY …`, `os.environ["API_KEY"] = "…"`, `token: Some("…")`, `using API key …`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from triage.base.lazy_re import lazy_re
from triage.evidence.secrets.interface import pattern_rule, spans_rule
from triage.evidence.secrets.names import Strength, judge_name
from triage.evidence.secrets.values import is_code, is_path, is_statement, is_unusual, looks_random

KIND = "assignment"
SHORTEST_BARE = 5
SHORTEST_QUOTED = 4
# Nouns that are parts of other words too, such as path and author, end where the letters change.
_SHORT_NOUNS = r"key|token|auth|jwt|pat|pass|pw|psk"
_NOUNS = (
    r"passw(?:or)?[dt]|pass[_-]?phrase|passcode|passe|pwd|pswd?|pword|secrets?|cred(?:ential)?s?"
    r"|kennwort|contrase.{1,2}a|senha|dockerconfigjson"
)
_FOREIGN = r"\u5bc6\u7801|\u53e3\u4ee4|\u5bc6\u94a5|\u043f\u0430\u0440\u043e\u043b\u044c"
_NOUN = lazy_re(
    rf"(?i)(?:{_NOUNS}|{_FOREIGN}|(?:{_SHORT_NOUNS})(?-i:(?![a-z])))(?P<suffix>[\w.-]{{0,40}})"
    r"(?: (?=\d{1,2}:)\d{1,2})?"
)
# The same for RE2, with the beginning of what can follow; the foreign names are bytes.
_SUFFIX = r"[\w.\x80-\xff-]*"
_HINTED = (
    rf"(?:{_NOUNS}|\xe5\xaf\x86|\xe5\x8f\xa3|\xd0\xbf\xd0\xb0){_SUFFIX}|(?:{_SHORT_NOUNS})(?:(?-i:[^\sa-z]){_SUFFIX})?"
)
_FOLLOWING = (
    r"[\\\"'`\])]*(?:[ \t]+\d{1,2})?[ \t]*\\?(?::|=|->|,)|>|[ \t]+[\"']|[ \t]+value"
    r"|[\"'`]?[ \t]+(?:(?:is|was|of|value) )?[^\s]{8}"
)
HINT = rf"(?:{_HINTED})(?:{_FOLLOWING})"
_NAME_BEFORE = lazy_re(r"[\w.-]{1,80}$")
_WORD_BEFORE = lazy_re(r"(?<![\w-])(\w{1,20}) $")
# Between name and value. Some forms only with a quoted value, or only with one that looks random.
_SIGN = lazy_re(r"(?:\\{0,3}[\"'`]|\]|\)){0,3}[ \t]{0,8}\\?(?::=|=>|->|==?|:)[ \t]{0,8}(?:[|>][-+]?\n[ \t]{1,40})?")
_PAIR = lazy_re(
    r"\\{0,3}[\"'`],[ \t]{0,3}(?=[bu]?(\\{0,3}[\"'`])[^\n\"']{1,4000}\1[)\]])"
    r"|[\"'][ \t]{1,3}value[ \t]{0,3}=[ \t]{0,3}(?=[\"'])"
)
_TAG = lazy_re(r">(?=[^<\n]{1,400}</)")
_SPACE = lazy_re(r"[\"'`]?[ \t]{1,3}(?:is |was |of |value )?")
_WRAPPER = lazy_re(r"Some\(|ConvertTo-SecureString |SecretStr\(|[bBuUrR]{1,2}(?=[\"'])|\((?=[\w\"'])|\[\[|\[(?=[\"'])")
_QUOTED = lazy_re(r"(?P<quote>\\{0,3}[\"'`])(?P<value>[^\n]{1,4000}?)(?P=quote)")
_BARE = lazy_re(r"\\{0,3}[\"'`]?(?P<value>[^\s\"'`,;&\\]{1,2000})")
_INNER = lazy_re(r"(?P<value>[^<\n]{1,400})")
_SETTING = lazy_re(
    r"(?:(?:^|[\s;+])(?:ENV|ARG|setenv|SET|set(?:[ \t]-\w{1,3})?)|configure[ \t]set"
    r"|config[ \t](?:set|create)[^\n]{0,120})[ \t]{1,3}$"
)
_NAMED = lazy_re(
    r"\bname: ?[\"']?(?P<name>[\w.-]{1,80})[\"']?[ \t]{0,3}\r?\n[ \t]{1,40}value: ?[\"']?(?P<value>[^\s\"']{4,400})"
)
_DIRECTORIES = frozenset(("PWD", "OLDPWD"))
_NO_QUALIFIERS = frozenset(
    ("the", "a", "an", "this", "that", "your", "my", "its", "with", "of", "and", "no", "for", "by")
)
_PROSE = lazy_re(r" (?:[A-Za-z]{2,}\b(?![:=])|[\"'])")
_SIGN_AFTER = lazy_re(r"[\"']?\s{0,3}(?:[=:]|=>)")


def find_assigned(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the values of names that mean a secret."""
    end = 0
    for noun in _NOUN.finditer(text):
        if noun.start() >= end and (span := _find_value(text, noun)) is not None:
            end = span[1]
            yield span


def _find_value(text: str, noun: re.Match[str]) -> tuple[int, int] | None:
    """Return the span of the secret that belongs to the name around the noun."""
    start, strength = _judge(text, noun)
    if strength is Strength.NONE:
        return None
    name, place = text[start : noun.end()], noun.end()
    if (sign := _SIGN.match(text, place)) is not None:
        return _take(text, sign.end(), name, strength, prose=sign.group().endswith(": "))
    if (pair := _PAIR.match(text, place)) is not None:
        return _take(text, pair.end(), name, strength)
    if text[start - 1 : start] == "<" and (tag := _TAG.match(text, place)) is not None:
        return _accept(_INNER.match(text, tag.end()), name, strength, quoted=True)
    if (space := _SPACE.match(text, place)) is not None:
        return _take(text, space.end(), name, strength if _is_setting(text, start, name) else Strength.RANDOM)
    return None


def _judge(text: str, noun: re.Match[str]) -> tuple[int, Strength]:
    """Return where the name begins, and which of its values are secrets. `API key` is a name too."""
    before = _NAME_BEFORE.search(text, max(0, noun.start() - 80), noun.start())
    start = before.start() if before is not None else noun.start()
    name = text[start : noun.end()].rstrip(".-")
    if name in _DIRECTORIES or text.endswith("[redacted ", 0, start):
        return start, Strength.NONE
    strength = judge_name(name)
    if strength < Strength.ANY and before is None:
        previous = _WORD_BEFORE.search(text, max(0, start - 24), start)
        if previous is not None and previous[1].isalpha() and previous[1].lower() not in _NO_QUALIFIERS:
            strength = judge_name(f"{previous[1]} {name}".lower())
    return start, strength


def _is_setting(text: str, start: int, name: str) -> bool:
    """Whether the line sets the name: `ENV API_KEY …`, `setenv HF_TOKEN …`, Groovy's `signingPassword "…"`."""
    if "_" in name and _SETTING.search(text[max(0, start - 200) : start]) is not None:
        return True
    behind = text[start + len(name) : start + len(name) + 2]
    return name[:1].islower() and not name.islower() and behind in (' "', " '")


def _take(text: str, place: int, name: str, strength: Strength, prose: bool = False) -> tuple[int, int] | None:
    """Return the span of the value that begins at `place`, without its quotes and wrapper."""
    wrapper = _WRAPPER.match(text, place)
    place = wrapper.end() if wrapper is not None else place
    quoted = _QUOTED.match(text, place)
    if quoted is not None:
        return _accept(quoted, name, strength, quoted=True)
    bare = _BARE.match(text, place)
    if bare is None or (prose and bare["value"].isalpha() and _PROSE.match(text, bare.end())):
        return None
    if is_code(bare["value"]) or _is_name(text, bare):
        return None
    return _accept(bare, name, strength, quoted=wrapper is not None)


def _is_name(text: str, bare: re.Match[str]) -> bool:
    """Whether the value is itself a name with a value: `secret: auth_token = …`."""
    name, sign, _ = bare["value"].partition("=")
    if not sign:
        name, sign, _ = bare["value"].partition(":")
    return (bool(sign) or _SIGN_AFTER.match(text, bare.end()) is not None) and judge_name(name) > Strength.NONE


def _accept(
    match: re.Match[str] | None, name: str, strength: Strength, *, quoted: bool = False
) -> tuple[int, int] | None:
    if match is None:
        return None
    value = match["value"] if quoted else match["value"].rstrip(")}]>.")
    first = match.start("value")
    same = value.lower() in name.lower()  # password=password is code
    return (first, first + len(value)) if not same and _is_secret(value, strength, quoted) else None


def _is_secret(value: str, strength: Strength, quoted: bool) -> bool:
    if is_statement(value) or is_path(value) or "[redacted" in value:
        return False
    if strength is Strength.ANY or (strength is Strength.QUOTED and quoted and not value.isdigit()):
        return len(value) >= (SHORTEST_QUOTED if quoted else SHORTEST_BARE)
    return is_unusual(value) if strength is Strength.UNUSUAL else looks_random(value)


def _find_named_values(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of values of a Kubernetes variable: `- name: DB_PASSWORD`, and `value: …` on the next line."""
    for match in _NAMED.finditer(text):
        if judge_name(match["name"]) is Strength.ANY and not is_statement(match["value"]):
            yield match.span("value")


RULES = (
    spans_rule(KIND, HINT, find_assigned),
    # Forms in which name and value are not side by side.
    pattern_rule(
        KIND, r"identified|password", r"(?i)\b(?:IDENTIFIED (?:WITH \S{1,40} )?BY|PASSWORD) '(?P<v>[^'\n]{4,200})'"
    ),
    pattern_rule(
        KIND,
        r"name=.?.?(?:pass|pwd|secret|token)",
        r"(?i)\bname=[\"']?(?:password|passwd|pwd|secret|token)[\"']?\r?\n\r?\n(?P<v>(?!\[redacted)[^\r\n]{4,400})",
    ),
    pattern_rule(
        KIND,
        "mnemonic|seed.phrase",
        r"(?i)(?:mnemonic|seed[ _]phrase)[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<v>(?:[a-z]{3,8} ){11,23}[a-z]{3,8})",
    ),
    spans_rule(KIND, r"name:", _find_named_values),
    # A client that gets its secret without a name: wandb.login("…").
    pattern_rule(
        KIND,
        r"(?:login|client|authenticate)\(",
        r"(?i)(?:login|client|authenticate)\([^()\n]{0,80}?[\"'](?P<v>[\w.+/=-]{20,400})[\"']",
        looks_random,
    ),
    pattern_rule(
        KIND,
        r"username.{2,100}key",
        r"[\"']username[\"']: ?[\"'][^\"'\n]{1,80}[\"'], ?[\"']key[\"']: ?[\"'](?P<v>[^\"'\n]{8,200})[\"']",
        looks_random,
    ),
)
