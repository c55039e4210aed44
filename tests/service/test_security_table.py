"""The table of docs/security.md lists exactly the tests whose docstrings name a requirement of ASVS 5.0."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")


def read_table() -> dict[str, set[str]]:
    """Return the tests by requirement, from the table."""
    rows = re.findall(r"^\| ([\d., ]+) \|[^|]*\|([^|]*)\|$", DOCUMENT, re.MULTILINE)
    tests_by_requirement: dict[str, set[str]] = {}
    for items, tests in rows:
        for item in re.findall(r"\d+\.\d+\.\d+", items):
            tests_by_requirement.setdefault(item, set()).update(re.findall(r"`([\w/.]+::\w+)`", tests))
    return tests_by_requirement


def read_docstrings() -> dict[str, set[str]]:
    """Return the tests by requirement, from docstrings that begin with `ASVS`."""
    tests_by_requirement: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests" / "service").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                requirements = (ast.get_docstring(node) or "").partition(":")[0]
                for item in re.findall(r"\d+\.\d+\.\d+", requirements) if requirements.startswith("ASVS ") else ():
                    tests_by_requirement.setdefault(item, set()).add(
                        f"{path.relative_to(ROOT / 'tests').as_posix()}::{node.name}"
                    )
    return tests_by_requirement


def test_table_and_docstrings_agree() -> None:
    """Every requirement of the table has its tests, and every test that names a requirement is in the table."""
    assert read_table() == read_docstrings()
    assert len(read_table()) > 20
