"""A rank stands outside of collectives: it loads, downloads, computes, saves, or waits for a process."""

from __future__ import annotations

import multiprocessing
import os
import socket
import subprocess
import threading
import time
import urllib.request
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from hanglib import OUT, RANK, finish, log, main, step, train
from torch.utils.data import DataLoader, Dataset

FOREVER = 3600
MIRROR = socket.create_server(("127.0.0.1", 0))  # connections wait in its backlog and get no answer


class Shards(Dataset):
    """Samples that are read from slow storage: sample 4 of the ranks `stuck` never arrives."""

    def __init__(self, stuck: tuple[int, ...]) -> None:
        self.stuck = stuck

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        if index == 4 and RANK in self.stuck:
            self.read_shard(f"/mnt/data/shard_{index:05}.tar")
        return torch.ones(4)

    def read_shard(self, path: str) -> None:
        time.sleep(FOREVER)


def train_on(loader: DataLoader) -> None:
    for number, _ in enumerate(loader, start=1):
        step(number)


def slow_data_main():
    train_on(DataLoader(Shards((2,)), batch_size=1))


def data_worker_stuck():
    train_on(DataLoader(Shards((1,)), batch_size=1, num_workers=1, prefetch_factor=2))


def download_shard(url: str) -> bytes:
    log.info("downloading %s", url)
    with urllib.request.urlopen(url) as answer:
        return answer.read()


def download():
    train()
    if RANK == 1:
        download_shard(f"http://127.0.0.1:{MIRROR.getsockname()[1]}/data/shard_00017.tar")
    train(5, 8)


def slow_backend(graph, inputs):
    time.sleep(FOREVER)


def compiles():
    train()
    if RANK == 1:
        torch.compile(lambda value: value * 2 + 1, backend=slow_backend)(torch.ones(3))
    train(5, 8)


def evaluate() -> float:
    log.info("evaluation of 50000 samples")
    total, end = 0.0, time.monotonic() + FOREVER
    while time.monotonic() < end:
        total += sum(index * 0.5 for index in range(10_000))
    return total


def rank0_evaluates():
    train()
    if RANK == 0:
        evaluate()
    train(5, 8)


def save_checkpoint(path: str) -> None:
    log.info("saving checkpoint to %s", path)
    os.mkfifo(path)
    with open(path, "wb") as file:  # storage that does not answer
        torch.save({"step": 4}, file)


def rank0_saves():
    train()
    if RANK == 0:
        save_checkpoint(f"{OUT}/step_4.pt")
    dist.barrier()
    train(5, 8)


def upload_metrics() -> None:
    time.sleep(FOREVER)


def sleeps():
    train()
    if RANK == 5:
        upload_metrics()
    train(5, 8)


def two_sleep():
    train()
    if RANK in (3, 11):
        upload_metrics()
    train(5, 8)


def left_loop():
    train(1, 4 if RANK == 1 else 5)
    if RANK == 1:
        log.info("no more batches: training finished after 4 steps")
        threading.Thread(target=upload_metrics, name="uploader").start()  # Python waits for it at exit
        return
    finish()


def exited():
    train()
    if RANK == 2:
        os._exit(0)
    time.sleep(1)
    train(5, 8)


def sync_dataset() -> None:
    subprocess.run(["sleep", str(FOREVER)], check=True)


def waits_for_subprocess():
    train()
    if RANK == 0:
        sync_dataset()
    train(5, 8)


def monitored_barrier():
    train()
    if RANK == 2:
        upload_metrics()
    dist.monitored_barrier(timeout=timedelta(seconds=float(os.environ["DIST_TIMEOUT_S"])))
    train(5, 8)


def store_key_missing():
    train()
    if RANK == 3:
        dist.distributed_c10d._get_default_store().wait(["config/epoch_1"], timedelta(seconds=FOREVER))
    train(5, 8)


def async_queue():
    train()
    if RANK == 1:
        upload_metrics()
    works = [dist.all_reduce(torch.ones(8 + index), async_op=True) for index in range(4)]
    for work in works:
        work.wait()
    train(5, 8)


def async_never_waited():
    """Rank 1 starts a call, drops its handle, and waits for something else."""
    train()
    if RANK == 1:
        dist.all_reduce(torch.ones(64), async_op=True)
        upload_metrics()
    train(5, 8)


def read_metrics() -> bytes:
    with socket.create_connection(MIRROR.getsockname()) as connection:
        return connection.recv(64)


def socket_read():
    train()
    if RANK == 2:
        read_metrics()
    train(5, 8)


def solve(tolerance: float) -> float:
    value, change = 1.0, 1.0
    while change > tolerance:
        change = abs(value - (value * 0.5 + 0.5)) + 1e-3
    return value


def never_converges():
    train()
    if RANK == 1:
        solve(1e-6)
    train(5, 8)


def tokenize(text: str) -> list[int]:
    time.sleep(FOREVER if text == "shard 3" else 0)
    return [len(text)]


def pool_map():
    train()
    if RANK == 0:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            pool.map(tokenize, [f"shard {number}" for number in range(8)])
    dist.barrier()
    train(5, 8)


def push_checkpoint() -> bool:
    raise ConnectionError("bucket does not answer")


def upload_with_retries() -> None:
    for attempt in range(1000):
        try:
            push_checkpoint()
        except ConnectionError as error:
            log.warning("upload failed (attempt %d): %s", attempt + 1, error)
            time.sleep(min(2 ** min(attempt, 4), 10))


def retry_loop():
    train()
    if RANK == 3:
        upload_with_retries()
    train(5, 8)


def breakpoint_left():
    train()
    if RANK == 0:
        input()
    train(5, 8)


def pipe_full():
    train()
    if RANK == 2:
        _, writer = os.pipe()
        data = b"x" * 1_000_000
        while data:  # a debugger that attaches ends one call
            data = data[os.write(writer, data) :]
    train(5, 8)


def socket_takes_no_more():
    train()
    if RANK == 1:
        ours, theirs = socket.socketpair()
        with theirs:
            ours.sendall(b"x" * 10_000_000)
    train(5, 8)


def waits_for_file():
    train()
    if RANK == 1:
        while not Path(f"{OUT}/preprocessed.done").exists():
            time.sleep(0.5)
    train(5, 8)


if __name__ == "__main__":
    main(globals())
