"""Expressions that are compiled at their first use."""

from __future__ import annotations

import ast
import gc
import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

import triage
from triage.base.lazy_re import Lazy, lazy_re


def test_it_answers_like_the_compiled_expression() -> None:
    """Searching, matching, replacing and the names of groups are those of `re.compile`, also with flags and on bytes."""
    lazy, compiled = lazy_re(r"(?P<word>[a-z]+)\d", re.IGNORECASE), re.compile(r"(?P<word>[a-z]+)\d", re.IGNORECASE)
    assert lazy.search("1 AB2")["word"] == compiled.search("1 AB2")["word"] == "AB"
    assert lazy.sub("x", "a1 b2") == "x x"
    assert lazy.match("1") is None
    assert (lazy.pattern, lazy.flags, dict(lazy.groupindex)) == (
        compiled.pattern,
        compiled.flags,
        dict(compiled.groupindex),
    )
    assert lazy_re(rb"\d").findall(b"1a2") == [b"1", b"2"]


def test_a_wrong_expression_is_told_at_its_first_use() -> None:
    """Nothing is compiled before, and then `re.error` is raised as ever; other attributes are not there."""
    wrong = lazy_re("(")
    with pytest.raises(AttributeError):
        wrong.no_such  # noqa: B018
    with pytest.raises(re.error):
        wrong.search("")


def test_every_expression_of_the_package_can_be_compiled() -> None:
    """A wrong one would else be found by the first user whose log needs it."""
    for module in pkgutil.walk_packages(triage.__path__, "triage."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    ours = [found for found in gc.get_objects() if isinstance(found, Lazy) and found.pattern != "("]
    assert len(ours) > 400
    for found in ours:
        re.compile(found.pattern, found._flags)


def test_no_module_compiles_an_expression_when_it_is_imported() -> None:
    """Hundreds of them made every command slower; `lazy_re` waits for the first use."""
    found = []
    for path in sorted(Path(triage.__file__).parent.rglob("*.py")):
        body = [
            node for node in ast.parse(path.read_text(encoding="utf-8")).body if not isinstance(node, ast.FunctionDef)
        ]
        classes = [node for node in body if isinstance(node, ast.ClassDef)]
        body = [node for node in body if node not in classes] + [
            node for each in classes for node in each.body if not isinstance(node, ast.FunctionDef)
        ]
        calls = (call for node in body for call in ast.walk(node) if isinstance(call, ast.Call))
        found += [f"{path.name}:{call.lineno}" for call in calls if ast.unparse(call.func) == "re.compile"]
    assert not found
