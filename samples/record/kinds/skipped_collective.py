"""One rank is busy with an upload and misses the next all-reduce until the others time out."""

import faulthandler
import os
import time

from trainlib import Job


def upload_checkpoint(job: Job, seconds: float) -> None:
    """Simulate an upload to an object store that hangs."""
    job.log.info("uploading checkpoint step_00012 to s3://runs/toy/step_00012")
    time.sleep(seconds)


def main() -> None:
    """Train; after step 12 the odd rank alone uploads, for longer than the timeout."""
    job = Job()
    if after := os.environ.get("DUMP_STACK_AFTER_S"):
        faulthandler.dump_traceback_later(float(after))
    job.train(1, 12)
    if job.odd:
        upload_checkpoint(job, 60)
    job.train(13, 30)


if __name__ == "__main__":
    main()
