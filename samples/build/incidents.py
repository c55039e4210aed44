"""Write the failed jobs of samples/jobs that cannot be recorded without GPUs, NPUs or a cluster.

    python samples/build/incidents.py                   # into samples/jobs
    python samples/build/incidents.py -o /tmp/jobs

The same script always writes the same bytes. The lines follow the formats of the programs that write them; the
truth is what an expert reads from the files. Their TRUTH.yaml says `layout: written …`.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import choices
import hangs
import machines
import npus
import stops
import symptoms

KINDS = (*choices.KINDS, *hangs.KINDS, *machines.KINDS, *npus.KINDS, *stops.KINDS, *symptoms.KINDS)


def build(directory: Path) -> None:
    """Write each job; an older one of that name is replaced."""
    for kind in KINDS:
        job = kind()
        shutil.rmtree(directory / job.name, ignore_errors=True)
        job.write(directory)


def main() -> None:
    """Parse the command line and write the jobs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).resolve().parents[1] / "jobs")
    build(parser.parse_args().output)


if __name__ == "__main__":
    main()
