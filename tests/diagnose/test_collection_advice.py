"""What to collect next time."""

from __future__ import annotations

import pytest

from triage.diagnose.collection_advice import ADVICE, AvailableData, advise_collection, detect_backend

from .factories import exited, fact

NCCL = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, Timeout(ms)=600000)"
HCCL = "EI0006: [PID: 7] Getting socket times out"
GLOO = "[unbound_buffer.cc:78] Timed out waiting 30000ms for recv operation to complete"


def advice(*facts: object, torch: str = "", **more: object) -> str:
    return advise_collection(AvailableData(tuple(facts), {"torch": torch} if torch else {}, **more))  # type: ignore[arg-type]


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
    assert f"set {name}=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1" in advice(fact(NCCL, 0), torch=torch)
    assert "TRACE_BUFFER_SIZE=2000 (TORCH_FR_BUFFER_SIZE since torch 2.9)" in advice(fact(NCCL, 0))


def test_before_the_recorder_there_was_the_desync_report() -> None:
    """Torch 2.1 has no flight recorder: it is not asked for one."""
    text = advice(fact(NCCL, 0), torch="2.1.2")
    assert "set NCCL_DESYNC_DEBUG=1" in text
    assert "TORCH_NCCL" not in text


@pytest.mark.parametrize(
    ("line", "name", "setting"),
    [(NCCL, "nccl", "NCCL_DEBUG"), (HCCL, "hccl", "HCCL_ENTRY_LOG"), (GLOO, "gloo", "DETAIL")],
)
def test_each_backend_has_its_own_advice(line: str, name: str, setting: str) -> None:
    """What NCCL can leave, gloo and HCCL cannot, and the other way round."""
    assert detect_backend(AvailableData((fact(line, 0),), {})) == name
    text = advice(fact(line, 0))
    assert setting in text
    assert ("TORCH_NCCL_DUMP_ON_TIMEOUT" in text) == (name == "nccl")


def test_data_that_the_job_has_is_not_advised() -> None:
    """Dumps, stacks, the kernel's log and stamps that the job has are not named again; with all of them nothing is
    said.
    """
    bare = advice(fact(NCCL))
    assert all(part in bare for part in ("TORCH_NCCL_DUMP", "py-spy", "dmesg", "sacct", "--log-dir", "print the time"))
    whole = [
        fact(NCCL, 0, time=1.0),
        fact("dump", 0, kind="flight"),
        fact("NCCL INFO", 0, component="NCCL"),
        fact("in all_reduce", 0, kind="stack"),
        fact("oom", kind="kernel"),
        fact("oom", kind="scheduler"),
    ]
    assert advise_collection(AvailableData(tuple(whole), {})) == ""
    for ask, kind in zip(ADVICE[:3], ("flight", "message", "stack"), strict=True):
        assert ask(AvailableData(tuple(one for one in whole if one.kind != kind or one.text == NCCL), {}))


def test_absent_ranks_make_their_logs_wanted() -> None:
    """Where every line has its rank, logs are asked for only if a rank has none at all."""
    assert "--log-dir" not in advice(exited(0, -6, signal="SIGABRT", time=1.0))
    assert "--log-dir" in advice(exited(0, -6, signal="SIGABRT", time=1.0), absent=(3,))
