"""Facts between processes: what one packs, another unpacks whole."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

import triage
from triage.evidence import extract_text, extracted
from triage.evidence.extracted import ExtractedSource, pack, unpack
from triage.evidence.inference import make_inferences
from triage.evidence.learn_job import is_identity_line
from triage.evidence.source_extraction import read_from_tail
from triage.evidence.year import guess_year
from triage.model.details import ExceptionDetail, ExitDetail, InferenceDetail, KernelDetail
from triage.model.evidence import Source
from triage.scan.edges import HeldEdges
from triage.scan.interface import ScanResult

LOG = """\
Traceback (most recent call last):
  File "/w/train.py", line 9, in <module>
ValueError: no tokens
node3 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.
srun: error: node1: task 2: Killed
"""


def test_details_survive_the_way_between_processes() -> None:
    """The typed parts of facts, which equality does not compare, are those that were packed."""
    facts = extract_text(LOG)
    facts += make_inferences("never-joined", [3], "rank 3 never joined", facts[0], waiting=(0, 1))
    facts.append(dataclasses.replace(facts[0], inherits_time=True, rank_basis="exit status"))
    source = ExtractedSource((), (), (), tuple(facts), 0, False)
    again = unpack(json.loads(json.dumps(pack(source)))).facts
    for name in ("detail", "inherits_time", "rank_basis"):
        assert [getattr(fact, name) for fact in again] == [getattr(fact, name) for fact in facts]
    assert [type(fact.detail) for fact in again[:4]] == [ExceptionDetail, KernelDetail, ExitDetail, InferenceDetail]


def test_sources_share_equal_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that facts of two sources have is one object, and what is remembered for that stays small."""
    packed = [json.dumps(pack(ExtractedSource((), (), (), tuple(extract_text(LOG, name)), 0, False))) for name in "ab"]
    shared: dict[str, str] = {}
    first, second = (unpack(json.loads(one), shared).facts[0] for one in packed)
    assert first.text is second.text
    assert first.source != second.source
    monkeypatch.setattr(extracted, "_MOST_SHARED", len(shared) - 1)
    assert unpack(json.loads(packed[0]), shared).facts[0] == first
    assert "b" not in shared


@pytest.mark.parametrize(("offset", "from_memory"), [(0, False), (5, False), (6, True), (7, True), (8, False)])
def test_what_the_tail_holds_is_not_read_again(offset: int, from_memory: bool) -> None:
    """The bytes are those of the source; only what lies before its tail, or behind its known end, is read."""
    data, starts = b"0123456789", list[int]()

    def read(start: int, length: int) -> bytes:
        starts.append(start)
        return data[start : start + length]

    again = read_from_tail(read, ScanResult((), len(data), HeldEdges(data[:4], data[6:])))
    assert again(offset, 3) == data[offset : offset + 3]
    assert starts == ([] if from_memory else [offset])


@pytest.mark.parametrize(
    ("line", "states_only_a_version"),
    [
        ("NCCL version 2.21.5+cuda12.4", True),
        ("node1:311:402 [0] NCCL INFO NCCL version 2.21.5+cuda12.4", True),
        ("torch 2.6.0, CUDA 12.4, NCCL version 2.21.5", True),
        ("NCCL error: remote process exited or there was a network error, NCCL version 2.21.5", False),
        ("NCCL error in: ProcessGroupNCCL.cpp:1275, invalid usage, NCCL version 2.18.6", False),
    ],
)
def test_errors_that_end_with_the_version_are_facts(line: str, states_only_a_version: bool) -> None:
    """torch ends each error of NCCL with the version of NCCL, which alone is no failure."""
    assert [is_identity_line(fact) for fact in extract_text(line)] == [states_only_a_version]


@pytest.mark.parametrize("lines", [10, 400])
def test_what_a_rank_did_before_reports_that_fill_the_end_of_a_file_is_read(lines: int, tmp_path: Path) -> None:
    """The reports of the other ranks are longer than the end of a file that is read; or all is."""
    report = "[{0}]:RuntimeError: [unbound_buffer.cc:78] Timed out waiting 30000ms for recv operation to complete"
    head = [f"[{rank}]:rank {rank} of 4" for rank in range(4)] + ["[3]:step 1", "[3]:compiling the graph"]
    more = [f"[{number % 3}]:frame {number} {'x' * 90}" for number in range(lines)]
    (tmp_path / "job.log").write_text("\n".join([*head, *(report.format(rank) for rank in range(3)), *more]) + "\n")
    diagnosis = triage.ingest(tmp_path)
    assert diagnosis.root_cause is not None
    assert (diagnosis.root_cause.signature, diagnosis.root_cause.ranks) == ("torch.compile-skew", (3,))


