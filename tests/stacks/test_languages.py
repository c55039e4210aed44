"""Stacks of Rust, Julia, the kernel and a device, and the signal that only a handler's argument names."""

from __future__ import annotations

from triage.stacks.parser import parse_stacks
from triage.stacks.signature import Crash, reduce_stacks


def crash_of(text: str) -> Crash:
    """Return the crash of the only stacks in a text."""
    (stacks,) = parse_stacks(text)
    return reduce_stacks(stacks)


def test_rust_skips_the_panic_and_its_library() -> None:
    """The crash point of a panic is the first function that is not of the standard library."""
    crash = crash_of(
        "thread 'main' panicked at src/a.rs:7:2:\nno rows\nstack backtrace:\n   0: rust_begin_unwind\n"
        "   1: core::panicking::panic_fmt\n   2: core::option::expect_failed\n"
        "   3: feed::Reader::next::h0123456789abcdef\n"
    )
    assert (crash.kind, crash.frames) == ("panic", ("feed::Reader::next",))


def test_julia_skips_the_checks_of_the_language() -> None:
    """The kind is the exception, the crash point the function that indexed."""
    crash = crash_of(
        "ERROR: BoundsError: attempt to access 3-element Vector\nStacktrace:\n [1] throw_boundserror(A::Vector)\n"
        "   @ Base ./essentials.jl:14\n [2] mean_of(x::Int64)\n   @ Main ./a.jl:3\n"
    )
    assert (crash.kind, crash.frames) == ("BoundsError", ("mean_of",))


def test_the_kernel_counts_its_instruction_pointer_and_sure_frames() -> None:
    """Frames with a question mark are guesses of the unwinder."""
    crash = crash_of(
        "[ 9.000001] BUG: kernel NULL pointer dereference, address: 18\n"
        "[ 9.000002] RIP: 0010:feed_scan+0x2a/0x110 [feed]\n"
        "[ 9.000003]  ? __die+0x24/0x70\n[ 9.000004]  feed_ioctl+0x2a/0x90 [feed]\n"
    )
    assert (crash.kind, crash.frames) == ("kernel NULL pointer dereference", ("feed_scan", "feed_ioctl"))


def test_a_kernel_of_a_device_has_no_launch_in_its_name() -> None:
    """How a kernel was launched changes nothing; the device's words are the kind."""
    crash = crash_of(
        "CUDA Exception: Warp Illegal Address\n#0  0x00007f38d1a710 in scan<<<(8,1,1),(256,1,1)>>> (n=3) at a.cu:7\n"
    )
    assert (crash.kind, crash.frames) == ("warp illegal address", ("scan",))


def test_an_argument_of_the_handler_names_the_signal() -> None:
    """Without a line about a signal, the handler's argument says which it was; a number alone does not."""
    text = "#0  dump ({}=11) at a.cpp:9\n#1  <signal handler called>\n#2  0x000055d0a0 in feed::grow (n=3) at a.cpp:7\n"
    assert crash_of(text.format("signo")).kind == "segv"
    assert crash_of(text.format("count")).kind == "unknown"


def test_a_leak_is_named_by_what_was_found() -> None:
    """The kind of a report of LeakSanitizer is the leak, its crash point who asked for the memory."""
    crash = crash_of(
        "==7==ERROR: LeakSanitizer: detected memory leaks\n\nDirect leak of 9 byte(s) in 1 object(s) allocated from:\n"
        "    #0 0x7f1001 in malloc (/usr/lib/libasan.so.8+0xb1)\n    #1 0x55d001 in feed::grow(int) /src/a.cpp:7:3\n"
    )
    assert (crash.kind, crash.frames) == ("memory leaks", ("feed::grow",))
