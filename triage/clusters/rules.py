"""The rules of the fingerprint, read from rules.toml, which people can edit."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from triage.base.errors import CatalogError
from triage.base.lazy_dataclass import dataclass

FILE = Path(__file__).with_name("rules.toml")
_MOST_MEANINGS = 2  # `could not find` is `cannot find`, which is `not found`


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: a match of `pattern` gives its named `group` (unwrap, code); only texts with `needs` are tried.

    `whole`: it looks at all lines of a failure.
    """

    id: str
    pattern: re.Pattern[str]
    group: str = "inner"
    component: str = ""
    needs: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules.

    `wordings` are patterns with what stands for them. `masks` is one pattern; its groups name the entries of
    `replacements`, of which an empty one keeps the text. `phrases` finds those for which `meanings` has another.
    """

    version: int
    unwraps: tuple[Rule, ...]
    footers: tuple[Rule, ...]
    codes: tuple[Rule, ...]
    wordings: tuple[tuple[re.Pattern[str], str, str], ...]
    masks: re.Pattern[str]
    replacements: Mapping[str, str]
    placed_types: frozenset[str]
    authored_types: frozenset[str]
    placed_sentences: re.Pattern[str]
    machine_errnos: frozenset[str]
    language_sentences: re.Pattern[str]
    place_codes: frozenset[str]
    deciding_codes: frozenset[str]
    sentences: frozenset[str]
    idle: frozenset[str]
    empty: frozenset[str]
    turning: frozenset[str]
    casual: frozenset[str]
    framing: frozenset[str]
    synonyms: tuple[tuple[str, ...], ...]
    states: tuple[tuple[str, ...], ...]
    implied: frozenset[str]
    plain_states: frozenset[str]
    denials: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    relations: tuple[tuple[str, str], ...]
    opposites: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    phrases: re.Pattern[str]
    meanings: Mapping[str, str]

    def unify(self, text: str) -> str:
        """Return a text in lower case with the first of several phrases that mean the same in place of each."""
        for _ in range(_MOST_MEANINGS):
            text = self.phrases.sub(lambda match: self.meanings[match[0]], text)
        return text


@functools.cache
def load_rules() -> Rules:
    """Return the shipped rules."""
    return read_rules(FILE)


def read_rules(path: Path) -> Rules:
    """Return the rules in a file. Raises CatalogError with the file and the line of an error."""
    import tomllib

    text = path.read_text(encoding="utf-8")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CatalogError(f"not TOML: {error}", path=str(path), hint="fix the reported line") from error
    kinds = {
        kind: [_rule(path, text, entry) for entry in data.get(kind, ())]
        for kind in ("unwrap", "footer", "code", "mask")
    }
    masks = data.get("mask", ())
    location = data.get("location", {})
    meanings = {phrase: same[0] for same in data.get("words", {}).get("same", ()) for phrase in same[1:]}
    return Rules(
        version=int(data["version"]),
        unwraps=tuple(kinds["unwrap"]),
        footers=tuple(kinds["footer"]),
        codes=tuple(kinds["code"]),
        wordings=tuple(
            (_rule(path, text, entry).pattern, str(entry["replacement"]), str(entry.get("needs", "")))
            for entry in data.get("wording", ())
        ),
        masks=re.compile(
            "|".join(f"(?P<m{number}>{entry['pattern']})" for number, entry in enumerate(masks)), re.IGNORECASE
        ),
        replacements={f"m{number}": _replacement(entry) for number, entry in enumerate(masks)},
        placed_types=frozenset(location.get("types", ())) - frozenset(location.get("except", ())),
        authored_types=frozenset(location.get("authored", ())),
        placed_sentences=re.compile("|".join(location.get("placed_sentences", ())) or r"(?!)"),
        language_sentences=re.compile("|".join(location.get("language_sentences", ())) or r"(?!)"),
        place_codes=frozenset(location.get("place_codes", ())),
        deciding_codes=frozenset(location.get("deciding_codes", ())),
        machine_errnos=frozenset(map(str, location.get("machine_errnos", ()))),
        sentences=frozenset(location.get("sentences", ())),
        idle=frozenset(data.get("words", {}).get("idle", ())),
        empty=frozenset(data.get("words", {}).get("empty", ())),
        turning=frozenset(data.get("words", {}).get("turning", ())),
        casual=frozenset(data.get("words", {}).get("casual", ())),
        framing=frozenset(data.get("words", {}).get("framing", ())),
        synonyms=tuple(map(tuple, data.get("words", {}).get("synonyms", ()))),
        states=tuple(map(tuple, data.get("words", {}).get("states", ()))),
        implied=frozenset(data.get("words", {}).get("implied", ())),
        plain_states=frozenset(data.get("words", {}).get("plain_states", ())),
        denials=tuple((tuple(one), tuple(other)) for one, other in data.get("words", {}).get("denials", ())),
        relations=tuple((one, other) for one, other in data.get("words", {}).get("relations", ())),
        opposites=tuple((tuple(one), tuple(other)) for one, other in data.get("words", {}).get("opposites", ())),
        phrases=_any_of(meanings),
        meanings=meanings,
    )


def _any_of(phrases: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of any of the phrases as whole words, the longest first."""
    longest = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest)) or '(?!)'})(?!\w)")


def _replacement(entry: Mapping[str, Any]) -> str:
    return "" if entry["id"] == "keep" else str(entry.get("replacement", f"<{entry['id']}>"))


def _rule(path: Path, text: str, entry: Mapping[str, Any]) -> Rule:
    name = str(entry.get("id", ""))
    line = text[: text.find(f'id = "{name}"')].count("\n") + 1
    try:
        pattern = re.compile(entry["pattern"])
    except (KeyError, re.error) as error:
        raise CatalogError(
            f"rule {name!r} has no usable pattern: {error}", path=str(path), line=line, hint="fix the pattern"
        ) from error
    return Rule(
        name,
        pattern,
        str(entry.get("group", "value" if "gives" in entry else "inner")),
        str(entry.get("component", "")),
        str(entry.get("needs", "")),
        bool(entry.get("whole", False)),
    )
