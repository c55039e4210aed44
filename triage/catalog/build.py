"""Compiling signature files into a catalog: the slow way that the cache spares."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from triage import evidence
from triage.catalog import files, gate, read
from triage.catalog.model import Catalog, Signature
from triage.catalog.problems import SKIPPED, WEAK, Problem
from triage.model.evidence import Warning as Note
from triage.scan.windows import choose

NO_VERSION = "0"
MAX_HEALTHY = 4 * 1024 * 1024


def build(roots: Sequence[tuple[Path, Sequence[str]]], base: Path | None) -> Catalog:
    """The catalog of these directories and their files. Problems become warnings; nothing is raised for a bad file."""
    chosen: dict[str, Signature] = {}
    warnings: list[Note] = []
    for _, paths in roots:
        signatures, problems = read_all(path for path in paths if files.is_signature(path))
        chosen |= signatures
        warnings += [as_warning(problem) for problem in problems]
    ordered = [chosen[identifier] for identifier in sorted(chosen)]
    equipped, literals, weak = gate.equip(ordered, healthy(base))
    for weakness in weak:
        warnings.append(Note(WEAK, chosen[weakness.signature].path, f"{weakness.message}: {weakness.pattern}"))
    wanted = [literal.encode() for literal in (*evidence.TRIGGERS, *evidence.MAP_TRIGGERS, *literals)]
    windows = choose(wanted, healthy(base).encode())
    return Catalog(
        version(base), tuple(equipped), literals, tuple(warnings), tuple(window.decode() for window in windows)
    )


def read_all(paths: Iterable[str]) -> tuple[dict[str, Signature], list[Problem]]:
    """The signatures of one directory by id; the second file that gives the same id is a problem."""
    found: dict[str, Signature] = {}
    problems: list[Problem] = []
    for path in paths:
        signatures, remarks = read.read_all(path)
        problems += remarks
        for signature in signatures:
            if signature.id in found:
                message = f"the id {signature.id} is already given by {found[signature.id].path}"
                problems.append(
                    Problem("error", path, *read.places(path).place(("id",)), message, "ids are unique; rename one")
                )
            else:
                found[signature.id] = signature
    return found, problems


def as_warning(problem: Problem) -> Note:
    where = "" if problem.line is None else f"line {problem.line}, column {problem.column}: "
    return Note(SKIPPED, problem.path, f"{where}{problem.message}" + (f" ({problem.hint})" if problem.hint else ""))


def healthy(base: Path | None) -> str:
    """Lines of healthy jobs against which literals are chosen; empty if the directory has none."""
    return _small_text(base / files.HEALTHY) if base else ""


def version(base: Path | None) -> str:
    """The catalog's version, such as 2026.11.1."""
    found = (
        re.search(r"^version:\s*['\"]?([0-9A-Za-z.+-]+)", _small_text(base / files.ABOUT), re.MULTILINE)
        if base
        else None
    )
    return found.group(1) if found else NO_VERSION


def _small_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_HEALTHY).decode("utf-8", "replace")
    except OSError:
        return ""
