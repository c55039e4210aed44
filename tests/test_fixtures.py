"""Every fixture that a test or a fixture takes exists where it is taken, without collecting the tests."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).resolve().parent
OF_PYTEST = {"capfd", "caplog", "capsys", "monkeypatch", "pytestconfig", "recwarn", "request"}
OF_PYTEST |= {"tmp_path", "tmp_path_factory"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module(NamedTuple):
    """What a file of tests defines: names with what they need, tests with what they need, and imports with their file.

    `parameters` are the names that its `pytest_generate_tests` gives values to.
    """

    fixtures: dict[str, frozenset[str]]
    tests: dict[str, frozenset[str]]
    imports: dict[str, Path]
    parameters: frozenset[str]


def list_missing(path: Path) -> Iterator[str]:
    """Yield each test or fixture of a file with a fixture that does not exist there, also for imported fixtures."""
    module = read_module(path)
    visible = dict(_list_visible(path))
    for name, needs in (*module.tests.items(), *visible.items()):
        yield from (f"{name} needs {one}" for one in sorted(needs - visible.keys() - OF_PYTEST))


def _list_visible(path: Path) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the fixtures that tests of a file can take, with what these need."""
    parents = [parent / "conftest.py" for parent in path.parents if parent.is_relative_to(TESTS)]
    for place in (path, *filter(Path.is_file, parents)):
        module = read_module(place)
        yield from module.fixtures.items()
        yield from ((name, frozenset()) for name in module.parameters)
        for name, source in module.imports.items():
            if name in read_module(source).fixtures:
                yield name, read_module(source).fixtures[name]


@functools.cache
def read_module(path: Path) -> Module:
    """Read a file of tests, without running it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, _Function)]
    assigned = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in functions:
        node.decorator_list = [assigned.get(ast.unparse(one), one) for one in node.decorator_list]
    hook_names = {
        name for node in functions if node.name == "pytest_generate_tests" for name in _list_parametrized(node)
    }
    imports = {
        alias.asname or alias.name: source
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (source := _find_source(node, path)) is not None
        for alias in node.names
    }
    return Module(
        {node.name: _list_needs(node) for node in functions if _is_fixture(node)},
        {node.name: _list_needs(node) for node in functions if node.name.startswith("test_") and not _is_drawn(node)},
        imports,
        frozenset(hook_names),
    )


def _find_source(node: ast.ImportFrom, path: Path) -> Path | None:
    """Return the file of tests that names are imported from; None for other packages."""
    root = path.parents[node.level - 1] if node.level else TESTS.parent
    source = root.joinpath(*(node.module or "").split(".")).with_suffix(".py")
    return source if source.is_file() and source.is_relative_to(TESTS) else None


def _is_fixture(node: _Function) -> bool:
    return any(ast.unparse(one).split("(")[0] == "pytest.fixture" for one in node.decorator_list)


def _is_drawn(node: _Function) -> bool:
    """Whether another library fills some of the arguments."""
    return any(ast.unparse(one).split("(")[0] in ("given", "mock.patch") for one in node.decorator_list)


def _list_parametrized(node: _Function) -> Iterator[str]:
    """Yield the names of arguments that a parametrization gives values to, in decorators or in a hook."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("parametrize"):
            names = ast.literal_eval(call.args[0])
            yield from map(str.strip, names.split(",") if isinstance(names, str) else names)


def _list_needs(node: _Function) -> frozenset[str]:
    """Return the fixtures that a test or a fixture takes: arguments without a default, and names it asks for."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    names = {one.arg for one in arguments[: len(arguments) - len(node.args.defaults)]}
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(("getfixturevalue", "usefixtures")):
            names.update(one.value for one in call.args if isinstance(one, ast.Constant))
    return frozenset(names - {"self", *_list_parametrized(node)})


FILES = sorted(TESTS.rglob("test_*.py"))


def test_every_fixture_exists() -> None:
    """No test and no fixture takes one that its file, what it imports and the conftest files above do not have."""
    missing = {str(path.relative_to(TESTS)): problems for path in FILES if (problems := list(list_missing(path)))}
    assert missing == {}


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("def test_a(tmp_path, cluster): pass", []),
        ("def test_a(nowhere): pass", ["test_a needs nowhere"]),
        ("@pytest.fixture\ndef one(): pass\ndef test_a(one): pass", []),
        ("@pytest.fixture\ndef one(two): pass", ["one needs two"]),
        ("@pytest.fixture\ndef one(request): request.getfixturevalue('two')", ["one needs two"]),
        ("@pytest.mark.parametrize('a, b', [])\ndef test_a(a, b, c=1): pass", []),
        ("@pytest.mark.parametrize(('a', 'b'), [])\ndef test_a(a, b, c): pass", ["test_a needs c"]),
        ("@pytest.mark.usefixtures('one')\ndef test_a(): pass", ["test_a needs one"]),
        ("EACH = pytest.mark.parametrize('a', [])\n@EACH\ndef test_a(a): pass", []),
        ("@given(st.text())\ndef test_a(text): pass", []),
        ("from tests.bots.conftest import bench", ["bench needs slack"]),
        ("from tests.bots.conftest import bench, slack, store", []),
    ],
)
def test_a_missing_fixture_is_noticed(text: str, missing: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of tests and fixtures, defined here or imported, by argument or by name."""
    path = TESTS / "service" / "pages" / "test_not_there.py"
    texts = {path: text}
    read = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda one, **more: texts.get(one) or read(one, **more))
    read_module.cache_clear()
    assert list(list_missing(path)) == missing
