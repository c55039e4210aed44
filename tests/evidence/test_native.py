"""Native crashes as text."""

from __future__ import annotations

import pytest

from triage.evidence import extract_text

DEEP = "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f11 (most recent call first):\n"


def test_faulthandler_gives_signal_and_place() -> None:
    """The signal, the innermost frame of the user's code in the current thread, and how deep the stack is."""
    (fact,) = extract_text(
        "Fatal Python error: Bus error\n\nThread 0x00007f01 (most recent call first):\n"
        '  File "/usr/lib/python3.11/threading.py", line 324 in wait\n\n'
        "Current thread 0x00007f11 (most recent call first):\n"
        '  File "/usr/lib/python3.11/site-packages/numpy/core.py", line 5 in read\n'
        '  File "/w/model.py", line 12 in walk\n  File "/w/train.py", line 3 in <module>\n'
    )
    assert fact.kind == "fatal-python"
    assert {name: fact.fields[name] for name in ("signal", "file", "line", "function", "depth")} == {
        "signal": "SIGBUS",
        "file": "/w/model.py",
        "line": "12",
        "function": "walk",
        "depth": "3",
    }
    assert "repeated" not in fact.fields


def test_deep_recursion_is_seen() -> None:
    """A hundred frames of the same function are a recursion without end; a hundred of different ones are a deep
    program.
    """
    (endless,) = extract_text(DEEP + '  File "/w/model.py", line 12 in walk\n' * 100 + "  ...\n")
    (deep,) = extract_text(DEEP + "".join(f'  File "/w/model.py", line {n} in f{n}\n' for n in range(100)))
    assert endless.fields["repeated"] == "yes"
    assert "repeated" not in deep.fields
    assert endless.fields["depth"] == "100"


def test_nested_modules_are_no_recursion() -> None:
    """The stack of a model repeats the frames of torch.nn.Module, and each layer stands once."""
    call = '  File "/venv/torch/nn/modules/module.py", line 1751 in _call_impl\n'
    layers = "".join(f'  File "/w/layers_{n}.py", line {n} in forward\n{call}' for n in range(50))
    (nested,) = extract_text(f"{DEEP}{layers}  ...\n")
    assert "repeated" not in nested.fields


def test_an_uncaught_cpp_exception() -> None:
    """Its type and what(), and the stack behind it in its text."""
    (fact,) = extract_text(
        "terminate called after throwing an instance of 'c10::DistBackendError'\n"
        "  what():  [PG ID 0 Rank 3] Process group watchdog thread terminated with exception: CUDA error\n"
        "frame #0: c10::Error::Error\n"
    )
    assert (fact.kind, fact.component, fact.fields["type"]) == ("terminate", "C++", "c10::DistBackendError")
    assert fact.fields["what"].startswith("[PG ID 0 Rank 3]")
    assert "frame #0" in fact.text


def test_terminate_without_an_exception() -> None:
    """`terminate called without an active exception` has neither."""
    (fact,) = extract_text("terminate called without an active exception\n")
    assert fact.kind == "terminate"
    assert not {"type", "what"} & set(fact.fields)


def test_a_type_that_another_process_broke_is_no_failure() -> None:
    """`terminate called` without a type and a message says nothing: another process wrote into the line."""
    torn = "terminate called after throwing an instance of 'node1:412:412 [0] NCCL INFO group.cc:241 -> 1\n"
    assert [one.kind for one in extract_text(torn)] == ["message"]


@pytest.mark.parametrize(
    ("component", "log", "text"),
    [
        (
            "Go",
            "panic: send on closed channel\n\ngoroutine 7 [running]:\nmain.run(0x1)\n\t/src/a.go:70 +0xea\nstep 8\n",
            "panic: send on closed channel\ngoroutine 7 [running]:\nmain.run(0x1)\n\t/src/a.go:70 +0xea",
        ),
        (
            "Rust",
            "thread 'main' panicked at src/plan.rs:88:17:\nshard 7 has no parts\nnote: run with `RUST_BACKTRACE=1`\n",
            "thread 'main' panicked at src/plan.rs:88:17: shard 7 has no parts\nnote: run with `RUST_BACKTRACE=1`",
        ),
        (
            "Rust",
            "thread 'main' panicked at 'shard 7 has no parts', src/plan.rs:88:17\nstep 8\n",
            "thread 'main' panicked at 'shard 7 has no parts', src/plan.rs:88:17",
        ),
    ],
)
def test_a_panic_is_an_uncaught_exception(component: str, log: str, text: str) -> None:
    """Its message, then its stack, wherever it stands in a log."""
    fact = next(fact for fact in extract_text(f"step 7\n{log}") if fact.kind == "terminate")
    assert (fact.component, fact.text) == (component, text)


@pytest.mark.parametrize(
    ("behind", "kinds"), [("goroutine 1 [running]:", ["terminate"]), ("compilation terminated.", [])]
)
def test_a_fatal_error_is_one_of_go_with_its_goroutines(behind: str, kinds: list[str]) -> None:
    """Compilers print the same words."""
    facts = extract_text(f"fatal error: too many open files\n{behind}\n")
    assert [fact.kind for fact in facts if fact.kind != "message"] == kinds
