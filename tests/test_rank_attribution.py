"""The ranks of a whole job: from communicators, agents and names; with clock skew, silent ranks and omitted lines."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

import triage
from triage.model.diagnosis import Diagnosis

START = 1_795_230_465  # 2026-11-21 03:07:45 UTC
TRACE = ["Traceback (most recent call last):", '  File "train.py", line 3, in step', "ValueError: no tokens left"]


def ingest(directory: Path, **files: list[str]) -> Diagnosis:
    """Diagnose a job with these files. In a name, `__` is a slash, and `_log` at its end is dropped."""
    for name, lines in files.items():
        path = directory / f"{name.replace('__', '/').removesuffix('_log')}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return triage.ingest(directory)


def stamp(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(START + seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")


def warnings_with_code(diagnosis: Diagnosis, code: str) -> list[str]:
    return [warning.message for warning in diagnosis.warnings if warning.code == code]


def nccl_init_line(rank: int, size: int, pid: int, comm: str) -> str:
    bus = f"{pid % 8 + 1:x}000"
    return (
        f"node1:{pid}:{pid} [0] NCCL INFO ncclCommInitRank comm {comm} rank {rank} nranks {size} "
        f"cudaDev 0 nvmlDev 0 busId {bus} commId 0x7 - Init START"
    )


def test_only_the_communicator_of_all_ranks_has_global_ranks(tmp_path: Path) -> None:
    """A process is rank 1 of its pipeline and rank 3 of the job; its NCCL lines are rank 3's."""
    lines = [nccl_init_line(rank, 4, 410 + rank, "0xa") for rank in range(4)] + [
        nccl_init_line(rank % 2, 2, 410 + rank, f"0xb{rank // 2}") for rank in range(4)
    ]
    lines.append(
        "node1:413:500 [0] transport/net_ib.cc:50 NCCL WARN NET/IB : Got async event : local catastrophic error"
    )
    diagnosis = ingest(tmp_path, job=lines)
    assert diagnosis.root_cause is not None
    assert (diagnosis.root_cause.ranks, diagnosis.job.world_size) == ((3,), 4)
    assert not warnings_with_code(diagnosis, "identity-conflict")


def test_plogs_have_the_rank_of_their_process(tmp_path: Path) -> None:
    """HCCL's entry line connects process and rank; another file of the process has only its pid in its name."""
    for rank in range(2):
        entry = (
            f"HcclCommInitRootInfoInner:ranks[2], rank[{rank}], "
            f"rootinfo: host ip[10.0.0.7] port[60000], deviceLogicId[{rank}]"
        )
        head = f"(27{rank},python):2026-11-21-03:07:45.372.001 [x.cc:12]"
        name = f"log__run__plog__plog-27{rank}_20261121030745372"
        path = tmp_path / f"{name.replace('__', '/')}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"[INFO] HCCL{head}[4711] Entry-{entry}\n")
    debug = tmp_path / "log/debug/plog/plog-271_20261121030745372.log"
    debug.parent.mkdir(parents=True)
    debug.write_text(
        "[ERROR] HCCL(271,python):2026-11-21-03:07:46.372.001 [task.cc:12][41]"
        "[TaskExecStage][Timeout]EI0002: notify wait timeout\n"
    )
    diagnosis = triage.ingest(tmp_path)
    assert (diagnosis.job.ranks, diagnosis.job.world_size) == ((0, 1), 2)
    messages = [fact for finding in diagnosis.findings for fact in finding.evidence if fact.kind == "message"]
    assert [(fact.origin.rank, fact.origin.pid) for fact in messages] == [(1, 271)]


def test_torchelastics_agent_maps_local_to_global_ranks(tmp_path: Path) -> None:
    """The agent lists the ranks of its workers when they start."""
    lines = ["I1121 03:07:45.000000 77 api.py:1] [default] Rendezvous complete for workers. Result:"]
    lines += [
        "  restart_count=0",
        "  local_ranks=[0, 1]",
        "  role_ranks=[2, 3]",
        "  role_world_sizes=[4, 4]",
        "  global_ranks=[2, 3]",
    ]
    diagnosis = ingest(tmp_path, console=[*lines, *(f"[default1]:{line}" for line in TRACE)])
    assert diagnosis.root_cause is not None
    assert diagnosis.root_cause.ranks == (3,)


