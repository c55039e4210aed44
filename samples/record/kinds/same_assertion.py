"""All ranks fail the same assertion together.

With MIX_LINES=1 they write their tracebacks line by line, unbuffered and without any `[rankN]:` prefix, into one shared
file. The lines of eight tracebacks then mix, as they do when the ranks write to a network file system.
"""

import os
import random
import sys
import time
import traceback
from types import TracebackType

import torch.distributed as dist
from trainlib import Job


def write_slowly(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write a traceback with one system call per line."""
    for entry in traceback.format_exception(kind, error, trace):
        for line in entry.splitlines(keepends=True):
            os.write(2, line.encode())
            time.sleep(random.random() * 0.004)


def split_batch(samples: int, micro_batch: int) -> int:
    """Return how many micro-batches a batch makes."""
    assert samples % micro_batch == 0, (
        f"global batch of {samples} samples cannot be split into micro-batches of {micro_batch}"
    )
    return samples // micro_batch


def forward_backward(job: Job, number: int, samples: int) -> None:
    """Run one step in micro-batches."""
    split_batch(samples, micro_batch=16)
    job.step(number)


def run_stage(job: Job, first: int, last: int, samples: int) -> None:
    """Run the steps of one stage of the batch-size ramp."""
    for number in range(first, last + 1):
        forward_backward(job, number, samples)


def main() -> None:
    """Ramp the batch up; the size of the second stage is not divisible."""
    job = Job()
    if os.environ.get("MIX_LINES"):
        sys.excepthook = write_slowly
    run_stage(job, 1, 8, samples=64)
    dist.barrier()
    run_stage(job, 9, 16, samples=72)


if __name__ == "__main__":
    main()
