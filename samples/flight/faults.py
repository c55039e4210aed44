"""Small jobs with one fault each, run by record.py with one process a rank. Each writes its Flight Recorder dump while
it hangs.

Gloo writes no dump by itself; a thread of each rank asks for it, as torch.distributed.debug does.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace, _dump_fr_trace_json

RANK, SIZE, OUT = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), os.environ["OUT"]
PAUSE = float(os.environ.get("PAUSE", "4"))
EDGE = threading.Event()


def dump() -> None:
    """One pickle with stacks; a JSON twin for one rank in four."""
    for name, data in (
        (f"fr_rank_{RANK}", _dump_fr_trace()),
        (f"fr_rank_{RANK}.json", _dump_fr_trace_json() if RANK % 4 == 1 else b""),
    ):
        if data:
            with open(os.path.join(OUT, name), "wb") as file:
                file.write(data)


def watch() -> None:
    """Dump once all ranks must stand, then end the process whatever it does."""
    EDGE.wait()
    time.sleep(PAUSE)
    dump()
    time.sleep(1.5)
    os._exit(3)


def all_reduce(count: int = 64, **more: object) -> None:
    dist.all_reduce(torch.ones(count), **more)


def step(index: int) -> None:
    all_reduce(64)
    all_reduce(16)


def train(steps: int = 4) -> None:
    for index in range(steps):
        step(index)


def evaluate() -> None:
    parts = [torch.zeros(8) for _ in range(SIZE)] if RANK == 0 else None
    dist.gather(torch.ones(8), parts)


def log_metric() -> None:
    all_reduce(64)


def upload() -> None:
    time.sleep(60)


def healthy() -> None:
    train()


def never_joined() -> None:
    train()
    if RANK == 2:
        upload()
    step(4)


def two_never_joined() -> None:
    train()
    if RANK in (1, 5):
        upload()
    step(4)


def other_call() -> None:
    train()
    if RANK == 1:
        dist.broadcast(torch.ones(64), 0)
    else:
        dist.all_reduce(torch.ones(64))
    train()


def swapped() -> None:
    train()
    if RANK == 3:
        dist.broadcast(torch.ones(32), 0)
        dist.all_reduce(torch.ones(32))
    else:
        dist.all_reduce(torch.ones(32))
        dist.broadcast(torch.ones(32), 0)


def other_size() -> None:
    train()
    work = dist.all_gather(
        [torch.ones(7 if RANK == 3 else 5) for _ in range(SIZE)], torch.ones(7 if RANK == 3 else 5), async_op=True
    )
    dump()
    work.wait()


def other_type() -> None:
    """As many bytes: the sum goes through, and is garbage."""
    train()
    dist.all_reduce(torch.ones(32, dtype=torch.int32 if RANK == 2 else torch.float32))
    train(1)


def rank_zero_only() -> None:
    for index in range(4):
        step(index)
        if RANK == 0 and index == 2:
            evaluate()


def extra_call() -> None:
    """The extra sum of rank 2 meets a sum of the others; all is one off from then on."""
    for index in range(4):
        all_reduce(64)
        if RANK == 2 and index == 1:
            log_metric()


def one_batch_more() -> None:
    for _ in range(5 if RANK == 1 else 4):
        all_reduce(64)


def skipped() -> None:
    for index in range(5):
        all_reduce(64)
        if not (RANK == 3 and index == 2):
            log_metric()


def group_order() -> None:
    a, b = dist.new_group(list(range(SIZE)), group_desc="grp_a"), dist.new_group(list(range(SIZE)), group_desc="grp_b")
    for _ in range(3):
        all_reduce(4, group=a)
        all_reduce(4, group=b)
    if RANK == 2:
        all_reduce(4, group=b)
        all_reduce(4, group=a)
    else:
        all_reduce(4, group=a)
        all_reduce(4, group=b)


def wrong_group() -> None:
    a, b = dist.new_group(list(range(SIZE)), group_desc="grp_a"), dist.new_group(list(range(SIZE)), group_desc="grp_b")
    for index in range(6):
        for group in (a, b):
            chosen = b if RANK == 1 and index == 4 else group
            all_reduce(4, group=chosen)


def cascade() -> None:
    """rank 3 is missing in its pair, so rank 2 is missing in the world."""
    pairs = [dist.new_group([first, first + 1], group_desc=f"tp{first // 2}") for first in range(0, SIZE, 2)]
    for index in range(4):
        if RANK == 3 and index == 3:
            upload()
        all_reduce(8, group=pairs[RANK // 2])
        all_reduce(64)


def never_in_group() -> None:
    """A group whose first collective one of its members never reaches."""
    train()
    group = dist.new_group([0, 1, 2], group_desc="tp0")
    if RANK == 2:
        upload()
    if RANK < 3:
        all_reduce(8, group=group)
    train(1)


def all_in_one() -> None:
    """Everybody in the same large transfer, which is not done yet."""
    train()
    big = torch.ones(1 << 26)
    dist.barrier()
    EDGE.set()
    dist.all_reduce(big)


def died() -> None:
    train()
    if RANK == 1:
        os._exit(9)
    all_reduce(64)


def half_and_half() -> None:
    train()
    if RANK < SIZE // 2:
        dist.broadcast(torch.ones(64), 0)
    else:
        dist.all_reduce(torch.ones(64))


def small_ring() -> None:
    train(30)
    if RANK == 2:
        upload()
    step(4)


def queued() -> None:
    """Calls wait in a queue behind the first that cannot go on."""
    train()
    if RANK == 1:
        upload()
    works = [dist.all_reduce(torch.ones(8 + index), async_op=True) for index in range(4)]
    for work in works:
        work.wait()


def monitored_barrier() -> None:
    """The others wait in a barrier that Gloo does not record."""
    train()
    if RANK == 2:
        upload()
    dist.monitored_barrier(timeout=timedelta(seconds=50))


KINDS: tuple[Callable[[], None], ...] = (
    healthy,
    never_joined,
    two_never_joined,
    other_call,
    swapped,
    other_size,
    other_type,
    rank_zero_only,
    extra_call,
    one_batch_more,
    skipped,
    group_order,
    wrong_group,
    cascade,
    never_in_group,
    all_in_one,
    died,
    half_and_half,
    small_ring,
    queued,
    monitored_barrier,
)


def main(kind: str) -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    _dump_fr_trace()  # the first one imports the symbolizer, which takes a second
    dist.barrier()
    threading.Thread(target=watch, daemon=True).start()
    if kind != "all_in_one":
        EDGE.set()
    with contextlib.suppress(RuntimeError):  # a peer that died; the process stays for its dump
        next(function for function in KINDS if function.__name__ == kind)()
    time.sleep(60)


if __name__ == "__main__":
    main(sys.argv[1])
