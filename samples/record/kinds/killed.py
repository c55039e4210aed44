"""One rank dies of a signal that Python never sees: SIGNAL, by default SIGKILL, as the OOM killer sends it."""

import os
import signal

from trainlib import Job


def main() -> None:
    """Train until the odd rank is killed after step 15."""
    job = Job()
    job.train(1, 15)
    if job.odd:
        os.kill(os.getpid(), signal.Signals[os.environ.get("SIGNAL", "SIGKILL")])
    job.train(16, 40)


if __name__ == "__main__":
    main()
