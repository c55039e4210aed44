"""Resuming fails on all ranks: the checkpoint is of a wider model (BROKEN=size) or half a file (BROKEN=half)."""

import os
from pathlib import Path

import torch
import torch.distributed as dist
from trainlib import Job, TinyLM


def write_checkpoint(path: Path) -> None:
    """Leave behind the checkpoint of "yesterday"."""
    path.parent.mkdir(exist_ok=True)
    torch.save(TinyLM(width=64).state_dict(), path)
    if os.environ["BROKEN"] == "half":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def resume(job: Job, path: Path) -> None:
    """Load the checkpoint into the model."""
    job.log.info("resuming from %s", path)
    job.model.module.load_state_dict(torch.load(path))  # type: ignore[operator,union-attr]


def main() -> None:
    """Resume and train."""
    job = Job()
    path = Path("checkpoints/step_00200.pt")
    if job.rank == 0:
        write_checkpoint(path)
    dist.barrier()
    resume(job, path)
    job.train(201, 220)


if __name__ == "__main__":
    main()
