"""triage.records.panics"""

from __future__ import annotations

import pytest

from tests.records.factories import text_of
from triage.records.panics import collect, opens_panic
from triage.records.text import Line

GO = (
    "panic: send on closed channel",
    "",
    "goroutine 7 [running]:",
    "example.com/feed/shard.(*Shard).Prefetch(0xc0a7)",
    "\t/src/shard.go:70 +0xea",
    "created by example.com/feed/shard.Open in goroutine 1",
    "\t/src/shard.go:33 +0x1a",
    "exit status 2",
)
RUST = (
    "thread 'main' panicked at src/plan.rs:88:17:",
    "shard 7 has no parts",
    "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
)


def lines_of(*texts: str) -> list[Line]:
    """Return lines of one source."""
    text = text_of("\n".join(texts) + "\n")
    return list(text.lines_from(0, text.size))


def collect_texts(*texts: str) -> list[str]:
    """Return the lines of the panic that the first line opens."""
    first, *following = lines_of(*texts)
    return [line.parsed.text for line in collect(first, following)]


@pytest.mark.parametrize(
    ("line", "opens"),
    [
        (GO[0], True),
        ("fatal error: all goroutines are asleep - deadlock!", True),
        (RUST[0], True),
        ("thread 'main' (31124) panicked at 'shard 7 has no parts', src/plan.rs:88:17", True),
        ("thread '<unnamed>' panicked at src/plan.rs:88:17:", False),
        ("http: panic serving 10.0.0.7:4411: send on closed channel", False),
        ("Kernel panic - not syncing: Fatal exception", False),
        ("loader.c:3:10: fatal error: cuda.h: No such file or directory", False),
        ("panic: ", False),
    ],
)
def test_the_first_line_of_a_panic(line: str, opens: bool) -> None:
    """The line of a runtime that gives up opens one; a panic that a server survives, or a kernel's, does not."""
    assert opens_panic(lines_of(line)[0]) is opens


@pytest.mark.parametrize("panic", [GO, RUST])
def test_a_panic_ends_where_the_program_goes_on(panic: tuple[str, ...]) -> None:
    """Message and stack belong to it, what another program prints behind it does not; nor do empty lines at its end."""
    assert collect_texts(*panic, "", "step 8 loss 2.1") == list(panic)


def test_only_one_line_is_the_message_of_a_rust_panic() -> None:
    """Behind the place stands the message; where the message stands before the place, none follows."""
    assert collect_texts(RUST[0], "no parts", "step 8") == [RUST[0], "no parts"]
    old = "thread 'main' panicked at 'no parts', src/plan.rs:88:17"
    assert collect_texts(old, "step 8") == [old]


def test_the_stamps_of_a_collector_end_no_panic() -> None:
    """Where the first line has a timestamp all have one; behind one without, a timestamp opens a record."""
    stamps = [f"2026-07-24 10:07:16 {line}" for line in RUST[:2]]
    assert collect_texts(*stamps) == list(RUST[:2])
    assert collect_texts(RUST[0], f"2026-07-24 10:07:16 {RUST[1]}") == [RUST[0]]


@pytest.mark.parametrize(("frames", "count"), [(29, 60), (30, 60)])
def test_at_most_60_lines_are_collected(frames: int, count: int) -> None:
    """The stacks of further goroutines say nothing of the panic."""
    assert len(collect_texts(GO[0], GO[2], *GO[3:5] * frames)) == count


def test_the_values_of_an_assertion_belong_to_the_panic() -> None:
    """Rust up to 1.72 prints them between the condition and the message."""
    lines = (
        "thread 'main' panicked at 'assertion failed: `(left == right)`",
        "  left: `3`,",
        " right: `4`: differ', a.rs:7:2",
    )
    assert collect_texts(*lines, "step 8 loss 2.1") == list(lines)
