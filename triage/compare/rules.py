"""Reads settings.txt: which settings must agree, which belong together, which are dangerous. Mistakes in it are told
with file and line.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, cast

from triage.base.errors import TriageError
from triage.base.lazy_re import lazy_re
from triage.model.diagnosis import Severity

SHIPPED = Path(__file__).with_name("settings.txt")
_CONDITION = lazy_re(r"(?P<sign>[!+]?)(?P<name>[A-Za-z][\w-]*)(?:(?P<how>==|>=|<=|=|<|>)(?P<what>\S+))?")
_NAME = lazy_re(r"[A-Za-z][\w-]*\*?")
_SEVERITIES = ("error", "warning", "info")
Stand = Literal["agree", "prefer", "own"]


class RulesError(TriageError):
    """A line of a file with rules for settings cannot be used."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One word of a rule, see settings.txt."""

    text: str
    name: str
    how: str = ""
    what: str = ""
    absent: bool = False
    starts: bool = True

    def holds(self, values: Mapping[str, str], *, complete: bool) -> bool:
        """Does it hold for one rank? `complete`: what is not in `values` is known to be unset."""
        value = values.get(self.name)
        if self.absent:
            return value is None and complete
        if value is None:
            return False
        if not self.how:
            return True
        if self.how == "=":
            return any(fnmatch.fnmatchcase(value.lower(), wanted.lower()) for wanted in self.what.split("|"))
        other = values.get(self.what) if self.what.isupper() or "_" in self.what else self.what
        return other is not None and _compared(_parts(value), self.how, _parts(other))


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    conditions: tuple[Condition, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Danger:
    severity: Severity
    conditions: tuple[Condition, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Rules:
    """`names` are (pattern, stand, why) in their order."""

    names: tuple[tuple[str, Stand, str], ...]
    groups: tuple[Group, ...]
    dangers: tuple[Danger, ...]

    def of(self, name: str) -> tuple[Stand | None, str]:
        """How a name stands: the first rule that fits it, None for a name that no rule knows."""
        for pattern, stand, why in self.names:
            if pattern == name or ("*" in pattern and fnmatch.fnmatchcase(name, pattern)):
                return stand, why
        return None, ""


def load(extra: Path | None = None) -> Rules:
    """The shipped rules; those of `extra` come first and win. Raises RulesError with file and line."""
    shipped = _shipped()
    if extra is None:
        return shipped
    try:
        own = parse(extra.read_text(encoding="utf-8"), str(extra))
    except (OSError, UnicodeDecodeError) as error:
        raise RulesError(
            f"the file cannot be read: {error}", hint="give a text file like docs/environment.md shows", path=str(extra)
        ) from error
    return Rules(own.names + shipped.names, own.groups + shipped.groups, own.dangers + shipped.dangers)


@cache
def _shipped() -> Rules:
    return parse(SHIPPED.read_text(encoding="utf-8"), SHIPPED.name)


def parse(text: str, path: str) -> Rules:
    """Rules from the lines of a file called `path`."""
    names: list[tuple[str, Stand, str]] = []
    groups: list[Group] = []
    dangers: list[Danger] = []
    for number, line in enumerate(text.splitlines(), 1):
        body, _, why = line.strip().partition(" : ")
        word, *rest = body.split() or ["#"]
        if word.startswith("#"):
            continue
        if word in ("agree", "prefer", "own"):
            names += [(_name(name, path, number), cast(Stand, word), why.strip()) for name in _some(rest, path, number)]
        elif word == "group":
            title, *conditions = _some(rest, path, number)
            groups.append(
                Group(
                    title,
                    tuple(_condition(part, path, number) for part in _some(conditions, path, number)),
                    _why(why, path, number),
                )
            )
        elif word == "danger":
            severity, *conditions = _some(rest, path, number)
            if severity not in _SEVERITIES:
                raise RulesError(
                    f"{severity!r} is no severity", hint="use error, warning or info", path=path, line=number
                )
            made = tuple(_condition(part, path, number) for part in _some(conditions, path, number))
            dangers.append(Danger(cast(Severity, severity), made, _why(why, path, number)))
        else:
            raise RulesError(
                f"{word!r} begins no rule", hint="use agree, prefer, own, group or danger", path=path, line=number
            )
    return Rules(tuple(names), tuple(groups), tuple(dangers))


def _some(words: list[str], path: str, number: int) -> list[str]:
    if not words:
        raise RulesError(
            "the rule names nothing", hint="write names or conditions behind its first word", path=path, line=number
        )
    return words


def _name(text: str, path: str, number: int) -> str:
    if not _NAME.fullmatch(text):
        raise RulesError(
            f"{text!r} is no name", hint="letters, digits and _, with * at the end at most", path=path, line=number
        )
    return text


def _why(text: str, path: str, number: int) -> str:
    if not text.strip():
        raise RulesError(
            "the rule does not say what may come of it",
            hint="end the line with ` : ` and a sentence",
            path=path,
            line=number,
        )
    return text.strip()


def _condition(text: str, path: str, number: int) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None or (match["how"] == "=" and match["name"].islower()) or (match["sign"] == "!" and match["how"]):
        hint = "write NAME, !NAME, NAME=a|b, NAME>=OTHER or program==1.2"
        raise RulesError(f"{text!r} is no condition", hint=hint, path=path, line=number)
    sign = match["sign"]
    return Condition(text.lstrip("+"), match["name"], match["how"] or "", match["what"] or "", sign == "!", sign != "+")


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version.partition("+")[0]))


def _compared(one: tuple[int, ...], how: str, other: tuple[int, ...]) -> bool:
    if not one or not other:
        return False
    size = max(len(one), len(other))
    left, right = one + (0,) * (size - len(one)), other + (0,) * (size - len(other))
    return {"==": left == right, ">=": left >= right, "<=": left <= right, "<": left < right, ">": left > right}[how]
