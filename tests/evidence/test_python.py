"""Exceptions out of tracebacks, however they are chained, grouped, nested or run together."""

from __future__ import annotations

import pytest

from triage.evidence import extract_text
from triage.model.details import ExceptionDetail
from triage.model.evidence import Evidence
from triage.records.tracebacks import CHAINS


def exceptions(text: str) -> list[Evidence]:
    return [fact for fact in extract_text(text) if fact.kind == "exception"]


def test_a_plain_exception_has_type_message_and_place() -> None:
    """Type without modules, message, and the innermost frame of the user's code."""
    (fact,) = exceptions(
        """\
[rank3]: Traceback (most recent call last):
[rank3]:   File "/workspace/train.py", line 30, in main
[rank3]:     dist.all_reduce(loss)
[rank3]:   File "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 2501, in all_reduce
[rank3]:     work.wait()
[rank3]: torch.distributed.DistBackendError: NCCL error in: x.cpp:12
"""
    )
    assert fact.component == "Python"
    assert fact.origin.rank == 3
    assert {
        name: fact.fields[name] for name in ("type", "message", "file", "line", "function", "code", "op", "chain")
    } == {
        "type": "DistBackendError",
        "message": "NCCL error in: x.cpp:12",
        "file": "/workspace/train.py",
        "line": "30",
        "function": "main",
        "code": "dist.all_reduce(loss)",
        "op": "all_reduce",
        "chain": "final",
    }


def test_innermost_frame_may_be_of_a_library() -> None:
    """`innermost` is where it was raised; file and function stay those of the user's code."""
    (fact,) = exceptions(
        """\
Traceback (most recent call last):
  File "/w/train.py", line 3, in main
    queue = mp.Queue()
  File "/usr/lib/python3.11/multiprocessing/synchronize.py", line 57, in __init__
    sl = _multiprocessing.SemLock(
OSError: [Errno 28] No space left on device
"""
    )
    assert fact.fields["function"] == "main"
    assert fact.fields["innermost"] == (
        "/usr/lib/python3.11/multiprocessing/synchronize.py:__init__: sl = _multiprocessing.SemLock("
    )


def test_chained_exceptions_are_told_apart() -> None:
    """Each exception of a chain is a fact: what caused it, what was being handled, and the final one last."""
    caused, handled, final = exceptions(
        """\
Traceback (most recent call last):
  File "/w/a.py", line 3, in load
    open(p)
FileNotFoundError: [Errno 2] No such file or directory: 'x'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/w/a.py", line 5, in main
    load()
my.pkg.LoadError: cannot load

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/w/a.py", line 9, in <module>
    main()
RuntimeError: gave up
"""
    )
    assert [fact.fields["type"] for fact in (caused, handled, final)] == [
        "FileNotFoundError",
        "LoadError",
        "RuntimeError",
    ]
    assert [fact.fields["chain"] for fact in (caused, handled, final)] == ["cause", "context", "final"]
    assert [fact.fields["line"] for fact in (caused, handled, final)] == ["3", "5", "9"]


def test_members_of_a_group_are_what_failed() -> None:
    """An exception group gives its members, with their places where they have one, and itself as context only."""
    facts = exceptions(
        """\
  + Exception Group Traceback (most recent call last):
  |   File "/w/a.py", line 3, in <module>
  |     raise ExceptionGroup("two", errors)
  | ExceptionGroup: two (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | ValueError: 1
    +---------------- 2 ----------------
    | Traceback (most recent call last):
    |   File "/w/b.py", line 7, in f
    |     x
    | KeyError: 'a'
    +------------------------------------
"""
    )
    assert [(fact.fields["type"], fact.fields["chain"], fact.fields.get("line")) for fact in facts] == [
        ("ExceptionGroup", "context", "3"),
        ("ValueError", "final", None),
        ("KeyError", "final", "7"),
    ]


