"""A healthy job that retries.

It has a refused connection, a helper process killed by a signal and a straggler at a monitored barrier."""

import socket
import subprocess
import sys
import time
from datetime import timedelta

import torch.distributed as dist
from trainlib import Job


def report_metrics(job: Job) -> None:
    """Connect to a metrics server that comes up late; give up silently after three attempts."""
    for attempt in range(1, 4):
        server = socket.create_server(("127.0.0.1", 0))
        address = server.getsockname()
        if attempt < 3:
            server.close()
        try:
            with socket.create_connection(address, timeout=1):
                job.log.info("metrics server reached at attempt %d", attempt)
        except OSError as error:
            job.log.warning("metrics server not reached (attempt %d of 3): %s", attempt, error, exc_info=attempt == 2)
            time.sleep(0.1)
        server.close()


def run_helper(job: Job) -> None:
    """Run a helper process that is killed the first time."""
    for code in ("import os; os.kill(os.getpid(), 9)", "print('helper ok')"):
        try:
            subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
            job.log.info("index helper finished, exit code 0")
        except subprocess.CalledProcessError:
            job.log.exception("index helper failed, starting it again")


def main() -> None:
    """Train with interruptions that all recover."""
    job = Job(total_steps=30)
    job.train(1, 10)
    report_metrics(job)
    if job.rank == 0:
        run_helper(job)
    if job.odd:
        job.log.warning("rank %d is slow: cache miss rate 0.93, others may time out waiting for it", job.rank)
        time.sleep(2)
    dist.monitored_barrier(timeout=timedelta(seconds=20))
    job.train(11, 30)
    job.finish()


if __name__ == "__main__":
    main()
