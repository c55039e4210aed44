"""Who is who in a whole job: ranks from communicators, agents and names; clocks, silence and lines that were left out."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

import triage
from triage.model.diagnosis import Diagnosis

START = 1_795_230_465  # 2026-11-21 03:07:45 UTC
TRACE = ["Traceback (most recent call last):", '  File "train.py", line 3, in step', "ValueError: no tokens left"]


def ingest(directory: Path, **files: list[str]) -> Diagnosis:
    """A job of these files; `__` in a name is a slash, `_log` at its end the ending."""
    for name, lines in files.items():
        path = directory / f"{name.replace('__', '/').removesuffix('_log')}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return triage.ingest(directory)


def stamp(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(START + seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")


def warned(found: Diagnosis, code: str) -> list[str]:
    return [warning.message for warning in found.warnings if warning.code == code]


def init(rank: int, size: int, pid: int, comm: str) -> str:
    bus = f"{pid % 8 + 1:x}000"
    return f"node1:{pid}:{pid} [0] NCCL INFO ncclCommInitRank comm {comm} rank {rank} nranks {size} cudaDev 0 nvmlDev 0 busId {bus} commId 0x7 - Init START"


def test_only_the_communicator_of_all_ranks_numbers_them(tmp_path: Path) -> None:
    """A process is rank 1 of its pipeline and rank 3 of the job; what it says in NCCL's words is rank 3's."""
    lines = [init(rank, 4, 410 + rank, "0xa") for rank in range(4)] + [
        init(rank % 2, 2, 410 + rank, f"0xb{rank // 2}") for rank in range(4)
    ]
    lines.append(
        "node1:413:500 [0] transport/net_ib.cc:50 NCCL WARN NET/IB : Got async event : local catastrophic error"
    )
    found = ingest(tmp_path, job=lines)
    assert found.root_cause is not None
    assert (found.root_cause.ranks, found.job.world_size) == ((3,), 4)
    assert not warned(found, "identity-conflict")


def test_plogs_are_of_the_rank_that_their_process_joined_as(tmp_path: Path) -> None:
    """HCCL's entry line ties process and rank; another file of the process has only its number in its name."""
    for rank in range(2):
        entry = f"HcclCommInitRootInfoInner:ranks[2], rank[{rank}], rootinfo: host ip[10.0.0.7] port[60000], deviceLogicId[{rank}]"
        head = f"(27{rank},python):2026-11-21-03:07:45.372.001 [x.cc:12]"
        name = f"log__run__plog__plog-27{rank}_20261121030745372"
        path = tmp_path / f"{name.replace('__', '/')}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"[INFO] HCCL{head}[4711] Entry-{entry}\n")
    debug = tmp_path / "log/debug/plog/plog-271_20261121030745372.log"
    debug.parent.mkdir(parents=True)
    debug.write_text(
        "[ERROR] HCCL(271,python):2026-11-21-03:07:46.372.001 [task.cc:12][41][TaskExecStage][Timeout]EI0002: notify wait timeout\n"
    )
    found = triage.ingest(tmp_path)
    assert (found.job.ranks, found.job.world_size) == ((0, 1), 2)
    told = [fact for finding in found.findings for fact in finding.evidence if fact.kind == "message"]
    assert [(fact.origin.rank, fact.origin.pid) for fact in told] == [(1, 271)]


def test_the_agent_tells_which_local_rank_is_which_rank(tmp_path: Path) -> None:
    """torchelastic lists the ranks of its workers when they start."""
    lines = ["I1121 03:07:45.000000 77 api.py:1] [default] Rendezvous complete for workers. Result:"]
    lines += [
        "  restart_count=0",
        "  local_ranks=[0, 1]",
        "  role_ranks=[2, 3]",
        "  role_world_sizes=[4, 4]",
        "  global_ranks=[2, 3]",
    ]
    found = ingest(tmp_path, console=[*lines, *(f"[default1]:{line}" for line in TRACE)])
    assert found.root_cause is not None
    assert found.root_cause.ranks == (3,)


