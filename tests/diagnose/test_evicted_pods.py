"""triage.diagnose.evicted_pods"""

from __future__ import annotations

import pytest

from triage.diagnose.evicted_pods import on_evicted_pod
from triage.model import Evidence, Origin
from triage.ranks.identity import JobMap


def status(text: str, host: str = "gpu-7", **fields: str) -> Evidence:
    """Return a fact about a pod on a node."""
    return Evidence("ending", "any", text, Origin(host=host), "events.txt", 0, fields={"node": host, **fields})


def job() -> JobMap:
    """Return a job with two ranks on each of two hosts."""
    known = JobMap()
    for rank in range(4):
        known.learn("job.log", Origin(rank=rank, host=f"gpu-{6 + rank // 2}"))
    known.resolve()
    return known


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("Reason:           Evicted", [2, 3]),
        ("The node was low on resource: memory.", [2, 3]),
        ("Reason:       OOMKilled", [None]),  # the limit of a container: one of its processes
    ],
)
def test_an_evicted_pod_takes_all_its_ranks(text: str, ranks: list[int | None]) -> None:
    """An eviction ends every process of the pod, a memory limit perhaps one."""
    assert [fact.origin.rank for fact in on_evicted_pod([status(text)], job())] == ranks


def test_pods_that_share_a_node_are_not_told_apart() -> None:
    """Whose ranks they are nobody knows; a node of no rank has none."""
    two = [status("Reason: Evicted", pod="train-0"), status("Reason: Error", pod="train-1")]
    assert [fact.origin.rank for fact in on_evicted_pod(two, job())] == [None, None]
    assert [fact.origin.rank for fact in on_evicted_pod([status("Evicted", "gpu-9")], job())] == [None]
