"""A Dask cluster of two worker processes on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from triage.base.executor_work import ExecutorWorkers


class Cluster:
    """The cluster, a client of it, and its workers."""

    def __init__(self, cluster: Any, client: Any) -> None:
        self.address: str = cluster.scheduler_address
        self.client = client

    def workers(self) -> ExecutorWorkers:
        """Return the workers, to be given to an ingest."""
        return ExecutorWorkers(self.client.get_executor(pure=False))

    def pids(self) -> list[int]:
        """Return the process ids of the workers that live now."""
        return sorted(self.client.run(os.getpid, on_error="ignore").values())


@contextmanager
def _accept_closed_loop() -> Iterator[None]:
    """Accept that another test has closed the event loop when the cluster ends with the run, and nothing else."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != "IOLoop is closed":
            raise


@contextmanager
def start_cluster() -> Iterator[Cluster]:
    """Start two processes, each started again after it dies. Skips the test where Dask is not installed."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    with (
        _accept_closed_loop(),
        distributed.LocalCluster(**options, host="127.0.0.1", silence_logs=50) as started,
        distributed.Client(started, set_as_default=False) as client,
    ):
        yield Cluster(started, client)