def test_nested_groups_are_opened() -> None:
    """The innermost members count, not the groups around them."""
    facts = exceptions(
        """\
  + Exception Group Traceback (most recent call last):
  |   File "/w/a.py", line 3, in <module>
  |     raise outer
  | ExceptionGroup: outer (1 sub-exception)
  +-+---------------- 1 ----------------
    | Exception Group Traceback (most recent call last):
    |   File "/w/a.py", line 2, in inner
    |     raise inner
    | ExceptionGroup: inner (1 sub-exception)
    +-+---------------- 1 ----------------
      | OSError: disk
      +------------------------------------
"""
    )
    assert [fact.text for fact in facts if fact.fields["chain"] == "final"] == ["OSError: disk"]


def test_a_syntax_error_of_an_imported_module() -> None:
    """Its frame without a function is its place."""
    (fact,) = exceptions(
        """\
Traceback (most recent call last):
  File "/w/train.py", line 3, in <module>
    import model
  File "/w/model.py", line 7
    def f(:
          ^
SyntaxError: invalid syntax
"""
    )
    assert (fact.fields["type"], fact.fields["file"], fact.fields["line"]) == ("SyntaxError", "/w/model.py", "7")


def test_a_syntax_error_of_the_program_itself() -> None:
    """Python prints no traceback header then; the exception is a fact all the same."""
    (fact,) = exceptions('  File "/w/train.py", line 7\n    def f(:\n          ^\nSyntaxError: invalid syntax\n')
    assert fact.fields["type"] == "SyntaxError"


def test_mixed_tracebacks_give_counts_and_no_frames() -> None:
    """Lines of several writers without prefixes: exceptions are counted, and no frames are given."""
    (fact,) = exceptions(
        """\
Traceback (most recent call last):
Traceback (most recent call last):
  File "/w/train.py", line 3, in <module>
  File "/w/train.py", line 8, in <module>
    main()
    other()
ValueError: bad
ValueError: bad
"""
    )
    assert (fact.count, fact.detail) == (2, ExceptionDetail("ValueError", interleaved=True))
    assert not {"file", "line", "function", "op"} & set(fact.fields)


def test_spawned_processes_are_named_by_their_index() -> None:
    """torch.multiprocessing.spawn quotes the traceback of a process and says which."""
    wrapper, inner = exceptions(
        """\
Traceback (most recent call last):
  File "/w/train.py", line 9, in <module>
    mp.spawn(run, nprocs=2)
torch.multiprocessing.spawn.ProcessRaisedException: 

-- Process 1 terminated with the following error:
Traceback (most recent call last):
  File "/w/train.py", line 5, in run
    raise ValueError("no tokens")
ValueError: no tokens
"""  # noqa: W291
    )
    assert wrapper.fields["type"] == "ProcessRaisedException"
    assert wrapper.fields["chain"] == "context"
    assert inner.fields["function"] == "run"
    assert inner.detail == ExceptionDetail("ValueError", spawn_index=1)


def test_checkpoint_exceptions_belong_to_the_ranks_they_name() -> None:
    """torch.distributed.checkpoint quotes tracebacks of all ranks: `(RANK n)` counts, not the prefix."""
    facts = exceptions(
        """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "/w/train.py", line 9, in <module>
[rank0]:     dcp.load(state)
[rank0]: torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([0, 1])
[rank0]: Traceback (most recent call last): (RANK 0)
[rank0]:   File "/w/load.py", line 2, in load
[rank0]: RuntimeError: Missing key in checkpoint state_dict: model.b.
[rank0]: Traceback (most recent call last): (RANK 1)
[rank0]:   File "/w/load.py", line 2, in load
[rank0]: RuntimeError: Missing key in checkpoint state_dict: model.c.
"""
    )
    assert [(fact.origin.rank, fact.text[-8:]) for fact in facts[1:]] == [(0, "model.b."), (1, "model.c.")]


