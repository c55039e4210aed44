"""triage.diagnose.other_programs"""

from __future__ import annotations

import pytest

from tests.diagnose.factories import candidate, decide, fact
from triage.diagnose.confidence import UNCERTAIN
from triage.diagnose.other_programs import name_other_program


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("redis[77]: # Can't save in background: fork: Cannot allocate memory", "redis"),
        ("login1 kernel: gnome-shell[2210]: segfault at 0 ip 00007f88 sp 00007ffd error 4", "gnome-shell"),
        ("traps: Xorg[812] general protection fault ip:7f12 sp:7ffc error:0 in libc.so.6", "Xorg"),
        ("wandb: ERROR Error writing /tmp/wandb/output.log: [Errno 28] No space left on device", "wandb"),
        ("[rank0]: wandb: ERROR Error writing /tmp/wandb/output.log", "wandb"),
        ("python3[4711]: segfault at 8 ip 00007f12 sp 00007ffc error 4", ""),
        ("my-redis[77]: fork: Cannot allocate memory", ""),
        ("slurmstepd[88]: error: Detected 1 oom_kill event", ""),
        ("wandb.errors.CommError: Error communicating with wandb process", ""),
        ("Out of memory: Killed process 77 (redis)", ""),
        ("GPU Process[6120]: segfault at 0 ip 00005c sp 00007ffd error 6 in firefox-bin[561f+9f000]", "firefox-bin"),
        ("GPU Process[6120]: segfault at 0 ip 00005c sp 00007ffd error 6 in libtorch.so[561f+9f000]", ""),
        ("NVRM: Xid (PCI:0000:01:00): 43, pid=2011, name=Xorg, Ch 00000018", "Xorg"),
        ("NVRM: Xid (PCI:0000:01:00): 43, pid=2011, name=python3, Ch 00000018", ""),
    ],
)
def test_a_tag_names_the_program_of_a_line(text: str, program: str) -> None:
    """The tag of syslog or of the kernel, or the prefix of a tracker of experiments."""
    assert name_other_program(fact(text)) == name_other_program(fact(text, kind="kernel")) == program
    assert not name_other_program(fact(text, kind="exception"))


@pytest.mark.parametrize(("program", "is_sure"), [("train", True), ("redis", False)])
def test_a_line_of_another_program_is_no_sure_cause(program: str, is_sure: bool) -> None:
    """The report says whose line it is."""
    root = candidate(f"{program}[77]: Cannot allocate memory", "cause", [0])
    assert (decide([root]).confidence > UNCERTAIN) is is_sure
    assert any("redis, which is no part of the job" in line for line in root.why) is not is_sure
