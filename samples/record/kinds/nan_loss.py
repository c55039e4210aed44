"""The loss of one rank becomes NaN, and its own check ends that rank."""

import math

from trainlib import Job


def check_finite(loss: float, number: int) -> None:
    """Raise FloatingPointError for a loss that is not finite."""
    if not math.isfinite(loss):
        raise FloatingPointError(f"non-finite loss {loss} at step {number}")


def main() -> None:
    """Train; the embedding of the odd rank holds a NaN from step 11 on."""
    job = Job()
    for number in range(1, 40):
        loss = job.loss(job.batch()).item()
        if job.odd and number > 10:
            loss = float("nan")
        check_finite(loss, number)
        job.step(number)


if __name__ == "__main__":
    main()
