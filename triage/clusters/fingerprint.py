"""From a fact to its fingerprint: error codes, the masked headline, and the place of common exceptions."""

from __future__ import annotations

import re

from triage.base.lazy_re import lazy_re
from triage.clusters.headline import MANAGED, extract_headline
from triage.clusters.place import Place, find_place, printed_by, raised_at
from triage.clusters.rules import Rules, load_rules
from triage.clusters.sentence import REMARK
from triage.model import Evidence, Fingerprint
from triage.model.diagnosis import PRINTED_BY, RAISED_AT
from triage.stacks.names import demangle

_TERM = lazy_re(r"@\S+|<[a-z]+>|[^\W\d_](?:[\w'-]*[\w])?", re.UNICODE)
# `layers` and `layer`, `model's` and `model`: not `loss`, `axis` or `status`.
_PLURAL = lazy_re(r"(?<=\w{3}[^siu])(?:'s|s'|s)$")
_SPACE = lazy_re(r"\s+")
_MANGLED = lazy_re(r"\b_{1,2}Z\w{3,}")
# `ArrowInvalid: ` too, and what a panic of Rust quotes.
_CLASS_NAME = lazy_re(r"^(?:panicked at )?(\w{0,80}(?:Error|Exception)|(?:[A-Z][a-z\d]{1,40}){2,8}): ")
# What a generic function of Go was instantiated with: releases of the compiler print it or dots.
_TYPE_ARGUMENTS = lazy_re(r"\[[^\]\n]*\]")
_TITLE = 300
_MOST_TEXT = 8000
# A function checks several conditions; for other crashes the point is the cause.
_STATED = frozenset(("check", "assert"))
# Behind the condition stand the values, and what a release adds to them.
_COMPARED = lazy_re(r" \([^\n]*? vs\. [^\n]*\).*$")
_KEY = 16
_OWN_SENTENCE = 4


def fingerprint(fact: Evidence, by: Rules | None = None) -> Fingerprint:
    """Return the fingerprint of a failure: the same text gives the same key, whatever the rank, the host or the run.

    Its guard is the component, the error codes, and the place of an exception of the language itself.
    """
    by = by or load_rules()
    # The frames of a JVM and of .NET are among the codes, however they were printed.
    if (point := fact.fields.get("crash_point")) and fact.component not in MANAGED:
        return _crash(point, fact, by)
    line = extract_headline(fact, by)
    title = mask_variables(line.text, by)[:_TITLE]
    terms = headline_words(title, by)
    codes = _read_codes(fact, line.text, by)
    stack_places: tuple[str, ...] = ()
    if _is_own_sentence(fact, title, terms, by):
        stack_places = tuple(code.partition("=")[2] for code in codes if _is_place(code, by))
        codes = tuple(code for code in codes if not _is_place(code, by))
    deciding = tuple(code for code in codes if code.partition("=")[0] in by.deciding_codes)
    codes = deciding or codes
    place = Place() if deciding else find_place(fact, line, codes, len(message_words(title, terms)), by)
    exits = _exit_code(fact) if not terms else ()
    guard = "|".join(
        ("any" if deciding else line.component, *codes, *exits, place.text if place.kind == "place" else "")
    )
    anchored = len(terms) > 1 or bool(terms and (codes or place.text))
    trail = [
        *line.trail,
        *(f"uses the code {code}" for code in codes),
        *((f"uses the {place.label} {place.text}",) if place.text else ()),
        *((f"{RAISED_AT}{where}",) if (where := raised_at(fact)) else ()),
        *(f"{RAISED_AT}{where}" for where in map(_function_of, stack_places)),
        *((f"{PRINTED_BY}{program}",) if (program := printed_by(fact)) else ()),
    ]
    if not anchored:
        trail.append("no line says what happened")
    shown = title or fact.text.strip().split("\n", 1)[0][:_TITLE]
    if place.kind == "raiser":
        title = f"{title} @{place.text}"
        shown = title
    headline = "" if deciding else place.text if place.kind == "statement" else title.lower()
    if fact.kind == "ending" and not title:
        headline = mask_variables(shown, by).lower()  # equal reports of an end have one id, others not
    return Fingerprint(by.version, _digest(by.version, guard, headline), guard, shown, tuple(trail), anchored)


