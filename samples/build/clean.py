"""Write samples/clean/: logs of healthy jobs, full of lines that look like failures.

    python samples/build/clean.py                   # into samples/clean
    python samples/build/clean.py -o /tmp/clean

The same script always writes the same bytes. A kind is a function in launchers.py, frameworks.py or cluster.py.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable
from pathlib import Path

import cluster
import frameworks
import launchers
from job import Job

KINDS: tuple[Callable[[Job], None], ...] = (*launchers.KINDS, *frameworks.KINDS, *cluster.KINDS)
VARIANTS = {"nccl_info": 3, "decoy_parade": 6}  # others: 2


def build(directory: Path) -> None:
    """Replace the content of `directory` by all healthy jobs."""
    shutil.rmtree(directory, ignore_errors=True)
    number = 0
    for kind in KINDS:
        for variant in range(VARIANTS.get(kind.__name__, 2)):
            job = Job(kind.__name__, variant, number)
            kind(job)
            job.write(directory)
            number += 1


def main() -> None:
    """Parse the command line and write the jobs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).resolve().parents[1] / "clean")
    build(parser.parse_args().output)


if __name__ == "__main__":
    main()
