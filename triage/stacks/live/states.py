"""What a process does, from the frames of its main thread. RULES is an ordered list; the first rule that matches wins.

A rule looks at the frames from the innermost outward. Native frames only exist in dumps taken with --native.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from triage.base.lazy_re import lazy_re
from triage.stacks.live import kernel, locks
from triage.stacks.live.model import (
    KERNEL_TOOLS,
    PYTHON_TOOLS,
    Call,
    Process,
    State,
    Thread,
    format_location,
    format_state,
    is_native,
)
from triage.stacks.model import Frame
from triage.stacks.names import library_name
from triage.stacks.rules import shipped_rules

_C10D = "torch/distributed/distributed_c10d.py"
_COLLECTIVES = (
    r"(?:all_reduce|all_reduce_coalesced|reduce|broadcast|all_gather\w*|_all_gather_base|gather\w*|scatter\w*|"
    r"reduce_scatter\w*|_reduce_scatter_base"
    r"|all_to_all\w*|barrier|monitored_barrier|send|recv|isend|irecv|batch_isend_irecv|send_object_list|"
    r"recv_object_list|broadcast_object_list)"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A state for frames that match `function` and `file` (for a native frame its library).

    `phrase` may contain {op}, the name of the call. `native`: only native frames match; `own`: only the program's.
    """

    kind: str
    phrase: str
    function: str
    file: str = ""
    native: bool = False
    own: bool = False


