"""A healthy job with noise at the end: a dead helper thread, ignored exceptions, leaked memory, no destroy."""

import atexit
import os
import socket
import threading
import warnings
from multiprocessing import shared_memory

import torch.distributed as dist
from trainlib import Job


class SpillFile:
    """A temporary file that another process has removed already."""

    def __del__(self) -> None:
        os.unlink("/tmp/spill-0001.tmp")


def heartbeat() -> None:
    """Report to a monitor that was never started; the thread ends, the training continues."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    socket.create_connection(address, timeout=1)


def flush_metrics() -> None:
    """Flush to a connection that is closed."""
    raise ConnectionResetError(104, "Connection reset by peer")


def main() -> None:
    """Train, then exit without clean-up."""
    job = Job(total_steps=25)
    atexit.register(flush_metrics)
    thread = threading.Thread(target=heartbeat, name="heartbeat")
    thread.start()
    thread.join()
    job.train(1, 25)
    spill = SpillFile()
    del spill
    if job.rank == 0:
        shared_memory.SharedMemory(create=True, size=4096)
        warnings.warn("checkpoint writer had 2 pending futures at exit, waited for them", RuntimeWarning, stacklevel=1)
    dist.barrier()
    job.log.info("training finished, leaving without destroy_process_group")


if __name__ == "__main__":
    main()
