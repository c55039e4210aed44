"""Objects that the workers of a cluster read."""

from __future__ import annotations

import os

from tests.local_cluster import Cluster
from triage import pipeline
from triage.base.options import Options

from .conftest import Bucket
from .test_ingest import SAMPLES, as_text


def set_environment(values: dict[str, str]) -> None:
    os.environ.update(values)


def test_workers_read_objects_themselves(cluster: Cluster, s3: Bucket) -> None:
    """What lies in an object store is requested by the workers, with their own credentials."""
    address = s3.put_directory(SAMPLES / "sigkill_perrank" / "job", "job/")
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL")
    cluster.client.run(set_environment, {name: os.environ[name] for name in names})
    workers = cluster.workers()
    shared = pipeline.ingest([address], Options(addresses=True, cluster=workers))
    assert as_text(shared, address) == as_text(pipeline.ingest([address], Options(addresses=True)), address)
    assert workers.done > 0
    assert workers.redone == 0
    assert shared.stats.remote is not None
    assert shared.stats.remote.bytes >= shared.stats.bytes  # what the workers requested counts too
    assert workers.cost.requests > 0
