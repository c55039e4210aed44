"""A job that fails in its first attempt and is started again by torchrun.

With FAIL_AGAIN=1 it fails in every attempt. With SLOW_START=1 the odd rank joins the second attempt late. The store of
the first attempt still runs then, so the peer of that rank finds the address of the first attempt.
"""

import os
import time

from trainlib import ODD_RANK, Job


def fetch_shard(job: Job, attempt: int) -> None:
    """Fail on the odd rank while the file server is away."""
    if job.odd and (attempt == 0 or os.environ.get("FAIL_AGAIN")):
        raise TimeoutError("fetching shard-00003.bin from files.example.com took longer than 30 s")


def main() -> None:
    """Train, fetch, train."""
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    if attempt and os.environ.get("SLOW_START") and int(os.environ["RANK"]) == ODD_RANK:
        time.sleep(2)
    job = Job(total_steps=30)
    job.log.info("attempt %d of %s", attempt, int(os.environ["TORCHELASTIC_MAX_RESTARTS"]) + 1)
    job.train(1, 10)
    fetch_shard(job, attempt)
    job.train(11, 30)
    job.finish()


if __name__ == "__main__":
    main()
