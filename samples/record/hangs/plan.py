"""The hangs that programs/ makes, and the truth of each, written before any of them was diagnosed.

`number` counts from the barrier of join(), #1; step n of train() makes #2n and #2n+1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

NEVER = ("torch.rank-never-joined", "torch.lagging-rank", "torch.hang-outside-collectives")
LOCK = ("torch.thread-deadlock", *NEVER)
ORDER = ("torch.collective-order-mismatch", "torch.rank-conditional-collective")
UNEVEN = ("data.uneven-inputs", "torch.extra-collective", *ORDER)
GROUPS = ("torch.group-order-deadlock", "torch.wrong-process-group", *ORDER)
STUCK = ("torch.stuck-in-collective",)  # what is seen where no source records which rank is the root of a call
SIZE = ("torch.collective-shape-mismatch",)

STACKS = ("pyspy", "pyspy-merged", "native", "faulthandler", "faulthandler-merged", "gdb-py")
FORMS = ("log", "detail", "dump", *STACKS, "pyspy-single", "gdb", "all")
PARTS = ("dump", "pyspy", "faulthandler", "gdb")  # of the form `all`
NO_RANK = ("pyspy-merged", "faulthandler-merged")  # several processes in one file, none with its rank
NATIVE_ONLY = ("gdb",)  # no Python line and no name of a Python function


@dataclass(frozen=True)
class Hang:
    """`ids` and `ranks` hold every right answer; a form in `silent` cannot tell the cause, so `unknown` is right there.

    So it is in the forms that `cannot_tell` has for all kinds.
    """

    name: str
    size: int
    ids: tuple[str, ...]
    ranks: tuple[tuple[int, ...], ...]
    group: str = "default_pg"
    number: int | None = 10
    silent: tuple[str, ...] = ()
    more_ranks: dict[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)  # by form, beside `ranks`
    hangs: bool = True  # False: gloo fails at once, so there are only logs
    launcher: str = "fork"


@dataclass(frozen=True)
class Sample:
    """A recorded hang that is in samples/jobs."""

    hang: str
    form: str
    what_happened: str


def cannot_tell(hang: Hang, form: str) -> bool:
    """Return whether a form does not show the cause of a hang, decided by kind and form alone.

    One stack compares with nothing. Processes forked from one have the same main thread: without a pid, their dumps by
    faulthandler in one file may be of one process at several moments.
    """
    is_of_one_thread = form == "faulthandler-merged" and hang.launcher == "fork"
    has_silent_parts = form == "all" and set(PARTS) <= set(hang.silent)
    return form in hang.silent or form == "pyspy-single" or is_of_one_thread or has_silent_parts


def one(rank: int) -> tuple[tuple[int, ...], ...]:
    """Return the only right answer: this rank."""
    return ((rank,),)


# One rank waits in a call that may have ended on the others, as in skipped_call: one of those may have left it out.
ONE_SIDED = ("log", *STACKS, *NATIVE_ONLY)
SAME_LINE = ("log", *STACKS, *NATIVE_ONLY)  # all ranks stand in the same line: only counts differ
GROUP_WAITS = (*SAME_LINE, "detail")  # all wait in groups of some ranks, which neither stacks nor DETAIL name
WRONG_SIZE = ("log", "detail")  # gloo names the rank that receives; in DETAIL the constructor of DDP crashes
NO_FRAME = ("pyspy", "pyspy-merged", "faulthandler", "faulthandler-merged")  # work.wait() is native
P2P = ("dump",)  # Gloo does not record send, recv, monitored_barrier and new_group
PAIR = ((0,), (1,), (0, 1))
SENT = (*ORDER, "torch.extra-collective", *NEVER)

HANGS = (
    Hang("slow_data_main", 3, ("hang.dataloader", *NEVER), one(2)),
    Hang("data_worker_stuck", 4, ("hang.dataloader", *NEVER), one(1)),
    Hang("download", 2, NEVER, one(1)),
    Hang("abba_locks", 4, LOCK, one(1)),
    Hang("relock", 4, LOCK, one(0)),
    Hang("file_lock", 4, NEVER, one(3), silent=("log",)),  # its holder ends, and rank 3 fails in the others' call
    Hang("build_lock", 3, ("launch.stale-build-lock", "launch.build-lock-wait", *NEVER), one(1)),
    Hang("compiles", 3, ("torch.compile-skew", *NEVER), one(1)),
    Hang("rank0_evaluates", 4, NEVER, one(0), launcher="torchrun"),
    Hang("rank0_gathers", 4, ORDER, one(0), silent=ONE_SIDED),
    Hang("rank0_saves", 4, ("checkpoint.barrier-timeout", *NEVER), one(0), launcher="torchrun"),
    Hang("sleeps", 8, NEVER, one(5)),
    Hang("two_sleep", 16, NEVER, ((3, 11),)),
    Hang("skipped_call", 4, ORDER, one(3), number=9, silent=SAME_LINE),
    Hang("skipped_same_size", 4, UNEVEN, one(3), number=13, silent=NATIVE_ONLY),
    Hang("extra_call", 4, UNEVEN, one(2), number=14, silent=NATIVE_ONLY),
    Hang("rank0_broadcasts", 4, ORDER, one(0), silent=SAME_LINE),
    Hang("other_operation", 4, ORDER, one(1), silent=ONE_SIDED),
    Hang("half_and_half", 4, ORDER, ((0, 1), (2, 3), (0, 1, 2, 3), ()), silent=ONE_SIDED),
    Hang("other_size", 4, SIZE, one(3), silent=SAME_LINE, hangs=False),
    Hang("other_dtype", 4, ("torch.collective-dtype-mismatch", *SIZE), one(2), silent=SAME_LINE, hangs=False),
    Hang("swapped", 8, ORDER, one(3), silent=ONE_SIDED, launcher="torchrun"),
    Hang("group_order", 4, GROUPS, one(2), "dp", 4, silent=NATIVE_ONLY),
    Hang("group_cycle", 3, GROUPS, ((0, 1, 2),), "pair0", 1, silent=(*GROUP_WAITS, "dump")),
    Hang("wrong_group", 4, GROUPS, one(1), "dp", 5, silent=SAME_LINE),
    Hang("send_without_recv", 2, SENT, PAIR, silent=(*P2P, *NATIVE_ONLY)),
    Hang("recv_without_send", 3, SENT, PAIR, silent=(*P2P, *NATIVE_ONLY)),
    Hang("wrong_peer", 4, SENT, ((1,), (2,), (1, 2)), silent=FORMS),
    Hang("ring_of_sends", 4, ("torch.group-order-deadlock",), ((0, 1, 2, 3),), number=None, silent=FORMS),
    Hang("uneven_batches", 4, UNEVEN, one(1), silent=NATIVE_ONLY),
    Hang("left_loop", 3, ("launch.rank-left-early", *NEVER), one(1)),
    Hang("exited", 4, ("launch.rank-left-early", *NEVER), one(2), silent=("log", "detail"), hangs=False),
    Hang("waits_for_subprocess", 2, NEVER, one(0)),
    Hang("dead_worker_queue", 4, NEVER, one(2)),
    Hang("thread_queue", 3, LOCK, one(0)),
    Hang("monitored_barrier", 4, ("torch.monitored-barrier-timeout", *NEVER), one(2), silent=P2P),
    Hang("store_key_missing", 4, NEVER, one(3), launcher="torchrun"),
    Hang("object_mismatch", 4, ORDER, one(0), silent=ONE_SIDED),
    Hang("async_queue", 4, NEVER, one(1), silent=NO_FRAME),
    Hang("async_never_waited", 4, NEVER, one(1), number=11),
    Hang("new_group_without_rank", 4, (*ORDER, *NEVER), one(3), silent=P2P, more_ranks={"dump": ((0, 1, 2),)}),
    Hang("never_in_group", 4, NEVER, one(2), "tp0", 1, silent=NATIVE_ONLY),
    Hang("cascade", 6, NEVER, one(3), "tp1", 1),
    Hang("holds_gil", 4, ("torch.gil-hang", *NEVER), one(1), silent=("dump",)),
    Hang("barrier_on_rank0", 4, ORDER, one(0), silent=NATIVE_ONLY),
    Hang("breakpoint_left", 3, NEVER, one(0)),
    Hang("pipe_full", 4, NEVER, one(2)),
    Hang("ddp_skipped_backward", 4, (*ORDER, *SIZE), one(2), number=None, silent=WRONG_SIZE, hangs=False),
    Hang("waits_for_file", 2, NEVER, one(1), launcher="torchrun"),
    Hang("joins_thread", 8, NEVER, one(6)),
    Hang("extra_barrier", 4, (*UNEVEN, *NEVER), one(1), number=11, silent=NATIVE_ONLY),
    Hang("branch_on_loss", 4, ORDER, ((0, 2), (1, 3), (0, 1, 2, 3), ()), silent=ONE_SIDED),
    Hang("thread_makes_call", 4, (*ORDER, "torch.extra-collective"), one(1), silent=("log", *NATIVE_ONLY)),
    Hang("wrong_source", 4, (*ORDER, *STUCK), ((2,), (0, 2)), number=None, silent=FORMS),
    Hang("mesh_skips", 4, (*ORDER, *UNEVEN, *NEVER), one(1), "tp0", 5, silent=GROUP_WAITS),
    Hang("socket_read", 4, NEVER, one(2)),
    Hang("never_converges", 3, NEVER, one(1)),
    Hang("pool_map", 4, (*NEVER, "hang.dataloader"), one(0)),
    Hang("retry_loop", 4, NEVER, one(3), launcher="torchrun"),
    Hang("logging_lock", 4, LOCK, one(3)),
    Hang("condition_never_set", 3, LOCK, one(2)),
    Hang("other_root", 4, (*ORDER, *STUCK), ((2,), (0, 2)), number=None, silent=FORMS),
    Hang("half_barrier", 4, ORDER, ((0, 1), (2, 3), (0, 1, 2, 3), ()), silent=NATIVE_ONLY),
    Hang("leaves_row_out", 8, (*ORDER, *UNEVEN, *NEVER), one(6), "row1", 5, silent=GROUP_WAITS),
    Hang("ddp_without_step", 4, (*ORDER, *SIZE), one(1), number=None, silent=WRONG_SIZE, hangs=False),
    Hang("other_group_first", 4, GROUPS, one(1), "dp", 4, silent=NATIVE_ONLY),
    Hang("ring_of_pairs", 4, GROUPS, ((0, 1, 2, 3),), "pair0", None, silent=(*GROUP_WAITS, "dump")),
    Hang("row_sleeps", 8, NEVER, one(6), "row1", 1),
    Hang("send_unreceived", 4, SENT, ((2,), (3,), (2, 3)), silent=(*P2P, *NATIVE_ONLY)),
    Hang("receive_nobody", 4, SENT, ((1,), (3,), (1, 3)), silent=(*P2P, *NATIVE_ONLY)),
    Hang("polls_with_gil", 4, ("torch.gil-hang", *NEVER), one(2), silent=("dump",)),
    Hang("socket_takes_no_more", 4, NEVER, one(1)),
)

SAMPLES = (
    Sample("abba_locks", "native", "two threads of rank 1 wait for each other's lock; the others wait in all_reduce"),
    Sample(
        "skipped_call", "dump", "rank 3 leaves out a broadcast; rank 1, which gets its data from rank 3, waits in it"
    ),
    Sample("uneven_batches", "dump", "rank 1 has one batch more than the others, which wait in the barrier at the end"),
    Sample("waits_for_subprocess", "gdb", "rank 0 waits for a program that it started; rank 1 waits in all_reduce"),
    Sample("dead_worker_queue", "faulthandler", "rank 2 waits for a result of a worker process that died"),
)
