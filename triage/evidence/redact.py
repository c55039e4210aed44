"""Secrets leave the text here, before anything is matched, stored, indexed, shown or posted: kinds stay, values never.

Evidence passes this door when it is made of log lines, and everything else of a diagnosis when it is whole
(`redact_all`).
What the patterns are is in secrets.py, what a user adds to them in a file that TRIAGE_REDACT names; docs/security.md
says what is not covered.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from triage.base.lazy_re import lazy_re
from triage.evidence.pseudonyms import Pseudonyms
from triage.evidence.redaction import Redaction, configured
from triage.evidence.secrets import EMAIL, KEY_LINE, PATTERNS, has_key_line
from triage.model.diagnosis import Diagnosis
from triage.model.evidence import Evidence

_PLAIN = (int, float, bool, type(None))
SHORTEST = 10  # of a secret with what tells it: key='abcd'
_EMAIL = lazy_re(EMAIL)
_KEY = lazy_re(KEY_LINE)
_MARK = lazy_re(r"\[redacted ([\w-]+)\]")
_active: ContextVar[Redaction | None] = ContextVar("redaction", default=None)
_T = TypeVar("_T")


def _masker(kind: str) -> Any:
    mark = f"[redacted {kind}]"

    def mask(match: Any) -> str:
        """The group `v` goes (v1, v2 … where the form has several), or the whole match where there is none."""
        groups = match.re.groupindex
        number = next(
            (groups[name] for name in groups if name[0] == "v" and match.group(groups[name]) is not None), None
        )
        if number is None:
            return mark
        whole: str = match.group()
        return whole[: match.start(number) - match.start()] + mark + whole[match.end(number) - match.start() :]

    return mask


_COMPILED = tuple((lazy_re(pattern), _masker(kind)) for kind, _, pattern in PATTERNS)


@functools.cache
def _hints() -> tuple[Any, tuple[int, ...]]:
    """All hints as one automaton, and which of PATTERNS each is of: most texts hold none, and asking for each in turn
    takes far longer.
    """
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.case_sensitive = False
    hints = re2.Set.SearchSet(options)
    owners = tuple(
        number for number, (_, words, _) in enumerate(PATTERNS) for word in words if hints.Add(re2.escape(word)) >= 0
    )
    hints.Compile()
    return hints, owners


def _hinted(text: str) -> list[tuple[re.Pattern[str], Any]]:
    """The patterns, in order, for whose secrets the text holds a hint."""
    hints, owners = _hints()
    return [
        _COMPILED[number]
        for number in sorted({owners[hint] for hint in hints.Match(text.encode("utf-8", "replace")) or ()})
    ]


@contextmanager
def using(redaction: Redaction) -> Iterator[None]:
    """Within the block these settings hold, whatever TRIAGE_REDACT says."""
    token = _active.set(redaction)
    try:
        yield
    finally:
        _active.reset(token)


def redact(text: str) -> str:
    """`text` with every secret replaced by `[redacted <kind>]`."""
    return _redacted(text, _active.get() or configured())


def _redacted(text: str, wanted: Redaction) -> str:
    hinted = _hinted(text) if len(text) >= SHORTEST else ()
    for pattern, mask in hinted:
        text = pattern.sub(mask, text)
    if has_key_line(text):
        text = _KEY.sub("[redacted private-key]", text)
    if wanted.email and "@" in text:
        text = _EMAIL.sub("[redacted email]", text)
    for kind, own in wanted.patterns:
        text = own.sub(_masker(kind), text)
    return text


def redact_all(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis with no secret in any text of it, and with pseudonyms of hosts and addresses if the settings want
    them.
    """
    wanted = _active.get() or configured()
    names = Pseudonyms(wanted.key, _hosts(diagnosis)) if wanted.pseudonyms else None
    known: dict[str, str] = {}

    def clean(text: str) -> str:
        found = known.get(text)
        if found is None:
            found = _redacted(text, wanted)
            found = known[text] = names(found) if names is not None else found
        return found

    return _walk(diagnosis, clean)


def counted(facts: Iterable[Evidence]) -> dict[str, int]:
    """How many secrets of each kind were taken out of these facts."""
    sums: Counter[str] = Counter()
    for fact in facts:
        text, excerpt = Counter(_MARK.findall(fact.text)), Counter(_MARK.findall(fact.excerpt))
        sums.update(text | excerpt)  # the text stands in the excerpt too
    return dict(sorted(sums.items()))


def _hosts(diagnosis: Diagnosis) -> set[str]:
    found = {*diagnosis.job.hosts, *(state.host for state in diagnosis.ranks if state.host)}
    root = diagnosis.root_cause
    for finding in (*((root,) if root else ()), *diagnosis.findings, *diagnosis.unknown):
        found.update(finding.hosts)
        found.update(fact.origin.host for fact in finding.evidence if fact.origin.host)
    return found


def _walk(value: _T, clean: Any) -> _T:
    """The same value with every text in it cleaned, keys of mappings too; parts in which nothing changes stay
    themselves.
    """
    kind = type(value)
    if kind is str:
        return clean(value)  # type: ignore[no-any-return]
    if kind in _PLAIN:
        return value
    if kind is tuple:
        parts = tuple([_walk(part, clean) for part in value])  # type: ignore[attr-defined]
        return value if all(map(operator.is_, value, parts)) else parts  # type: ignore[call-overload, return-value]
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
