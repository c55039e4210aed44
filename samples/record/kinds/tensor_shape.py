"""A matrix product in the model has shapes that do not fit, on all ranks."""

import torch
from torch import nn
from trainlib import Job, TinyLM


class Widened(TinyLM):
    """TinyLM whose head was widened and whose trunk was not."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(48, 256)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Fail in the head."""
        return super().forward(tokens)


def main() -> None:
    """Train."""
    job = Job(model=Widened())
    job.train(1, 10)


if __name__ == "__main__":
    main()
