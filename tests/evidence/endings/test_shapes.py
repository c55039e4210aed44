"""triage.evidence.endings.shapes: which lines belong to a stack or a rule between blocks."""

from __future__ import annotations

import pytest

from triage.evidence.endings.shapes import has_text, is_stack


@pytest.mark.parametrize(
    "line",
    [
        b"    loss.backward()",
        b"node7:     loss.backward()",
        b"node7:",
        b"#12 main () at train.cc:4",
        b"[node7:412] [ 3] libmpi.so(+0x1)",
        b"frame: c10::Error at 0x7f00",
        b"================",
        b"2026-11-20 10:00:00 INFO --------------------------------",
        b"Traceback (most recent call last):",
        b"Sending process 412 closing signal SIGTERM",
        b"Killing subprocess 412",
        b"n7.local: rank 2 died from signal 15",
        b"n7.local: rank 2 exited with code 3",
        b"goroutine 17 [running]:",
        b"stack backtrace:",
        b"Stack backtrace:",
        b"Caused by: java.io.IOException: closed",
        b"note: run with `RUST_BACKTRACE=1`",
        b"note: Some details are omitted",
        b"\x1b[31m    loss.backward()\x1b[0m",
        b"[agent/drain] 2026-09-05T07:39:42Z rank=2 stopping",
        b"agentd[81]: rank 3: exiting with code 81",
        b"rank 3: giving up now.",
        b"2026-05-04T11:29:00+0000 gn00 fit[4401]: Terminated",
        b"pod-0 main     at src/core/loop.f90:88",
        b"pod-0 main \tat org.example.Feed.run(Feed.java:66)",
        b"10:00:00 =   EXIT STATUS: 1",
    ],
)
def test_lines_of_stacks(line: bytes) -> None:
    """Each form of a stack, a rule, or what launchers write when they stop the others is one, also in colours."""
    assert is_stack(line)


@pytest.mark.parametrize(
    "line",
    [
        b"step 3 loss 2.31",
        b"INFO process 412 started",
        b"see the backtrace in core.412",
        b"note: the learning rate is 0.1",
        b"node7: step 3",
        b"2026-11-20 10:00:00 INFO -------- epoch 3",
        b"stopping criterion is 0.1",
        b"exiting with code 0 is normal here",
        b"epoch 3  at 7 it/s",
        b"loss =   2.31",
    ],
)
def test_other_lines(line: bytes) -> None:
    """A line that only shares a term with such a form is usual output."""
    assert not is_stack(line)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"2026-12-04T20:24:24.506Z", True),
        (b"  2026-12-04 20:24:24,506 ", True),
        (b"2026-12-04T20:24:24.506Z step 3", False),
        (b"2026-12-04", False),
    ],
)
def test_a_timestamp_alone_is_no_text(line: bytes, expected: bool) -> None:
    """Some collectors export the time of each record on a line of its own."""
    assert has_text(line) is not expected
