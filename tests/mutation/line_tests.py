"""Which tests can notice a change: one run of a room's tests with coverage's contexts."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from coverage import CoverageData

AT_IMPORT = ""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class LineTests:
    """The ids of tests by (path, line), with AT_IMPORT if it runs at import, and the seconds that each test takes."""

    tests: Mapping[tuple[str, int], frozenset[str]]
    seconds: Mapping[str, float]

    def order_tests(self, path: str, line: int, function: Function | None) -> list[str]:
        """Return the tests that can notice a change, those that run its line first, the fastest first.

        They run a line of its statement; if it is in no function or runs at import, they run a line of its file.
        """
        numbers = list_statement(function, line) if function is not None else self._list_file(path)
        chosen = self._join_tests(path, numbers)
        at_line = self.tests.get((path, line), frozenset())
        return sorted(chosen, key=lambda test: (test not in at_line, self.seconds.get(test, 0.0), test))

    def find_function(self, path: str, line: int, source: str) -> Function | None:
        """Return the outermost function around a line of which no line runs at import, None if there is none."""
        for function in (node for node in ast.walk(ast.parse(source)) if isinstance(node, Function)):
            lines = list_lines(function)
            if line in lines and not any(AT_IMPORT in self.tests.get((path, number), ()) for number in lines):
                return function
        return None

    def _list_file(self, path: str) -> list[int]:
        return [line for name, line in self.tests if name == path]

    def _join_tests(self, path: str, lines: Iterable[int]) -> set[str]:
        return {test for line in lines for test in self.tests.get((path, line), ())} - {AT_IMPORT}


def list_lines(function: Function) -> range:
    """Return the lines of a function's body."""
    return range(function.body[0].lineno, (function.end_lineno or 0) + 1)


def list_statement(function: Function, line: int) -> range:
    """Return the lines of the innermost statement around a line; of a line above its body, only those down to it."""
    statements = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    innermost = max(statements, key=lambda node: node.lineno)
    body = getattr(innermost, "body", None)
    end = body[0].lineno if body and line < body[0].lineno else (innermost.end_lineno or 0) + 1
    return range(innermost.lineno, max(end, line + 1))


def read_line_tests(data_file: Path, root: Path, seconds: Mapping[str, float]) -> LineTests:
    """Read what `pytest --cov --cov-context=test` recorded below `root`."""
    data = CoverageData(str(data_file))
    data.read()
    tests: dict[tuple[str, int], frozenset[str]] = {}
    for file in data.measured_files():
        name = Path(file).resolve().relative_to(root.resolve()).as_posix()
        for line, contexts in data.contexts_by_lineno(file).items():
            # A context is the id of a test, and |setup, |run or |teardown; it is empty at import.
            tests[name, line] = frozenset(context.rpartition("|")[0] for context in contexts)
    return LineTests(tests, seconds)
