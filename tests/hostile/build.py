"""The corpus: every class of hostile input that is diagnosed, built when it is needed. Nothing of it is stored.

`catalogs` and `requests` have the classes that are no input of a diagnosis: contributed signatures, and HTTP.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.hostile import archives, artifacts, documents, files, streams, texts
from tests.hostile.model import HostileCase, Job
from triage.testing.jobs import JobBuilder

CASES: tuple[HostileCase, ...] = (
    *archives.CASES,
    *streams.CASES,
    *artifacts.CASES,
    *documents.CASES,
    *texts.CASES,
    *files.CASES,
)
OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
    "GPU 1 has a total capacity of 79.15 GiB of which 1.02 GiB is free."
)


def good_log() -> bytes:
    """Return the log of a job of two ranks, of which rank 1 runs out of GPU memory."""
    with tempfile.TemporaryDirectory(prefix="triage-good-") as scratch:
        job = JobBuilder(scratch, world_size=2).steps(20)
        job.rank(1).traceback(OUT_OF_MEMORY, [("train.py", 30, "main")])
        return (job.elastic_table({1: 1}).write() / "console.log").read_bytes()


@contextmanager
def build_job(case: HostileCase, good: bytes, *, is_full: bool = False) -> Iterator[Path]:
    """Build the job of a case in a temporary directory: the hostile files, and the good log in them or beside them."""
    with tempfile.TemporaryDirectory(prefix="triage-hostile-") as scratch:
        job = Job(Path(scratch) / "job", good, is_full)
        job.path.mkdir()
        case.write(job)
        if not case.holds_good:
            job.write("console.log", good)
        try:
            yield job.path
        finally:
            files.remove_directories(job.path)
