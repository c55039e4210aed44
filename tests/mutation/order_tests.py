"""A plugin of pytest, copied into each copy of the checkout: the order of the tests, limits, and a compiled catalog.

It takes its settings from the JSON file that MUTATION_SETTINGS names: "chosen" (ids of the tests to run, in order; all
if there is none), "skipped" (ids of tests to leave out), "cpu_seconds" and "memory_bytes" (limits of the process),
"usual_seconds" (by id: what a test takes without a change), "cache" (a directory), "results" (the file that it writes:
"failed", ids of tests in order, and "seconds" by id).
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import time
from pathlib import Path
from typing import Any

import hypothesis
import pytest

EXAMPLES = 25
_failed: list[str] = []
_seconds: dict[str, float] = {}


def read_settings() -> dict[str, Any]:
    """Read the settings of this run."""
    settings: dict[str, Any] = json.loads(Path(os.environ["MUTATION_SETTINGS"]).read_text(encoding="utf-8"))
    return settings


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Have property tests try fewer examples: else they take most of the time. A change may seem to survive by that."""
    hypothesis.settings.register_profile("mutation", hypothesis.settings.default, max_examples=EXAMPLES)
    hypothesis.settings.load_profile("mutation")


def pytest_sessionstart() -> None:
    """Limit this process, and lend it a catalog that is compiled already (a second for each run)."""
    settings = read_settings()
    resource.setrlimit(resource.RLIMIT_CPU, (settings["cpu_seconds"], settings["cpu_seconds"] + 5))
    resource.setrlimit(resource.RLIMIT_AS, (settings["memory_bytes"], settings["memory_bytes"]))
    directory = os.environ.get("TRIAGE_CACHE", "")  # tests/conftest.py makes it
    if directory and Path(settings["cache"]).is_dir():
        shutil.copytree(settings["cache"], directory, dirs_exist_ok=True)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Allow a test five times its usual time and five seconds: a loop without end is ended by a signal soon."""
    settings = read_settings()
    usual = settings["usual_seconds"].get(item.nodeid)
    if usual is not None:
        seconds = min(int(time.process_time() + 5 + 5 * usual), settings["cpu_seconds"])
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, settings["cpu_seconds"] + 5))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the tests to run, in their order."""
    items[:] = choose_items(items, read_settings())


def choose_items(items: list[pytest.Item], settings: dict[str, Any]) -> list[pytest.Item]:
    """Return the tests to run: those of `chosen` in its order, or all, without those of `skipped`."""
    turns = {name: turn for turn, name in enumerate(settings["chosen"] or (item.nodeid for item in items))}
    skipped = set(settings["skipped"])
    remaining = [item for item in items if item.nodeid in turns and item.nodeid not in skipped]
    return sorted(remaining, key=lambda item: turns[item.nodeid])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add the time of a test, and note that it failed."""
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
    if report.failed and report.nodeid not in _failed:
        _failed.append(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write the results of this process."""
    write_results()


def write_results() -> None:
    """Write which tests failed, and how long each took."""
    text = json.dumps({"failed": _failed, "seconds": _seconds})
    Path(read_settings()["results"]).write_text(text, encoding="utf-8")
