"""One rank decides alone to stop early and ends with exit code 0; its peers are left in a collective."""

from trainlib import Job


def should_stop(job: Job, number: int) -> bool:
    """Decide by the loss of this rank only, which is the bug."""
    return job.odd and number == 14


def main() -> None:
    """Train until should_stop."""
    job = Job()
    for number in range(1, 60):
        job.step(number)
        if should_stop(job, number):
            job.log.info("early stop: validation loss has not improved for 3 evaluations")
            return


if __name__ == "__main__":
    main()
