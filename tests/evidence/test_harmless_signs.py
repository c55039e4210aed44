"""triage.evidence.harmless_signs"""

from __future__ import annotations

import pytest

from tests.records.factories import text_of
from triage.evidence.harmless_signs import HARMLESS, mark_harmless
from triage.model import Evidence, Origin

OOM = "eval: CUDA out of memory"
STALL = "nfs: server filer1 not responding, still trying"
KILL = "Memory cgroup out of memory: Killed process 77 (python3)"
TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: x'


def mark(before: str, line: str, behind: str, kind: str = "message", origin: Origin | None = None) -> bool:
    """Whether a line between others has the field."""
    data = f"{before}{line}\n{behind}".encode()
    start = len(before.encode())
    fact = Evidence(kind, kind, line, origin or Origin(), "job.log", start, start + len(line.encode()))
    (marked,) = mark_harmless([fact], text_of(data))
    return HARMLESS in marked.fields


@pytest.mark.parametrize(
    ("line", "behind", "kind", "is_harmless"),
    [
        (OOM, "step 12 loss 1.0\n", "message", True),
        (OOM, "", "message", False),
        (OOM, "loss 1.0\n", "message", False),
        (OOM, "exited with code 0\n", "message", True),
        (OOM, "a\nb\nrank 2 exited with code 0\n", "message", False),
        (KILL, "step 12\n", "kernel", False),
        (KILL, "step 12\nstep 13\n", "kernel", True),
        (TRACEBACK, "step 12\n", "exception", False),
        (TRACEBACK, "step 12\nstep 13\n", "exception", True),
        (OOM, "step 12\nstep 13\n", "exit", False),
    ],
)
def test_steps_behind_a_line_show_that_it_ended_nothing(line: str, behind: str, kind: str, is_harmless: bool) -> None:
    """One of its writer, two where the writer is not known: another rank may make a step before it fails."""
    assert mark("step 11\n", line, behind, kind) is is_harmless


@pytest.mark.parametrize(
    ("step", "is_harmless"), [("step 4", False), ("[rank3] step 4", True), ("[rank1] step 4", False)]
)
def test_only_steps_of_its_own_rank_count(step: str, is_harmless: bool) -> None:
    """The others go on until they wait for it."""
    at_once = "[rank1] step 4\n[rank1] step 5\n"
    sign = mark("", OOM, at_once + (step + "\n" if "rank" in step else ""), origin=Origin(rank=3))
    assert sign is is_harmless


@pytest.mark.parametrize(("seconds", "is_harmless"), [(4, False), (5, True)])
def test_a_single_step_must_come_later_than_what_the_kernel_says(seconds: int, is_harmless: bool) -> None:
    """Five seconds later the step is no longer the one that was being computed."""
    step = f"2026-01-01T00:00:{10 + seconds:02}Z step 4\n"
    assert mark("", KILL, step, "kernel", Origin(time=1767225610.0)) is is_harmless


@pytest.mark.parametrize(
    ("behind", "is_harmless"),
    [
        ("nfs: server filer1 OK\n", True),
        ("nfs: server filer2 OK\n", False),
        ("nfs: server filer1 is not OK\n", False),
        ("nfs: server filer1 lost\n", False),
    ],
)
def test_a_recovery_names_the_same_thing(behind: str, is_harmless: bool) -> None:
    """Another server that answers says nothing of the first."""
    assert mark("", STALL, behind, "kernel") is is_harmless


@pytest.mark.parametrize(
    ("behind", "is_harmless"),
    [
        ("falling back to the CPU\n", True),
        ("a\nb\nfalling back to the CPU\n", False),
        ("server: trying 60001 ...\n", True),
        ("server: trying hard\n", False),
        ("Submitted batch job 881\n", True),
        ("55201 RUNNING 2:41:10\n", True),
        ("55201 PENDING 0:00\n", False),
        ("train-0  1/1  Running  0  2h\n", True),
        ("train-0  0/1  Running  0  2h\n", False),
        (">>> torch.mm(a, b)\n", True),
    ],
)
def test_a_line_behind_says_that_something_goes_on(behind: str, is_harmless: bool) -> None:
    """The next lines of the program, a table of jobs, a later submission, an interactive session."""
    assert mark("", OOM, behind) is is_harmless


@pytest.mark.parametrize(
    ("before", "is_harmless"),
    [
        ("$ journalctl -k -b -1\n", True),
        ("[root@n1 ~]# zgrep kill /var/log/messages\n", True),
        ("$ grep kill /var/log/messages.1\n", True),
        ("$ journalctl -k -b 0\n", False),
        ("$ journalctl -k -b -1\n$ dmesg\n", False),
        ("## Symptoms\n", True),
        ("# Symptoms\n", False),
        ("## Symptoms\n" + "x\n" * 6, False),
    ],
)
def test_a_command_or_a_heading_before_it_shows_whose_line_it_is(before: str, is_harmless: bool) -> None:
    """The nearest command decides; an earlier boot or an old log is not the job."""
    assert mark(before, KILL, "", "kernel") is is_harmless


def test_a_text_that_occurs_again_at_the_end_is_not_marked() -> None:
    """Its last occurrence may have ended the job."""
    data = f"{OOM}\nstep 1\n{OOM}\n".encode()
    facts = [Evidence("message", "app", OOM, Origin(), "job.log", at, at + len(OOM)) for at in (0, len(OOM) + 8)]
    assert not any(HARMLESS in fact.fields for fact in mark_harmless(facts, text_of(data)))


@pytest.mark.parametrize(("count", "is_harmless"), [(40, True), (41, False)])
def test_of_many_failures_none_is_marked(count: int, is_harmless: bool) -> None:
    """Some of them ended the job."""
    lines = [f"{OOM} {number:02}" for number in range(count)]
    data = "\n".join([*lines, "step 1", ""]).encode()
    size = len(lines[0])
    facts = [
        Evidence("message", "app", line, Origin(), "job.log", number * (size + 1), number * (size + 1) + size)
        for number, line in enumerate(lines)
    ]
    assert all(HARMLESS in fact.fields for fact in mark_harmless(facts, text_of(data))) is is_harmless
