"""One rank builds a wider model than the others, which DDP notices when it wraps it."""

import os

from trainlib import ODD_RANK, Job, TinyLM


def main() -> None:
    """Build the model by this rank's configuration."""
    width = 40 if int(os.environ["RANK"]) == ODD_RANK else 32
    job = Job(model=TinyLM(width))
    job.train(1, 10)


if __name__ == "__main__":
    main()
