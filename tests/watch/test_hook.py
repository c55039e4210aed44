"""`--exec` runs a command for every event."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.base.errors import OptionError
from triage.watch.hook import Hook


def test_every_event_reaches_the_command_in_order(tmp_path: Path) -> None:
    """The command runs once per event, with the event on standard input."""
    warnings: list[str] = []
    hook = Hook(f"tee -a {tmp_path / 'out'}", warnings.append)
    for number in range(3):
        hook(f"{number}\n")
    hook.wait()
    assert (tmp_path / "out").read_text() == "0\n1\n2\n"
    assert warnings == []


@pytest.mark.parametrize("command", ["false", "no-such-command-anywhere", "sleep 5"])
def test_a_command_that_fails_is_a_warning(command: str) -> None:
    """A non-zero exit status, a missing command and a timeout each give one warning."""
    warnings: list[str] = []
    hook = Hook(command, warnings.append, seconds=0.3)
    hook("x")
    hook.wait()
    assert len(warnings) == 1


@pytest.mark.parametrize("command", ["", "  ", "'open"])
def test_an_invalid_command_is_refused_at_the_start(command: str) -> None:
    """An empty command or an unclosed quote raises OptionError."""
    with pytest.raises(OptionError):
        Hook(command, print)
