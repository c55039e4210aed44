"""Classes of frames that do not matter for the crash point, each an editable text file in this directory.

A line is `PATTERN [@LIBRARY] [-> KIND]`, `#` begins a comment. Patterns are compared with the names of
`names.normalise_function`, `*` stands for any text; a library pattern only matches a known library. `errors.txt` lists
classes of errors: `TEXT -> CLASS`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path

from triage.base.errors import TriageError
from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re

CLASSES: tuple[str, ...] = (
    "signal",  # first: all frames inside it are dropped
    "abort",
    "watchdog",
    "memory",
    "allocator",
    "glue",
    "interpreter",
    "idle",
    "thread-base",
)
_MAX_CACHED = 1 << 14
_MAX_NAME = 512  # characters of a name that are compared with patterns
DIRECTORY = Path(__file__).parent
_LINE = lazy_re(r"(?P<pattern>\S.*?)(?: +@(?P<library>\S+))?(?: +-> +(?P<kind>[a-z][a-z-]*))?$")


class RuleError(TriageError):
    """An unusable file of frame classes."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a file: `where` is `abort.txt:12`."""

    label: str
    pattern: str
    library: str
    kind: str
    where: str


@dataclass(frozen=True, slots=True)
class Rules:
    """The compiled files: whole names in a table, patterns with `*` as one expression for each class."""

    exact: dict[str, tuple[Rule, ...]]
    globs: tuple[tuple[re.Pattern[str], tuple[Rule, ...]], ...]
    errors: tuple[tuple[str, str], ...]
    cache: dict[tuple[str, str], Rule | None] = field(default_factory=dict, compare=False, repr=False)

    def find(self, name: str, library: str) -> Rule | None:
        """Return the first rule, in the order of CLASSES, for a normalised name; whole names go before patterns."""
        key = (name, library)
        if key not in self.cache:
            if len(self.cache) >= _MAX_CACHED:
                self.cache.clear()
            self.cache[key] = self._find(name[:_MAX_NAME], library)
        return self.cache[key]

    def _find(self, name: str, library: str) -> Rule | None:
        for rule in self.exact.get(name, ()):
            if _matches_library(rule.library, library):
                return rule
        for pattern, rules in self.globs:
            match = pattern.fullmatch(name)
            if match is not None:
                rule = rules[(match.lastindex or 1) - 1]
                if _matches_library(rule.library, library):
                    return rule
        return None

    def error_class(self, text: str) -> str:
        """Return the class of an error by its text, "" for an unknown one."""
        lowered = text.lower()
        return next((label for part, label in self.errors if part in lowered), "")


def load_rules(directory: Path = DIRECTORY) -> Rules:
    """Load the files of a directory. Raises RuleError with file and line."""
    exact: dict[str, list[Rule]] = {}
    globs: list[tuple[re.Pattern[str], tuple[Rule, ...]]] = []
    for label in CLASSES:
        patterns = []
        for rule in _rules(directory / f"{label}.txt", label):
            if "*" in rule.pattern:
                patterns.append(rule)
            else:
                exact.setdefault(rule.pattern, []).append(rule)
        if patterns:
            globs.append((re.compile("|".join(f"({_glob(rule.pattern)})" for rule in patterns)), tuple(patterns)))
    return Rules(
        {name: tuple(rules) for name, rules in exact.items()}, tuple(globs), tuple(_errors(directory / "errors.txt"))
    )


@functools.cache
def shipped_rules() -> Rules:
    """Return the rules that ship with triage, loaded once."""
    return load_rules()


def _glob(pattern: str) -> str:
    return "[^\\n]*".join(re.escape(part) for part in re.split(r"\*+", pattern))


def _matches_library(wanted: str, library: str) -> bool:
    return not wanted or (bool(library) and re.fullmatch(_glob(wanted), library) is not None)


def _lines(path: Path) -> Iterable[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RuleError(
            f"cannot be read: {error}", hint="restore the file, or reinstall triage", path=str(path)
        ) from error
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line.strip()


def _rules(path: Path, label: str) -> Iterable[Rule]:
    line_of: dict[tuple[str, str], int] = {}
    for number, line in _lines(path):
        match = _LINE.fullmatch(line)
        pattern = match["pattern"] if match else ""
        hint = ""
        if match is None or "->" in re.sub(r"operator->\*?", "", pattern) or " @" in pattern:
            message = f"{line!r} is not a rule"
            hint = "write PATTERN, PATTERN @LIBRARY or PATTERN -> KIND, with the kind in small letters"
        elif not pattern.strip("*: "):
            message, hint = f"{pattern!r} would drop every frame", "name a function or a namespace"
        elif pattern.count("*") > 4:
            message, hint = f"{pattern!r} has more than four *", "write several rules"
        elif first := line_of.get((pattern, match["library"] or "")):
            message, hint = f"{pattern!r} is already in line {first}", "remove one of them"
        if hint:
            raise RuleError(message, hint=hint, path=str(path), line=number)
        assert match is not None
        line_of[pattern, match["library"] or ""] = number
        yield Rule(label, pattern, match["library"] or "", match["kind"] or "", f"{path.name}:{number}")


def _errors(path: Path) -> Iterable[tuple[str, str]]:
    for number, line in _lines(path):
        text, arrow, label = line.rpartition(" -> ")
        if not arrow or not text.strip() or not re.fullmatch(r"[a-z][a-z0-9-]*", label.strip()):
            raise RuleError(
                f"{line!r} is not a class of errors", hint="write TEXT -> CLASS", path=str(path), line=number
            )
        yield text.strip().lower(), label.strip()