def _read_codes(fact: Evidence, line: str, by: Rules) -> tuple[str, ...]:
    """Return the codes of a headline, and the first of each kind that only other lines of the failure have."""
    codes = {
        f"{rule.id}={match[rule.group]}" for rule in by.codes if not rule.whole for match in rule.pattern.finditer(line)
    }
    text = fact.text[:_MOST_TEXT]
    firsts = ((rule, rule.pattern.search(text)) for rule in by.codes if rule.whole)
    return tuple(
        sorted(
            codes
            | {f"{rule.id}={_TYPE_ARGUMENTS.sub('', match[rule.group])}" for rule, match in firsts if match is not None}
        )
    )


def _is_own_sentence(fact: Evidence, title: str, terms: frozenset[str], by: Rules) -> bool:
    """Whether the program wrote the sentence itself, and not its language for any reason."""
    if len(message_words(title, terms)) < _OWN_SENTENCE or by.language_sentences.search(title) is not None:
        return False
    name = _CLASS_NAME.match(title)
    return name is None or re.search(rf"\b(?:java|javax|jdk|scala|kotlin)(?:\.\w+)*\.{name[1]}\b", fact.text) is None


def _is_place(code: str, by: Rules) -> bool:
    return code.partition("=")[0] in by.place_codes


def _function_of(code: str) -> str:
    """Return `Cursor:seek` for the method of a stack, as the place of an exception is written."""
    owner, _, name = code.replace("(*", "").replace(")", "").rpartition(".")
    return f"{owner}:{name}"


def _crash(point: str, fact: Evidence, by: Rules) -> Fingerprint:
    """Return the fingerprint of a crash: its crash point, whoever printed the stack, and a condition that failed."""
    title = mask_variables(extract_headline(fact, by).text, by)[:_TITLE] or point
    trail: tuple[str, ...] = (f"uses the crash point {point}",)
    parts = ["crash", point, *_user_place(fact)]
    if fact.fields.get("crash_kind") in _STATED and fact.fields.get("message"):
        title = mask_variables(_COMPARED.sub("", fact.fields["message"]), by)[:_TITLE]
        parts.append(title.lower())
        trail = (*trail, "uses the condition that failed")
    guard = "|".join(("crash", point, *_user_place(fact)))
    return Fingerprint(by.version, _digest(by.version, *parts), guard, title, trail, True)


def _user_place(fact: Evidence) -> tuple[str, ...]:
    """Return the user's frame of a crash of which only Python's frames are known: the innermost is a library's."""
    fields = fact.fields
    if not fields.get("function") or fields.get("frame") != fields.get("python"):
        return ()
    return (f"{fields.get('file', '').rpartition('/')[2]}:{fields['function']}",)


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

    if "_Z" in text:
        text = _MANGLED.sub(lambda match: demangle(match[0]), text)
    for pattern, sentence, needed in by.wordings:
        if needed in text:
            text = pattern.sub(sentence, text)
    return _SPACE.sub(" ", by.masks.sub(replace, text)).strip()


def headline_words(title: str, by: Rules | None = None) -> frozenset[str]:
    """Return the words of a masked headline that say what happened, without masks and idle words.

    Of several spellings that mean the same, it is the first of `same` in the rules, in the singular.
    """
    by = by or load_rules()
    terms = (match[0] for match in _TERM.finditer(by.unify(REMARK.sub(" ", title.lower()))))
    telling = (term for term in terms if not term.startswith("<") and term not in by.idle)
    return frozenset(term if term in by.turning or term[0] == "@" else _PLURAL.sub("", term) for term in telling)


def message_words(title: str, terms: frozenset[str]) -> frozenset[str]:
    """Return the words of a headline without the class of its exception, which libraries rename."""
    name = _CLASS_NAME.match(title)
    return terms if name is None else terms - {name[1].lower(), "panicked"}


def _exit_code(fact: Evidence) -> tuple[str, ...]:
    return (f"exit={fact.fields['exitcode']}",) if "exitcode" in fact.fields else ()


def _digest(*parts: object) -> str:
    import hashlib  # most jobs have no unknown failure

    return hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "replace")).hexdigest()[:_KEY]
