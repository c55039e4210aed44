"""What pdsh's lines of an end with 255 mean."""

from __future__ import annotations

import pytest

from triage.diagnose.pdsh_ends import without_program_ends

from .factories import fact

PDSH = "pdsh@login: worker-7: ssh exited with exit code 255"
LAUNCHER = "[launch.py:325:sigkill_handler] ['python', 'train.py'] exits with return code = {}"


@pytest.mark.parametrize(
    ("host", "code", "stays"),
    [("worker-7", 255, False), (None, 255, False), ("worker-8", 255, True), ("worker-7", 1, True)],
)
def test_where_a_program_ended_with_255_ssh_worked(host: str | None, code: int, *, stays: bool) -> None:
    """The launcher of that node says that it ran the program, so pdsh only repeats the program's status."""
    facts = [fact(PDSH), fact(LAUNCHER.format(code), kind="exit", host=host)]
    assert without_program_ends(facts) == (facts if stays else facts[1:])


def test_a_node_without_a_launcher_was_not_reached() -> None:
    """Without the end of a program, 255 is ssh's own."""
    facts = [fact(PDSH), fact("Killing subprocess 7")]
    assert without_program_ends(facts) == facts