# The most specific state comes first: a process that saves a checkpoint with a barrier in it waits in the barrier.
RULES: tuple[Rule, ...] = (
    Rule(
        "agent",
        "in torchrun's agent",
        r"_invoke_run|_initialize_workers|launch_agent",
        r"torch/distributed/(?:elastic|launcher)/",
    ),
    Rule("worker", "a data loader's worker", r"_worker_loop", r"torch/utils/data/_utils/worker\.py"),
    Rule("worker", "a helper of multiprocessing", r"main", r"multiprocessing/(?:resource_tracker|forkserver)\.py"),
    Rule("compile-worker", "a compile worker", r"main", r"torch/_inductor/compile_worker/"),
    Rule("rendezvous", "in {op}", r"init_process_group|_new_process_group_helper|new_group\w*|split_group", _C10D),
    Rule(
        "rendezvous",
        "in the rendezvous",
        r"_env_rendezvous_handler|_tcp_rendezvous_handler|rendezvous",
        r"torch/distributed/rendezvous\.py",
    ),
    Rule(
        "rendezvous", "connecting a new group", r"gloo::.*::(?:connectFullMesh|createAndConnectAllPairs)|\w+CommInit\w+"
    ),
    Rule("collective", "in {op}", _COLLECTIVES, _C10D),
    Rule(
        "collective",
        "in {op}",
        r"wait_tensor|all_reduce|all_gather_tensor|reduce_scatter_tensor",
        r"torch/distributed/_functional_collectives\.py",
    ),
    Rule("collective", "in DDP's reduction of gradients", r"c10d::Reducer::(?:finalize_backward|mark_\w+)"),
    Rule(
        "collective",
        "waiting for a collective",
        r"c10d::Work::wait|c10d::ProcessGroup\w+::.*|nccl[A-Z]\w+|Hccl[A-Z]\w+|gloo::.*",
    ),
    Rule(
        "exit",
        "at the end of its program",
        r"_shutdown|_python_exit|_exit_function|_exitfunc",
        r"(?:^|/)(?:threading|weakref|concurrent/futures/\w+|multiprocessing/util)\.py",
    ),
    Rule("exit", "at the end of its program", r"Py_FinalizeEx|Py_Finalize|__run_exit_handlers|exit", native=True),
    Rule("device-sync", "waiting for the device", r"synchronize", r"torch(?:_npu)?/(?:cuda|npu)/|torch/accelerator/"),
    Rule(
        "device-sync",
        "waiting for the device",
        r"cu(?:da)?(?:Stream|Device|Ctx|Event)Synchronize\w*|aclrtSynchronize\w+",
    ),
    Rule(
        "build-lock", "waiting for another process's build lock", r"wait|FileBaton\.wait", r"torch/utils/file_baton\.py"
    ),
    Rule(
        "dataloader",
        "in the data loader's queue",
        r".*_try_get_data|.*_get_data|.*_MultiProcessingDataLoaderIter\.\w+",
        r"torch/utils/data/dataloader\.py",
    ),
    Rule(
        "data",
        "loading data in the main process",
        r".*_SingleProcessDataLoaderIter\._next_data|.*Fetcher\.fetch|fetch",
        r"torch/utils/data/",
    ),
    Rule(
        "checkpoint",
        "in a checkpoint write",
        r".*save\w*|.*write\w*",
        r"torch/serialization\.py|torch/distributed/checkpoint/|safetensors/",
    ),
    Rule(
        "checkpoint",
        "in a checkpoint read",
        r".*load\w*|.*read\w*",
        r"torch/serialization\.py|torch/distributed/checkpoint/",
    ),
    Rule(
        "checkpoint",
        "in {op}",
        r"(?:.*\.)?_?(?:save|load|write|upload|restore|store|persist)\w*(?:checkpoint|ckpt|state_dict)\w*",
    ),
    Rule(
        "compile",
        "compiling",
        r".*",
        r"torch/_(?:dynamo|inductor)/(?!eval_frame|external_utils)|triton/(?:compiler|backends|runtime/(?:build|jit|"
        r"autotuner))|torch/utils/cpp_extension\.py",
    ),
    Rule("gil", "waiting for the GIL", r"take_gil|PyEval_RestoreThread|PyGILState_Ensure|PyEval_AcquireThread"),
    Rule(
        "join",
        "joining a thread or process",
        r"(?:Thread\.)?(?:join|_wait_for_tstate_lock)|(?:(?:Base)?Process\.)?join|(?:Popen\.)?poll|Popen\.wait",
        r"(?:threading|multiprocessing/\w+)\.py",
    ),
    Rule("queue", "waiting in a queue", r"(?:\w*Queue\.)?(?:get|put)", r"(?:^|/)(?:queue|multiprocessing/queues)\.py"),
    Rule(
        "lock",
        "waiting for a lock",
        r"(?:Condition|Event|Semaphore|Barrier|_RLock|RLock|Lock)\.(?:wait|acquire|__enter__)|wait|acquire",
        r"(?:^|/)threading\.py",
    ),
    Rule(
        "lock",
        "waiting for a lock",
        r"PyThread_acquire_lock\w*|lock_PyThread_acquire_lock|rlock_acquire|acquire_timed|_PyMutex_Lock\w*|"
        r"PyMutex_Lock",
    ),
    Rule("lock", "waiting for a file lock", r".*acquire.*", r"filelock/"),
    Rule(
        "subprocess",
        "waiting for a subprocess",
        r"(?:Popen\.)?(?:_wait|wait|_communicate|communicate|_try_wait)|run|call|check_\w+",
        r"(?:^|/)subprocess\.py",
    ),
    Rule(
        "network",
        "waiting for the network",
        r".*",
        r"(?:^|/)(?:ssl|socket|http/client)\.py|urllib3/|requests/|botocore/|aiohttp/|grpc/",
    ),
    Rule("import", "importing a module", r"_find_and_load|_load_unlocked|exec_module", r"<frozen importlib"),
    Rule("backward", "in backward", r"_engine_run_backward|backward", r"torch/autograd/"),
    Rule(
        "lock",
        "waiting for a lock held elsewhere",
        r"_*(?:GI_+)?(?:pthread_mutex_(?:timed|clock)?lock\w*|lll_lock_wait\w*)|lll_mutex_lock\w*",
        native=True,
    ),
    Rule(
        "futex",
        "in futex",
        r".*futex.*|_*pthread_(?:cond_\w*wait\w*|rwlock_\w+)|std::condition_variable::wait\w*",
        native=True,
    ),
    Rule("sleep", "asleep", r"_*(?:clock_)?nanosleep\w*|time_sleep|pysleep|_*sleep", native=True),
    Rule(
        "io",
        "in {op}",
        r"(?:__)?(?:libc_)?(?:pread|pwrite|read|write|fsync|fdatasync|open|openat|unlink|rename|stat|fstat)(?:64|v|v2)?"
        r"(?:_nocancel)?",
        native=True,
    ),
    Rule(
        "network",
        "waiting for the network",
        r"(?:__)?(?:libc_)?(?:poll|ppoll|select|epoll_wait|recv\w*|send\w*|accept\w*|connect)",
        native=True,
    ),
    # What programs call their own functions: nothing below them says more.
    Rule(
        "data",
        "in {op}",
        r"(?:.*\.)?_?(?:download|fetch|read|load|stage|prefetch|get|next)\w*_(?:shard|data|batch|file|sample|example)\w*",
        own=True,
    ),
    Rule("lock-call", "in {op}", r"(?:.*\.)?_?(?:acquire|wait_for|lock|\w*_with_lock)(?:_\w*)?", own=True),
    Rule(
        "evaluation", "in {op}", r"(?:.*\.)?_?(?:run_|do_)?(?:evaluat|validat|eval_|valid_|test_|generate)\w*", own=True
    ),
)
_COMPILED = tuple((rule, lazy_re(rule.function), lazy_re(rule.file)) for rule in RULES)