def test_a_message_of_many_lines_stays_whole() -> None:
    """The C++ stack behind an error belongs to its message, and the next record does not."""
    (fact,) = exceptions(
        """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "/w/train.py", line 9, in <module>
[rank0]: torch.AcceleratorError: CUDA error: device-side assert triggered
[rank0]: CUDA kernel errors might be asynchronously reported at some other API call.
[rank0]: Exception raised from f at x.cpp:1
[rank0]: frame #0: c10::Error
2026-11-21 03:00:00,000 [rank 0] INFO trainer: step 3
"""
    )
    assert fact.text.endswith("frame #0: c10::Error")


def test_a_traceback_without_its_last_line_is_truncated() -> None:
    """Without its exception line there is no type to invent."""
    (fact,) = exceptions(
        '[rank0]: Traceback (most recent call last):\n[rank0]:   File "/w/train.py", line 9, in <module>\n'
    )
    assert fact.detail == ExceptionDetail(truncated=True, ends_writer=True)
    assert "type" not in fact.fields


RAY = """\
Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/ray/_private/worker.py", line 929, in get_objects
    raise value.as_instanceof_cause()
ray.exceptions.RayTaskError(ValueError): ray::Trainable.train() (pid=300, ip=10.0.0.7, actor_id=25b5, repr=Trainer)
  File "/opt/venv/lib/python3.11/site-packages/ray/air/_internal/util.py", line 10, in run
    ray.get(ref)
ray.exceptions.RayTaskError(ValueError): ray::RayTrainWorker.run() (pid=412, ip=10.0.0.8, actor_id=25b6, repr=Worker)
  File "/workspace/train.py", line 30, in main
    step(batch)
ValueError: bad sample
"""


def test_an_exception_that_ray_raises_again_is_of_the_innermost_worker() -> None:
    """Its pid and address stand in the line above the worker's frames."""
    (fact,) = exceptions(RAY)
    assert (fact.origin.pid, fact.origin.host, fact.text) == (412, "10.0.0.8", "ValueError: bad sample")


def test_a_dead_actor_has_the_pid_and_address_that_ray_lists() -> None:
    """The driver that prints it is another process."""
    (fact,) = exceptions(
        """\
Traceback (most recent call last):
  File "/workspace/driver.py", line 3, in <module>
    ray.get(ref)
ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.
\tclass_name: RayTrainWorker
\tactor_id: 25b5690c
\tpid: 412
\tnamespace: 2f9c
\tip: 10.0.0.8
"""
    )
    assert (fact.origin.pid, fact.origin.host) == (412, "10.0.0.8")


def test_a_quoted_traceback_is_not_of_the_host_that_quotes_it() -> None:
    """torch.distributed.checkpoint prints the tracebacks of all ranks on one."""
    (fact,) = exceptions(
        """\
[pod/train-0/main] Traceback (most recent call last): (RANK 5)
[pod/train-0/main]   File "/workspace/train.py", line 30, in main
[pod/train-0/main]     save()
[pod/train-0/main] OSError: disk is full
"""
    )
    assert (fact.origin.rank, fact.origin.host) == (5, None)


def test_the_tasks_that_xla_lists_belong_to_the_message() -> None:
    """XLA's coordination service names each task on a line of its own, and gRPC adds a line."""
    (fact,) = exceptions(
        """\
Traceback (most recent call last):
  File "/w/train.py", line 3, in main
    jax.distributed.initialize()
jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Timed out task names:
/job:jax_worker/replica:0/task:3
/job:jax_worker/replica:0/task:6

Additional GRPC error information from remote target leader while calling /tensorflow.CoordinationService/Barrier:
step 4
"""
    )
    assert fact.text.splitlines()[1:3] == ["/job:jax_worker/replica:0/task:3", "/job:jax_worker/replica:0/task:6"]
    assert "/tensorflow.CoordinationService/Barrier:" in fact.text
    assert "step 4" not in fact.text


INNER = """\
Traceback (most recent call last):
  File "/w/ratio.py", line 4, in ratio
    raise ValueError(text)
ValueError: ratio is 0
"""
OUTER = """\
Traceback (most recent call last):
  File "/w/launch.py", line 9, in run
    raise TaskFailed(rank)
job.TaskFailed: rank 4 failed"""


