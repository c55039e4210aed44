"""A training that nothing happens to."""

import os

from trainlib import Job


def main() -> None:
    """Train for as many steps as STEPS says, then leave."""
    steps = int(os.environ.get("STEPS", "40"))
    job = Job(total_steps=steps)
    job.train(1, steps)
    job.finish()


if __name__ == "__main__":
    main()
