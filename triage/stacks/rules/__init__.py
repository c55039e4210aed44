"""Which frames matter: classes of frames that do not, each a text file in this directory that a person can edit.

A line is `PATTERN [@LIBRARY] [-> KIND]`, `#` begins a comment. Patterns are compared with normalised names
(`names.normal`), `*` stands for
anything; a library pattern holds only where the library is known. `errors.txt` gives classes of errors: `WORDS ->
CLASS`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from triage.base.errors import TriageError
from triage.base.lazy_re import lazy_re

CLASSES: tuple[str, ...] = (
    "signal",  # first: what is above it is dropped whole
    "abort",
    "watchdog",
    "memory",
    "allocator",
    "glue",
    "interpreter",
    "idle",
    "thread-base",
)
_REMEMBERED = 1 << 14
_LONGEST = 512  # of a name that is compared with patterns
HERE = Path(__file__).parent
_LINE = lazy_re(r"(?P<pattern>\S.*?)(?: +@(?P<library>\S+))?(?: +-> +(?P<kind>[a-z][a-z-]*))?$")


class RuleError(TriageError):
    """A file of frame classes cannot be used."""


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
    """The compiled files: whole names in a table, the rest as one expression for each class."""

    exact: dict[str, tuple[Rule, ...]]
    globs: tuple[tuple[re.Pattern[str], tuple[Rule, ...]], ...]
    errors: tuple[tuple[str, str], ...]
    seen: dict[tuple[str, str], Rule | None] = field(default_factory=dict, compare=False, repr=False)

    def find(self, name: str, library: str) -> Rule | None:
        """The first rule, in the order of CLASSES, for a normalised name; a rule for the whole name goes before those
        with `*`.
        """
        key = (name, library)
        if key not in self.seen:
            if len(self.seen) >= _REMEMBERED:
                self.seen.clear()
            self.seen[key] = self._find(name[:_LONGEST], library)
        return self.seen[key]

    def _find(self, name: str, library: str) -> Rule | None:
        found = [rule for rule in self.exact.get(name, ()) if _holds(rule.library, library)]
        if found:
            return found[0]
        for pattern, rules in self.globs:
            match = pattern.fullmatch(name)
            if match is not None:
                rule = rules[(match.lastindex or 1) - 1]
                if _holds(rule.library, library):
                    return rule
        return None

    def error_class(self, text: str) -> str:
        """The class of an error by its words, "" when none is known."""
        lowered = text.lower()
        return next((label for words, label in self.errors if words in lowered), "")


def load(directory: Path = HERE) -> Rules:
    """Read the files of a directory. Raises RuleError with file and line."""
    exact: dict[str, list[Rule]] = {}
    globs: list[tuple[re.Pattern[str], tuple[Rule, ...]]] = []
    for label in CLASSES:
        starred = []
        for rule in _rules(directory / f"{label}.txt", label):
            if "*" in rule.pattern:
                starred.append(rule)
            else:
                exact.setdefault(rule.pattern, []).append(rule)
        if starred:
            globs.append((re.compile("|".join(f"({_glob(rule.pattern)})" for rule in starred)), tuple(starred)))
    return Rules(
        {name: tuple(rules) for name, rules in exact.items()}, tuple(globs), tuple(_errors(directory / "errors.txt"))
    )


@functools.cache
def shipped() -> Rules:
    """The rules that ship, read once."""
    return load()


def _glob(pattern: str) -> str:
    return "[^\\n]*".join(re.escape(part) for part in re.split(r"\*+", pattern))


def _holds(wanted: str, library: str) -> bool:
    return not wanted or (bool(library) and re.fullmatch(_glob(wanted), library) is not None)


def _lines(path: Path) -> Iterable[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RuleError(f"cannot be read: {error}", hint="put the file back, or reinstall", path=str(path)) from error
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line.strip()


def _rules(path: Path, label: str) -> Iterable[Rule]:
    seen: dict[tuple[str, str], int] = {}
    for number, line in _lines(path):
        match = _LINE.fullmatch(line)
        pattern = match["pattern"] if match else ""
        if match is None or "->" in re.sub(r"operator->\*?", "", pattern) or " @" in pattern:
            hint = "write PATTERN, PATTERN @LIBRARY or PATTERN -> KIND, with the kind in small letters"
            raise RuleError(f"{line!r} is no rule", hint=hint, path=str(path), line=number)
        if not pattern.strip("*: "):
            raise RuleError(
                f"{pattern!r} would drop every frame",
                hint="name a function or a namespace",
                path=str(path),
                line=number,
            )
        if pattern.count("*") > 4:
            raise RuleError(
                f"{pattern!r} has more than four *", hint="write several rules", path=str(path), line=number
            )
        key = (pattern, match["library"] or "")
        if key in seen:
            raise RuleError(
                f"{pattern!r} stands in line {seen[key]} already",
                hint="remove one of them",
                path=str(path),
                line=number,
            )
        seen[key] = number
        yield Rule(label, pattern, match["library"] or "", match["kind"] or "", f"{path.name}:{number}")


def _errors(path: Path) -> Iterable[tuple[str, str]]:
    for number, line in _lines(path):
        words, arrow, label = line.rpartition(" -> ")
        if not arrow or not words.strip() or not re.fullmatch(r"[a-z][a-z0-9-]*", label.strip()):
            raise RuleError(f"{line!r} is no class of errors", hint="write WORDS -> CLASS", path=str(path), line=number)
        yield words.strip().lower(), label.strip()
