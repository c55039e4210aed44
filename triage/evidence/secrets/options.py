"""Secrets behind options whose names mean a secret, of any program: `--hub-token …`, `--db-password=…`."""

from __future__ import annotations

from collections.abc import Iterator

from triage.base.lazy_re import lazy_re
from triage.evidence.secrets.interface import spans_rule
from triage.evidence.secrets.names import Strength, judge_name
from triage.evidence.secrets.values import is_path, is_statement, looks_random

KIND = "option"
# Between arguments, on a shell line or in a list of arguments; and between an option and its value.
GAP = r"['\"]?,?[ \t]{1,3}['\"]?"
TO_VALUE = r"(?:['\"]?,[ \t]{0,3}|[ \t]{1,3}|=)"
_VALUE = r"(?:\"(?P<v1>[^\"\n]{3,400})\"|'(?P<v2>[^'\n]{3,400})'|(?P<v3>[^\s\"',;|&\]]{3,400}))"
_LONG = lazy_re(rf"(?<![\w-])--?(?P<name>[A-Za-z][\w.-]{{1,80}}){TO_VALUE}(?!-){_VALUE}")


def _find_long_options(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the values of options with names that mean a secret: `--hub-token …`."""
    for match in _LONG.finditer(text):
        strength = judge_name(match["name"])
        group = next(name for name in ("v1", "v2", "v3") if match[name] is not None)
        value = match[group]
        if strength is Strength.NONE or is_statement(value) or is_path(value):
            continue
        if strength is Strength.ANY or match["name"] in ("token", "pass") or looks_random(value):
            yield match.span(group)


RULES = (spans_rule(KIND, r"-[\w.-]*(?:pass|pwd|secret|cred|key|token|auth)", _find_long_options),)
