"""The command of `--exec`."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.base.errors import OptionError
from triage.watch.hook import Hook


def test_every_event_reaches_the_command_in_order(tmp_path: Path) -> None:
    """As its standard input, one run an event."""
    warnings: list[str] = []
    hook = Hook(f"tee -a {tmp_path / 'out'}", warnings.append)
    for number in range(3):
        hook(f"{number}\n")
    hook.wait()
    assert (tmp_path / "out").read_text() == "0\n1\n2\n"
    assert warnings == []


@pytest.mark.parametrize("command", ["false", "no-such-command-anywhere", "sleep 5"])
def test_a_command_that_fails_is_a_warning(command: str) -> None:
    """Ended with an error, not there, or too slow."""
    warnings: list[str] = []
    hook = Hook(command, warnings.append, seconds=0.3)
    hook("x")
    hook.wait()
    assert len(warnings) == 1


@pytest.mark.parametrize("command", ["", "  ", "'open"])
def test_a_command_that_is_none_is_refused_at_once(command: str) -> None:
    """Before anything is watched."""
    with pytest.raises(OptionError):
        Hook(command, print)
