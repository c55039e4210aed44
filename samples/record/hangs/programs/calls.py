"""All ranks make collectives, but not the same ones: order, number, operation, size or type differ."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from hanglib import RANK, SECONDS, WORLD, average_gradients, average_loss, finish, log, main, train


def evaluate_together() -> None:
    parts = [torch.zeros(8) for _ in range(WORLD)] if RANK == 0 else None
    dist.gather(torch.ones(8), parts)


def rank0_gathers():
    train()
    if RANK == 0:
        evaluate_together()
    train(5, 8)


def skipped_call():
    for number in range(1, 7):
        average_gradients()
        if not (RANK == 3 and number == 4):
            dist.broadcast(torch.ones(1), 0)
    finish()


def skipped_same_size():
    for number in range(1, 7):
        average_gradients()
        if not (RANK == 3 and number == 4):
            average_gradients()
    finish()


def extra_call():
    for number in range(1, 7):
        average_gradients()
        if RANK == 2 and number == 4:
            average_gradients()
        average_gradients()
    finish()


def rank0_broadcasts():
    train()
    if RANK == 0:
        dist.broadcast(torch.ones(64), 0)
    train(5, 8)


def other_operation():
    train()
    if RANK == 1:
        dist.broadcast(torch.ones(64), 0)
    else:
        dist.all_reduce(torch.ones(64))
    train(5, 8)


def half_and_half():
    train()
    if RANK < WORLD // 2:
        dist.broadcast(torch.ones(64), WORLD - 1)
    else:
        dist.all_reduce(torch.ones(64))
    train(5, 8)


def other_size():
    train()
    dist.all_reduce(torch.ones(1 << 16 if RANK == 3 else 1 << 15))
    train(5, 8)


def other_dtype():
    train()
    dist.all_reduce(torch.ones(1 << 15, dtype=torch.float64 if RANK == 2 else torch.float32))
    train(5, 8)


def swapped():
    train()
    value = torch.ones(32)
    if RANK == 3:
        dist.broadcast(value, 0)
        dist.all_reduce(value)
    else:
        dist.all_reduce(value)
        dist.broadcast(value, 0)
    train(5, 8)


def uneven_batches():
    train(1, 5 if RANK == 1 else 4)
    finish()


def object_mismatch():
    train()
    settings = [None] * WORLD
    if RANK == 0:
        dist.broadcast_object_list(["cosine"], 0)
    else:
        dist.all_gather_object(settings, RANK)
    train(5, 8)


def barrier_on_rank0():
    train()
    if RANK == 0:
        dist.barrier()
    train(5, 8)


def extra_barrier():
    train()
    if RANK == 1:
        dist.barrier()
    dist.barrier()
    train(5, 8)


def branch_on_loss():
    train()
    loss = 2.5 if RANK in (0, 2) else 0.5
    if loss > 1:
        log.info("loss %.1f is high, averaging the scale", loss)
        dist.broadcast(torch.ones(2), 0)
    train(5, 8)


def thread_makes_call():
    train()
    if RANK == 1:
        thread = threading.Thread(target=dist.barrier, name="heartbeat")
        thread.start()
        time.sleep(0.5)
    train(5, 8)


def wrong_source():
    train()
    dist.broadcast(torch.ones(1 << 16), 1 if RANK == 2 else 0)
    train(5, 8)


def other_root():
    train()
    dist.reduce(torch.ones(1 << 16), 3 if RANK == 2 else 0)
    train(5, 8)


def half_barrier():
    train()
    if RANK < WORLD // 2:
        dist.barrier()
    train(5, 8)


def mesh_skips():
    rows = [new_group([0, 1], group_desc="tp0"), new_group([2, 3], group_desc="tp1")]
    columns = [new_group([0, 2], group_desc="dp0"), new_group([1, 3], group_desc="dp1")]
    for number in range(1, 6):
        if not (RANK == 1 and number == 4):
            average_gradients(group=rows[RANK // 2])
        average_gradients(group=columns[RANK % 2])
        log.info("step %d loss %.4f", number, 5.6 - 0.1 * number)
    finish()


def leaves_row_out():
    rows = [new_group(list(range(first, first + 4)), group_desc=f"row{first // 4}") for first in (0, 4)]
    columns = [new_group([first, first + 4], group_desc=f"column{first}") for first in range(4)]
    for number in range(1, 6):
        if not (RANK == 6 and number == 4):
            average_gradients(group=rows[RANK // 4])
        average_gradients(group=columns[RANK % 4])
    finish()


def new_group(ranks: list[int], **options: object) -> dist.ProcessGroup:
    return dist.new_group(ranks, timeout=timedelta(seconds=SECONDS), **options)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return self.layer(value).sum()


def ddp_skipped_backward():
    model = torch.nn.parallel.DistributedDataParallel(Model())
    for number in range(1, 7):
        loss = model(torch.ones(2, 64))
        if RANK == 2 and number == 4:
            log.info("loss is not finite, skipping the step")
        else:
            loss.backward()
        log.info("step %d loss %.4f", number, 5.6)
        average_loss()
    finish()


def ddp_without_step():
    model = torch.nn.parallel.DistributedDataParallel(Model())
    for number in range(1, 7):
        if RANK == 1 and number == 4:
            log.info("batch has no labels, going on")
        else:
            model(torch.ones(2, 64)).backward()
        average_loss()
    finish()


if __name__ == "__main__":
    main(globals())
