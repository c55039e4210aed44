"""Replace secrets by their kind, before anything is matched, stored, indexed, shown or posted.

Evidence is redacted when it is made from log lines, and the rest of a diagnosis when it is complete (`redact_all`). The
rules are in secrets/; users add their own in a file that TRIAGE_REDACT names. docs/security.md says what is not
covered.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from triage.base.digit_masks import mask_long_text, mask_text
from triage.base.lazy_re import lazy_re
from triage.base.masked_re import widen_digits
from triage.evidence.redaction import Pseudonyms, Redaction, load_redaction
from triage.evidence.secrets import EMAIL, RULES
from triage.evidence.secrets.interface import mask_match
from triage.model import Diagnosis, Evidence

_LONGEST_KEPT, _LONGEST_FEW = 1 << 11, 1 << 13  # characters of a text whose hints are remembered; of few texts
_PLAIN = (int, float, bool, type(None))
SHORTEST = 10  # characters of a secret with its name: key='abcd'
_EMAIL = lazy_re(EMAIL)
_MARK = lazy_re(r"\[redacted ([\w-]+)\]")
_T = TypeVar("_T")


@functools.cache
def _hints() -> Any:
    """Return the hints of all rules as one automaton, in their forms for masks: most texts hold none of them."""
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.case_sensitive = False
    hints = re2.Set.SearchSet(options)
    for rule in RULES:
        hints.Add(widen_digits(rule.hint))
    hints.Compile()
    return hints


def _hinted(text: str) -> Sequence[int]:
    """Return the numbers of the rules, in order, of which a text with these digits or others holds a hint."""
    if len(text) <= _LONGEST_KEPT:
        return _hinted_in_mask(mask_text(text))
    return _hinted_in_long_mask(mask_long_text(text)) if len(text) <= _LONGEST_FEW else _match_hints(text)


def _match_hints(mask: str) -> Sequence[int]:
    return sorted(_hints().Match(mask.encode("utf-8", "replace")) or ())


_hinted_in_mask = functools.lru_cache(maxsize=1 << 12)(_match_hints)
_hinted_in_long_mask = functools.lru_cache(maxsize=1 << 6)(_match_hints)


def redact(text: str) -> str:
    """Return the text with every secret replaced by `[redacted <kind>]`."""
    return redact_with(load_redaction(), text)


def redact_with(settings: Redaction, text: str) -> str:
    """Do the same with settings that are read already."""
    for number in _hinted(text) if len(text) >= SHORTEST else ():
        text = RULES[number].redact(text)
    if settings.email and "@" in text:
        text = _EMAIL.sub("[redacted email]", text)
    for kind, own in settings.patterns:
        text = own.sub(functools.partial(mask_match, kind), text)
    return text


def redact_all(diagnosis: Diagnosis) -> Diagnosis:
    """Return the diagnosis without secrets in any text, and with pseudonyms for hosts and addresses if configured."""
    settings = load_redaction()
    pseudonyms = Pseudonyms(settings.key, _hosts(diagnosis)) if settings.pseudonyms else None
    cleaned: dict[str, str] = {}

    def clean(text: str) -> str:
        if text not in cleaned:
            redacted = redact_with(settings, text)
            cleaned[text] = redacted if pseudonyms is None else pseudonyms(redacted)
        return cleaned[text]

    return _walk(diagnosis, clean)


def redact_texts(value: _T) -> _T:
    """Return a timeline, an environment or an explanation without secrets in any text of it."""
    return _walk(value, functools.cache(redact))


def count_redactions(facts: Iterable[Evidence]) -> dict[str, int]:
    """Return how many secrets of each kind were taken out of these facts."""
    sums: Counter[str] = Counter()
    for fact in facts:
        text, excerpt = Counter(_MARK.findall(fact.text)), Counter(_MARK.findall(fact.excerpt))
        sums.update(text | excerpt)  # the text stands in the excerpt too
    return dict(sorted(sums.items()))


def _hosts(diagnosis: Diagnosis) -> set[str]:
    hosts = {*diagnosis.job.hosts, *(state.host for state in diagnosis.ranks if state.host)}
    root = diagnosis.root_cause
    for finding in (*((root,) if root else ()), *diagnosis.findings, *diagnosis.unknown):
        hosts.update(finding.hosts)
        hosts.update(fact.origin.host for fact in finding.evidence if fact.origin.host)
    return hosts


def _walk(value: _T, clean: Any) -> _T:
    """Return the value with every text in it cleaned, keys of mappings too; parts without a change stay as they are."""
    kind = type(value)
    if kind is str:
        return clean(value)  # type: ignore[no-any-return]
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        parts = [_walk(part, clean) for part in value]  # type: ignore[attr-defined]
        same = all(map(operator.is_, value, parts))  # type: ignore[call-overload]
        return value if same else kind(parts)  # type: ignore[call-arg]
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is not None:
        changed = {}
        for name in fields:
            part = getattr(value, name)
            new = _walk(part, clean)
            if new is not part:
                changed[name] = new
        return dataclasses.replace(value, **changed) if changed else value  # type: ignore[type-var]
    if isinstance(value, Mapping):
        pairs = {clean(key): _walk(part, clean) for key, part in value.items()}
        return value if list(pairs.items()) == list(value.items()) else pairs  # type: ignore[return-value]
    return value
