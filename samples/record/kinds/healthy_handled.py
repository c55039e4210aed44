"""A healthy job whose log is full of handled exceptions, tracebacks and words such as error, timeout and NaN."""

import torch
from trainlib import Job


def read_shard(job: Job, name: str) -> bytes:
    """Read a shard, or its copy when it is missing."""
    try:
        with open(f"/data/fast/{name}", "rb") as file:
            return file.read()
    except FileNotFoundError:
        job.log.exception("could not read %s from the fast tier, using the copy", name)
        return b""


def find_batch_size(job: Job, wanted: int) -> int:
    """Halve the batch until it fits into memory."""
    while True:
        try:
            torch.empty(wanted << 40)
            return wanted
        except RuntimeError as error:
            job.log.warning(
                "batch size %d does not fit: %s; trying %d", wanted, error, wanted // 64, exc_info=wanted > 4096
            )
            wanted //= 64


def audit(job: Job, number: int) -> None:
    """Print lines that contain words of failures."""
    job.log.info("health check at step %d: 0 errors, 0 timeouts, no NaN found in 128 gradients, 0 ranks failed", number)
    job.log.info("grad scaler: overflow=False, nan_count=0, inf_count=0, error_budget=0/10")


def main() -> None:
    """Train with many warnings, and finish."""
    job = Job(total_steps=30)
    job.log.info("config: timeout=1800 fail_fast=False on_error=abort nccl_debug=WARN kill_after=86400 signal=SIGTERM")
    find_batch_size(job, 1 << 22)
    for number in range(1, 31):
        if number % 10 == 0:
            read_shard(job, f"shard-{number:05d}.bin")
            audit(job, number)
        job.step(number)
    job.log.info("exit code 0, failures: none, last exception: None")
    job.finish()


if __name__ == "__main__":
    main()
