"""Which tests run a line: one run of a room's tests with coverage's contexts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from coverage import CoverageData


@dataclass(frozen=True)
class LineTests:
    """The ids of tests by (path, line), and the seconds that each test takes."""

    tests: Mapping[tuple[str, int], frozenset[str]]
    seconds: Mapping[str, float]

    def order_tests(self, path: str, line: int) -> list[str]:
        """Return the tests that run this line, the fastest first.

        A line that runs at import belongs to no test; then they are the tests that run any line of its file.
        """
        chosen = set(self.tests.get((path, line), ()))
        if not chosen:
            chosen = {test for (name, _), tests in self.tests.items() if name == path for test in tests}
        return sorted(chosen, key=lambda test: (self.seconds.get(test, 0.0), test))


def read_line_tests(data_file: Path, root: Path, seconds: Mapping[str, float]) -> LineTests:
    """Read what `pytest --cov --cov-context=test` recorded below `root`."""
    data = CoverageData(str(data_file))
    data.read()
    tests: dict[tuple[str, int], frozenset[str]] = {}
    for file in data.measured_files():
        name = Path(file).resolve().relative_to(root.resolve()).as_posix()
        for line, contexts in data.contexts_by_lineno(file).items():
            # A context is the id of a test, and |setup, |run or |teardown; it is empty at import.
            tests[name, line] = frozenset(context.rpartition("|")[0] for context in contexts if context)
    return LineTests(tests, seconds)
