"""A job that a Dask cluster reads: the answer of one machine, whatever happens to the workers."""

from __future__ import annotations

import dataclasses
import os
import random
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import triage
from tests.local_cluster import Cluster
from triage import pipeline
from triage.base import executor_work
from triage.base.executor_work import ExecutorWorkers
from triage.base.options import Options
from triage.model import Diagnosis
from triage.model.diagnosis import Stats
from triage.render import json as json_report
from triage.scan.interface import SPAN
from triage.sources import file_reader
from triage.testing.jobs import JobBuilder

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "jobs"
JOBS = (
    "agent_breaks_the_tie",
    "assertion_all_ranks_interleaved",
    "checkpoint_half_redirects",
    "dataloader_worker_killed_tee",
    "sigkill_perrank",
)


def as_text(diagnosis: Diagnosis) -> str:
    """The JSON report, without what a run costs."""
    return json_report.render(dataclasses.replace(diagnosis, stats=Stats()))


def build_job(directory: Path, ranks: int, steps: int) -> Path:
    """Write a text for each rank; rank 1 has the failure and the last lines of others tell of it."""
    job = JobBuilder(directory, world_size=ranks)
    job.rank(1).traceback("ValueError: no tokens left in the shard")
    job.elastic_table({1: 1}).write()
    for rank in range(ranks):
        lines = [f"step {step} loss 0.{step} WARNING: slow batch of rank {rank}\n" for step in range(steps)]
        end = "torch.distributed.DistBackendError: NCCL error: remote process exited\n" if rank % 3 == 2 else ""
        (directory / f"rank_{rank}.log").write_text("".join(lines) + end)
    return directory


@pytest.mark.parametrize("name", JOBS)
def test_the_report_is_that_of_one_machine(cluster: Cluster, name: str) -> None:
    """Byte for byte, and the workers did all of it."""
    path = str(SAMPLES / name / "job")
    workers = cluster.workers()
    assert as_text(pipeline.ingest([path], Options(cluster=workers))) == as_text(pipeline.ingest([path]))
    assert workers.done > 0
    assert workers.redone == 0


def test_a_large_file_is_read_in_ranges(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans of one file, and pieces whose newlines are counted, are units of their own."""
    monkeypatch.setattr(file_reader, "_MIN_BYTES_FOR_PROCESSES", 1)
    path = build_job(tmp_path / "job", 2, 500_000)
    (path / "rank_1.log").write_text((path / "rank_1.log").read_text() + "ValueError: no tokens left in the shard\n")
    assert (path / "rank_0.log").stat().st_size > 2 * SPAN
    workers = cluster.workers()
    assert as_text(pipeline.ingest([str(path)], Options(cluster=workers))) == as_text(pipeline.ingest([str(path)]))
    assert workers.done >= 6 + 2 + 6
    assert workers.redone == 0


@pytest.mark.parametrize("seed", range(2))
def test_killed_workers_do_not_change_the_report(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Workers are killed at random moments until the report is there; at least one is."""
    monkeypatch.setattr(executor_work, "_BATCH_UNITS", (2, 2))
    path = str(build_job(tmp_path / "job", 60, 3_000))
    expected = as_text(pipeline.ingest([path]))
    chance, is_over, killed = random.Random(seed), threading.Event(), []

    def kill() -> None:
        while not is_over.wait(chance.uniform(0.05, 0.4)) and len(killed) < 4:
            with suppress(ProcessLookupError, OSError):
                pid = chance.choice(pids)
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    cluster.client.wait_for_workers(2, timeout=300)
    pids = cluster.pids()
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        shared = as_text(pipeline.ingest([path], Options(cluster=cluster.workers())))
    finally:
        is_over.set()
        killer.join()
    assert shared == expected
    assert killed


def delay_units(seconds: float) -> None:
    """Make this worker sleep before each unit, or no longer."""
    do_unit = getattr(executor_work._try, "do_unit", executor_work._try)

    def do_later(*arguments: Any) -> Any:
        time.sleep(seconds)
        return do_unit(*arguments)

    do_later.do_unit = do_unit  # type: ignore[attr-defined]
    executor_work._try = do_later if seconds else do_unit


def test_a_slow_worker_is_stolen_from(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that sleeps two seconds before each unit does not hold up the report for as long as its units would."""
    monkeypatch.setattr(executor_work, "_LATE_SECONDS", 0.5)
    path = str(build_job(tmp_path / "job", 80, 300))
    expected = as_text(pipeline.ingest([path]))
    cluster.client.wait_for_workers(2, timeout=300)
    pipeline.ingest([path], Options(cluster=cluster.workers()))  # both workers have loaded everything
    slow = sorted(cluster.client.scheduler_info()["workers"])[:1]
    cluster.client.run(delay_units, 2.0, workers=slow)
    workers = cluster.workers()
    began = time.monotonic()
    try:
        shared = as_text(pipeline.ingest([path], Options(cluster=workers)))
        took = time.monotonic() - began
    finally:
        cluster.client.run(delay_units, 0.0, workers=slow)
    assert shared == expected
    assert (workers.stolen > 0, workers.redone) == (True, 0)
    assert took < 2 * 4 * 2.0  # what a batch of the scan and one of the extraction take there


def test_files_that_workers_do_not_have_are_read_here(tmp_path: Path) -> None:
    """The workers of other machines may lack a file: this machine reads it, and counts that."""
    path = build_job(tmp_path / "job", 2, 10)
    context = get_context("forkserver")
    with ProcessPoolExecutor(
        1, mp_context=context, initializer=os.chroot if os.geteuid() == 0 else os.chdir, initargs=(tmp_path,)
    ) as pool:
        workers = ExecutorWorkers(pool)
        relative = os.path.relpath(path)
        assert as_text(pipeline.ingest([relative], Options(cluster=workers))) == as_text(pipeline.ingest([relative]))
    assert workers.redone > 0


def test_python_takes_any_executor(cluster: Cluster) -> None:
    """`triage.ingest(executor=…)` takes a client's executor and a pool of threads."""
    path = str(SAMPLES / JOBS[0] / "job")
    expected = as_text(triage.ingest(path))
    assert as_text(triage.ingest(path, executor=cluster.client.get_executor())) == expected
    with ThreadPoolExecutor(2) as pool:
        assert as_text(triage.ingest(path, executor=pool)) == expected
