"""Plain words: vague names are refused, and the glossary's terms are names in the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
FOLDERS = ("triage", "tests", "bench", "samples", "docs")
RECORDED = ROOT / "samples" / "jobs"
MODULES = sorted(
    path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if not path.is_relative_to(RECORDED)
)
# Participles and riddles that say what somebody did with a thing, not what it is.
VAGUE = {
    "asked",
    "found",
    "given",
    "handed",
    "heard",
    "kept",
    "said",
    "seen",
    "spoken",
    "tells",
    "told",
    "word",
    "words",
}
VAGUE |= {"habits", "harvest", "manners", "opening"}


def bindings(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield every name that the module binds: variables, parameters, functions, classes and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_name_is_vague(path: Path) -> None:
    """No variable, parameter, function, class, attribute or module has one of the vaguest names."""
    vague = [
        f"{path}:{line}: {name}"
        for name, line in bindings(ast.parse(path.read_text(encoding="utf-8")))
        if name.strip("_").lower() in VAGUE
    ]
    assert vague == []
    assert path.stem not in VAGUE


def test_a_vague_name_is_noticed() -> None:
    """Each kind of binding is looked at."""
    code = "told = 1\ndef f(said):\n    self.kept = 1\nclass Harvest: pass\ndef found(): pass\nfor seen in x: pass\n"
    assert {name for name, _ in bindings(ast.parse(code))} >= {"told", "said", "kept", "Harvest", "found", "seen"}


def test_every_term_of_the_glossary_is_a_name_in_the_code() -> None:
    """The name beside each term is bound somewhere below triage/, and each term stands there once."""
    names = {path.stem for path in (ROOT / "triage").rglob("*")}
    for path in (ROOT / "triage").rglob("*.py"):
        names.update(name for name, _ in bindings(ast.parse(path.read_text(encoding="utf-8"))))
    rows = re.findall(r"^\| ([^|`]+) \| `([^`]+)` \|", GLOSSARY, re.MULTILINE)
    assert len(rows) > 40
    assert [(term, name) for term, name in rows if name not in names] == []
    terms = [term.strip() for term, _ in rows]
    assert sorted(terms) == sorted(set(terms)), "one concept, one row"
