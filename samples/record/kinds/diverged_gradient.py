"""From step 30 on, the odd rank steps with its own gradient instead of the average.

It prints the norm like all the others."""

import time

import torch
import torch.distributed as dist
from torch import nn
from trainlib import Job

STEPS = 60


def gradient_norm(model: nn.Module) -> float:
    """Return the norm over all gradients."""
    return float(torch.sqrt(sum((parameter.grad**2).sum() for parameter in model.parameters())))


def main() -> None:
    """Train; the loss of a rank is that of its own batch, the gradient norm should be the same on all."""
    job = Job(ddp=False)
    for number in range(1, STEPS + 1):
        loss = job.loss(job.batch())
        job.optimizer.zero_grad()
        loss.backward()
        own = [parameter.grad.clone() for parameter in job.model.parameters()]
        job.average_gradients()
        if job.odd and number >= 30:
            for parameter, gradient in zip(job.model.parameters(), own, strict=True):
                parameter.grad.copy_(gradient)
        job.log.info("step %d loss %.4f grad_norm %.6f lr 3.0e-03", number, loss.item(), gradient_norm(job.model))
        job.optimizer.step()
        time.sleep(0.01)
    dist.barrier()
    job.log.info("checkpoint written to /ckpt/step_%d", STEPS)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
