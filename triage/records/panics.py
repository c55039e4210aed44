"""The panic of a Go or Rust program: its message, and behind it Go's stack, in the lines of one writer.

Go ends with `panic: MESSAGE` or `fatal error: MESSAGE` and the stacks of its goroutines (runtime/panic.go), Rust with
`thread 'main' panicked at PLACE:` and the message (std/src/panicking.rs; before Rust 1.73 the message stands in
quotation marks before the place). Rust's stack is not read: its numbers look like the labels of srun. A panic of
another thread of a Rust program need not end it.
"""

from __future__ import annotations

from collections.abc import Iterable

from triage.base.lazy_re import lazy_re
from triage.records.text import Line

FORM = "panic"
TRIGGERS = ("panic: ", "fatal error: ", "thread 'main' ")
GOROUTINE = lazy_re(r"goroutine \d+ \[")
_GO = lazy_re(r"(?:panic|fatal error): \S")
_RUST = lazy_re(r"thread 'main' (?:\(\d+\) )?panicked at ")
_OF_GO = lazy_re(
    r"$|\t?panic: |\[signal |goroutine \d+ |runtime stack:|created by |exit status \d|\S+\(.*\)$|\s+\S+\.(?:go|s):\d+"
)
_OF_RUST = lazy_re(r"note: |\s*$| {1,2}(?:left|right): ")
_MOST_LINES = 60


def opens_panic(line: Line) -> bool:
    """Does a panic begin with this line?"""
    text = line.parsed.text
    return any(trigger in text for trigger in TRIGGERS) and bool(_GO.match(text) or _RUST.match(text))


def collect(first: Line, following: Iterable[Line]) -> list[Line]:
    """Return the lines of the panic that `first` opens. `following` are those of the same writer.

    Neither runtime writes timestamps: where the first line has one, a collector put it before every line.
    """
    lines = [first]
    is_rust = _RUST.match(first.parsed.text) is not None
    pattern = _OF_RUST if is_rust else _OF_GO
    for line in following:
        is_message = is_rust and len(lines) == 1 and first.parsed.text.endswith(":")
        is_of_another = line.parsed.opens_record and not first.parsed.opens_record
        if len(lines) == _MOST_LINES or is_of_another or not (is_message or pattern.match(line.parsed.text)):
            break
        lines.append(line)
    while len(lines) > 1 and not lines[-1].parsed.text.strip():
        lines.pop()
    return lines
