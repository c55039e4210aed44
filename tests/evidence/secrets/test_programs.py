"""Short options of known programs, and how far behind the program they are read."""

from __future__ import annotations

import pytest

from triage.evidence.redact import redact
from triage.evidence.secrets.programs import REACH


@pytest.mark.parametrize(("gap", "redacted"), [(REACH - 40, True), (REACH + 1, False)])
def test_reach_of_a_command(gap: int, redacted: bool) -> None:
    """An option is read within the reach of its program: a hostile line of many programs takes linear time."""
    text = f"redis-cli {'x' * gap} -a quiet-lemon7"
    assert (redact(text) != text) is redacted


def test_options_of_other_programs_stay() -> None:
    """`-p` is a port for ssh, a partition for srun and a publication for docker run."""
    for text in (
        "ssh -p 22022 node3 hostname",
        "srun -p batch-gpu x",
        "docker run -p 8888:8888 image",
        "mkdir -p /tmp/out1",
    ):
        assert redact(text) == text