def failure_of(text: str) -> Evidence:
    """Return the one exception that is not secondary."""
    (fact,) = (
        fact for fact in exceptions(text) if isinstance(fact.detail, ExceptionDetail) and not fact.detail.secondary
    )
    return fact


def quoted_in(headline: str) -> str:
    """Return the outer traceback with the inner one, indented, in its message."""
    quoted = "".join(f"    {line}\n" for line in INNER.splitlines())
    return f"{OUTER.replace('rank 4 failed', headline)}\n{quoted}"


@pytest.mark.parametrize(
    "text",
    [
        f"{INNER}\n{CHAINS[1]}\n\n{OUTER}\n",
        quoted_in("rank 4 failed, its worker wrote:"),
        f"{OUTER}:\n{INNER}",
        f'multiprocessing.pool.RemoteTraceback: \n"""\n{INNER}"""\n\n{CHAINS[1]}\n\n{OUTER}\n',
    ],
)
def test_the_inner_exception_is_the_failure(text: str) -> None:
    """Joined by a sentence, quoted in the message, or of a process of a pool; with its own frame."""
    fact = failure_of(text)
    assert (fact.text, fact.fields["function"]) == ("ValueError: ratio is 0", "ratio")


def test_a_message_of_any_lines_does_not_end_a_chain() -> None:
    """The sentence that joins the exceptions shows where the message ends, within 40 lines."""
    text = f"{INNER.rstrip()} of:\n\tdetails = none\nend of details\n\n{CHAINS[1]}\n\n{OUTER}\n"
    assert failure_of(text).text.endswith("details = none\nend of details")
    noise = "a line of another program\n" * 41
    assert len(exceptions(f"{INNER}{noise}\n{CHAINS[1]}\n\n{OUTER}\n")) == 2


def test_the_fields_of_a_validation_error_belong_to_its_message() -> None:
    """pydantic names the field in a line of its own, before the reason."""
    head = 'Traceback (most recent call last):\n  File "/w/a.py", line 4, in parse\n    Spec(**data)\n'
    (fact,) = exceptions(
        f"{head}pydantic.ValidationError: 1 validation error for Spec\na -> b\n  not an integer\nthe run ends\n"
    )
    assert fact.text.endswith("\na -> b\n  not an integer")
    (fact,) = exceptions(f"{head}ValueError: bad spec\na -> b\n  not an integer\n")
    assert fact.text == "ValueError: bad spec"


def test_the_stack_of_paddle_is_no_second_traceback() -> None:
    """Its heading has the words of Python's, and the message stands below it."""
    head = 'Traceback (most recent call last):\n  File "/w/a.py", line 4, in step\n    loss.backward()\n'
    rule = "-" * 38
    stack = f"{rule}\nC++ Traceback (most recent call last):\n{rule}\n0   paddle::Execute()\n\n"
    summary = f"{rule}\nError Message Summary:\n{rule}\nExternalError: CUDA error(700).\n"
    (fact,) = exceptions(f"{head}OSError: \n\n{stack}{summary}")
    assert (fact.fields["type"], fact.fields["line"]) == ("OSError", "4")
    assert fact.text.endswith("\nExternalError: CUDA error(700).")
    assert len(exceptions(f"{head}OSError: x\n\n{CHAINS[1]}\n\n{head}ValueError: y\n")) == 2


@pytest.mark.parametrize(("file", "place"), [("pyarrow/error.pxi", "/job/write.py"), ("/job/ops.pyx", "/job/ops.pyx")])
def test_compiled_modules_of_libraries_are_not_the_user_s_code(file: str, place: str) -> None:
    """Cython names the files of a wheel without a directory of the machine."""
    (fact,) = exceptions(
        f"""\
Traceback (most recent call last):
  File "/job/write.py", line 30, in main
    writer.write(batch)
  File "{file}", line 91, in check_status
store.Invalid: schema differs
"""
    )
    assert fact.fields["file"] == place
