"""Regular expressions that are compiled at their first use."""

from __future__ import annotations

import ast
import gc
import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

import triage
from triage.base.lazy_re import LazyPattern, lazy_re

NOT_IN_DEV = {"paramiko"}
"""What users install for one kind of address; the tests do not need it."""


def test_a_lazy_pattern_behaves_like_a_compiled_one() -> None:
    """Searching, matching, replacing and group names equal those of `re.compile`, also with flags and on bytes."""
    lazy, compiled = lazy_re(r"(?P<name>[a-z]+)\d", re.IGNORECASE), re.compile(r"(?P<name>[a-z]+)\d", re.IGNORECASE)
    assert lazy.search("1 AB2")["name"] == compiled.search("1 AB2")["name"] == "AB"
    assert lazy.sub("x", "a1 b2") == "x x"
    assert lazy.match("1") is None
    assert (lazy.pattern, lazy.flags, dict(lazy.groupindex)) == (
        compiled.pattern,
        compiled.flags,
        dict(compiled.groupindex),
    )
    assert lazy_re(rb"\d").findall(b"1a2") == [b"1", b"2"]


def test_a_malformed_pattern_raises_at_its_first_use() -> None:
    """Nothing is compiled before; the first use raises `re.error`, an unknown attribute raises AttributeError."""
    malformed = lazy_re("(")
    with pytest.raises(AttributeError):
        malformed.no_such  # noqa: B018
    with pytest.raises(re.error):
        malformed.search("")


def test_every_pattern_of_the_package_compiles() -> None:
    """No lazy pattern is malformed; otherwise the first user whose log needs it would meet the error."""
    for module in pkgutil.walk_packages(triage.__path__, "triage."):
        if module.name.endswith("__main__"):
            continue
        try:
            import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name not in NOT_IN_DEV:
                raise
    patterns = [item for item in gc.get_objects() if isinstance(item, LazyPattern) and item.pattern != "("]
    assert len(patterns) > 400
    for lazy in patterns:
        re.compile(lazy.pattern, lazy._flags)


def test_no_module_compiles_a_pattern_at_import() -> None:
    """Module-level patterns use `lazy_re`, since hundreds of compilations slow every command down."""
    calls_at_import = []
    for path in sorted(Path(triage.__file__).parent.rglob("*.py")):
        body = [
            node for node in ast.parse(path.read_text(encoding="utf-8")).body if not isinstance(node, ast.FunctionDef)
        ]
        classes = [node for node in body if isinstance(node, ast.ClassDef)]
        body = [node for node in body if node not in classes] + [
            node for definition in classes for node in definition.body if not isinstance(node, ast.FunctionDef)
        ]
        calls = (call for node in body for call in ast.walk(node) if isinstance(call, ast.Call))
        calls_at_import += [f"{path.name}:{call.lineno}" for call in calls if ast.unparse(call.func) == "re.compile"]
    assert not calls_at_import
