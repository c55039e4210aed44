"""A DataLoader worker of one rank is killed (SIGKILL) while it prepares a sample."""

import os
import signal

import torch
from torch.utils.data import DataLoader, Dataset
from trainlib import BATCH, LENGTH, VOCAB, Job


class Shards(Dataset[torch.Tensor]):
    """Random sequences; sample number `fatal` kills the worker that reads it."""

    def __init__(self, fatal: int) -> None:
        self.fatal = fatal

    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> torch.Tensor:
        if index == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.randint(VOCAB, (LENGTH,))


def main() -> None:
    """Train from a loader with two workers."""
    job = Job()
    loader = DataLoader(Shards(160 if job.odd else -1), batch_size=BATCH, num_workers=2)
    for number, tokens in enumerate(loader, start=1):
        job.batch = lambda tokens=tokens: tokens  # type: ignore[method-assign,misc]
        job.step(number)


if __name__ == "__main__":
    main()
