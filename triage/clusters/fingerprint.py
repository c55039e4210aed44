"""From a fact to its fingerprint: error codes, the masked headline, and the place of common exceptions."""

from __future__ import annotations

import hashlib
import re

from triage.base.lazy_re import lazy_re
from triage.clusters.headline import extract_headline
from triage.clusters.rules import Rules, load_rules
from triage.model import Evidence, Fingerprint

_TERM = lazy_re(r"<[a-z]+>|[^\W\d_](?:[\w'-]*[\w])?", re.UNICODE)
_SPACE = lazy_re(r"\s+")
_TITLE = 300
_KEY = 16


def fingerprint(fact: Evidence, by: Rules | None = None) -> Fingerprint:
    """Return the fingerprint of a failure: the same text gives the same key, whatever the rank, the host or the run.

    Its guard is the component, the error codes, and the place of an exception of the language itself.
    """
    by = by or load_rules()
    if point := fact.fields.get("crash_point"):
        return _crash(point, fact, by)
    line = extract_headline(fact, by)
    codes = tuple(
        sorted({f"{rule.id}={match[rule.group]}" for rule in by.codes for match in rule.pattern.finditer(line.text)})
    )
    title = mask_variables(line.text, by)[:_TITLE]
    terms = headline_words(title, by)
    location = _location(fact, line.text, by)
    exits = _exit_code(fact) if not terms else ()
    guard = "|".join((line.component, *codes, *exits, location))
    anchored = len(terms) > 1 or bool(terms and (codes or location))
    trail = [
        *line.trail,
        *(f"uses the code {code}" for code in codes),
        *((f"uses the place {location}",) if location else ()),
    ]
    if not anchored:
        trail.append("no line says what happened")
    shown = title or fact.text.strip().split("\n", 1)[0][:_TITLE]
    return Fingerprint(by.version, _digest(by.version, guard, title.lower()), guard, shown, tuple(trail), anchored)


def _crash(point: str, fact: Evidence, by: Rules) -> Fingerprint:
    """Return the fingerprint of a crash, which is its crash point alone, whoever printed the stack."""
    title = mask_variables(extract_headline(fact, by).text, by)[:_TITLE] or point
    return Fingerprint(
        by.version,
        _digest(by.version, "crash", point),
        f"crash|{point}",
        title,
        (f"uses the crash point {point}",),
        True,
    )


def name_cluster(fact: Evidence) -> str:
    """Return the id of a new cluster of such failures: the beginning of the key."""
    return cluster_id(fingerprint(fact).key)


def cluster_id(key: str, digits: int = 6) -> str:
    """Return an id from the first digits of a key."""
    return f"u-{key[:digits]}"


def mask_variables(text: str, by: Rules) -> str:
    """Return the text with everything that changes from run to run replaced by its kind, such as `<path>`."""

    def replace(match: re.Match[str]) -> str:
        return by.replacements[match.lastgroup or ""] or match[0]

    return _SPACE.sub(" ", by.masks.sub(replace, text)).strip()


def headline_words(title: str, by: Rules | None = None) -> frozenset[str]:
    """Return the words of a masked headline that say what happened, without masks and idle words."""
    by = by or load_rules()
    lowered = (match[0].lower() for match in _TERM.finditer(title))
    return frozenset(term for term in lowered if not term.startswith("<") and term not in by.idle)


def _location(fact: Evidence, line: str, by: Rules) -> str:
    """Return `file:function` of the application's frame, for exceptions of the language itself."""
    name = fact.fields.get("type", "")
    if name not in by.placed_types or not line.startswith(name):
        return ""
    function = fact.fields.get("function", "")
    return f"{fact.fields.get('file', '').rpartition('/')[2]}:{function}" if function else ""


def _exit_code(fact: Evidence) -> tuple[str, ...]:
    return (f"exit={fact.fields['exitcode']}",) if "exitcode" in fact.fields else ()


def _digest(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "replace")).hexdigest()[:_KEY]
