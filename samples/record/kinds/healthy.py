"""A healthy training."""

import os

from trainlib import Job


def main() -> None:
    """Train for STEPS steps, then exit."""
    steps = int(os.environ.get("STEPS", "40"))
    job = Job(total_steps=steps)
    job.train(1, steps)
    job.finish()


if __name__ == "__main__":
    main()
