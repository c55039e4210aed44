"""A rank waits for a lock, a queue or a thread of its own."""

from __future__ import annotations

import ctypes
import fcntl
import logging
import multiprocessing
import os
import queue
import threading
import time

from hanglib import OUT, RANK, log, main, train

FOREVER = 3600


class Prefetcher:
    """Two locks, which two threads take in the opposite order."""

    def __init__(self) -> None:
        self.cache_lock, self.index_lock = threading.Lock(), threading.Lock()

    def refill(self) -> None:
        with self.index_lock:
            time.sleep(0.3)
            with self.cache_lock:
                pass

    def next_batch(self) -> None:
        with self.cache_lock:
            time.sleep(0.3)
            with self.index_lock:
                pass


def abba_locks():
    train()
    if RANK == 1:
        prefetcher = Prefetcher()
        threading.Thread(target=prefetcher.refill, daemon=True, name="prefetcher").start()
        prefetcher.next_batch()
    train(5, 8)


class Metrics:
    """A lock that is not reentrant, taken twice by one thread."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def add(self, value: float) -> None:
        with self.lock:
            if value > 5:
                self.flush()

    def flush(self) -> None:
        with self.lock:
            pass


def relock():
    train()
    if RANK == 0:
        Metrics().add(5.2)
    train(5, 8)


def lock_cache(path: str):
    file = open(path, "w")  # noqa: SIM115 - the lock lives as long as the file is open
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def file_lock():
    train()
    if RANK in (0, 3):  # rank 0 does not release it
        time.sleep(0.5 * (RANK == 3))
        lock = lock_cache(f"{OUT}/tokenizer.lock")
        log.info("tokenizer cache locked: %s", lock.name)
    train(5, 8)


def build_lock():
    from torch.utils.file_baton import FileBaton

    train()
    if RANK == 1:
        open(f"{OUT}/lock", "w").close()  # left by a build that was killed
        baton = FileBaton(f"{OUT}/lock")
        if not baton.try_acquire():
            baton.wait()
    train(5, 8)


def tokenize(texts, results) -> None:
    os._exit(1)


def dead_worker_queue():
    train()
    if RANK == 2:
        context = multiprocessing.get_context("fork")
        texts, results = context.Queue(), context.Queue()
        context.Process(target=tokenize, args=(texts, results), daemon=True).start()
        results.get()
    train(5, 8)


def thread_queue():
    train()
    if RANK == 0:
        queue.Queue().get()  # its producer thread died
    train(5, 8)


def hash_tokens() -> None:
    while True:  # a signal, as for faulthandler, ends one call
        ctypes.PyDLL(None).sleep(FOREVER)  # PyDLL keeps the GIL


def holds_gil():
    train()
    if RANK == 1:
        hash_tokens()
    train(5, 8)


def await_answer() -> None:
    while ctypes.PyDLL(None).poll(None, 0, -1):
        pass


def polls_with_gil():
    train()
    if RANK == 2:
        await_answer()
    train(5, 8)


def write_metrics() -> None:
    time.sleep(FOREVER)


def joins_thread():
    train()
    if RANK == 6:
        writer = threading.Thread(target=write_metrics, daemon=True, name="writer")
        writer.start()
        writer.join()
    train(5, 8)


class Uploader(logging.Handler):
    """Sends each record while it holds the lock of the handler."""

    def emit(self, record: logging.LogRecord) -> None:
        self.send(record.getMessage())

    def send(self, text: str) -> None:
        time.sleep(FOREVER)


def logging_lock():
    train()
    if RANK == 3:
        uploader = logging.getLogger("metrics")
        uploader.addHandler(Uploader())
        threading.Thread(target=uploader.error, args=("loss 5.2",), daemon=True, name="metrics").start()
        time.sleep(0.3)
        uploader.error("step 4")
    train(5, 8)


def condition_never_set():
    train()
    if RANK == 2:
        batch_ready = threading.Condition()
        with batch_ready:
            batch_ready.wait()
    train(5, 8)


if __name__ == "__main__":
    main(globals())
