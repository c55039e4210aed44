"""What to keep next time."""

from __future__ import annotations

import pytest

from triage.diagnose.collect import ASKING, Left, backend, what_to_collect

from .making import fact, left

NCCL = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, Timeout(ms)=600000)"
HCCL = "EI0006: [PID: 7] Getting socket times out"
GLOO = "[unbound_buffer.cc:78] Timed out waiting 30000ms for recv operation to complete"


def told(*facts: object, torch: str = "", **more: object) -> str:
    return what_to_collect(Left(tuple(facts), {"torch": torch} if torch else {}, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("torch", "name"),
    [
        ("2.6.0", "TORCH_NCCL_TRACE_BUFFER_SIZE"),
        ("2.9.1+cu128", "TORCH_FR_BUFFER_SIZE"),
        ("2.13.0", "TORCH_FR_BUFFER_SIZE"),
    ],
)
def test_the_recorder_is_named_as_its_version_names_it(torch: str, name: str) -> None:
    """The flight recorder's variable has another name since torch 2.9; without a version both are said."""
    assert f"set {name}=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1" in told(fact(NCCL, 0), torch=torch)
    assert "TRACE_BUFFER_SIZE=2000 (TORCH_FR_BUFFER_SIZE since torch 2.9)" in told(fact(NCCL, 0))


def test_before_the_recorder_there_was_the_desync_report() -> None:
    """Torch 2.1 has no flight recorder: it is not asked for one."""
    said = told(fact(NCCL, 0), torch="2.1.2")
    assert "set NCCL_DESYNC_DEBUG=1" in said
    assert "TORCH_NCCL" not in said


@pytest.mark.parametrize(
    ("text", "name", "asked"),
    [(NCCL, "nccl", "NCCL_DEBUG"), (HCCL, "hccl", "HCCL_ENTRY_LOG"), (GLOO, "gloo", "DETAIL")],
)
def test_each_backend_has_its_own_means(text: str, name: str, asked: str) -> None:
    """What NCCL can leave, gloo and HCCL cannot, and the other way round."""
    assert backend(Left((fact(text, 0),), {})) == name
    said = told(fact(text, 0))
    assert asked in said
    assert ("TORCH_NCCL_DUMP_ON_TIMEOUT" in said) == (name == "nccl")


def test_what_is_there_is_not_asked_for() -> None:
    """Dumps, stacks, the kernel's log and stamps that the job has are not named again; with all of them nothing is
    said.
    """
    bare = told(fact(NCCL))
    assert all(word in bare for word in ("TORCH_NCCL_DUMP", "py-spy", "dmesg", "sacct", "--log-dir", "print the time"))
    whole = [
        fact(NCCL, 0, time=1.0),
        fact("dump", 0, kind="flight"),
        fact("NCCL INFO", 0, component="NCCL"),
        fact("in all_reduce", 0, kind="stack"),
        fact("oom", kind="kernel"),
        fact("oom", kind="scheduler"),
    ]
    assert what_to_collect(Left(tuple(whole), {})) == ""
    for ask, kind in zip(ASKING[:3], ("flight", "message", "stack"), strict=True):
        assert ask(Left(tuple(one for one in whole if one.kind != kind or one.text == NCCL), {}))


def test_silent_ranks_make_their_logs_wanted() -> None:
    """Where every line has its rank, logs are asked for only if a rank has none at all."""
    assert "--log-dir" not in told(left(0, -6, signal="SIGABRT", time=1.0))
    assert "--log-dir" in told(left(0, -6, signal="SIGABRT", time=1.0), silent=(3,))
