"""triage.evidence.stated_signals"""

from __future__ import annotations

import pytest

from triage.evidence.stated_signals import read_stated_signal, signal_of_status


@pytest.mark.parametrize(
    ("line", "signal"),
    [
        ("Process exited with code -11", "SIGSEGV"),
        ("  exit status of rank 0: killed by signal 9", "SIGKILL"),
        ("worker 3 terminated by signal 6", "SIGABRT"),
        ("Child process 4111 exit code 134", "SIGABRT"),
        ("process 4111 (python) was killed by SIGBUS", "SIGBUS"),
        ("command terminated with exit code 137", "SIGKILL"),
        ("rc=139 stage=feeder elapsed=4411s", "SIGSEGV"),
        ("(0) Abnormal termination (signal 9)", "SIGKILL"),
        ("worker 3 terminated by signal SIGBUS", "SIGBUS"),
        ("SIGNAL 11 ended the process", "SIGSEGV"),
    ],
)
def test_the_signal_of_a_sentence_is_read(line: str, signal: str) -> None:
    """Whatever program reports the status, the signal behind it is named."""
    assert read_stated_signal(line) == signal


@pytest.mark.parametrize(
    "line",
    [
        "rank 3 exited with code 1",
        "exit code 128",
        "exit code 0:0",
        "Container exited with a non-zero exit code 143",
        "process got SIGTERM",
        "signal 99",
        "SIGNAL lost",
    ],
)
def test_no_signal_is_made_up(line: str) -> None:
    """A status of the program's own, a request to end and a number that is no status name no signal."""
    assert read_stated_signal(line) == ""


@pytest.mark.parametrize(
    ("code", "signal"), [(-7, "SIGBUS"), (135, "SIGBUS"), (128, ""), (160, ""), (1, ""), (-99, "")]
)
def test_a_status_stands_for_a_signal(code: int, signal: str) -> None:
    """Python writes the negative number, shells 128 more; other statuses are the program's own."""
    assert signal_of_status(code) == signal
