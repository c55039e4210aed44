"""What launchers say of the processes they started."""

from __future__ import annotations

import pytest

from triage.evidence import extract_text
from triage.model.details import ExceptionDetail, ExitDetail
from triage.model.evidence import Evidence


def exits(text: str) -> list[Evidence]:
    return [fact for fact in extract_text(text) if fact.kind == "exit"]


def table(*entries: str, root: str) -> str:
    return (
        "Traceback (most recent call last):\n"
        '  File "/opt/venv/bin/torchrun", line 8, in <module>\n'
        "    raise ChildFailedError(\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        f"{'=' * 60}\ntrain.py FAILED\n{'-' * 60}\nFailures:\n"
        + ("".join(entries) or "  <NO_OTHER_FAILURES>\n")
        + f"{'-' * 60}\nRoot Cause (first observed failure):\n{root}{'=' * 60}\n"
    )


def entry(
    number: int,
    rank: int,
    local: int,
    exitcode: str,
    *,
    host: str = "node1",
    error_file: str = "<N/A>",
    traceback: str = "Signal",
) -> str:
    return (
        f"[{number}]:\n  time      : 2026-11-21_06:06:29\n  host      : {host}\n  rank      : {rank} (local_rank: "
        f"{local})\n"
        f"  exitcode  : {exitcode}\n  error_file: {error_file}\n  traceback : {traceback}\n"
    )


def test_the_table_of_one_node() -> None:
    """Each entry is an exit with rank, local rank, host, pid, code and signal; the first observed failure is marked."""
    facts = exits(
        table(
            entry(1, 1, 1, "-9 (pid: 19)  (SIGKILL)"),
            entry(2, 2, 2, "-15 (pid: 20)  (SIGTERM)"),
            root=entry(0, 0, 0, "1 (pid: 18)"),
        )
    )
    assert [(f.origin.rank, f.fields["exitcode"], f.fields.get("signal"), f.fields["pid"]) for f in facts] == [
        (1, "-9", "SIGKILL", "19"),
        (2, "-15", "SIGTERM", "20"),
        (0, "1", None, "18"),
    ]
    assert [f.detail for f in facts] == [
        ExitDetail(-9, "SIGKILL"),
        ExitDetail(-15, "SIGTERM"),
        ExitDetail(1, first_observed=True),
    ]
    assert {f.origin.host for f in facts} == {"node1"}
    assert {f.origin.time for f in facts} == {1795241189.0}


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [("2026-11-21T03:06:31Z", -3 * 3600), ("2026-11-21T06:36:31Z", 1800), ("2026-11-21T06:09:31Z", 0)],
)
def test_the_table_s_time_is_in_the_zone_of_its_host(stamp: str, expected: int) -> None:
    """After a collector's timestamp, a difference of hours is the time zone, one of minutes is not."""
    text = table(root=entry(0, 1, 1, "-9 (pid: 19)  (SIGKILL)"))
    (fact,) = exits("".join(f"{stamp} stderr F {line}\n" for line in text.splitlines()))
    assert fact.origin.time == 1795241189.0 + expected


def test_the_tables_of_two_nodes() -> None:
    """Global and local ranks differ on the second node, and both are kept."""
    facts = exits(
        table(root=entry(0, 1, 1, "1 (pid: 18)"))
        + "2026-11-21 06:06:31 launcher\n"
        + table(root=entry(0, 4, 0, "-11 (pid: 9)  (SIGSEGV)", host="node2"))
    )
    assert [(f.origin.host, f.origin.rank, f.origin.local_rank) for f in facts] == [("node1", 1, 1), ("node2", 4, 0)]


def test_a_host_called_localhost_is_no_host() -> None:
    """`localhost` says nothing of where."""
    (fact,) = exits(table(root=entry(0, 1, 1, "1 (pid: 18)", host="localhost")))
    assert fact.origin.host is None


