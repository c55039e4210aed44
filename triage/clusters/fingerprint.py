"""From a fact to its fingerprint: codes lifted out, what changes masked, the place kept for exceptions that any code
raises.
"""

from __future__ import annotations

import hashlib
import re

from triage.base.lazy_re import lazy_re
from triage.clusters.headline import headline
from triage.clusters.rules import Rules, rules
from triage.model.diagnosis import Fingerprint
from triage.model.evidence import Evidence

_WORD = lazy_re(r"<[a-z]+>|[^\W\d_](?:[\w'-]*[\w])?", re.UNICODE)
_SPACE = lazy_re(r"\s+")
_TITLE = 300
_KEY = 16


def fingerprint(fact: Evidence, by: Rules | None = None) -> Fingerprint:
    """The fingerprint of a failure. Pure: the same text gives the same key, whatever the rank, the host or the run.

    Its guard is who spoke, the codes that carry the cause, and the place of an exception of the language itself.
    """
    by = by or rules()
    if point := fact.fields.get("crash_point"):
        return _crash(point, fact, by)
    line = headline(fact, by)
    codes = tuple(
        sorted({f"{rule.id}={match[rule.group]}" for rule in by.codes for match in rule.pattern.finditer(line.text)})
    )
    title = masked(line.text, by)[:_TITLE]
    telling = words(title, by)
    location = _location(fact, line.text, by)
    exits = _exit_code(fact) if not telling else ()
    guard = "|".join((line.component, *codes, *exits, location))
    anchored = len(telling) > 1 or bool(telling and (codes or location))
    trail = [
        *line.trail,
        *(f"kept the code {code}" for code in codes),
        *((f"kept the place {location}",) if location else ()),
    ]
    if not anchored:
        trail.append("no line says what happened")
    shown = title or fact.text.strip().split("\n", 1)[0][:_TITLE]
    return Fingerprint(by.version, _digest(by.version, guard, title.lower()), guard, shown, tuple(trail), anchored)


def _crash(point: str, fact: Evidence, by: Rules) -> Fingerprint:
    """A crash is told by the frame that matters, whoever printed the stack; what is said about it does not count."""
    title = masked(headline(fact, by).text, by)[:_TITLE] or point
    return Fingerprint(
        by.version,
        _digest(by.version, "crash", point),
        f"crash|{point}",
        title,
        (f"told by its crash point {point}",),
        True,
    )


def name(fact: Evidence) -> str:
    """The id that a cluster of such failures has when nothing else is known: the beginning of its key."""
    return short(fingerprint(fact).key)


def short(key: str, digits: int = 6) -> str:
    """An id from the first digits of a key."""
    return f"u-{key[:digits]}"


def masked(text: str, by: Rules) -> str:
    """`text` with everything that changes from run to run replaced by what it is, in one pass."""

    def replace(match: re.Match[str]) -> str:
        return by.replacements[match.lastgroup or ""] or match[0]

    return _SPACE.sub(" ", by.masks.sub(replace, text)).strip()


def words(title: str, by: Rules | None = None) -> frozenset[str]:
    """The words of a masked headline that say what happened: no masks, no idle words."""
    by = by or rules()
    found = (match[0].lower() for match in _WORD.finditer(title))
    return frozenset(word for word in found if not word.startswith("<") and word not in by.idle)


def _location(fact: Evidence, line: str, by: Rules) -> str:
    """`file:function` of the application's frame, for exceptions of the language itself."""
    name = fact.fields.get("type", "")
    if name not in by.placed_types or not line.startswith(name):
        return ""
    function = fact.fields.get("function", "")
    return f"{fact.fields.get('file', '').rpartition('/')[2]}:{function}" if function else ""


def _exit_code(fact: Evidence) -> tuple[str, ...]:
    return (f"exit={fact.fields['exitcode']}",) if "exitcode" in fact.fields else ()


def _digest(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "replace")).hexdigest()[:_KEY]
