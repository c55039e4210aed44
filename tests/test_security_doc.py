"""docs/threat-model.md, SECURITY.md and RELEASING.md name what exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
# Chapters of ASVS 5.0.0 and the number of sections of each, from its text.
SECTIONS = (5, 4, 7, 4, 4, 8, 6, 4, 2, 7, 7, 3, 4, 3, 4, 5, 3)
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))
ROWS = [row for row in re.findall(r"^\| .*\|$", PAGE, re.MULTILINE) if "tests |" not in row]
ATTACKS = [row for row in ROWS if row.count(" | ") >= 3 or " | | " in row]


@cache
def list_tests(file: str) -> frozenset[str]:
    """Return the names of the test functions of a file below tests/."""
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_named_tests_exist(file: str, name: str) -> None:
    """Each test that the threat model names is a test function of that file."""
    assert name in list_tests(file)
    assert name.startswith("test_")


def test_every_attack_has_an_answer_and_a_test() -> None:
    """Each row of the tables of attacks has four cells, and the last one names a test."""
    assert len(ATTACKS) > 40
    for row in ATTACKS:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 4, row
        assert cells[0], row
        assert cells[1], row
        assert re.search(r"`[\w/]+\.py::test_\w+`", cells[3]), row


def test_requirements_have_existing_sections() -> None:
    """Each requirement lies in a section that ASVS 5.0.0 has."""
    for row in ATTACKS:
        requirements = row.strip("|").split("|")[2]
        for chapter, section in re.findall(r"(\d+)\.(\d+)\.\d+", requirements):
            assert 1 <= int(section) <= SECTIONS[int(chapter) - 1], row
        assert re.fullmatch(r" ?|( \d+\.\d+\.\d+,?)+ ", requirements), row


@pytest.mark.parametrize("page", ["SECURITY.md", "RELEASING.md"])
def test_the_pages_for_maintainers_name_existing_targets(page: str) -> None:
    """Each `make …` and each file in backticks of these pages exists."""
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"(?:`|\$ )make ([a-z-]+)", text)) <= set(targets)
    files = {name for name in re.findall(r"`([\w./-]+/[\w./-]+)`", text) if not name.startswith("dist/")}
    if not (ROOT / ".github").is_dir():  # it lies in the repository only
        files = {name for name in files if not name.startswith(".github/")}
    assert {name for name in files if not (ROOT / name).exists()} == set()
