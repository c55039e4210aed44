"""docs/security.md maps each requirement of ASVS 5.0 to tests that are there and name it; nothing is left out on either
side.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")


def mapped() -> dict[str, set[str]]:
    """By requirement the tests that the table names."""
    rows = re.findall(r"^\| ([\d., ]+) \|[^|]*\|([^|]*)\|$", DOCUMENT, re.MULTILINE)
    found: dict[str, set[str]] = {}
    for items, tests in rows:
        for item in re.findall(r"\d+\.\d+\.\d+", items):
            found.setdefault(item, set()).update(re.findall(r"`([\w/.]+::\w+)`", tests))
    return found


def proved() -> dict[str, set[str]]:
    """By requirement the tests whose docstrings name it."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests" / "service").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                said = (ast.get_docstring(node) or "").partition(":")[0]
                for item in re.findall(r"\d+\.\d+\.\d+", said) if said.startswith("ASVS ") else ():
                    found.setdefault(item, set()).add(f"{path.relative_to(ROOT / 'tests').as_posix()}::{node.name}")
    return found


def test_the_map_and_the_tests_are_one() -> None:
    """Every requirement of the table has its tests, every test that names one stands in the table, and no name dangles."""
    assert mapped() == proved()
    assert len(mapped()) > 20
