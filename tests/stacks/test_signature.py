"""The frame that matters, whoever printed the stack."""

from __future__ import annotations

from triage.stacks import Frame, Stacks, Thread, reduce


def crash(*functions: str, signal: str = "SIGSEGV", **facts: str) -> Stacks:
    thread = Thread(tuple(Frame(function) for function in functions), crashed=True)
    return Stacks("gdb", (thread,), signal=signal, **facts)  # type: ignore[arg-type]


def test_everything_above_the_handler_goes() -> None:
    """A fault handler's own frames and its second signal are not the crash."""
    found = reduce(crash("raise", "faulthandler_fatal_error", "<signal handler called>", "decode", "main"))
    assert (found.kind, found.frames) == ("segv", ("decode", "main"))


def test_kinds_come_from_the_abort_chain() -> None:
    """What stands outside of abort() says why: an exception, an assertion, glibc's checks."""
    abort = ("__pthread_kill_implementation", "raise", "abort")
    assert (
        reduce(crash(*abort, "__libc_message", "malloc_printerr", "_int_free", "free", "f", signal="SIGABRT")).kind
        == "heap-corruption"
    )
    assert reduce(crash(*abort, "__assert_fail_base", "__assert_fail", "f", signal="SIGABRT")).kind == "assert"
    found = reduce(
        crash(
            *abort, "__gnu_cxx::__verbose_terminate_handler()", "std::terminate()", "__cxa_throw", "f", signal="SIGABRT"
        )
    )
    assert (found.kind, found.frames) == ("exception", ("f",))


def test_the_signature_does_not_know_builds() -> None:
    """Arguments, template arguments, clones, libraries' versions and addresses change nothing."""
    one = reduce(crash("__memmove_avx_unaligned_erms", "a::f<int>(int*) [clone .isra.0]", "g"))
    thread = Thread(
        (Frame("memcpy"), Frame("void a::f<long>(long*)", "/x/liba.so.1", address=5), Frame("g", file="g.c", line=3)),
        crashed=True,
    )
    other = reduce(Stacks("c10", (thread,), signal="SIGSEGV"))
    assert one.key == other.key
    assert one.point == other.point
    assert one.key != reduce(crash("a::h", "g")).key


def test_unknown_frames_are_never_equal() -> None:
    """`??` gives no signature; with a library, a build-id and an offset it does."""
    assert reduce(crash("", "")).key == ""
    frame = Frame(module="/x/libx.so", offset=0x12, build_id="abcdef0123456789")
    found = reduce(Stacks("core", (Thread((frame,), crashed=True),), signal="SIGSEGV"))
    assert found.frames == ("libx!abcdef012345+0x12",)
    other = Stacks("core", (Thread((Frame(module="/x/libx.so", offset=0x12),), crashed=True),), signal="SIGSEGV")
    assert reduce(other).key == ""


def test_watchdogs_are_told_apart_by_their_error() -> None:
    """The frames of a watchdog are the same for every error, so the error's class is the signature."""
    frames = (
        "c10::Error::Error",
        "c10d::ProcessGroupNCCL::WorkNCCL::finishedGPUExecutionInternal() const",
        "c10d::ProcessGroupNCCL::watchdogHandler()",
    )
    illegal = reduce(crash(*frames, signal="SIGABRT", message="CUDA error: an illegal memory access was encountered"))
    timeout = reduce(crash(*frames, signal="SIGABRT", message="Watchdog caught collective operation timeout"))
    assert illegal.frames[0] == "watchdog:illegal-memory-access"
    assert timeout.frames[0] == "watchdog:timeout"
    assert illegal.point != timeout.point


def test_recursion_is_taken_once() -> None:
    """A function that calls itself without end is a stack overflow, however deep it came."""
    one, other = (reduce(crash(*["walk", "visit"] * depth, "main")) for depth in (60, 90))
    assert (one.kind, one.frames) == ("stack-overflow", ("walk", "visit", "main"))
    assert one.key == other.key


def test_a_generic_name_takes_the_next_one_along() -> None:
    """A crash point that is only `run` or a lambda would bring strangers together."""
    assert reduce(crash("run", "a")).point != reduce(crash("run", "b")).point
    assert reduce(crash("parse", "a")).point == reduce(crash("parse", "b")).point


def test_python_frames_count_where_no_native_one_does() -> None:
    """A crash in the interpreter itself is named by the Python function."""
    frames = (Frame("_PyEval_EvalFrameDefault"), Frame("decode", file="/w/data.py", line=7, language="python"))
    found = reduce(Stacks("core", (Thread(frames, crashed=True),), signal="SIGSEGV"))
    assert (found.frames, found.python) == (("data.py:decode",), "data.py:decode")


def test_every_step_has_a_note() -> None:
    """What was dropped says which rule did it."""
    notes = reduce(crash("abort", "std::function<void ()>::operator()() const", "f", signal="SIGABRT")).notes
    assert [(note.level, note.done) for note in notes] == [
        (0, "frames 0 to 0 dropped"),
        (1, "dropped"),
        (2, "kept as f"),
    ]
    assert "abort.txt:" in notes[0].why


def test_teardown_is_said() -> None:
    """A crash in a static destructor is another one than the same frame at work."""
    found = reduce(crash("f", "__run_exit_handlers", "exit", "main"))
    assert found.kind == "segv at exit"


def test_without_a_sign_of_a_crash_there_is_none() -> None:
    """Several idle threads and no signal: nothing crashed."""
    threads = (Thread((Frame("poll"),), id="1"), Thread((Frame("epoll_wait"),), id="2"))
    found = reduce(Stacks("gdb", threads))
    assert (found.thread, found.key) == (None, "")
