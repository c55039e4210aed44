"""One rank has fewer batches in its shard: it continues with validation while the others wait for its gradients."""

import time

from trainlib import Job


def validate(job: Job) -> None:
    """Evaluate on this rank's part, without any collective."""
    job.log.info("epoch 1: validation on 2048 sequences")
    time.sleep(25)


def main() -> None:
    """Train one epoch over as many batches as this rank's shard holds."""
    job = Job()
    batches = 20 if job.odd else 24
    job.log.info("epoch 1: %d batches in shard-%05d", batches, job.rank)
    job.train(1, batches)
    job.log.info("epoch 1: trained on %d batches", batches)
    validate(job)


if __name__ == "__main__":
    main()
