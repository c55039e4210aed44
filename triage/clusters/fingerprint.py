"""From a fact to its fingerprint: codes lifted out, what changes masked, the place kept for exceptions that any code raises."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from triage.clusters.headline import headline
from triage.clusters.model import Fingerprint
from triage.clusters.rules import Rules, rules
from triage.model import Evidence

_WORD = re.compile(r"<[a-z]+>|[^\W\d_](?:[\w'-]*[\w])?", re.UNICODE)
_SPACE = re.compile(r"\s+")
_TITLE = 200
_KEY = 16


def fingerprint(fact: Evidence, by: Rules | None = None) -> Fingerprint:
    """The fingerprint of a failure. Pure: the same text gives the same key, whatever the rank, the host or the run."""
    by = by or rules()
    line = headline(fact, by)
    codes = tuple(sorted({f"{rule.id}={match[rule.group]}" for rule in by.codes for match in rule.pattern.finditer(line.text)}))
    title = masked(line.text, by)
    words = frozenset(telling(title, by))
    location = _location(fact, line.text, by)
    exits = _exit_code(fact) if not words else ()
    guard = "|".join((line.component, *codes, *exits, location))
    anchored = len(words) > 1 or bool(words and (codes or location)) or bool(codes and location)
    trail = [*line.trail, *(f"kept the code {code}" for code in codes), *((f"kept the place {location}",) if location else ())]
    if not anchored:
        trail.append("no line says what happened")
    return Fingerprint(
        version=by.version,
        key=_digest(by.version, guard, title.lower()),
        guard=guard,
        title=title[:_TITLE] or fact.text.strip().split("\n", 1)[0][:_TITLE],
        words=words,
        codes=codes,
        location=location,
        component=line.component,
        anchored=anchored,
        related=(_digest("no place", line.component, *codes, title.lower()), *((_digest("codes", *codes),) if codes else ())),
        trail=tuple(trail),
    )


def masked(text: str, by: Rules) -> str:
    """`text` with everything that changes from run to run replaced by what it is, in one pass."""

    def replace(match: re.Match[str]) -> str:
        return by.replacements[match.lastgroup or ""] or match[0]

    return _SPACE.sub(" ", by.masks.sub(replace, text)).strip()


def telling(title: str, by: Rules) -> Iterable[str]:
    """The words that say what happened: no masks, no idle words, no exception name that says nothing."""
    for match in _WORD.finditer(title):
        word = match[0].lower()
        if not word.startswith("<") and word not in by.idle:
            yield word


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
