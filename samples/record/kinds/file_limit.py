"""One rank opens a file per sample and never closes one, until it reaches its limit."""

import resource

from trainlib import Job


def open_sample(opened: list[object]) -> None:
    """Open the sample and forget to close it."""
    opened.append(open("train.py", "rb"))  # noqa: SIM115


def main() -> None:
    """Train; the odd rank may have 64 open files."""
    job = Job()
    if job.odd:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    opened: list[object] = []
    for number in range(1, 80):
        if job.odd:
            open_sample(opened)
            open_sample(opened)
        job.step(number)


if __name__ == "__main__":
    main()