def test_a_recorded_traceback_is_its_rank_s() -> None:
    """What `@record` saved is quoted in the table: an exception of that rank, and no part of the launcher's message."""
    recorded = (
        "Traceback (most recent call last):\n"
        '    File "/w/train.py", line 25, in main\n'
        '      raise ValueError("no tokens")\n'
        "  ValueError: no tokens\n  "
    )
    text = table(root=entry(0, 4, 0, "1 (pid: 18)", error_file="/tmp/none/attempt_0/0/error.json", traceback=recorded))
    facts = extract_text(text)
    (raised,) = [fact for fact in facts if fact.kind == "exception"]
    assert (raised.origin.rank, raised.text, raised.fields["line"]) == (4, "ValueError: no tokens", "25")
    assert raised.detail == ExceptionDetail("ValueError", quoted_by_launcher=True)
    (message,) = [fact for fact in facts if fact.component == "torchelastic"]
    assert message.text.startswith("torch.distributed.elastic.multiprocessing.errors.ChildFailedError")
    assert "ValueError" not in message.text


def test_a_time_that_does_not_exist_is_none() -> None:
    """A damaged table with month 36 has its exits, without a time."""
    [fact] = exits(table(root=entry(0, 0, 0, "1 (pid: 18)")).replace("2026-11-21", "2026-36-21"))
    assert fact.origin.time is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "srun: error: node1: tasks 2-3,7: Exited with exit code 1",
            [(2, "node1", "1", None), (3, "node1", "1", None), (7, "node1", "1", None)],
        ),
        ("srun: error: node2: task 4: Killed", [(4, "node2", None, "SIGKILL")]),
        (
            "srun: error: node[1-2]: tasks 0-1: Segmentation fault (core dumped)",
            [(0, None, None, "SIGSEGV"), (1, None, None, "SIGSEGV")],
        ),
        ("srun: error: node3: task 9: Out Of Memory", [(9, "node3", "137", None)]),
        ("srun: error: node3: task 9: User defined signal 1", [(9, "node3", None, "SIGUSR1")]),
        ("srun: error: node3: task 9: CPU time limit exceeded (core dumped)", [(9, "node3", None, "SIGXCPU")]),
        ("srun: error: node3: task 9: Killed by nobody", []),
    ],
)
def test_srun(line: str, expected: list[tuple[object, ...]]) -> None:
    """One fact a task, also of ranges; the host only when it is one."""
    assert [
        (f.origin.rank, f.origin.host, f.fields.get("exitcode"), f.fields.get("signal")) for f in exits(line)
    ] == expected


def test_a_huge_range_of_tasks_is_bounded() -> None:
    """A number without end in a log does not fill the memory."""
    assert len(exits("srun: error: node1: tasks 0-999999999: Exited with exit code 1")) <= 4096


@pytest.mark.parametrize(
    ("line", "rank", "code", "signal"),
    [
        (
            "[2026-11-21 03:00:00,000] [ERROR] [launch.py:322:sigkill_handler] ['python', 'train.py'] exits with "
            "return code = -9",
            None,
            "-9",
            "SIGKILL",
        ),
        ("node7: rank 3 exited with code 2", 3, "2", None),
        ("node7: rank 4 died from signal 11", 4, "-11", "SIGSEGV"),
        (
            "mpirun noticed that process rank 3 with PID 412 on node node2 exited on signal 9 (Killed).",
            3,
            "-9",
            "SIGKILL",
        ),
        ("MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD", 3, "1", None),
        ("MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\nwith errorcode 7.", 3, "7", None),
        (
            "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\n  Proc: [[43011,1],3]\n  Errorcode: 7",
            3,
            "7",
            None,
        ),
        ("application called MPI_Abort(MPI_COMM_WORLD, 7) - process 3", 3, "7", None),
        (
            "Abort(7) on node 3 (rank 3 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 7) - process 3",
            3,
            "7",
            None,
        ),
        (
            "prterun noticed that process rank 1 with PID 0 on node node2 exited on signal 6 (Aborted).",
            1,
            "-6",
            "SIGABRT",
        ),
    ],
)
def test_other_launchers(line: str, rank: int | None, code: str, signal: str | None) -> None:
    """DeepSpeed, Hydra and Open MPI name codes and signals in their own words."""
    (fact,) = exits(line)
    assert (fact.origin.rank, fact.fields["exitcode"], fact.fields.get("signal")) == (rank, code, signal)


