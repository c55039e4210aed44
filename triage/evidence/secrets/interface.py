"""What a rule is: a hint that says where it can apply, and a function that takes the secrets out of a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule. `hint` is an RE2 pattern without regard to case: a text without a match of it holds no such secret.

    `redact` returns the text with its secrets replaced. It keeps every line break.
    """

    hint: str
    redact: Callable[[str], str]


def mark(kind: str) -> str:
    """Return what stands in the place of a secret."""
    return f"[redacted {kind}]"


def mask_match(kind: str, match: re.Match[str]) -> str:
    """Return the match with its groups `v`, `v1`, `v2` … replaced, or a mark for the whole where it has none."""
    numbers = [
        number for name, number in match.re.groupindex.items() if name[0] == "v" and match.group(number) is not None
    ]
    spans = sorted(match.span(number) for number in numbers)
    if not spans:
        return mark(kind)
    return replace_spans(match.string, spans, kind, match.start(), match.end())


def replace_spans(text: str, spans: list[tuple[int, int]], kind: str, start: int = 0, end: int | None = None) -> str:
    """Return text[start:end] with a mark in the place of each span; spans are in order and do not overlap."""
    parts = []
    for first, last in spans:
        parts += [text[start:first], mark(kind)]
        start = last
    return "".join([*parts, text[start:end]])


def pattern_rule(kind: str, hint: str, pattern: str, accept: Callable[[str], bool] | None = None) -> Rule:
    """Return a rule that masks each match of the pattern whose secret is accepted.

    The secret is group `v`, or the whole match where there is no such group.
    """
    compiled = lazy_re(pattern)

    def mask(match: re.Match[str]) -> str:
        secret = match["v"] if "v" in match.re.groupindex else match.group()
        return mask_match(kind, match) if accept is None or accept(secret) else match.group()

    return Rule(hint, lambda text: compiled.sub(mask, text))


def spans_rule(kind: str, hint: str, find: Callable[[str], Iterator[tuple[int, int]]]) -> Rule:
    """Return a rule that masks the spans that `find` yields in order."""

    def redact(text: str) -> str:
        spans = list(find(text))
        return replace_spans(text, spans, kind) if spans else text

    return Rule(hint, redact)
