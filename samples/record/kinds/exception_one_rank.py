"""One rank reads a record that it cannot parse and raises ValueError; the others lose their peer.

With RECORD_ERRORS=1 main is wrapped by torchrun's `record`, which puts the traceback into the agent's table.
"""

import os

from torch.distributed.elastic.multiprocessing.errors import record
from trainlib import Job


def parse_record(line: str) -> list[int]:
    """Return the token ids of one line of a shard."""
    key, _, tokens = line.partition("\t")
    if not tokens:
        raise ValueError(f"record {key!r} in shard-00013.tsv has no tokens column")
    return [int(token) for token in tokens.split()]


def main() -> None:
    """Train; the odd rank draws the bad record before step 18."""
    job = Job()
    job.train(1, 17)
    for number in range(18, 40):
        parse_record("doc-88417" if job.odd else "doc-1\t1 2 3")
        job.step(number)


if __name__ == "__main__":
    (record(main) if os.environ.get("RECORD_ERRORS") else main)()
