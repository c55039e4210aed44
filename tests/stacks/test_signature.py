"""The crash point and signature of a stack, whichever tool printed it."""

from __future__ import annotations

from triage.stacks.model import Frame, Stacks, Thread
from triage.stacks.signature import reduce_stacks


def crash(*functions: str, signal: str = "SIGSEGV", **facts: str) -> Stacks:
    """Return the stacks of a crash with these functions, innermost first."""
    thread = Thread(tuple(Frame(function) for function in functions), crashed=True)
    return Stacks("gdb", (thread,), signal=signal, **facts)  # type: ignore[arg-type]


def test_frames_of_the_signal_handler_are_dropped() -> None:
    """The crash point is outside of the frames of the signal handler."""
    reduced = reduce_stacks(crash("raise", "faulthandler_fatal_error", "<signal handler called>", "decode", "main"))
    assert (reduced.kind, reduced.frames) == ("segv", ("decode", "main"))


def test_kind_comes_from_frames_around_abort() -> None:
    """The frames around abort() give the kind: an exception, an assertion, a check of glibc."""
    abort = ("__pthread_kill_implementation", "raise", "abort")
    assert (
        reduce_stacks(
            crash(*abort, "__libc_message", "malloc_printerr", "_int_free", "free", "f", signal="SIGABRT")
        ).kind
        == "heap-corruption"
    )
    assert reduce_stacks(crash(*abort, "__assert_fail_base", "__assert_fail", "f", signal="SIGABRT")).kind == "assert"
    reduced = reduce_stacks(
        crash(
            *abort, "__gnu_cxx::__verbose_terminate_handler()", "std::terminate()", "__cxa_throw", "f", signal="SIGABRT"
        )
    )
    assert (reduced.kind, reduced.frames) == ("exception", ("f",))


def test_signature_is_equal_for_all_builds() -> None:
    """Arguments, clones, versions and addresses do not change the signature."""
    one = reduce_stacks(crash("__memmove_avx_unaligned_erms", "a::f<int>(int*) [clone .isra.0]", "g"))
    thread = Thread(
        (Frame("memcpy"), Frame("void a::f<long>(long*)", "/x/liba.so.1", address=5), Frame("g", file="g.c", line=3)),
        crashed=True,
    )
    other = reduce_stacks(Stacks("c10", (thread,), signal="SIGSEGV"))
    assert one.key == other.key
    assert one.point == other.point
    assert one.key != reduce_stacks(crash("a::h", "g")).key


def test_unknown_frames_are_never_equal() -> None:
    """`??` only gives a signature with a library, a build-id and an offset."""
    assert reduce_stacks(crash("", "")).key == ""
    frame = Frame(module="/x/libx.so", offset=0x12, build_id="abcdef0123456789")
    reduced = reduce_stacks(Stacks("core", (Thread((frame,), crashed=True),), signal="SIGSEGV"))
    assert reduced.frames == ("libx!abcdef012345+0x12",)
    other = Stacks("core", (Thread((Frame(module="/x/libx.so", offset=0x12),), crashed=True),), signal="SIGSEGV")
    assert reduce_stacks(other).key == ""


def test_watchdog_signature_is_its_error() -> None:
    """The signature of a watchdog is the class of its error, because its frames are always the same."""
    frames = (
        "c10::Error::Error",
        "c10d::ProcessGroupNCCL::WorkNCCL::finishedGPUExecutionInternal() const",
        "c10d::ProcessGroupNCCL::watchdogHandler()",
    )
    illegal = reduce_stacks(
        crash(*frames, signal="SIGABRT", message="CUDA error: an illegal memory access was encountered")
    )
    timeout = reduce_stacks(crash(*frames, signal="SIGABRT", message="Watchdog caught collective operation timeout"))
    assert illegal.frames[0] == "watchdog:illegal-memory-access"
    assert timeout.frames[0] == "watchdog:timeout"
    assert illegal.point != timeout.point


def test_recursion_depth_does_not_matter() -> None:
    """An endless recursion of any depth is one stack overflow."""
    one, other = (reduce_stacks(crash(*["walk", "visit"] * depth, "main")) for depth in (60, 90))
    assert (one.kind, one.frames) == ("stack-overflow", ("walk", "visit", "main"))
    assert one.key == other.key


def test_generic_name_includes_the_next_frame() -> None:
    """A crash point with a generic name such as `run` includes the next frame."""
    assert reduce_stacks(crash("run", "a")).point != reduce_stacks(crash("run", "b")).point
    assert reduce_stacks(crash("parse", "a")).point == reduce_stacks(crash("parse", "b")).point


def test_python_frames_count_without_native_ones() -> None:
    """The crash point of a crash in the interpreter is the Python function."""
    frames = (Frame("_PyEval_EvalFrameDefault"), Frame("decode", file="/w/data.py", line=7, language="python"))
    reduced = reduce_stacks(Stacks("core", (Thread(frames, crashed=True),), signal="SIGSEGV"))
    assert (reduced.frames, reduced.python) == (("data.py:decode",), "data.py:decode")


def test_every_step_has_a_note() -> None:
    """The note on a dropped frame names the rule."""
    notes = reduce_stacks(crash("abort", "std::function<void ()>::operator()() const", "f", signal="SIGABRT")).notes
    assert [(note.level, note.action) for note in notes] == [
        (0, "frames 0 to 0 dropped"),
        (1, "dropped"),
        (2, "kept as f"),
    ]
    assert "abort.txt:" in notes[0].why


def test_crash_at_exit() -> None:
    """A crash during teardown has a kind of its own."""
    reduced = reduce_stacks(crash("f", "__run_exit_handlers", "exit", "main"))
    assert reduced.kind == "segv at exit"


def test_idle_threads_are_no_crash() -> None:
    """Idle threads without a signal have no crash point."""
    threads = (Thread((Frame("poll"),), id="1"), Thread((Frame("epoll_wait"),), id="2"))
    reduced = reduce_stacks(Stacks("gdb", threads))
    assert (reduced.thread, reduced.key) == (None, "")
