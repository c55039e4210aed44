"""The one line of a failure that says what happened: wrappers taken off, boilerplate passed over."""

from __future__ import annotations

from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.clusters.rules import Rules
from triage.model.evidence import Evidence

_LIMIT = 8000
_HEADLINE = 2000
_DEEPEST = 8
_ANSI = lazy_re(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
# A first line that only announces what the next ones say: `ValidationError: 2 errors:` or `Exception:`.
_OPEN = lazy_re(r"(?:[:;]|^[\w.]+|errors? for [\w. ]+)$")
_TYPE = lazy_re(r"^(?:[A-Za-z_]\w*\.)+(?=[A-Z]\w*\b)")


@dataclass(frozen=True, slots=True)
class Headline:
    """`text` before masking, empty when the failure has none; `component` who really spoke; `trail` what was done."""

    text: str
    component: str
    trail: tuple[str, ...]


def headline(fact: Evidence, rules: Rules) -> Headline:
    """The headline of one fact."""
    text = _ANSI.sub("", fact.text[:_LIMIT]).strip()
    component = fact.component
    trail: list[str] = []
    for _ in range(_DEEPEST):
        for rule in rules.unwraps:
            match = rule.pattern.search(text) if rule.needs in text else None
            inner = match[rule.group].strip() if match else ""
            if inner and inner != text:
                text = inner
                component = rule.component or component
                trail.append(f"unwrapped by {rule.id}")
                break
        else:
            break
    line = _first(text, rules, trail)
    return Headline(_TYPE.sub("", line)[:_HEADLINE], component, tuple(trail))


def _first(text: str, rules: Rules, trail: list[str]) -> str:
    """The first line that is no footer, with the next where it only opens a list."""
    lines = []
    for line in filter(None, (line.strip() for line in text.split("\n"))):
        footer = next((rule.id for rule in rules.footers if rule.pattern.search(line)), None)
        if footer:
            trail.append(f"passed over a line: {footer}")
            continue
        lines.append(line)
        if not _OPEN.search(line) or len(lines) == 3:
            break
    return " ".join(lines)
