"""One rank issues another collective than its peers, which TORCH_DISTRIBUTED_DEBUG=DETAIL notices.

WHAT sets the difference: op (broadcast for all-reduce), shape, or dtype. The model is not wrapped by DDP: its
constructor crashes under DETAIL in the CPU build of torch 2.13 (see the sample segfault_all_ranks_redirects).
"""

import os

import torch
import torch.distributed as dist
from trainlib import Job


def sync_metrics(job: Job, what: str) -> None:
    """Share the metrics of this rank, wrongly on the odd one."""
    metrics = torch.ones(64)
    if job.odd and what == "shape":
        metrics = torch.ones(63)
    if job.odd and what == "dtype":
        metrics = metrics.double()
    if job.odd and what == "op":
        dist.broadcast(metrics, src=0)
    else:
        dist.all_reduce(metrics)


def main() -> None:
    """Train ten steps, then share metrics."""
    job = Job(ddp=False)
    job.train(1, 10)
    sync_metrics(job, os.environ["WHAT"])
    job.train(11, 20)


if __name__ == "__main__":
    main()
