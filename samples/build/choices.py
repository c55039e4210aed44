"""Jobs in which one detail decides the diagnosis.

Examples: a process index, an exit status, the order of two failures, a code without a cause.
"""

from __future__ import annotations

from incident import Incident
from npus import _log_link_timeouts

_OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU {gpu} has a total capacity of 79.15 "
    "GiB of which 1.02 GiB is "
    "free. {users}Of the allocated memory 70.11 GiB is allocated by PyTorch, and 1.20 GiB is reserved by PyTorch but "
    "unallocated."
)


def spawned_process() -> Incident:
    """torch.multiprocessing names a failed process by its index."""
    job = Incident("spawn_names_the_process_by_its_index", 4)
    job.log_steps(1, 6)
    job.add_lines(
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
    job.set_truth(
        "known", ["cuda.out-of-memory"], [2], "the process with index 2 ran out of GPU memory; no line carries a rank"
    )
    return job


def unlabelled_crash() -> Incident:
    """Only the exit status says which rank a C++ exception ended."""
    job = Incident("crash_placed_by_its_exit_status", 4)
    job.log_steps(1, 9)
    job.add_lines(
        "launcher.log",
        "terminate called after throwing an instance of 'std::runtime_error'",
        "  what():  tokenizer index is damaged at 77",
    )
    job.advance_clock(4)
    job.log_failure_table({2: -6, 0: -15, 1: -15, 3: -15})
    job.set_truth("unknown", [None], [2], "a C++ exception ended rank 2, as only its exit status says")
    return job


def earlier_failure_counts() -> Incident:
    """Two ranks fail; the earlier one is the cause."""
    job = Incident("two_failures_the_earlier_counts", 4)
    job.log_steps(1, 9)
    job.log_record(2, "reading shard 17")
    job.log_traceback(2, "ValueError: shard 17 has 4095 samples, 4096 were promised")
    job.advance_clock(50)
    job.log_record(0, "evaluating without rank 2")
    job.log_traceback(0, _OOM.format(gpu=0, users=""))
    job.set_truth("unknown", [None], [2], "rank 2 failed 50 s before rank 0 ran out of memory")
    return job


def npu_internal_error() -> Incident:
    """A rank states the cause, another one only CANN's internal error."""
    job = Incident("npu_inner_error_carries_no_cause", 4)
    job.log_steps(1, 9)
    job.log_traceback(0, "RuntimeError: E19999: Inner Error! The error from device was reported to the host")
    job.log_traceback(2, "RuntimeError: vocabulary has 32001 entries, the embedding 32000")
    job.set_truth("unknown", [None], [2], "rank 2 says what is wrong, rank 0 only that something failed inside")
    return job


def two_ranks_on_one_gpu() -> Incident:
    """An out-of-memory message lists another rank's process on the GPU."""
    job = Incident("gpu_memory_of_two_ranks_on_one", 4)
    job.log_nccl_init()
    job.log_steps(1, 3)
    users = "Process 4102 has 35.10 GiB memory in use. Process 4101 has 40.02 GiB memory in use. "
    job.log_traceback(1, _OOM.format(gpu=1, users=users))
    job.set_truth(
        "known",
        ["launch.local-rank-misuse", "cuda.out-of-memory"],
        [1, 2],
        "the message of rank 1 lists the process of rank 2 on its GPU",
    )
    return job


_CACHE = (
    "Traceback (most recent call last):",
    '  File "/workspace/train.py", line 12, in load_cache',
    "    data = json.load(open(path))",
    "ValueError: the cache of the tokenizer is of another version",
    "the cache is built anew",
)


def _job_with_handled_exception(name: str, steps: int) -> Incident:
    """Return a job with one log for all ranks and no rank prefix: an exception is handled, then training continues."""
    job = Incident(name, 4)
    job.add_lines("job.log", "starting, world_size=4", *_CACHE)
    for step in range(1, steps + 1):
        job.advance_clock(1)
        job.add_lines("job.log", f"step {step} loss {3 / step:.3f}")
    return job


def handled_then_memory() -> Incident:
    """A handled exception, then out of memory."""
    job = _job_with_handled_exception("bare_log_handled_then_out_of_memory", 4)
    job.add_lines(
        "job.log",
        "Traceback (most recent call last):",
        '  File "/workspace/train.py", line 88, in train',
        "    loss.backward()",
    )
    job.add_lines("job.log", _OOM.format(gpu=2, users=""))
    job.log_failure_table({2: 1}, to="job.log")
    job.set_truth(
        "known",
        ["cuda.out-of-memory"],
        [2],
        "one rank ended with exit code 1, and the last exception is the one that ends a process",
    )
    return job


def handled_then_other() -> Incident:
    """A handled exception, then another one that ends a rank."""
    job = _job_with_handled_exception("bare_log_handled_then_another", 3)
    job.add_lines(
        "job.log",
        "Traceback (most recent call last):",
        '  File "/workspace/train.py", line 88, in train',
        "    loss.backward()",
    )
    job.add_lines("job.log", "ValueError: shard 7 holds no samples")
    job.log_failure_table({1: 1}, to="job.log")
    job.set_truth(
        "unknown", [None], [1], "of two exceptions without a rank the later one ended rank 1; the earlier was handled"
    )
    return job


def handled_then_killed() -> Incident:
    """A handled exception, then a kill."""
    job = _job_with_handled_exception("bare_log_handled_then_killed", 9)
    job.log_failure_table({2: -9, 0: -15, 1: -15, 3: -15}, to="job.log")
    job.set_truth(
        "known",
        ["host.sigkill"],
        [2],
        "rank 2 is killed; the exception at the beginning was handled, for nine steps follow",
    )
    return job


def error_surfaces_later_on_others() -> Incident:
    """The rank that went silent first has the CUDA error that all report."""
    job = Incident("cuda_error_late_without_stamps", 4)
    job.log_nccl_init()
    job.log_steps(1, 5)
    text = (
        "RuntimeError: CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be "
        "asynchronously reported at some other API call, so the stacktrace below might be incorrect."
    )
    job.log_traceback(1, text)
    job.advance_clock(30)
    for rank in job.all_ranks(1):
        job.log_record(rank, "the step takes long")
        job.log_traceback(rank, text)
    job.set_truth(
        "known",
        ["cuda.illegal-memory-access"],
        [1],
        "rank 1 wrote nothing for half a minute before the others report the same error",
    )
    return job


def kernel_names_a_process() -> Incident:
    """The kernel names a process by a pid that NCCL maps to a rank."""
    job = Incident("kernel_names_a_process", 8, hosts=2, layout="nodes", skew=(0.0, 180.0))
    job.log_nccl_init()
    job.log_steps(1, 9)
    job.log_kernel(
        2,
        "python3[4105]: segfault at 10 ip 00007f1c2a4b3d10 sp 00007ffd1c2a4b30 error 4 in "
        "libtorch_cpu.so[7f1c2a400000+d8a5000]",
    )
    job.advance_clock(1)
    for rank in job.all_ranks(5):
        job.log_remote_error(rank)
    job.set_truth(
        "known", ["crash.segfault"], [5], "the kernel of node2 names a process that NCCL's lines say is rank 5"
    )
    return job


def one_client_missing() -> Incident:
    """Three of four ranks reached the store."""
    job = Incident("one_client_missing_in_between", 4)
    for rank in job.all_ranks(2):
        job.log_record(rank, "starting, world_size=4")
    job.advance_clock(300)
    for rank in job.all_ranks(2):
        job.log_traceback(
            rank,
            "torch.distributed.DistStoreError: Timed out after 301 seconds waiting for clients. 3/4 clients joined.",
            line=31,
        )
    job.set_truth(
        "known",
        ["torch.rank-never-joined"],
        [2],
        "three of four ranks reached the store, and nothing is there of rank 2",
    )
    return job


def rank_absent_at_links() -> Incident:
    """All ranks with a file report link timeouts; one rank has no file."""
    job = Incident("hccl_links_wait_for_an_absent_rank", 8)
    for rank in job.all_ranks(4):
        job.log_record(rank, "starting, world_size=8")
    job.advance_clock(120)
    _log_link_timeouts(job, job.all_ranks(4))
    job.set_truth(
        "known",
        ["torch.rank-never-joined"],
        [4],
        "all but rank 4, of which no file is, report links that were not set up",
    )
    return job


def checkpoint_path_of_all_ranks() -> Incident:
    """All ranks write the same checkpoint path."""
    job = Incident("checkpoint_path_of_all_ranks", 4)
    job.log_steps(1, 6)
    for rank in job.all_ranks():
        job.log_record(rank, "saving the checkpoint to /ckpt/step6/model.pt")
    job.log_traceback(2, "RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 64 vs 0", line=102)
    job.set_truth(
        "known",
        ["checkpoint.write-race"],
        [0, 1, 2, 3],
        "all ranks write one file, and on rank 2 its length is not what was written",
    )
    return job


def pod_killed_for_memory() -> Incident:
    """Kubernetes' container state tells that a rank was killed for memory."""
    job = Incident("pod_killed_for_memory", 4)
    job.log_steps(1, 9)
    job.add_lines(
        "describe-trainer-1.txt",
        "Name:         trainer-1",
        "Containers:",
        "  pytorch:",
        "    State:          Terminated",
    )
    job.add_lines("describe-trainer-1.txt", "      Reason:       OOMKilled", "      Exit Code:    137")
    job.log_failure_table({1: -9, 0: -15, 2: -15, 3: -15})
    job.set_truth("known", ["host.oom-killer"], [1], "rank 1 was killed, and the container's state says for memory")
    return job


def agent_breaks_the_tie() -> Incident:
    """Two ranks crash in the same second; the agent names the first."""
    job = Incident("agent_breaks_the_tie", 4)
    job.log_failure_table({2: -11, 1: -7, 0: -15, 3: -15})
    job.set_truth(
        "known",
        ["crash.segfault"],
        [2],
        "two ranks crash in the same second, and only the agent says which it saw first",
    )
    return job


def cancelled_after_failure() -> Incident:
    """A rank fails, and the step is cancelled later."""
    job = Incident("cancelled_after_a_failure", 4, layout="srun")
    job.log_steps(1, 9)
    job.log_record(1, "reading shard 3")
    job.add_rank_lines(1, f"{job.timestamp('%Y-%m-%d %H:%M:%S,%L', 1)} [rank1] ERROR trainer: giving up")
    job.log_traceback(1, "ValueError: shard 3 is empty", tagged=False)
    job.advance_clock(40)
    job.log_cancelled("")
    job.set_truth("unknown", [None], [1], "rank 1 failed; that the step was cancelled 40 s later follows")
    return job


def local_rank_left() -> Incident:
    """The others name the local rank that left first."""
    job = Incident("symptoms_local_rank_left", 4)
    job.log_nccl_init()
    job.log_steps(1, 6)
    for rank in (0, 2, 3):
        job.log_nccl(rank, "NCCL INFO [Service thread] Connection closed by localRank 1")
        job.log_taken_down(rank)
    job.set_truth("unknown", [None], [1], "the others say that local rank 1 left first; why, its log does not tell")
    return job


def desync_report() -> Incident:
    """torch's desync report names the lagging ranks."""
    job = Incident("desync_report_names_the_lagging", 8)
    job.log_steps(1, 6)
    job.advance_clock(600)
    for rank in job.all_ranks():
        job.log_timeout(rank, seq=7)
    job.log_c10(
        0,
        "ProcessGroupNCCL.cpp:700",
        "ranks [3, 5] are the lagging ranks that caused this timeout. They never joined any collectives",
    )
    job.set_truth(
        "known", ["torch.rank-never-joined", "torch.lagging-rank"], [3, 5], "torch's own report names ranks 3 and 5"
    )
    return job


KINDS = (
    spawned_process,
    unlabelled_crash,
    earlier_failure_counts,
    npu_internal_error,
    two_ranks_on_one_gpu,
    handled_then_memory,
    handled_then_other,
    handled_then_killed,
    error_surfaces_later_on_others,
    kernel_names_a_process,
    one_client_missing,
    rank_absent_at_links,
    checkpoint_path_of_all_ranks,
    pod_killed_for_memory,
    agent_breaks_the_tie,
    cancelled_after_failure,
    local_rank_left,
    desync_report,
)
