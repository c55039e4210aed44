"""Tests for triage.ranks.npu_processes."""

from __future__ import annotations

from pathlib import Path

from tests.diagnose.factories import fact
from tests.shared_catalog import OPTIONS
from triage import ingest
from triage.model.evidence import Origin
from triage.ranks.npu_processes import NpuProcess, describe_npu_devices, find_devices, list_npu_members, place_devices
from triage.testing.plogs import PlogJob

ENTRY = "Entry-HcclCommInitRootInfo:ranks[2], rank[1], rootinfo: host ip[10.0.0.1], deviceLogicId[1]"
CALL = "[TaskExecStage][Timeout][HOST]Task run failed, opData information is timeStamp:[x], deviceId[1], index[4]"
SOURCES = {f"n0/debug/plog/plog-{pid}_1.log": Origin(pid=pid) for pid in (10, 11, 12)}


def failed(pid: int, number: int, group: str = "g", size: int = 3) -> NpuProcess:
    """Return an error of a process that names its number in a communicator."""
    return NpuProcess(f"n0/debug/plog/plog-{pid}_1.log", Origin(pid=pid), group, number, size, is_error=True)


def members(*lines: NpuProcess, has_ranks: bool = False) -> dict[int | None, int]:
    """Return pid to the number of the members that are known."""
    return {one.origin.pid: one.rank for one in list_npu_members(lines, SOURCES, has_ranks)}


def test_errors_number_processes_where_nothing_else_does() -> None:
    """The only communicator that failed has as many members as there are processes; the last has the last number."""
    assert members(failed(10, 0), failed(11, 1), failed(12, 2)) == {10: 0, 11: 1, 12: 2}
    assert members(failed(10, 0), failed(12, 1)) == {10: 0, 12: 1, 11: 2}
    assert members(failed(10, 0), failed(12, 1), has_ranks=True) == {}


def test_a_part_of_the_job_numbers_nobody() -> None:
    """Several communicators, a number of two processes, or more processes than members."""
    assert members(failed(10, 0), failed(11, 1, "h")) == {}
    assert members(failed(10, 0), failed(11, 0)) == {}
    assert members(failed(10, 0, size=2), failed(11, 1, size=2)) == {}


def test_lines_at_the_start_count_always() -> None:
    """A process that enters a communicator says its number and the size."""
    line = NpuProcess("n0/run/plog/plog-10_1.log", Origin(pid=10), "g", 1, 3)
    assert members(line, has_ranks=True) == {10: 1}


def test_a_device_has_the_ranks_of_its_processes() -> None:
    """The number in a smaller communicator is not the rank of the process."""
    line = NpuProcess("n0/run/plog/plog-10_1.log", Origin(pid=10), "tp", 0, 2, "10.0.0.1", 5)
    known = {10: 4}
    placed = place_devices([line], lambda source, origin: Origin(rank=known.get(origin.pid or 0)))
    assert placed == {("10.0.0.1", 5): {4}}


def test_a_process_without_a_device_or_a_server_has_no_place() -> None:
    """Device 0 is one."""
    source, origin = "n0/run/plog/plog-10_1.log", Origin(pid=10)
    lines = [NpuProcess(source, origin, address="a"), NpuProcess(source, origin, device=5)]
    first = NpuProcess(source, origin, address="a", device=0)
    assert place_devices([*lines, first], lambda *_: Origin(rank=4)) == {("a", 0): {4}}
    assert place_devices([first], lambda *_: Origin()) == {}


def test_a_communicator_needs_two_members() -> None:
    """One of a single process says nothing of the job; a file without a pid is no process."""
    assert members(failed(10, 0, size=1)) == {}
    processes = [failed(10, 0), failed(11, 1), failed(12, 2)]
    known = list_npu_members(processes, {**SOURCES, "job.log": Origin()}, False)
    assert {one.origin.pid: one.rank for one in known} == {10: 0, 11: 1, 12: 2}


def test_an_error_without_a_number_numbers_nobody() -> None:
    """Its process is the one that is left, and gets the number that is left."""
    assert members(failed(10, -1), failed(11, 1), failed(12, 2)) == {10: 0, 11: 1, 12: 2}


def test_a_rank_has_the_one_device_that_its_lines_name() -> None:
    """A logical and a physical number that differ name no device."""
    one = NpuProcess("a.log", Origin(pid=10), address="10.0.0.1", device=5)
    other = NpuProcess("b.log", Origin(pid=11), address="10.0.0.2", device=0)
    moved = NpuProcess("b.log", Origin(pid=11), address="10.0.0.2", device=3)

    def complete(_source: str, origin: Origin) -> Origin:
        return Origin(rank={10: 4, 11: 8}.get(origin.pid or 0))

    assert find_devices([one, other], complete) == {4: ("10.0.0.1", 5), 8: ("10.0.0.2", 0)}
    assert find_devices([one, other, moved], complete) == {4: ("10.0.0.1", 5)}


def test_a_device_is_that_of_the_server_or_of_the_own_lines() -> None:
    """What HCCL says about the local rank has the server; the entry and the failed call have the device alone."""
    assert [*describe_npu_devices((1,), {1: ("10.0.0.1", 5)}, ())] == ["Rank 1 uses device 5 of 10.0.0.1"]
    for text in (ENTRY, CALL):
        assert [*describe_npu_devices((1,), {}, (fact(text, 1),))] == ["Rank 1 uses device 1 of its host"]
        assert [*describe_npu_devices((0,), {}, (fact(text, 1),))] == []


def test_two_numbers_or_many_ranks_name_no_device() -> None:
    """A logical and a physical number may differ; four ranks are too many for a sentence each."""
    facts = (fact(ENTRY, 1), fact(CALL.replace("deviceId[1]", "deviceId[3]"), 1))
    assert [*describe_npu_devices((1,), {}, facts)] == []
    placed = {rank: ("10.0.0.1", rank) for rank in range(4)}
    assert len([*describe_npu_devices(range(3), placed, ())]) == 3
    assert [*describe_npu_devices(range(4), placed, ())] == []


def test_the_report_names_the_device_of_the_silent_rank(tmp_path: Path) -> None:
    """Seven ranks time out; run/plog says which device the eighth uses."""
    job = PlogJob(8)
    for rank in range(8):
        job.set_up_agent(rank)
    for rank in job.others(7):
        job.report_timeout(rank)
    job.write(tmp_path)
    root = ingest(tmp_path, options=OPTIONS).root_cause
    assert root is not None
    assert root.ranks == (7,)
    assert "Rank 7 uses device 7 of 10.0.0.1" in root.why
