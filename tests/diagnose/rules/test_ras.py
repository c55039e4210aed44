"""Reports of NCCL's RAS subsystem: from the text or JSON to the ranks at fault, or to none where it cannot be told."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import triage
from tests.shared_catalog import OPTIONS
from triage.model import Diagnosis

HEAD = """NCCL version 2.27.3+cuda12.8 compiled with CUDA 12.8
CUDA runtime version 12080, driver version 12080

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
{totals}

Communicators... ({elapsed}s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
{rows}

Errors
======

"""
EIGHT = "      1          8            1          8        8"
FOUR_NODES = "      4          8            1         32       32"
MISMATCH = "    0         1         1         8         8         8   RUNNING  MISMATCH"
COUNTS = "  Communicator ranks have different AllReduce operation counts\n"


def at(rank: int, node: str = "10.0.0.1") -> str:
    return f"GPU {rank % 8} managed by process {4000 + rank} on node {node}"


def report(
    warnings: str = "", errors: str = "", rows: str = MISMATCH, totals: str = EIGHT, elapsed: str = "0.004"
) -> str:
    head = HEAD.format(totals=totals, rows=rows, elapsed=elapsed)
    return f"{head}{errors}Warnings\n========\n\n{warnings}"


def mismatch(body: str, name: str = "#0-0 (27a079b828ff1a75)") -> str:
    return f"{name} MISMATCH\n{body}\n"


LAGS = mismatch(
    f"{COUNTS}  7 ranks have launched up to operation 13\n  Rank 5 has launched up to operation 9 -- {at(5)}\n"
)


def ingest(tmp_path: Path, files: Mapping[str, str] | str) -> Diagnosis:
    for name, text in (files if isinstance(files, Mapping) else {"ras.txt": files}).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return triage.ingest(tmp_path, options=OPTIONS)


def answer(diagnosis: Diagnosis) -> tuple[str, str | None, tuple[int, ...]]:
    root = diagnosis.root_cause
    return (diagnosis.verdict, root.signature, root.ranks) if root else (diagnosis.verdict, None, ())


DEAD = "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n"
ROW_32 = "    0         1         4       7-8        32        32   RUNNING  {}"
CASES = {
    "a rank is behind": (report(LAGS), ("known", "torch.lagging-rank", (5,))),
    "2.24 counts all collectives": (
        report(LAGS.replace("AllReduce", "collective")), ("known", "torch.lagging-rank", (5,)),
    ),
    "a rank has launched nothing": (
        report(LAGS.replace("launched up to operation 9", "not launched any operations")),
        ("known", "torch.lagging-rank", (5,)),
    ),
    "only the warning was pasted": (LAGS, ("known", "torch.lagging-rank", (5,))),
    "the majority is listed by its size, the few by rank": (
        report(
            mismatch(
                f"{COUNTS}  26 ranks have launched up to operation 6650\n  6 ranks have launched up to operation 6649\n"
                + "".join(f"  Rank {rank} -- {at(rank)}\n" for rank in (0, 2, 3, 4, 5, 7))
            ),
            rows=ROW_32.format("MISMATCH"), totals=FOUR_NODES,
        ),
        ("known", "torch.lagging-rank", (0, 2, 3, 4, 5, 7)),
    ),
    "two halves without a list": (
        report(
            mismatch(
                f"{COUNTS}  4 ranks have launched up to operation 8\n  4 ranks have launched up to operation 7\n"
            )
        ),
        ("unknown", None, ()),
    ),
    "one rank called another operation": (
        report(
            mismatch(
                "  Communicator ranks have different Broadcast operation counts\n  7 ranks have not launched any"
                f" operations\n  Rank 2 has launched up to operation 1 -- {at(2)}\n\n{COUNTS}"
                f"  7 ranks have launched up to operation 5\n  Rank 2 has launched up to operation 4 -- {at(2)}\n"
            )
        ),
        ("known", "torch.collective-order-mismatch", (2,)),
    ),
    "one rank launched more": (
        report(
            mismatch(
                f"{COUNTS}  7 ranks have launched up to operation 5\n"
                f"  Rank 2 has launched up to operation 6 -- {at(2)}\n"
            )
        ),
        ("known", "torch.extra-collective", (2,)),
    ),
    "a dead process of 2.24": (
        report(
            errors=f"{DEAD}  Process 3487984 on node 172.16.64.213 managing GPU 5\n\n#0-0 (cf264af53edbe986) INCOMPLETE"
            "\n  Missing communicator data from 1 rank\n  The missing rank: 21\n\n",
            rows=ROW_32.format("INCOMPLETE"), totals=FOUR_NODES,
        ),
        ("known", "nccl.process-unreachable", (21,)),
    ),
    "a dead process of 2.28": (
        report(
            errors=f"{DEAD}  Process 3487984 on node 172.16.64.213 managing GPU 5\n\n#0-0 (cf264af53edbe986) INCOMPLETE"
            "\n  Missing communicator data from 1 rank\n"
            "  Rank 21 -- GPU 5 managed by process 3487984 on node 172.16.64.213\n\n",
            rows=ROW_32.format("INCOMPLETE"), totals=FOUR_NODES,
        ),
        ("known", "nccl.process-unreachable", (21,)),
    ),
    "a process without an answer yet": (
        report(
            "TIMEOUT\n  Encountered 2 communication timeouts while gathering communicator data\n\n",
            "INCOMPLETE\n  Missing communicator data from 1 job process\n  Process 4005 on node 10.0.0.1 managing GPU 5"
            "\n\n",
            rows=MISMATCH.replace("MISMATCH", "INCOMPLETE"),
        ),
        ("known", "nccl.process-unreachable", (5,)),
    ),
    "a process that RAS saw die": (
        "[2025-12-19 13:07:07] PEER_DEAD: Process 1524345 on node 172.16.64.245 managing GPU 1\n",
        ("known", "nccl.process-unreachable", ()),
    ),
    "a rank left": (
        report(
            mismatch(
                "  Communicator ranks have different status\n  7 ranks have status RUNNING\n"
                f"  Rank 3 has status FINALIZE -- {at(3)}\n"
            )
        ),
        ("known", "launch.rank-left-early", (3,)),
    ),
    "three of eight ranks left": (
        report(
            mismatch(
                "  Communicator ranks have different status\n  5 ranks have status RUNNING\n"
                "  3 ranks have status FINALIZE\n" + "".join(f"  Rank {rank} -- {at(rank)}\n" for rank in (1, 3, 6))
            )
        ),
        ("known", "launch.rank-left-early", (1, 3, 6)),
    ),
    "half of the ranks left": (
        report(
            mismatch(
                "  Communicator ranks have different status\n  4 ranks have status RUNNING\n"
                "  4 ranks have status FINALIZE\n" + "".join(f"  Rank {rank} -- {at(rank)}\n" for rank in range(4))
            )
        ),
        ("unknown", None, ()),
    ),
    "a rank launched less of one operation, and of another as many as others": (
        report(
            mismatch(
                "  Communicator ranks have different Broadcast operation counts\n  7 ranks have launched up to"
                f" operation 2\n  Rank 2 has launched up to operation 1 -- {at(2)}\n\n{COUNTS}"
                "  3 ranks have launched up to operation 5\n"
                + "".join(f"  Rank {rank} -- {at(rank)}\n" for rank in (0, 1, 2))
                + "  3 ranks have launched up to operation 6\n"
                + "".join(f"  Rank {rank} -- {at(rank)}\n" for rank in (3, 4, 5))
                + "  2 ranks have launched up to operation 4\n"
                + "".join(f"  Rank {rank} -- {at(rank)}\n" for rank in (6, 7))
            )
        ),
        ("known", "torch.lagging-rank", (2,)),
    ),
    "a rank reports an error": (
        report(
            errors="#0-0 (27a079b828ff1a75) ERROR\n  Asynchronous error on 1 rank\n"
            f"  Rank 6 reported System error -- {at(6)}\n\n",
            rows=MISMATCH.replace("MISMATCH", "ERROR"),
        ),
        ("unknown", None, (6,)),
    ),
    "RAS timed out": (
        report("TIMEOUT\n  Encountered 2 communication timeouts while gathering communicator data\n\n"),
        ("unknown", None, ()),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_report_names_what_it_shows(tmp_path: Path, name: str) -> None:
    """It names the rank and the kind where the report shows them, and is never clean where ranks differ."""
    text, expected = CASES[name]
    diagnosis = ingest(tmp_path, text)
    assert answer(diagnosis) == expected
    assert diagnosis.root_cause is not None
    assert diagnosis.root_cause.confidence < 0.7 or "dead" in text


def test_a_healthy_report_shows_no_failure(tmp_path: Path) -> None:
    """Where all communicators agree there is no finding."""
    diagnosis = ingest(tmp_path, report(rows=MISMATCH.replace("MISMATCH", "      OK")))
    assert diagnosis.verdict in ("clean", "inconclusive")
    assert diagnosis.root_cause is None


@pytest.mark.parametrize("prefix", ["0: ", "2026-11-02T10:00:00Z ", "[rank0]: "])
def test_a_report_is_read_from_a_log(tmp_path: Path, prefix: str) -> None:
    """Prefixes and the lines around it do not hide it, and the rank that prints it is not blamed."""
    lines = ["step 12 loss 3.1", *report(LAGS).split("\n"), "step 13 loss 3.0"]
    diagnosis = ingest(tmp_path, {"job.log": "".join(f"{prefix}{line}\n" for line in lines[:-1])})
    assert answer(diagnosis) == ("known", "torch.lagging-rank", (5,))


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (LAGS, "RAS does not count sends and receives"),
        (LAGS.replace("13", "14").replace("operation 9", "operation 10"), "the counts moved between two reports"),
    ],
)
def test_a_second_report_shows_whether_the_job_stands(tmp_path: Path, second: str, reason: str) -> None:
    """With equal counts a few seconds later the ranks stand; with others the job may only be slow."""
    root = ingest(tmp_path, report(LAGS) + report(second, elapsed="0.005")).root_cause
    assert root is not None
    assert root.ranks == (5,)
    assert reason in " ".join(root.why)
    assert root.confidence == 0.6


def test_a_rank_that_waits_elsewhere_is_not_where_it_began(tmp_path: Path) -> None:
    """Ranks 4 and 5 are behind in the communicator of all, but rank 4 waits for rank 5 in a smaller one."""
    rows = f"{MISMATCH}\n    1         4         1         2         2         8   RUNNING  MISMATCH"
    body = f"{COUNTS}  6 ranks have launched up to operation 13\n  2 ranks have launched up to operation 9\n"
    body += f"  Rank 4 -- {at(4)}\n  Rank 5 -- {at(5)}\n"
    pair = f"{COUNTS}  Rank 0 has launched up to operation 31 -- {at(4)}\n"
    pair += f"  Rank 1 has launched up to operation 30 -- {at(5)}\n"
    text = report(mismatch(body) + mismatch(pair, "#1-0 (9889b5febe44f24c)"), rows=rows)
    assert answer(ingest(tmp_path, text)) == ("known", "torch.lagging-rank", (5,))


def test_logs_give_the_rank_of_a_process(tmp_path: Path) -> None:
    """Without a communicator of all, a process id of the logs gives the rank."""
    rows = "    0         2         1         4         4         8   RUNNING  MISMATCH"
    body = f"{COUNTS}  3 ranks have launched up to operation 13\n"
    body += f"  Rank 1 has launched up to operation 9 -- {at(5, '10.0.0.2')}\n"
    log = "node2:4005:4105 [1] NCCL INFO comm 0x55 rank 13 nranks 16 cudaDev 5 busId 1b000 - Init COMPLETE\n"
    two = "      2          8            1         16       16"
    diagnosis = ingest(tmp_path, {"ras.txt": report(mismatch(body), rows=rows, totals=two), "rank13.log": log})
    assert answer(diagnosis) == ("known", "torch.lagging-rank", (13,))


def test_a_single_process_without_a_known_rank_is_one_rank(tmp_path: Path) -> None:
    """Its number in a smaller communicator is not the rank of the job, so ranks are only counted."""
    rows = "    0         2         1         4         4         8   RUNNING  MISMATCH"
    body = "  Communicator ranks have different status\n  3 ranks have status RUNNING\n"
    body += f"  Rank 1 has status ABORT -- {at(5, '10.0.0.2')}\n"
    two = "      2          4            1          8        8"
    root = ingest(tmp_path, report(mismatch(body), rows=rows, totals=two)).root_cause
    assert root is not None
    parts = "3 ranks status RUNNING, 1 rank (GPU 5 of process 4005 on 10.0.0.2) status ABORT"
    assert parts in root.why[0]


def test_processes_that_leave_after_the_end_are_no_failure(tmp_path: Path) -> None:
    """RAS also sees the processes of a job that has finished as dead."""
    log = "".join(f"[rank{rank}]: step {step} loss 1.0\n" for step in range(3) for rank in range(2))
    log += "".join(f"[rank{rank}]: Training finished successfully\n" for rank in range(2))
    dead = "[2025-12-19 13:07:07] PEER_DEAD: Process 1524345 on node 172.16.64.245 managing GPU 1\n"
    assert answer(ingest(tmp_path, {"job.log": log, "ras.log": dead}))[1] is None


def as_json(counts: Sequence[int], missing: Sequence[int] = ()) -> str:
    status = {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False}

    def process(rank: int) -> dict[str, Any]:
        return {"rank": rank, "host": "10.0.0.1", "pid": 4000 + rank, "cuda_dev": rank, "nvml_dev": rank}

    ranks = [
        {**process(rank), "status": status, "collective_counts": {"Broadcast": 1, "AllReduce": count}}
        for rank, count in enumerate(counts)
        if rank not in missing
    ]
    gone = [{**process(rank), "status": {"unresponsive": True, "considered_dead": True}} for rank in missing]
    communicator = {"hash": "0xae94", "size": len(counts), "ranks_count": len(ranks), "ranks": ranks,
                    "missing_ranks": gone}  # fmt: skip
    return json.dumps(
        {"nccl_version": "2.29.1", "timestamp": "2025-12-19 13:06:53", "communicators_count": 1,
         "communicators": [communicator], "ras": {"collection_time_sec": 0.0, "timeouts_count": 0}},
        indent=2,
    )  # fmt: skip


def test_json_shows_the_same(tmp_path: Path) -> None:
    """The JSON of all ranks names the rank that is behind, the dead one, or nobody; also if its end is missing."""
    behind = as_json([7, 7, 4, 7])
    for name, text, expected in (
        ("behind", behind, ("known", "torch.lagging-rank", (2,))),
        ("dead", as_json([7, 7, 7, 7], [3]), ("known", "nccl.process-unreachable", (3,))),
        ("cut", behind[: behind.index('"missing_ranks"')], ("known", "torch.lagging-rank", (2,))),
        (
            "empty",
            as_json([7]).partition('"communicators": [')[0] + '"communicators": []\n}\n',
            ("inconclusive", None, ()),
        ),
        ("equal", as_json([7, 7, 7, 7]), ("inconclusive", None, ())),
    ):
        (tmp_path / name).mkdir()
        assert answer(ingest(tmp_path / name, {"ras.json": text})) == expected


def test_ten_thousand_ranks(tmp_path: Path) -> None:
    """A report as long as that of a large job is read to its end."""
    counts = [9] * 10_000
    counts[9_876] = 8
    assert answer(ingest(tmp_path, {"ras.json": as_json(counts)})) == ("known", "torch.lagging-rank", (9_876,))