def test_clock_skew_is_corrected(tmp_path: Path) -> None:
    """The rank that failed first is the root cause, even if the clock of its host is ahead."""
    files: dict[str, list[str]] = {}
    for host, (rank, ahead, failed) in {"node1": (0, 0, 130.0), "node2": (1, 3600, 100.0)}.items():
        steps = [f"{stamp(ahead + 10 * step)},{rank}00 [rank{rank}] INFO step {step} loss 0.1" for step in range(10)]
        error = f"{stamp(ahead + failed)},000 [rank{rank}] ERROR trainer: giving up"
        files[f"{host}__train"] = [*steps, error, *(TRACE if rank else [TRACE[0], TRACE[1], "KeyError: 'x'"])]
    diagnosis = ingest(tmp_path, **files)
    [message] = warnings_with_code(diagnosis, "clock-skew")
    assert "node2 is 3600 s ahead of node1 (another time zone)" in message
    assert diagnosis.root_cause is not None
    assert diagnosis.root_cause.title == "ValueError: no tokens left"
    assert diagnosis.root_cause.first_time == pytest.approx(START + 100, abs=2)
    assert diagnosis.job.hosts == {"node1": (0,), "node2": (1,)}


def test_a_silent_rank_is_reported(tmp_path: Path) -> None:
    """Also if its last line is far before the tail of a log that all ranks write."""
    lines = [f"[default{rank}]:{stamp(step)} INFO step {step} loss 0.1" for step in range(3) for rank in range(4)]
    lines += [
        f"[default{rank}]:{stamp(step)} INFO step {step} loss 0.1" for step in range(3, 600) for rank in (0, 1, 3)
    ]
    diagnosis = ingest(tmp_path, console=lines)
    assert sum(map(len, lines)) > 80_000
    assert warnings_with_code(diagnosis, "fell-silent") == ["Rank 2 went silent 597 s before the others (last step 2)"]
    assert [state.last_step for state in diagnosis.ranks] == [599, 599, 2, 599]
    [moment] = [moment for moment in diagnosis.timeline if moment.rank == 2]
    assert (moment.time, moment.what) == (START + 2, "its last line (step 2); the others went on for 597 s")


def test_lines_that_ray_left_out_are_counted(tmp_path: Path) -> None:
    """One line stands for several; repeated failures are counted, and a warning counts all of them."""
    lines = [
        "(Trainer pid=411) step 1",
        "(Trainer pid=412) step 1 [repeated 7x across cluster] (Ray deduplicates logs by default.)",
    ]
    lines += [f"(Trainer pid=413, ip=10.0.0.7) {line}" for line in TRACE[:-1]]
    lines.append(
        "(Trainer pid=413, ip=10.0.0.7) torch.OutOfMemoryError: CUDA out of memory. "
        "Tried to allocate 2.00 GiB [repeated 3x across cluster]"
    )
    diagnosis = ingest(tmp_path, driver=lines)
    [message] = warnings_with_code(diagnosis, "repeated-lines")
    assert message.startswith("Ray left out 8 or more repeated lines")
    assert diagnosis.root_cause is not None
    assert diagnosis.root_cause.signature == "cuda.out-of-memory"


def test_short_and_full_host_names_are_one_host(tmp_path: Path) -> None:
    """Launchers print the full name, NCCL cuts it at the first dot."""
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
    diagnosis = ingest(tmp_path, console=[*(f"[node1:1]:{line}" for line in TRACE), *table])
    assert diagnosis.root_cause is not None
    assert (diagnosis.root_cause.ranks, list(diagnosis.job.hosts)) == ((1,), ["node1"])


def test_the_end_of_a_rendezvous_shows_clock_skew(tmp_path: Path) -> None:
    """All agents leave it at once, which connects hosts without other common events."""
    for node, ahead in ((0, 0.0), (1, 500.0)):
        moment = datetime.datetime.fromtimestamp(START + ahead, datetime.UTC).strftime("I%m%d %H:%M:%S.000000")
        agent = [
            f"{moment} 7{node} torch/distributed/elastic/agent/server/api.py:525] "
            "[default] Rendezvous complete for workers. Result:"
        ]
        agent += ["  restart_count=0", "  master_addr=node0", f"  local_ranks=[{0}]", f"  global_ranks=[{node}]"]
        (tmp_path / f"node{node}.log").write_text(
            "".join(f"{line}\n" for line in [*agent, *(f"[default0]:{line}" for line in TRACE)])
        )
    diagnosis = triage.ingest(tmp_path)
    [message] = warnings_with_code(diagnosis, "clock-skew")
    assert "node1 is 500 s ahead of node0" in message
    assert (diagnosis.job.ranks, diagnosis.job.hosts) == ((0, 1), {"node0": (0,), "node1": (1,)})


