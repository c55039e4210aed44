"""A plugin of pytest, copied into each copy of the checkout: collect the tests once, and run them in a fork per change.

To start Python and collect the tests of a room takes seconds; most tests take milliseconds. For each line in the pipe
MUTATION_REQUESTS (a file descriptor) it tries one change and writes the exit status to MUTATION_REPLIES. It reads the
settings of order_tests.py each time, and "path" (the changed file), "module" (its name) and "wall_seconds".
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from order_tests import choose_items, read_settings, write_results

NOT_APPLIED = 70  # no exit status of pytest


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Try a change for each request, in place of running the tests."""
    requests, replies = int(os.environ["MUTATION_REQUESTS"]), int(os.environ["MUTATION_REPLIES"])
    os.write(replies, b"0\n")  # all is collected
    while os.read(requests, 1):
        pid = os.fork()
        if pid == 0:
            try_change(session)
        os.write(replies, b"%d\n" % end_group(pid, read_settings()["wall_seconds"]))
    return True


def end_group(pid: int, seconds: float) -> int:
    """Wait for a child, at most `seconds`, and kill it with its process group. Returns its status.

    The group is killed before the child is reaped: later its number could be that of another process.
    """
    until = time.monotonic() + seconds
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None and time.monotonic() < until:
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def try_change(session: pytest.Session) -> None:
    """Run the tests of a change and end this fork: 0 if all passed, 1 if one failed, 5 if there is none."""
    status = 1
    try:
        os.setpgid(0, 0)
        settings = read_settings()
        resource.setrlimit(resource.RLIMIT_CPU, (settings["cpu_seconds"], settings["cpu_seconds"] + 5))
        lend_catalog(Path(settings["cache"]))
        status = run_items(session, settings) if apply_change(settings) else NOT_APPLIED
        write_results()
    finally:
        os._exit(status)


def lend_catalog(cache: Path) -> None:
    """Give this fork a compiled catalog of its own: what a change writes there must not reach the next."""
    if cache.is_dir():
        own = cache.with_name(f"{cache.name}_of_fork")
        shutil.rmtree(own, ignore_errors=True)
        shutil.copytree(cache, own)
        os.environ["TRIAGE_CACHE"] = str(own)


def run_items(session: pytest.Session, settings: dict[str, Any]) -> int:
    """Run the chosen tests until one fails. Returns the exit status."""
    items = choose_items(session.items, settings)
    for item, following in zip(items, [*items[1:], None], strict=False):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return 1
    return 0 if items else 5


def apply_change(settings: dict[str, Any]) -> bool:
    """Give the functions of the changed file their new code, where they are in memory. Returns False if none changes.

    A module that is not imported yet will be read from the changed file.
    """
    if settings["module"] not in sys.modules:
        return True
    path, is_applied = settings["path"], False
    module = compile(Path(path).read_text(encoding="utf-8"), path, "exec", dont_inherit=True)
    codes = {(code.co_qualname, code.co_firstlineno): code for code in list_codes(module)}
    functions = [item for item in gc.get_objects() if isinstance(item, FunctionType)]
    for function in (item for item in functions if item.__code__.co_filename == path):
        old = function.__code__
        new = codes.get((old.co_qualname, old.co_firstlineno), old)
        if new != old:
            if new.co_freevars != old.co_freevars:
                return False
            function.__code__, is_applied = new, True
    return is_applied


def list_codes(code: CodeType) -> Iterator[CodeType]:
    """List a code object and all code objects in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from list_codes(constant)
