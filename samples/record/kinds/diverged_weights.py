"""The odd rank draws its dropout from another seed before the weights are set.

A hash of the weights, printed now and then, differs from the first one on."""

import hashlib
import time

import torch
import torch.distributed as dist
from trainlib import Job

STEPS = 40


def parameter_hash(model: torch.nn.Module) -> str:
    """Return a short hash over the bytes of all parameters."""
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    return digest.hexdigest()[:16]


def main() -> None:
    """Train with gradients averaged by hand: nothing broadcasts the weights at the start."""
    job = Job(ddp=False)
    if job.odd:
        torch.manual_seed(99)
        torch.nn.init.normal_(job.model.head.bias, std=0.01)
    for number in range(1, STEPS + 1):
        loss = job.loss(job.batch())
        job.optimizer.zero_grad()
        loss.backward()
        job.average_gradients()
        job.optimizer.step()
        if number % 5 == 0:
            job.log.info("step %d loss %.4f param_hash=%s", number, loss.item(), parameter_hash(job.model))
        time.sleep(0.01)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
