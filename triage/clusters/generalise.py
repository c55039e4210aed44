"""A pattern that fits all members of a cluster: the words they share stay, what changes becomes a class of characters
or a capture.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Sequence

from triage.base.lazy_re import lazy_re
from triage.clusters.fingerprint import masked
from triage.clusters.headline import headline
from triage.clusters.rules import Rules, rules
from triage.model.evidence import Evidence

_TOKEN = lazy_re(r"<[a-z]+>|\w+|\s+|[^\w\s]")
_GAP = "\0"
# RE2, for the masks of rules.toml that need more than a run without blanks.
_CLASSES = {
    "<n>": r"-?\d[\d.eE%+-]*",
    "<size>": r"[\d.]+ ?\w+",
    "<hex>": r"(?:0x)?[0-9a-fA-F]+",
    "<shape>": r"(?:torch\.Size\()?[\[(]?[\d ,x-]+[\])]*",
    "<time>": r"[\d:T-]+(?: [\d:.,Z+-]+)?",
}
_NAMED = {"<host>": "host", "<ip>": "peer", "<path>": "path", "<file>": "file", "<pci>": "device"}
_LEAST_LITERAL = 4
_KEPT = "qqkept"
_END = r"\s*(?:\n|$)"


def pattern(facts: Sequence[Evidence], against: Sequence[Evidence] = ()) -> str:
    """An RE2 pattern that is found in the text of every fact, and if words can tell them apart in none of `against`.

    Empty when the facts share no literal of four characters.
    """
    by = rules()
    values = _codes(facts, by)
    texts = [masked(_kept(headline(fact, by).text, values, by), by) for fact in facts]
    shared = functools.reduce(_common, map(_TOKEN.findall, texts))
    while shared and (shared[0].isspace() or shared[0] == _GAP):
        shared = shared[1:]
    while shared and (shared[-1].isspace() or shared[-1] == _GAP):
        shared = shared[:-1]
    if max((len(run) for run in re.split(r"<[a-z]+>|\0", "".join(shared))), default=0) < _LEAST_LITERAL:
        return ""
    fitting = []
    for blank, end in ((" ", ""), (" ", _END), (r"\s+", ""), (r"\s+", _END)):
        found = _written(shared, blank, values) + end
        if all(re.search(found, fact.text) for fact in facts):
            fitting.append(found)
    return next(
        (found for found in fitting if not any(re.search(found, fact.text) for fact in against)),
        fitting[0] if fitting else "",
    )


def _codes(facts: Sequence[Evidence], by: Rules) -> list[str]:
    """The values that carry the cause: they stay as they are."""
    texts = [headline(fact, by).text for fact in facts]
    return sorted({match[rule.group] for rule in by.codes for text in texts for match in rule.pattern.finditer(text)})


def _kept(text: str, values: Sequence[str], by: Rules) -> str:
    """The text with its codes behind words that no mask touches."""
    spans = {match.span(rule.group) for rule in by.codes for match in rule.pattern.finditer(text)}
    for start, end in sorted(spans, reverse=True):
        if text[start:end] in values and not text[start:end].islower():
            text = text[:start] + _KEPT + chr(ord("a") + values.index(text[start:end]) % 26) + text[end:]
    return text


def _common(one: list[str], other: list[str]) -> list[str]:
    """What both have in the same order, with a gap where either has something else."""
    matcher = difflib.SequenceMatcher(a=one, b=other, autojunk=False)
    parts: list[str] = []
    ends = (0, 0)
    for a, b, size in matcher.get_matching_blocks():
        if (a, b) != ends and (not parts or parts[-1] != _GAP):
            parts.append(_GAP)
        parts.extend(one[a : a + size])
        ends = (a + size, b + size)
    return parts


def _written(tokens: Sequence[str], blank: str, values: Sequence[str]) -> str:
    used: set[str] = set()
    return "".join(_piece(tokens, index, blank, values, used) for index in range(len(tokens)))


def _piece(tokens: Sequence[str], index: int, blank: str, values: Sequence[str], used: set[str]) -> str:
    token = tokens[index]
    if token == _GAP:
        return ".*"
    if token.isspace():
        return blank
    if token.startswith(_KEPT):
        return re.escape(values[ord(token[len(_KEPT)]) - ord("a")]) + re.escape(token[len(_KEPT) + 1 :])
    if not re.fullmatch(r"<[a-z]+>", token):
        return re.escape(token)
    before = next((word.lower() for word in reversed(tokens[:index]) if word.isalnum()), "")
    name = "rank" if token == "<n>" and before == "rank" else _NAMED.get(token, "")
    inside = r"\d+" if name == "rank" else _CLASSES.get(token, r"\S+?" if index + 1 < len(tokens) else r"\S+")
    if not name or name in used:
        return f"(?:{inside})"
    used.add(name)
    return f"(?P<{name}>{inside})"
