"""Jobs in which one small thing decides: an index, an exit status, which came first, a code without a cause, whose
memory it is.
"""

from __future__ import annotations

from incident import Incident
from npus import _links

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
    job.is_(
        "known", ["cuda.out-of-memory"], [2], "the process with index 2 ran out of GPU memory; no line carries a rank"
    )
    return job


def unlabelled_crash() -> Incident:
    job = Incident("crash_placed_by_its_exit_status", 4)
    job.steps(1, 9)
    job.to(
        "launcher.log",
        "terminate called after throwing an instance of 'std::runtime_error'",
        "  what():  tokenizer index is damaged at 77",
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


def _bare(name: str, steps: int) -> Incident:
    """One log of all ranks, in which nothing says who writes: an exception is handled, then the training goes on."""
    job = Incident(name, 4)
    job.to("job.log", "starting, world_size=4", *_CACHE)
    for step in range(1, steps + 1):
        job.wait(1)
        job.to("job.log", f"step {step} loss {3 / step:.3f}")
    return job


def handled_then_memory() -> Incident:
    job = _bare("bare_log_handled_then_out_of_memory", 4)
    job.to(
        "job.log",
        "Traceback (most recent call last):",
        '  File "/workspace/train.py", line 88, in train',
        "    loss.backward()",
    )
    job.to("job.log", _OOM.format(gpu=2, users=""))
    job.table({2: 1}, to="job.log")
    job.is_(
        "known",
        ["cuda.out-of-memory"],
        [2],
        "one rank ended with exit code 1, and the last exception is the one that ends a process",
    )
    return job


def handled_then_other() -> Incident:
    job = _bare("bare_log_handled_then_another", 3)
    job.to(
        "job.log",
        "Traceback (most recent call last):",
        '  File "/workspace/train.py", line 88, in train',
        "    loss.backward()",
    )
    job.to("job.log", "ValueError: shard 7 holds no samples")
    job.table({1: 1}, to="job.log")
    job.is_(
        "unknown", [None], [1], "of two exceptions without a rank the later one ended rank 1; the earlier was handled"
    )
    return job


def handled_then_killed() -> Incident:
    job = _bare("bare_log_handled_then_killed", 9)
    job.table({2: -9, 0: -15, 1: -15, 3: -15}, to="job.log")
    job.is_(
        "known",
        ["host.sigkill"],
        [2],
        "rank 2 is killed; the exception at the beginning was handled, for nine steps follow",
    )
    return job


def late_on_others() -> Incident:
    job = Incident("cuda_error_late_without_stamps", 4)
    job.init()
    job.steps(1, 5)
    text = "RuntimeError: CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect."
    job.traceback(1, text)
    job.wait(30)
    for rank in job.everyone(1):
        job.log(rank, "the step takes long")
        job.traceback(rank, text)
    job.is_(
        "known",
        ["cuda.illegal-memory-access"],
        [1],
        "rank 1 wrote nothing for half a minute before the others report the same error",
    )
    return job


def kernel_names_a_process() -> Incident:
    job = Incident("kernel_names_a_process", 8, hosts=2, layout="nodes", skew=(0.0, 180.0))
    job.init()
    job.steps(1, 9)
    job.kernel(
        2,
        "python3[4105]: segfault at 10 ip 00007f1c2a4b3d10 sp 00007ffd1c2a4b30 error 4 in libtorch_cpu.so[7f1c2a400000+d8a5000]",
    )
    job.wait(1)
    for rank in job.everyone(5):
        job.remote_error(rank)
    job.is_("known", ["crash.segfault"], [5], "the kernel of node2 names a process that NCCL's lines say is rank 5")
    return job


def one_client_missing() -> Incident:
    job = Incident("one_client_missing_in_between", 4)
    for rank in job.everyone(2):
        job.log(rank, "starting, world_size=4")
    job.wait(300)
    for rank in job.everyone(2):
        job.traceback(
            rank,
            "torch.distributed.DistStoreError: Timed out after 301 seconds waiting for clients. 3/4 clients joined.",
            line=31,
        )
    job.is_(
        "known",
        ["torch.rank-never-joined"],
        [2],
        "three of four ranks reached the store, and nothing is there of rank 2",
    )
    return job


def absent_at_links() -> Incident:
    job = Incident("hccl_links_wait_for_an_absent_rank", 8)
    for rank in job.everyone(4):
        job.log(rank, "starting, world_size=8")
    job.wait(120)
    _links(job, job.everyone(4))
    job.is_(
        "known",
        ["torch.rank-never-joined"],
        [4],
        "all but rank 4, of which no file is, report links that were not set up",
    )
    return job


def same_path() -> Incident:
    job = Incident("checkpoint_path_of_all_ranks", 4)
    job.steps(1, 6)
    for rank in job.everyone():
        job.log(rank, "saving the checkpoint to /ckpt/step6/model.pt")
    job.traceback(2, "RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 64 vs 0", line=102)
    job.is_(
        "known",
        ["checkpoint.write-race"],
        [0, 1, 2, 3],
        "all ranks write one file, and on rank 2 its length is not what was written",
    )
    return job


def pod() -> Incident:
    job = Incident("pod_killed_for_memory", 4)
    job.steps(1, 9)
    job.to(
        "describe-trainer-1.txt",
        "Name:         trainer-1",
        "Containers:",
        "  pytorch:",
        "    State:          Terminated",
    )
    job.to("describe-trainer-1.txt", "      Reason:       OOMKilled", "      Exit Code:    137")
    job.table({1: -9, 0: -15, 2: -15, 3: -15})
    job.is_("known", ["host.oom-killer"], [1], "rank 1 was killed, and the container's state says for memory")
    return job


def first_by_the_agent() -> Incident:
    job = Incident("agent_breaks_the_tie", 4)
    job.table({2: -11, 1: -7, 0: -15, 3: -15})
    job.is_(
        "known",
        ["crash.segfault"],
        [2],
        "two ranks crash in the same second, and only the agent says which it saw first",
    )
    return job


def stop_after_failure() -> Incident:
    job = Incident("cancelled_after_a_failure", 4, layout="srun")
    job.steps(1, 9)
    job.log(1, "reading shard 3")
    job.say(1, f"{job.stamp('%Y-%m-%d %H:%M:%S,%L', 1)} [rank1] ERROR trainer: giving up")
    job.traceback(1, "ValueError: shard 3 is empty", tagged=False)
    job.wait(40)
    job.cancelled("")
    job.is_("unknown", [None], [1], "rank 1 failed; that the step was cancelled 40 s later follows")
    return job


def named_left() -> Incident:
    job = Incident("symptoms_local_rank_left", 4)
    job.init()
    job.steps(1, 6)
    for rank in (0, 2, 3):
        job.nccl(rank, "NCCL INFO [Service thread] Connection closed by localRank 1")
        job.taken_down(rank)
    job.is_("unknown", [None], [1], "the others say that local rank 1 left first; why, its log does not tell")
    return job


def desync() -> Incident:
    job = Incident("desync_report_names_the_lagging", 8)
    job.steps(1, 6)
    job.wait(600)
    for rank in job.everyone():
        job.timeout(rank, seq=7)
    job.c10(
        0,
        "ProcessGroupNCCL.cpp:700",
        "ranks [3, 5] are the lagging ranks that caused this timeout. They never joined any collectives",
    )
    job.is_(
        "known", ["torch.rank-never-joined", "torch.lagging-rank"], [3, 5], "torch's own report names ranks 3 and 5"
    )
    return job


KINDS = (
    spawned,
    unlabelled_crash,
    two_in_order,
    inner,
    shared_memory,
    handled_then_memory,
    handled_then_other,
    handled_then_killed,
    late_on_others,
    kernel_names_a_process,
    one_client_missing,
    absent_at_links,
    same_path,
    pod,
    first_by_the_agent,
    stop_after_failure,
    named_left,
    desync,
)
