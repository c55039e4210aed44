"""The launch script passes an option that the training does not have, on all ranks."""

import argparse

from trainlib import Job


def main() -> None:
    """Parse and train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--lr", type=float, default=3e-3)
    options = parser.parse_args()
    Job().train(1, options.steps)


if __name__ == "__main__":
    main()
