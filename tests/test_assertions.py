"""Every test asserts something: a test without an assertion passes whatever the code does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "tests").rglob("test_*.py"))
Function = ast.FunctionDef | ast.AsyncFunctionDef
EXPECTATIONS = {"pytest.raises", "pytest.warns", "pytest.fail"}


@cache
def parse_module(path: Path) -> ast.Module:
    """Return the parsed file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def list_functions(tree: ast.AST) -> Iterator[Function]:
    """Yield all functions and methods."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def is_assertion(node: ast.AST) -> bool:
    """Return whether the node can fail a test: an assert of something that varies, AssertionError, pytest.raises."""
    if isinstance(node, ast.Assert):
        # A string, a number and a tuple with items are always true.
        return not isinstance(node.test, ast.Constant | ast.Tuple)
    if isinstance(node, ast.Raise):
        return node.exc is not None and "AssertionError" in ast.unparse(node.exc)
    return isinstance(node, ast.Call) and ast.unparse(node.func) in EXPECTATIONS


def has_assertion(function: ast.AST) -> bool:
    """Return whether its own text has an assertion."""
    return any(map(is_assertion, ast.walk(function)))


def list_imported_functions(path: Path) -> Iterator[Function]:
    """Yield the functions that a test imports from other modules of the tests."""
    for node in ast.walk(parse_module(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(("tests.", "triage.testing")):
            module = ROOT.joinpath(*node.module.split("."))
            module = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
            names = {alias.name for alias in node.names}
            yield from (item for item in list_functions(parse_module(module)) if item.name in names)


@cache
def list_asserting_methods() -> frozenset[str]:
    """Return the names of the methods of helper classes that assert."""
    paths = (path for folder in ("tests", "triage/testing") for path in (ROOT / folder).rglob("*.py"))
    classes = (node for path in paths for node in parse_module(path).body if isinstance(node, ast.ClassDef))
    return frozenset(method.name for node in classes for method in list_functions(node) if has_assertion(method))


def list_asserting_helpers(path: Path) -> set[str]:
    """Return the names of the functions that a test file defines or imports and that assert."""
    helpers = [*list_functions(parse_module(path)), *list_imported_functions(path)]
    return {helper.name for helper in helpers if has_assertion(helper)}


def calls_helper(function: ast.AST, helpers: set[str]) -> bool:
    """Return whether a function calls one of the helpers, or a method of a helper class that asserts."""
    calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    return any(isinstance(call, ast.Name) and call.id in helpers for call in calls) or any(
        isinstance(call, ast.Attribute) and call.attr in list_asserting_methods() for call in calls
    )


def list_tests_without_assertion(path: Path) -> list[str]:
    """Return the tests of a file that neither assert nor call a helper that does."""
    helpers = list_asserting_helpers(path)
    tests = [function for function in list_functions(parse_module(path)) if function.name.startswith("test_")]
    return [test.name for test in tests if not has_assertion(test) and not calls_helper(test, helpers)]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_test_asserts(path: Path) -> None:
    """Each test asserts, expects an error, or calls a helper that does."""
    assert list_tests_without_assertion(path) == []


@pytest.mark.parametrize(
    ("body", "asserts"),
    [
        ("run()", False),
        ("with suppress(ValueError):\n        run()", False),
        ("assert True", False),
        ("assert (run(), 'text')", False),
        ("raise ZeroDivisionError", False),
        ("helper()", False),
        ("assert run() == 1", True),
        ("with pytest.raises(ValueError):\n        run()", True),
        ("raise AssertionError('not reached')", True),
        ("check_result()", True),
    ],
)
def test_assertions_are_recognized(tmp_path: Path, body: str, asserts: bool) -> None:
    """Statements that cannot fail a test count for nothing; a helper that asserts counts."""
    path = tmp_path / "test_example.py"
    helpers = "def helper():\n    run()\n\ndef check_result():\n    assert run()\n"
    path.write_text(f"{helpers}\ndef test_example():\n    {body}\n")
    assert list_tests_without_assertion(path) == ([] if asserts else ["test_example"])
