"""One rank needs more memory than its limit: MemoryError, or the CPU allocator of torch (ALLOCATE=torch)."""

import os
import resource

import torch
from trainlib import Job


def load_cache(gib: int) -> object:
    """Load the whole shard into memory."""
    if os.environ.get("ALLOCATE") == "torch":
        return torch.ones(gib << 30, dtype=torch.uint8)
    return bytearray(gib << 30)


def main() -> None:
    """Train, then load a cache, which is too large on the odd rank."""
    job = Job()
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    job.train(1, 7)
    job.log.info("loading the token cache")
    load_cache(40 if job.odd else 0)
    job.train(8, 30)


if __name__ == "__main__":
    main()
