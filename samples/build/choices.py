"""Jobs in which one small thing decides: an index, an exit status, which came first, a code without a cause, whose memory it is."""

from __future__ import annotations

from incident import Incident

_OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU {gpu} has a total capacity of 79.15 GiB of which 1.02 GiB is "
    "free. {users}Of the allocated memory 70.11 GiB is allocated by PyTorch, and 1.20 GiB is reserved by PyTorch but unallocated."
)


def spawned() -> Incident:
    job = Incident("spawn_names_the_process_by_its_index", 4)
    job.steps(1, 6)
    job.to(
        "launcher.log",
        "Traceback (most recent call last):",
        '  File "/workspace/train.py", line 120, in <module>',
        "    mp.spawn(main, nprocs=4, args=(args,))",
        '  File "/opt/venv/lib/python3.11/site-packages/torch/multiprocessing/spawn.py", line 340, in spawn',
        "    return start_processes(fn, args, nprocs, join, daemon, start_method='spawn')",
        '  File "/opt/venv/lib/python3.11/site-packages/torch/multiprocessing/spawn.py", line 215, in join',
        "    raise ProcessRaisedException(msg, error_index, failed_process.pid)",
        "torch.multiprocessing.spawn.ProcessRaisedException: ",
        "",
        "-- Process 2 terminated with the following error:",
        "Traceback (most recent call last):",
        '  File "/opt/venv/lib/python3.11/site-packages/torch/multiprocessing/spawn.py", line 90, in _wrap',
        "    fn(i, *args)",
        '  File "/workspace/train.py", line 88, in main',
        "    loss.backward()",
        _OOM.format(gpu=2, users=""),
    )
    job.is_("known", ["cuda.out-of-memory"], [2], "the process with index 2 ran out of GPU memory; no line carries a rank")
    return job


def unlabelled_crash() -> Incident:
    job = Incident("crash_placed_by_its_exit_status", 4)
    job.steps(1, 9)
    job.to(
        "launcher.log", "terminate called after throwing an instance of 'std::runtime_error'", "  what():  tokenizer index is damaged at 77"
    )
    job.wait(4)
    job.table({2: -6, 0: -15, 1: -15, 3: -15})
    job.is_("known", ["crash.abort"], [2], "a C++ exception ended rank 2, as only its exit status says")
    return job


def two_in_order() -> Incident:
    job = Incident("two_failures_the_earlier_counts", 4)
    job.steps(1, 9)
    job.log(2, "reading shard 17")
    job.traceback(2, "ValueError: shard 17 has 4095 samples, 4096 were promised")
    job.wait(50)
    job.log(0, "evaluating without rank 2")
    job.traceback(0, _OOM.format(gpu=0, users=""))
    job.is_("unknown", [None], [2], "rank 2 failed 50 s before rank 0 ran out of memory")
    return job


def inner() -> Incident:
    job = Incident("npu_inner_error_carries_no_cause", 4)
    job.steps(1, 9)
    job.traceback(0, "RuntimeError: E19999: Inner Error! The error from device was reported to the host")
    job.traceback(2, "RuntimeError: vocabulary has 32001 entries, the embedding 32000")
    job.is_("unknown", [None], [2], "rank 2 says what is wrong, rank 0 only that something failed inside")
    return job


def shared_memory() -> Incident:
    job = Incident("gpu_memory_of_two_ranks_on_one", 4)
    job.init()
    job.steps(1, 3)
    users = "Process 4102 has 35.10 GiB memory in use. Process 4101 has 40.02 GiB memory in use. "
    job.traceback(1, _OOM.format(gpu=1, users=users))
    job.is_(
        "known", ["launch.local-rank-misuse", "cuda.out-of-memory"], [1, 2], "the message of rank 1 lists the process of rank 2 on its GPU"
    )
    return job


KINDS = (spawned, unlabelled_crash, two_in_order, inner, shared_memory)