WAITING = frozenset(("collective", "rendezvous", "device-sync"))
"""States in which other processes decide how long they take."""
HELPERS = frozenset(("agent", "worker", "compile-worker"))
"""Processes that help a rank, but are none."""
STUCK = frozenset(
    [
        "build-lock",
        "dataloader",
        "data",
        "checkpoint",
        "compile",
        "gil",
        "join",
        "queue",
        "lock",
        "subprocess",
        "network",
        "import",
        "sleep",
        "io",
        "holds-gil",
        "kernel",
        "memory",
        "pipe",
        "stopped",
        "dead",
        "exit",
        "deadlock",
        "lock-call",
    ]
)
"""States that can last forever and are not part of a collective."""
_MOST_FRAMES = 2000  # innermost frames that decide what a thread does; an endless recursion has a million
_RAW = frozenset(("lock", "gil"))
_ASLEEP = frozenset(("lock", "futex", "join", "queue", "idle", "exit", "gil"))
"""States of a main thread for which a lock of its threads may be the reason."""
_BARE = lazy_re(
    r"PyThread_acquire_lock\w*|lock_PyThread_acquire_lock|rlock_acquire|acquire_timed|_?PyMutex_Lock\w*|take_gil"
)
_WHERE = frozenset(("lock", "gil", "join", "queue", "subprocess", "network", "sleep", "io", "futex"))
"""States for which the phrase names the function of the user's program."""
WEAK = frozenset(("backward", "futex", "lock", "queue", "join", "sleep", "network", "io"))
"""States by a call of a library or of the system, below which the kernel shows more."""

_LIBRARY = lazy_re(
    r"(?:^|/)(?:site-packages|dist-packages|torch|torch_npu|multiprocessing|concurrent|importlib|lib/python3[\w.]*)/|^<|"
    # py-spy leaves out the directory of packages.
    r"^(?:http|urllib|asyncio|email|ctypes|sqlite3|encodings|xml|filelock|urllib3|requests|botocore|boto3|aiohttp|grpc|fsspec|s3fs|gcsfs|triton|safetensors|numpy|pandas|pyarrow|"
    r"datasets|transformers|accelerate|deepspeed|lightning|pytorch_lightning|megatron|wandb|PIL|cv2)/"
)
_STDLIB = frozenset(
    [
        "threading",
        "queue",
        "selectors",
        "socket",
        "ssl",
        "subprocess",
        "contextlib",
        "functools",
        "runpy",
        "pickle",
        "shutil",
        "tempfile",
        "json",
        "logging",
        "asyncio",
        "signal",
    ]
)


def main_thread(process: Process) -> Thread | None:
    """Return the thread that runs the program."""
    by_name = [thread for thread in process.threads if thread.name == "MainThread"]
    by_pid = [thread for thread in process.threads if thread.tid is not None and thread.tid == process.pid]
    by_frame = [thread for thread in process.threads if thread.frames and thread.frames[-1].function == "<module>"]
    return next(iter([*by_name, *by_pid, *by_frame, *process.threads]), None)


