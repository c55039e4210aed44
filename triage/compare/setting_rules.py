"""Read settings.txt: settings that must agree, that belong together, that are dangerous. Errors have file and line."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal, cast

from triage.base.errors import TriageError
from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.model.diagnosis import Severity

SHIPPED = Path(__file__).with_name("settings.txt")
_CONDITION = lazy_re(r"(?P<sign>[!+]?)(?P<name>[A-Za-z][\w-]*)(?:(?P<operator>==|>=|<=|=|<|>)(?P<operand>\S+))?")
_NAME = lazy_re(r"[A-Za-z][\w-]*\*?")
_SEVERITIES = ("error", "warning", "info")
NamePolicy = Literal["agree", "prefer", "own"]


class RulesError(TriageError):
    """A line of a file with rules for settings cannot be used."""


class _InvalidRule(Exception):
    """(message, hint) for a line; `parse_rules` adds file and line number."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a rule, such as `NCCL_ALGO=Ring`; see settings.txt."""

    name: str
    operator: str = ""
    operand: str = ""
    must_be_unset: bool = False
    starts_group: bool = True

    def holds(self, values: Mapping[str, str], *, complete: bool) -> bool:
        """Whether it holds for one rank. `complete`: a setting that is not in `values` is known to be unset."""
        value = values.get(self.name)
        if self.must_be_unset:
            return value is None and complete
        if value is None:
            return False
        if not self.operator:
            return True
        if self.operator == "=":
            return any(fnmatch.fnmatchcase(value.lower(), pattern.lower()) for pattern in self.operand.split("|"))
        other = values.get(self.operand) if self.operand.isupper() or "_" in self.operand else self.operand
        return other is not None and _compare_versions(_version_numbers(value), self.operator, _version_numbers(other))


@dataclass(frozen=True, slots=True)
class SettingGroup:
    """Settings that only work together."""

    conditions: tuple[Condition, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Danger:
    """Settings that are dangerous when all conditions hold for one rank."""

    severity: Severity
    conditions: tuple[Condition, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules. `names` are (pattern, policy, reason) in the order of the file; the first that fits a name counts."""

    names: tuple[tuple[str, NamePolicy, str], ...] = ()
    groups: tuple[SettingGroup, ...] = ()
    dangers: tuple[Danger, ...] = ()

    def __add__(self, other: Rules) -> Rules:
        return Rules(self.names + other.names, self.groups + other.groups, self.dangers + other.dangers)

    def policy_for(self, name: str) -> tuple[NamePolicy | None, str]:
        """The policy of a name and its reason; None for a name without a rule."""
        for pattern, policy, why in self.names:
            if pattern == name or ("*" in pattern and fnmatch.fnmatchcase(name, pattern)):
                return policy, why
        return None, ""


def load_rules(extra: Path | None = None) -> Rules:
    """Load the shipped rules, after those of `extra`, which take precedence. RulesError with file and line."""
    if extra is None:
        return _load_shipped()
    try:
        text = extra.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RulesError(
            f"the file cannot be read: {error}",
            hint="give a text file as described in docs/environment.md",
            path=str(extra),
        ) from error
    return parse_rules(text, str(extra)) + _load_shipped()


@cache
def _load_shipped() -> Rules:
    return parse_rules(SHIPPED.read_text(encoding="utf-8"), SHIPPED.name)


def parse_rules(text: str, path: str) -> Rules:
    """Parse the rules of a file called `path`."""
    rules = Rules()
    for number, line in enumerate(text.splitlines(), 1):
        try:
            rules += _parse_line(line)
        except _InvalidRule as error:
            message, hint = error.args
            raise RulesError(message, hint=hint, path=path, line=number) from None
    return rules


def _parse_line(line: str) -> Rules:
    body, _, why = line.strip().partition(" : ")
    keyword, *rest = body.split() or ["#"]
    if keyword.startswith("#"):
        return Rules()
    if keyword not in ("agree", "prefer", "own", "group", "danger"):
        raise _InvalidRule(f"unknown rule {keyword!r}", "use agree, prefer, own, group or danger")
    first, *conditions = _require_parts(rest)
    if keyword == "group":
        return Rules(groups=(SettingGroup(_parse_conditions(conditions), _require_reason(why)),))
    if keyword == "danger":
        if first not in _SEVERITIES:
            raise _InvalidRule(f"{first!r} is not a severity", "use error, warning or info")
        return Rules(dangers=(Danger(cast(Severity, first), _parse_conditions(conditions), _require_reason(why)),))
    return Rules(names=tuple((_parse_name(name), cast(NamePolicy, keyword), why.strip()) for name in rest))


def _require_parts(parts: list[str]) -> list[str]:
    if not parts:
        raise _InvalidRule("the rule has no names or conditions", "write them after its first word")
    return parts


def _parse_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise _InvalidRule(f"{text!r} is not a name", "use letters, digits and _, and * only at the end")
    return text


def _require_reason(text: str) -> str:
    if not text.strip():
        raise _InvalidRule("the rule has no reason", "end the line with ` : ` and what may happen")
    return text.strip()


def _parse_conditions(texts: list[str]) -> tuple[Condition, ...]:
    return tuple(map(_parse_condition, _require_parts(texts)))


def _parse_condition(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    sign, name, operator, operand = match.groups("") if match else ("", "", "", "")
    if not name or (operator == "=" and name.islower() and "_" not in name) or (sign == "!" and operator):
        raise _InvalidRule(f"{text!r} is not a condition", "write NAME, !NAME, NAME=a|b, NAME>=OTHER or program==1.2")
    return Condition(name, operator, operand, must_be_unset=sign == "!", starts_group=sign != "+")


def _version_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version.partition("+")[0]))


def _compare_versions(one: tuple[int, ...], operator: str, other: tuple[int, ...]) -> bool:
    if not one or not other:
        return False
    size = max(len(one), len(other))
    left, right = one + (0,) * (size - len(one)), other + (0,) * (size - len(other))
    return {"==": left == right, ">=": left >= right, "<=": left <= right, "<": left < right, ">": left > right}[
        operator
    ]
