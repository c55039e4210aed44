"""One rank is late for a monitored barrier; rank 0 names it, and the others blame rank 0."""

import time
from datetime import timedelta

import torch.distributed as dist
from trainlib import Job


def build_index(job: Job) -> None:
    """Build the index of this rank's shard, which takes too long on the odd rank."""
    job.log.info("building the index of shard %d", job.rank)
    time.sleep(25 if job.odd else 0.1)
    job.log.info("index of shard %d is ready", job.rank)


def main() -> None:
    """Train, index, wait for all ranks."""
    job = Job()
    job.train(1, 6)
    build_index(job)
    dist.monitored_barrier(timeout=timedelta(seconds=8))
    job.train(7, 20)


if __name__ == "__main__":
    main()