def state_of(process: Process) -> State:
    """Return what the process does: its main thread, or the collective of a thread for which that one waits."""
    main = main_thread(process)
    if main is None:
        return State("unknown", "without a thread in its dump")
    if process.tool in KERNEL_TOOLS:
        state = kernel.state_of(main.call or Call())
        return (locks.lock_state(process, main, state) or state) if state.kind == "futex" else state
    state = state_of_thread(main)
    if state.kind == "worker":
        own = next((frame for frame in main.frames if is_own(frame)), None)
        return replace(state, remark=f"in {own.function} at {format_location(own)}" if own else "")
    if state.kind == "collective" and not state.op and not own_place(main.frames):
        state = _name_collective(state, process)
    if state.kind in _ASLEEP and (by_lock := locks.lock_state(process, main, state)) is not None:
        return by_lock
    if state.kind in _RAW and (other := _find_blocked_thread(process, main)):
        there = f"thread {other.name or other.tid} ({format_state(state_of_thread(other))})"
        return State("deadlock", f"blocked like its {there}, {state.phrase}", state.op, state.place)
    if state.kind == "gil" and (holder := next((thread for thread in process.threads if thread.gil), None)):
        there = f"thread {holder.name or holder.tid} ({format_state(state_of_thread(holder))})"
        return replace(state, phrase=f"{state.phrase} of {there}")
    if state.kind in _MAY_WAIT_FOR_THREADS:
        for thread in process.threads:
            inner = state_of_thread(thread) if thread is not main else state
            if inner.kind in WAITING and inner.place:
                return State(inner.kind, f"{inner.phrase} (thread {thread.name or thread.tid})", inner.op, inner.place)
    if state.kind in ("idle", "running") and process.tool in PYTHON_TOOLS:
        return replace(state, remark=_describe_own_thread(process, main))
    return state


def _describe_own_thread(process: Process, main: Thread) -> str:
    """Return where another thread stands in the program itself: without native frames, each may wait for the other."""
    for thread in process.threads:
        if thread is not main and thread.frames and is_own(thread.frames[0]):
            name = thread.name or (f"{thread.tid}" if thread.tid is not None else "")
            who = f"thread {name}" if name else "another thread"
            return f"{who} is {format_state(state_of_thread(thread))}"
    return ""


_MAY_WAIT_FOR_THREADS = frozenset(("backward", "join", "queue", "lock", "futex", "exit"))
_OPS = lazy_re(
    r"c10d::Async(\w+?)(?:CUDA)?Work::\w+|c10d::ops::(\w+?)_?|gloo::(?:\{anon\}::|\(anonymous namespace\)::)?"
    r"(allreduce|broadcast|allgatherv?|barrier|gather|scatter|reduce|alltoallv?)|p?nccl(All\w+|Broadcast|Reduce\w*|"
    r"Send|Recv)|Hccl(All\w+|Broadcast|Reduce\w*|Send|Recv)|c10d::ProcessGroup\w+::(Send|Recv)Work::\w+"
)
_SPLIT = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
}


def _name_collective(state: State, process: Process) -> State:
    """The state with the collective's name, which for native frames alone is on the stack of another thread."""
    for frame in (frame for thread in process.threads for frame in thread.frames):
        match = _OPS.fullmatch(frame.function)
        if match is not None:
            name = next(group for group in match.groups() if group).lower()
            name = _SPLIT.get(name, name)
            return State(state.kind, f"in {name}", name, state.place, state.remark)
    return state


def _fits(rule: Rule, function: re.Pattern[str], file: re.Pattern[str], frame: Frame) -> bool:
    if (rule.native and not is_native(frame)) or (rule.own and not is_own(frame)):
        return False
    return function.fullmatch(frame.function) is not None and file.search(frame.file or frame.module) is not None


def _find_blocked_thread(process: Process, main: Thread) -> Thread | None:
    """Return another thread that blocks, like the main thread, on a bare lock of the program (no event, no queue)."""
    if not _blocks(main):
        return None
    return next((thread for thread in process.threads if thread is not main and _blocks(thread)), None)


def _blocks(thread: Thread) -> bool:
    own = next((index for index, frame in enumerate(thread.frames) if not is_native(frame)), None)
    if own is None or not is_own(thread.frames[own]) or state_of_thread(thread).kind not in _RAW:
        return False
    return any(is_native(frame) and _BARE.fullmatch(frame.function) for frame in thread.frames[:own])


