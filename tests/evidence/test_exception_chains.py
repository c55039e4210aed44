"""Which exception of a chain is the failure."""

from __future__ import annotations

import pytest

from triage.evidence.exception_chains import ChainedException, choose_failure, is_wrapper
from triage.records.tracebacks import CHAINS

DURING, CAUSE = CHAINS
FRAME = '  File "/w/{file}.py", line 5, in {function}'


def raised(kind: str, message: str = "", link: str = "", *functions: str) -> ChainedException:
    return ChainedException(kind, message, [FRAME.format(file=name, function=name) for name in functions], link)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("TaskFailed", "rank 4 failed"),
        ("TaskFailed", "rank 0 failed, its worker wrote:\n    Traceback"),
        ("WorkerError", "task 3 died"),
        ("RuntimeError", "worker data-3 (pid 411) exited with code 1 on node7"),
        ("RemoteError", "Actor RolloutWorker_3 raised an exception"),
        ("PipelineError", "one or more workers failed."),
        ("KeyError", "Caught KeyError in DataLoader worker process 3."),
        ("ChildFailed", ""),
        ("RemoteWorkerError", ""),
    ],
)
def test_a_message_that_only_names_what_failed_is_a_wrapper(kind: str, message: str) -> None:
    """It says that a part of the job failed, and not why."""
    assert is_wrapper(kind, message)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("RuntimeError", "rank 3 failed: disk full"),
        ("RuntimeError", "task 3 failed to open /data/x"),
        ("RuntimeError", "worker 3 failed to read:"),
        ("StageStale", "result of stage `pack` is of code 1, not 2"),
        ("ValueError", "process group is not initialized"),
        ("StopIteration", ""),
        ("KeyError", "'rank'"),
    ],
)
def test_a_message_with_a_reason_is_no_wrapper(kind: str, message: str) -> None:
    """A reason, or an exception that is no part of a job."""
    assert not is_wrapper(kind, message)


def test_the_cause_of_a_wrapper_is_the_failure() -> None:
    """Through several wrappers, and whichever sentence joins them."""
    inner = raised("StopIteration", "", DURING, "main", "first")
    assert (
        choose_failure([inner, raised("TaskFailed", "rank 4 failed", CAUSE), raised("JobError", "job 7 failed")]) == 0
    )


def test_a_direct_cause_is_the_failure_unless_it_says_less() -> None:
    """`KeyError: 'lr'` only names a key; the configuration's own error says what is missing."""
    outer = raised("LoadError", "cannot load shard 3")
    assert choose_failure([raised("OSError", "[Errno 5] Input/output error", CAUSE), outer]) == 0
    assert choose_failure([raised("KeyError", "'lr'", CAUSE), raised("ConfigError", "the optimizer has no rate")]) == 1
    assert choose_failure([raised("KeyError", "'lr'", CAUSE), raised("ConfigError", "optimizer")]) == 0


@pytest.mark.parametrize(
    "function", ["close", "__exit__", "_shutdown_workers", "Writer.flush", "destroy_process_group"]
)
def test_a_failing_clean_up_gives_way_to_the_first_exception(function: str) -> None:
    """Only where the clean-up is no part of what failed first."""
    later = raised("ValueError", "write to closed file", "", "main", function)
    assert choose_failure([raised("RuntimeError", "no space", DURING, "main", "append"), later]) == 0
    assert choose_failure([raised("RuntimeError", "no space", DURING, "main", function), later]) == 1


def test_an_exception_in_a_handler_is_the_failure() -> None:
    """The first one was handled, the second one ended the process."""
    later = raised("ValueError", "cannot restore the run", "", "main", "restore", "closest")
    assert choose_failure([raised("KeyError", "'step'", DURING, "main", "read"), later]) == 1


def test_what_stops_a_process_is_no_cause() -> None:
    """`sys.exit` and Ctrl-C are not what failed in the clean-up behind them."""
    later = raised("ValueError", "write to closed file", "", "main", "close")
    assert choose_failure([raised("SystemExit", "1", DURING, "main"), later]) == 1


def test_tracebacks_without_a_joint_are_not_weighed() -> None:
    """The quoted one stands behind the one that quotes it."""
    assert choose_failure([raised("RuntimeError", "the run has no data"), raised("TaskFailed", "rank 1 failed")]) == 1