@pytest.mark.parametrize("is_tagged", [True, False])
def test_ends_before_many_warnings_are_read_where_several_processes_write(is_tagged: bool, tmp_path: Path) -> None:
    """The lines of the program name no rank, only the warnings do; a file of one process ends with its last lines."""
    steps = [f"step {number} loss 0.1" for number in range(400) for _ in range(4)]
    ends = ["training finished, 0 errors"] * 4
    warning = (
        "[rank{0}]:" if is_tagged else ""
    ) + "[W1102 17:04:24.437338 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=62): {1}"
    warnings = [warning.format(number % 4, "x" * 200) for number in range(150)]
    (tmp_path / "job.log").write_text("\n".join(["world_size=4", *steps, *ends, *warnings]) + "\n")
    assert (triage.ingest(tmp_path).verdict == "clean") is is_tagged


@pytest.mark.parametrize(
    ("line", "year"),
    [
        (b"2027-08-05 03:10:34 step 3", 2027),
        (b"2027/08/05 03:10:34 step 3", 2027),
        (b"[Wed Aug  5 03:06:30 2027] overlayfs: idmapped layers", 2027),
        (b"Thu Aug 15 03:06:30 UTC 2027", 2027),
        (b"Date: Wed, 05 Aug 2027 03:06:30 GMT", 2027),
        (b"[Wed Aug  5 03:06:30] overlayfs, 2027 layers", 1970),
        (b"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024", 1970),
        (b"Linux version 6.8.0-45-generic #45-Ubuntu SMP PREEMPT_DYNAMIC Fri Aug 30 12:02:04 UTC 2024", 1970),
        (b"NVRM: Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024\n2027-08-05 03:10:34 build the index", 2027),
    ],
)
def test_a_year_that_any_line_states_is_that_of_stamps_without_one(line: bytes, year: int) -> None:
    """A file in an archive may have the time 0, so what dmesg and others state counts."""
    assert guess_year([(Source("job.log", "stream"), ScanResult((), len(line), HeldEdges(line)))]) == year


@pytest.mark.parametrize(("lines", "is_joined"), [(500, True), (900, False)])
def test_ranks_that_introduce_themselves_behind_the_start_are_read(lines: int, is_joined: bool, tmp_path: Path) -> None:
    """In a file of several ranks, within 64 KiB."""
    noise = [f"[rank{line % 2}]: " + "loading weights and building the model " * 2 for line in range(lines)]
    hosts = ["[rank0]: rank 0 of 2 is up on node1", "[rank1]: rank 1 of 2 is up on node2"]
    (tmp_path / "job.log").write_text("\n".join([*noise, *hosts, *noise, "[rank1]: ValueError: boom"]) + "\n")
    assert triage.ingest(tmp_path).job.hosts == ({"node1": (0,), "node2": (1,)} if is_joined else {})


def test_the_host_of_a_task_counts_only_where_its_rank_names_none(tmp_path: Path) -> None:
    """A task of srun may be a launcher with ranks of its own."""
    lines = ["[rank1]: Initializing: rank: 1, world_size: 4, hostname: node1, pid: 412", "[rank0]: ValueError: boom"]
    ends = [f"srun: error: node{task + 1}: task {task}: Exited with exit code 1" for task in (1, 3)]
    (tmp_path / "job.log").write_text("\n".join([*lines, *ends]) + "\n")
    assert triage.ingest(tmp_path).job.hosts == {"node1": (1,), "node4": (3,)}


def test_the_file_of_a_rank_says_nothing_of_the_host_of_a_rank_that_it_quotes(tmp_path: Path) -> None:
    """Each rank prints the traceback of the one that failed."""
    quote = [
        "CheckpointException: CheckpointException ranks:dict_keys([1])",
        "Traceback (most recent call last): (RANK 1)",
    ]
    error = ['  File "/app/train.py", line 9, in load', "    load()", "FileNotFoundError: no such file: x"]
    for host, rank in (("node1", 0), ("node2", 1)):
        lines = [f"rank {rank} of 2 is up on {host}", "Traceback (most recent call last):", *error[:2], *quote, *error]
        (tmp_path / f"{host}.log").write_text("\n".join(lines) + "\n")
    diagnosis = triage.ingest(tmp_path)
    assert diagnosis.job.hosts == {"node1": (0,), "node2": (1,)}
    assert diagnosis.root_cause is not None
    assert (diagnosis.root_cause.ranks, diagnosis.root_cause.hosts) == ((1,), ("node2",))
