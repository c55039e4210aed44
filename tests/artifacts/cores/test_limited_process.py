"""Programs that run within limits."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from triage.artifacts.cores.limited_process import Limits, run_limited

SHOW_LIMIT = ["/bin/sh", "-c", "read line; echo core $(ulimit -c)"]


def test_core_files_are_switched_off(tmp_path: Path) -> None:
    """A program that runs within limits leaves no core file."""
    output = run_limited(SHOW_LIMIT, "go\n", Limits(), str(tmp_path))
    assert (output.text, output.stopped_by, output.status) == ("core 0\n", "", 0)


@pytest.mark.parametrize(
    "error", [ProcessLookupError(3, "No such process"), PermissionError(1), ValueError("too high")]
)
def test_limits_that_the_system_refuses(error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that has ended already, or has lower limits, gives its output all the same."""

    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(resource, "prlimit", refuse)
    assert run_limited(["/bin/echo", "frames"], "", Limits(), str(tmp_path)).text == "frames\n"


def test_system_without_prlimit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system has no prlimit, the deadline still holds."""
    monkeypatch.delattr(resource, "prlimit")
    output = run_limited(["/bin/sleep", "100"], "", Limits(seconds=0.1), str(tmp_path))
    assert (output.text, output.stopped_by) == ("", "deadline")