def test_the_agent_s_own_signals_are_its_doing() -> None:
    """A process that the agent stops is marked so, and its pid is the process's, not the agent's."""
    (fact,) = exits(
        "W1121 06:03:24.563000 229 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 633 "
        "closing signal SIGTERM"
    )
    assert (fact.fields["by"], fact.fields["signal"], fact.origin.pid) == ("agent", "SIGTERM", 633)


def test_the_agent_s_first_word_gives_local_rank_and_pid() -> None:
    """`failed (exitcode: …) local_rank: …` places a process by its local rank only."""
    (fact,) = exits(
        "E1121 06:03:24.759000 229 torch/x/api.py:1002] failed (exitcode: -11) local_rank: 2 (pid: 635) of "
        "binary: /usr/bin/python3"
    )
    assert (fact.origin.rank, fact.origin.local_rank, fact.origin.pid, fact.fields["signal"]) == (
        None,
        2,
        635,
        "SIGSEGV",
    )


@pytest.mark.parametrize(
    ("code", "exitcode", "signal"), [("1", "1", ""), ("9", "-9", "SIGKILL"), ("11", "-11", "SIGSEGV"), ("0", None, "")]
)
def test_hydra_s_block_gives_pid_host_and_status(code: str, exitcode: str | None, signal: str) -> None:
    """MPICH names pid and host of the first failed process; of a signal it prints the number as the exit code."""
    block = f"""
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 329 RUNNING AT node2
=   EXIT CODE: {code}
=   CLEANING UP REMAINING PROCESSES
"""
    ends = [one for one in extract_text(block) if one.kind == "exit"]
    parsed = [(one.origin.pid, one.origin.host, one.fields["exitcode"], one.fields.get("signal", "")) for one in ends]
    assert parsed == ([(329, "node2", exitcode, signal)] if exitcode else [])


@pytest.mark.parametrize(
    ("how", "code", "signal", "by"),
    [
        ("EXIT STATUS: 1", "1", "", ""),
        ("KILLED BY SIGNAL: 11 (Segmentation fault)", "-11", "SIGSEGV", ""),
        ("KILLED BY SIGNAL: 9 (Killed)", "-9", "SIGKILL", "agent"),
        ("EXIT STATUS: 0", None, "", ""),
    ],
)
def test_intel_mpi_s_blocks_give_rank_pid_and_host(how: str, code: str | None, signal: str, by: str) -> None:
    """Each process that ended has one; one that SIGKILL ended may be among those that mpiexec killed."""
    block = (
        f"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   RANK 3 PID 412 RUNNING AT node2\n=   {how}\n"
    )
    ends = [one for one in extract_text(block) if isinstance(one.detail, ExitDetail)]
    places = [(one.origin.rank, one.origin.pid, one.origin.host, one.fields["exitcode"]) for one in ends]
    assert places == ([(3, 412, "node2", code)] if code else [])
    assert [(one.detail.signal, one.detail.stopped_by_agent) for one in ends if isinstance(one.detail, ExitDetail)] == (
        [(signal, bool(by))] if code else []
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Process 3 exit with status code -9.", [(3, None, None, -9, "SIGKILL", False)]),
        ("Process 3 exit with status code 143.", [(3, None, None, 143, "SIGTERM", True)]),
        ("Process 3 exit with status code 0.", []),
        ("Process name: 3\nExit code:    -9\n", [(3, None, None, -9, "SIGKILL", False)]),
        ("Process name: 3\n\nExit code:    143\n", [(3, None, None, 143, "SIGTERM", False)]),
        ("Process name: node2[1]\nExit code:    7\n", [(None, 1, "node2", 7, "", False)]),
        ("Process name: trainer\nExit code:    7\n", []),
    ],
)
def test_horovod_names_processes_by_rank_or_place(text: str, expected: list[tuple[object, ...]]) -> None:
    """What it names first failed by itself; others that SIGTERM ended, it stopped itself."""
    ends = [(one.origin, one.detail) for one in extract_text(text) if isinstance(one.detail, ExitDetail)]
    assert [
        (origin.rank, origin.local_rank, origin.host, end.exit_code, end.signal, end.stopped_by_agent)
        for origin, end in ends
    ] == expected


