"""Process groups and pairs: groups in another order, a group that a rank leaves out, sends without their receives."""

from __future__ import annotations

import time
from datetime import timedelta

import torch
import torch.distributed as dist
from hanglib import RANK, SECONDS, WORLD, average_gradients, finish, main, train

FOREVER = 3600
BIG = 1 << 24


def upload_metrics() -> None:
    time.sleep(FOREVER)


def new_group(ranks: list[int], **options: object) -> dist.ProcessGroup:
    """Return a group with the timeout of the job: torch gives it 30 minutes otherwise."""
    return dist.new_group(ranks, timeout=timedelta(seconds=SECONDS), **options)


def all_groups(*names: str) -> list:
    return [new_group(list(range(WORLD)), group_desc=name) for name in names]


def group_order():
    tensor_parallel, data_parallel = all_groups("tp", "dp")
    for _ in range(3):
        average_gradients(group=tensor_parallel)
        average_gradients(group=data_parallel)
    if RANK == 2:
        average_gradients(group=data_parallel)
        average_gradients(group=tensor_parallel)
    else:
        average_gradients(group=tensor_parallel)
        average_gradients(group=data_parallel)
    finish()


def group_cycle():
    groups = [new_group([rank, (rank + 1) % 3], group_desc=f"pair{rank}") for rank in range(3)]
    train()
    average_gradients(group=groups[RANK])
    average_gradients(group=groups[RANK - 1])
    finish()


def other_group_first():
    tensor_parallel, data_parallel = all_groups("tp", "dp")
    for _ in range(3):
        average_gradients(group=tensor_parallel)
        average_gradients(group=data_parallel)
    if RANK == 1:
        average_gradients(group=data_parallel)
    average_gradients(group=tensor_parallel)
    average_gradients(group=data_parallel)
    finish()


def ring_of_pairs():
    groups = [new_group([rank, (rank + 1) % 4], group_desc=f"pair{rank}") for rank in range(4)]
    train()
    for group in (groups[RANK], groups[RANK - 1]):
        dist.broadcast(torch.ones(8), dist.get_process_group_ranks(group)[0], group=group)
        average_gradients(group=group)
    finish()


def row_sleeps():
    rows = [new_group(list(range(first, first + 4)), group_desc=f"row{first // 4}") for first in (0, 4)]
    train()
    if RANK == 6:
        upload_metrics()
    average_gradients(group=rows[RANK // 4])
    train(5, 8)


def wrong_group():
    tensor_parallel, data_parallel = all_groups("tp", "dp")
    for number in range(6):
        average_gradients(group=data_parallel if RANK == 1 and number == 4 else tensor_parallel)
        average_gradients(group=data_parallel)
    finish()


def new_group_without_rank():
    train()
    if RANK != 3:
        new_group(list(range(WORLD)), group_desc="experts")
    train(5, 8)


def never_in_group():
    group = new_group([0, 1, 2], group_desc="tp0")
    train()
    if RANK == 2:
        upload_metrics()
    if RANK < 3:
        average_gradients(group=group)
    train(5, 8)


def cascade():
    pairs = [new_group([first, first + 1], group_desc=f"tp{first // 2}") for first in range(0, WORLD, 2)]
    train()
    if RANK == 3:
        upload_metrics()
    average_gradients(group=pairs[RANK // 2])
    train(5, 8)


def send_without_recv():
    train()
    if RANK == 0:
        dist.send(torch.ones(BIG), 1)
    train(5, 8)


def recv_without_send():
    train()
    if RANK == 1:
        dist.recv(torch.ones(64), 0)
    train(5, 8)


def send_unreceived():
    train()
    if RANK == 2:
        dist.send(torch.ones(BIG), 3)
    train(5, 8)


def receive_nobody():
    train()
    if RANK == 1:
        dist.recv(torch.ones(64), 3)
    train(5, 8)


def send_activations(peer: int) -> None:
    dist.send(torch.ones(64), peer)


def recv_activations(peer: int) -> None:
    dist.recv(torch.ones(64), peer)


def wrong_peer():
    train()
    if RANK:
        recv_activations(RANK - 1)
    if RANK < WORLD - 1:
        send_activations(3 if RANK == 1 else RANK + 1)
    train(5, 8)


def ring_of_sends():
    train()
    dist.send(torch.ones(BIG), (RANK + 1) % WORLD)
    dist.recv(torch.ones(BIG), (RANK - 1) % WORLD)
    train(5, 8)


if __name__ == "__main__":
    main(globals())