def timed_out_console(silent: int, writes_steps: bool, shown: range) -> list[str]:
    """Return the console of ranks that timed out in one collective, all but one."""
    ranks = [rank for rank in shown if rank != silent]
    stamp = "1121 03:17:45.000000 410 ProcessGroupNCCL.cpp:616]"
    call = "WorkNCCL(SeqNum=40, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=600000)"
    steps = [f"[rank{rank}]: step {step}" for step in range(5) for rank in shown if rank != silent or writes_steps]
    timeouts = [
        f"[rank{rank}]:[E{stamp} [Rank {rank}] Watchdog caught collective operation timeout: {call} ran for 600010 "
        "milliseconds before timing out."
        for rank in ranks
    ]
    return [*steps, *timeouts]


@pytest.mark.parametrize(
    ("setting", "failure", "cause"),
    [
        (
            "node1:4711:4711 [0] NCCL INFO NET/OFI Selected Provider is efa (found 4 nics)",
            ["node1:4711:4790 [0] NCCL WARN NET/OFI Couldn't open AV. RC: -22, ERROR: Invalid argument"],
            "fabric.efa-address-vector",
        ),
        (
            "[2026-11-21 03:07:45,118] [INFO] [logging.py:128:log_dist] [Rank 0] DeepSpeed info: version=0.16.2",
            [*TRACE[:2], "ValueError: Attempting to unscale FP16 gradients."],
            "deepspeed.backward-bypassed",
        ),
        (
            "A module that was compiled using NumPy 1.x cannot be run in",
            [*TRACE[:2], "ImportError: numpy.core.multiarray failed to import"],
            "python.numpy-abi",
        ),
        (
            "libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.",
            ["node1:4711:4790 [0] NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory"],
            "fabric.locked-memory-limit",
        ),
    ],
)
def test_who_prints_only_the_setting_of_a_failure_did_not_fail(
    tmp_path: Path, setting: str, failure: list[str], cause: str
) -> None:
    """The line that tells two causes apart stands in the logs of healthy ranks too; the failure is of who prints it."""
    files = {f"rank{rank}": [setting, "step 1 loss 2.31", *(failure if rank == 2 else [])] for rank in range(4)}
    root = ingest(tmp_path / "all", **files).root_cause
    assert root is not None
    assert (root.signature, root.ranks) == (cause, (2,))
    for lines in files.values():
        lines.remove(setting)
    root = ingest(tmp_path / "none", **files).root_cause
    assert root is None or root.signature != cause


@pytest.mark.parametrize(
    ("shown", "writes_steps", "is_named"),
    [
        (range(40), False, True),
        (range(700), True, True),
        (range(700), False, True),
        (range(4), False, False),
        (range(0, 320, 8), False, False),
    ],
)
def test_a_rank_that_is_missing_between_others_is_silent(
    tmp_path: Path, shown: range, *, writes_steps: bool, is_named: bool
) -> None:
    """In one console of all ranks it is the one that the others wait for, whether or not any line of it was read; where
    a launcher shows one rank of a node, nobody is missing.
    """
    silent = shown[len(shown) // 3]
    diagnosis = ingest(tmp_path, console=timed_out_console(silent, writes_steps, shown))
    root = diagnosis.root_cause
    assert (root is not None and root.ranks == (silent,)) == is_named


def test_a_rank_without_a_line_is_no_failure_where_nobody_waits(tmp_path: Path) -> None:
    """A healthy console may show only some ranks."""
    shown = [rank for rank in range(40) if rank != 7]
    lines = [f"[rank{rank}]: step {step}" for step in range(9) for rank in shown]
    assert (
        ingest(tmp_path, console=[*lines, *(f"[rank{rank}]: training finished" for rank in shown)]).verdict == "clean"
    )