def test_clocks_that_are_apart_are_compared(tmp_path: Path) -> None:
    """The rank that failed first did so, though the clock of its host says otherwise."""
    files: dict[str, list[str]] = {}
    for host, (rank, ahead, failed) in {"node1": (0, 0, 130.0), "node2": (1, 3600, 100.0)}.items():
        steps = [f"{stamp(ahead + 10 * step)},{rank}00 [rank{rank}] INFO step {step} loss 0.1" for step in range(10)]
        error = f"{stamp(ahead + failed)},000 [rank{rank}] ERROR trainer: giving up"
        files[f"{host}__train"] = [*steps, error, *(TRACE if rank else [TRACE[0], TRACE[1], "KeyError: 'x'"])]
    found = ingest(tmp_path, **files)
    [message] = warned(found, "clock-skew")
    assert "node2 are 3600 s ahead of those of node1 (another time zone)" in message
    assert found.root_cause is not None
    assert found.root_cause.title == "ValueError: no tokens left"
    assert found.root_cause.first_time == pytest.approx(START + 100, abs=2)
    assert found.job.hosts == {"node1": (0,), "node2": (1,)}


def test_a_rank_that_fell_silent_is_said(tmp_path: Path) -> None:
    """Also when its last line stands far before the tail of a log that all ranks write."""
    lines = [f"[default{rank}]:{stamp(step)} INFO step {step} loss 0.1" for step in range(3) for rank in range(4)]
    lines += [
        f"[default{rank}]:{stamp(step)} INFO step {step} loss 0.1" for step in range(3, 600) for rank in (0, 1, 3)
    ]
    found = ingest(tmp_path, console=lines)
    assert sum(map(len, lines)) > 80_000
    assert warned(found, "fell-silent") == [
        "wrote nothing any more before the others' last lines: rank 2 597 s (step 2)"
    ]
    assert [state.last_step for state in found.ranks] == [599, 599, 2, 599]
    [moment] = [moment for moment in found.timeline if moment.rank == 2]
    assert (moment.time, moment.what) == (START + 2, "its last line (step 2); the others went on for 597 s")


def test_what_ray_left_out_is_counted(tmp_path: Path) -> None:
    """One line stands for many; those of a failure count as often, and all of them are in a warning."""
    lines = [
        "(Trainer pid=411) step 1",
        "(Trainer pid=412) step 1 [repeated 7x across cluster] (Ray deduplicates logs by default.)",
    ]
    lines += [f"(Trainer pid=413, ip=10.0.0.7) {line}" for line in TRACE[:-1]]
    lines += [
        "(Trainer pid=413, ip=10.0.0.7) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB [repeated 3x across cluster]"
    ]
    found = ingest(tmp_path, driver=lines)
    [message] = warned(found, "repeated-lines")
    assert message.startswith("Ray left out 8 or more lines")
    assert found.root_cause is not None
    assert found.root_cause.signature == "cuda.out-of-memory"


def test_names_of_one_machine_are_one_host(tmp_path: Path) -> None:
    """Launchers print the whole name, NCCL cuts it at the first dot."""
    table = [
        "Root Cause (first observed failure):",
        "[0]:",
        "  time      : 2026-11-21_03:07:45",
        "  host      : node1.cluster.local",
    ]
    table += [
        "  rank      : 1 (local_rank: 1)",
        "  exitcode  : 1 (pid: 78)",
        "  error_file: <N/A>",
        "  traceback : none",
    ]
    found = ingest(tmp_path, console=[*(f"[node1:1]:{line}" for line in TRACE), *table])
    assert found.root_cause is not None
    assert (found.root_cause.ranks, list(found.job.hosts)) == ((1,), ["node1"])


def test_the_end_of_a_rendezvous_compares_clocks(tmp_path: Path) -> None:
    """All agents leave it at once; where nothing else ties the hosts, it says how far their clocks are apart."""
    for node, ahead in ((0, 0.0), (1, 500.0)):
        moment = datetime.datetime.fromtimestamp(START + ahead, datetime.UTC).strftime("I%m%d %H:%M:%S.000000")
        agent = [
            f"{moment} 7{node} torch/distributed/elastic/agent/server/api.py:525] [default] Rendezvous complete for workers. Result:"
        ]
        agent += ["  restart_count=0", "  master_addr=node0", f"  local_ranks=[{0}]", f"  global_ranks=[{node}]"]
        (tmp_path / f"node{node}.log").write_text(
            "".join(f"{line}\n" for line in [*agent, *(f"[default0]:{line}" for line in TRACE)])
        )
    found = triage.ingest(tmp_path)
    [message] = warned(found, "clock-skew")
    assert "node1 are 500 s ahead of those of node0" in message
    assert (found.job.ranks, found.job.hosts) == ((0, 1), {"node0": (0,), "node1": (1,)})
