"""The one line of a failure that says what happened, without wrappers and boilerplate."""

from __future__ import annotations

import re

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.clusters.log_record import read_statement
from triage.clusters.rules import Rules
from triage.evidence.end_reports import reports_only_end
from triage.model.evidence import Evidence

_MOST_TEXT = 8000
_MOST_HEADLINE = 2000
_MOST_UNWRAPS = 8
_MOST_LINES = 3
_ANSI = lazy_re(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
# A first line that only introduces the next ones: `ValidationError: 2 errors:` or `Exception:`.
_OPEN = lazy_re(r"(?:[:;]|^[\w.]+|errors? for [\w. ]+)$")
# The version of the program may stand behind the colon: `--> FOAM FATAL ERROR: (openfoam-2212)`.
_VERSION = lazy_re(r"(?<=:) ?\([a-z][\w.]*-v?\d[\w.]*\)$")
# Other lines of the console between a line and the next of the same failure: progress, metrics, warnings, loggers; and
# fields of a block, as `Program:     solver`.
_BESIDE = lazy_re(
    r"[^|\n]{0,80}\d%\||\{'\w+': -?\d|warnings\.warn\(|\S+:\d+: \w*Warning: |wandb: "
    r"|(?:\[[^\]\n]{1,80}\] )?(?:step|batch|epoch) \d+\b|(?:INFO|DEBUG|TRACE)\b|\S+ FAILED$"
    r"|[A-Z][\w ]{1,30}: {2,}\S|Source file: "
)
# As OpenFOAM writes the rank.
_TAG = lazy_re(r"\[\d{1,6}\] ")
_OPEN_BRACKET = lazy_re(r"<(?=\w)")
# What a program raises or prints last: the same failure, whoever parsed it.
_OF_PROGRAMS = frozenset(("exception", "terminate", "ending"))
_ANY = "any"
MANAGED = frozenset(("dotnet", "jvm"))
"""Components of stacks whose exceptions have a sentence: of Java, Scala and .NET."""
_TYPE = lazy_re(r"^(?:[A-Za-z_]\w*\.)+(?=_?[A-Z]\w*\b)")


@dataclass(frozen=True, slots=True)
class Headline:
    """`text` before masking, empty when the failure has none; `component` that wrote it; `trail` of the steps."""

    text: str
    component: str
    trail: tuple[str, ...]


def extract_headline(fact: Evidence, rules: Rules) -> Headline:
    """Return the headline of one fact."""
    text = _ANSI.sub("", fact.text[:_MOST_TEXT]).strip()
    is_ending = fact.kind == "ending"
    trail: list[str] = []
    if is_ending:
        text = _without_others(text)
        line, end, rest = text.partition("\n")
        statement = read_statement(line)
        if statement != line:
            text = f"{statement}{end}{rest}"
            trail.append("read the sentence of a log line")
    component = _ANY if fact.kind in _OF_PROGRAMS or fact.component in MANAGED else fact.component
    is_unwrapped = False
    for _ in range(_MOST_UNWRAPS):
        for rule in rules.unwraps:
            match = rule.pattern.search(text) if rule.needs in text else None
            if match and is_ending and not is_unwrapped and "\n" in text[: match.start()]:
                match = None
            inner = _read_inner(match, rule.group) if match else ""
            if inner and inner != text:
                text = inner
                component = rule.component or component
                trail.append(f"unwrapped by {rule.id}")
                is_unwrapped = True
                break
        else:
            break
    line = _first_line(text, rules, trail, is_ending=is_ending)
    return Headline(_TYPE.sub("", line)[:_MOST_HEADLINE], component, tuple(trail))


def _without_others(text: str) -> str:
    """Return last lines without those of other programs between them, and without the tag of their rank."""
    first, *others = text.split("\n")
    others = [line for line in others if not _BESIDE.match(line)]
    tag = _TAG.match(first)
    if tag and others and others[0].startswith(tag[0].strip()):
        prefix = tag[0].strip()
        first, *others = (line.removeprefix(prefix).lstrip() for line in (first, *others))
    return "\n".join((first, *others))


def _read_inner(match: re.Match[str], group: str) -> str:
    """Return the inner failure, behind what failed outside where the rule reads that too."""
    outer = match.groupdict().get("outer")
    return f"{outer.strip()}: {match[group].strip()}" if outer else match[group].strip()


def _first_line(text: str, rules: Rules, trail: list[str], *, is_ending: bool) -> str:
    """Return the first line that is no footer, with the next ones where it only introduces them.

    `is_ending`: only the first line is the failure's, the others are what its writer printed around it.
    """
    lines: list[str] = []
    depth = 0
    for raw in text.split("\n"):
        line = raw.strip()
        if not line:
            continue
        footer = next((rule.id for rule in rules.footers if rule.pattern.search(line)), None)
        footer = footer or ("reports-only-end" if is_ending and reports_only_end(line) else None)
        if footer:
            trail.append(f"skipped a line: {footer}")
            if is_ending:
                break
            continue
        if lines and _BESIDE.match(line):
            continue
        indent = len(raw) - len(raw.lstrip())
        if lines and not (_introduces(lines) or (len(lines) > 1 and indent > depth)):
            break
        lines.append(_VERSION.sub("", line))
        depth = indent
        if len(lines) == _MOST_LINES:
            break
    return " ".join(lines)


def _introduces(lines: list[str]) -> bool:
    """Whether what happened stands in the next line."""
    return _OPEN.search(lines[-1]) is not None or _has_open_bracket(lines[0])


def _has_open_bracket(line: str) -> bool:
    """Whether a line opens a bracket over the next ones, as gRPC writes `<_InactiveRpcError … terminated with:`."""
    return len(_OPEN_BRACKET.findall(line)) > line.count(">")
