"""A branch of the model takes no part in the loss, and DDP raises an error at the second step, on all ranks."""

import torch
from torch import nn
from trainlib import Job, TinyLM


class WithAdapter(TinyLM):
    """TinyLM with an adapter that forward() does not use."""

    def __init__(self) -> None:
        super().__init__()
        self.adapter = nn.Linear(32, 32)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Skip the adapter."""
        return super().forward(tokens)


def main() -> None:
    """Train."""
    job = Job(model=WithAdapter())
    job.train(1, 10)


if __name__ == "__main__":
    main()
