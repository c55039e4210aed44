"""Compile signature files into a catalog; `cache` saves the result, because this is slow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from triage import evidence
from triage.catalog import edge_groups, literal_selection, read, signature_files
from triage.catalog.model import Catalog, Signature
from triage.catalog.problems import SKIPPED, WEAK, Problem
from triage.model.evidence import Warning as Note
from triage.scan.windows import choose_windows

NO_VERSION = "0"
MAX_HEALTHY_BYTES = 4 * 1024 * 1024


def build_catalog(roots: Sequence[tuple[Path, Sequence[str]]], base: Path | None) -> Catalog:
    """Compile these directories with their files, later ones over earlier ones. A bad file becomes a warning."""
    by_id: dict[str, Signature] = {}
    warnings: list[Note] = []
    for root, paths in roots:
        signatures, problems = read_directory(path for path in paths if signature_files.is_signature_file(path))
        by_id |= signatures
        warnings += map(to_warning, [*edge_groups.read_groups(root / signature_files.GROUPS)[1], *problems])
    healthy = read_healthy_lines(base)
    ordered = [by_id[identifier] for identifier in sorted(by_id)]
    equipped, literals, weak = literal_selection.assign_literals(ordered, healthy)
    warnings += [Note(WEAK, by_id[one.signature].path, f"{one.message}: {one.pattern}") for one in weak]
    searched = [literal.encode() for literal in (*evidence.TRIGGERS, *evidence.MAP_TRIGGERS, *literals)]
    windows = tuple(window.decode() for window in choose_windows(searched, healthy.encode()))
    return Catalog(read_version(base), tuple(equipped), literals, tuple(warnings), windows)


def read_directory(paths: Iterable[str]) -> tuple[dict[str, Signature], list[Problem]]:
    """Read the files of one directory: signatures by id, and problems. A second file with the same id is a problem."""
    by_id: dict[str, Signature] = {}
    problems: list[Problem] = []
    for path in paths:
        signatures, file_problems = read.read_signatures(path)
        problems += file_problems
        for signature in signatures:
            first = by_id.setdefault(signature.id, signature)
            if first is not signature:
                position = read.read_document(path).locate(("id",))
                message = f"{first.path} already uses the id {signature.id}"
                problems.append(Problem("error", path, *position, message, "ids are unique; choose another one"))
    return by_id, problems


def to_warning(problem: Problem) -> Note:
    """The problem as a warning of the catalog."""
    where = "" if problem.line is None else f"line {problem.line}, column {problem.column}: "
    return Note(SKIPPED, problem.path, f"{where}{problem.message}" + (f" ({problem.hint})" if problem.hint else ""))


def read_healthy_lines(base: Path | None) -> str:
    """Lines of healthy jobs, against which literals are chosen; empty if the directory has none."""
    return _read_start(base / signature_files.HEALTHY) if base else ""


def read_everyday_lines(base: Path | None) -> list[str]:
    """Lines of healthy programs that no cause may match; none if the directory has no such file."""
    lines = _read_start(base / signature_files.EVERYDAY).splitlines() if base else []
    return [line for number, line in enumerate(lines) if line.strip() and not (number == 0 and line.startswith("#"))]


def read_version(base: Path | None) -> str:
    """The catalog's version, such as 2026.11.1."""
    about = _read_start(base / signature_files.ABOUT) if base else ""
    match = re.search(r"^version:\s*['\"]?([0-9A-Za-z.+-]+)", about, re.MULTILINE)
    return match.group(1) if match else NO_VERSION


def _read_start(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_HEALTHY_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