def state_of_thread(thread: Thread) -> State:
    """Return what one thread does, by its own stack."""
    thread = replace(thread, frames=thread.frames[:_MOST_FRAMES])
    place = own_place(thread.frames)
    outside = _outside_imports(thread.frames)
    own = next((frame for frame in thread.frames if is_own(frame)), None)
    for rule, function, file in _COMPILED:
        frames = thread.frames if rule.kind in WAITING or rule.kind in HELPERS else outside
        matching = [frame for frame in frames if _fits(rule, function, file, frame)]
        if matching:
            op = matching[0].function if rule.own else _op(thread.frames, rule, function, file)
            op = (op or matching[0].function).lstrip("_" if rule.native else "").removeprefix("libc_")
            phrase = rule.phrase.format(op=op)
            if own and rule.own and own is not matching[0]:
                phrase = f"in {own.function}, called from {op}"
            elif own and own.function != "<module>" and rule.kind in _WHERE:
                phrase += f" in {own.function}"
            return _with_gil(
                State(rule.kind, phrase, op if "{op}" in rule.phrase else "", place if rule.kind != "exit" else ""),
                thread,
            )
    innermost = own or next(iter(thread.frames), None)
    phrase = f"in {innermost.function}" if innermost else "without Python frames"
    return _with_gil(
        State("running" if thread.status == "active" else "idle", phrase, own.function if own else "", place), thread
    )


def _outside_imports(frames: Sequence[Frame]) -> Sequence[Frame]:
    """The frames from the outermost import outward: what a library does while it is imported says nothing.

    All frames where a function of the program runs inside the import.
    """
    last = max((index for index, frame in enumerate(frames) if frame.file.startswith("<frozen importlib")), default=0)
    return frames if any(is_own(frame) and frame.function != "<module>" for frame in frames[:last]) else frames[last:]


def _with_gil(state: State, thread: Thread) -> State:
    """The state, with a note if the thread holds the GIL."""
    if not thread.gil:
        return state
    return State(
        "holds-gil" if state.kind in ("running", "idle", "evaluation", "lock-call", *WEAK) else state.kind,
        f"{state.phrase}, holding the GIL",
        state.op,
        state.place,
    )


def _op(frames: Sequence[Frame], rule: Rule, function: re.Pattern[str], file: re.Pattern[str]) -> str:
    """The outermost frame that matches: `all_gather_object`, not the `all_gather` that it calls."""
    matching = [frame.function for frame in frames if _fits(rule, function, file, frame)]
    return matching[-1] if matching else ""


def is_own(frame: Frame) -> bool:
    """Return whether the frame is of the user's program, not of a library."""
    if is_native(frame) or _LIBRARY.search(frame.file):
        return False
    return frame.file.rsplit("/", 1)[-1].removesuffix(".py") not in _STDLIB or "/" in frame.file


def own_place(frames: Sequence[Frame]) -> str:
    """Return the line of the user's program, like `train.py:25`."""
    return next(
        (format_location(frame) for frame in frames if is_own(frame)),
        next((format_location(frame) for frame in frames if not is_native(frame)), ""),
    )


_UNINFORMATIVE = frozenset(("interpreter", "glue", "thread-base", "idle", "allocator", "memory"))


def key_of(process: Process) -> tuple[str, ...]:
    """Return what is equal for processes at the same place.

    It is the Python frames of the main thread, outermost first, with line numbers only in the user's program.
    """
    main = main_thread(process)
    if main is None:
        return ()
    if process.tool in KERNEL_TOOLS:
        return (kernel.state_of(main.call or Call()).phrase,)
    frames = [frame for frame in main.frames if not is_native(frame)] or _native(main.frames)
    return tuple(map(_comparable, reversed(frames)))


def _comparable(frame: Frame) -> str:
    """`step (train.py:25)`, without the class: faulthandler and Python before 3.11 do not print it."""
    function = frame.function if is_native(frame) else frame.function.rsplit(".", 1)[-1] or frame.function
    if is_own(frame):
        return f"{function} ({format_location(frame)})"
    return f"{function} ({frame.file.rsplit('/', 1)[-1] or frame.module.rsplit('/', 1)[-1]})"


def _native(frames: Sequence[Frame]) -> list[Frame]:
    """Native frames that show where a program is: no interpreter, no wrappers, no thread library."""
    named = [frame for frame in frames if frame.function and not frame.function.startswith("0x")]
    rules = shipped_rules()
    informative = [
        frame
        for frame in named
        if (rule := rules.find(frame.function, library_name(frame.module))) is None or rule.label not in _UNINFORMATIVE
    ]
    return informative or named
