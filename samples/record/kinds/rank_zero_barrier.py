"""A barrier inside `if rank == 0`: rank 0 waits there alone, the others wait for its gradients."""

import torch.distributed as dist
from trainlib import Job


def save_checkpoint(job: Job, number: int) -> None:
    """Save on rank 0, with a barrier that only rank 0 reaches."""
    if job.rank == 0:
        job.log.info("saving checkpoint of step %d", number)
        dist.barrier()


def main() -> None:
    """Train and save after step 10."""
    job = Job()
    job.train(1, 10)
    save_checkpoint(job, 10)
    job.train(11, 20)


if __name__ == "__main__":
    main()