def test_hydra_s_block_may_have_blank_lines() -> None:
    """Some collectors write an empty line behind each one."""
    block = (
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n\n=   PID 412 RUNNING AT node2\n\n=   EXIT CODE: 9\n"
    )
    ends = [
        (one.origin.pid, one.origin.host, one.fields["signal"]) for one in extract_text(block) if one.kind == "exit"
    ]
    assert ends == [(412, "node2", "SIGKILL")]


@pytest.mark.parametrize(
    "report",
    [
        "Process 3 exit with status code -9.",
        "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD",
        "Process name: [[43011,1],3]\nExit code:    7\n",
    ],
)
def test_a_launcher_of_all_hosts_is_on_another_host_than_a_process(report: str) -> None:
    """Horovod and mpirun write on one host what happened on any: the host before their lines is not the process's."""
    text = "".join(f"2026-12-08T11:01:25+0900 gpu-088 train[19063]: {line}\n" for line in report.split("\n"))
    assert [(one.origin.rank, one.origin.host) for one in extract_text(text) if one.kind == "exit"] == [(3, None)]


@pytest.mark.parametrize("name", ["[[43011,1],3]", "[prterun-node1-2084@1,3]"])
def test_the_first_failed_process_of_open_mpi_is_named(name: str) -> None:
    """Open MPI before 5 and its later runtime number jobs in different ways."""
    ends = [one for one in extract_text(f"   Process name: {name}\n   Exit code:    61\n") if one.kind == "exit"]
    assert [(one.origin.rank, one.fields["exitcode"]) for one in ends] == [(3, "61")]


@pytest.mark.parametrize(
    ("line", "local", "pid", "code"),
    [
        ("process 1 exited with code 137", 1, None, 137),
        ("[launch] worker #2: exited with exit code 7", 2, None, 7),
        ("task 256 exited with status 1", 256, None, 1),
        ("process 257 exited with status 1", None, 257, 1),
        (
            "[ERROR] ME(41:139,MainProcess):2026-11-21-03:07:15.130.00 [a/_api.py:365] Worker process 412 exit with "
            "exception. Error code: -9.",
            None,
            412,
            -9,
        ),
    ],
)
def test_numbered_processes_and_pids(line: str, local: int | None, pid: int | None, code: int) -> None:
    """A script's sentence gives the status of a process by its number, or by its pid where the number is high."""
    (fact,) = exits(line)
    assert (fact.origin.rank, fact.origin.local_rank, fact.origin.pid) == (None, local, pid)
    assert isinstance(fact.detail, ExitDetail)
    assert fact.detail.exit_code == code


def test_the_name_of_a_container_is_its_host() -> None:
    """docker compose numbers containers from 1, so that the number in the name is no rank."""
    (fact,) = exits("train-worker-2 exited with code 7")
    assert (fact.origin.local_rank, fact.origin.host) == (None, "train-worker-2")


@pytest.mark.parametrize(
    "line",
    [
        "process 1 exited with code 0",
        "DataLoader of worker 3 exited with code 1, restarting it",
        "INFO trainer: evaluation tasks 2-3: accuracy 0.81",
        "step 12 loss 3.1 exit criterion 0.2",
        "rank 3 exited the warm-up phase",
        "task 7: Killed bugs: 3",
    ],
)
def test_ordinary_lines_are_no_exits(line: str) -> None:
    """Words like task, exit and killed in a program's own output say nothing of processes."""
    assert exits(line) == []


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("signal SIGSEGV", (3, -11, "SIGSEGV")),
        ("exit code 7", (3, 7, "")),
        ("signal SIGUNKNOWN", None),
    ],
)
def test_a_spawned_process_that_ended_without_an_exception(end: str, expected: tuple[object, ...] | None) -> None:
    """torch.multiprocessing.spawn names it by its index, which is its local rank."""
    text = (
        "Traceback (most recent call last):\n"
        '  File "/w/train.py", line 266, in <module>\n'
        "    mp.spawn(main, args=(args,), nprocs=8)\n"
        f"torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with {end}\n"
    )
    ends = [
        (fact.origin.local_rank, fact.detail.exit_code, fact.detail.signal)
        for fact in exits(text)
        if isinstance(fact.detail, ExitDetail)
    ]
    assert ends == ([expected] if expected else [])
