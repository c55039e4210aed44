"""What ends a pod as a whole, such as an eviction, is about every rank that ran on its node."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from triage.base.lazy_re import lazy_re
from triage.diagnose.stated_places import with_origin
from triage.model import Evidence
from triage.ranks.identity import JobMap, short_host

_WHOLE_POD = lazy_re(
    r"\b(?:Evicted|DeadlineExceeded|NodeLost|NodeShutdown|Preempt\w{0,8}|TerminationByKubelet|DeletionByTaintManager)\b"
    r"|was low on resource"
)


def on_evicted_pod(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """The status of a pod that a node evicted is about each rank on the node, if no other pod is described there."""
    if not any("node" in fact.fields and _is_of_pod(fact) for fact in facts):
        return facts
    pods = {(fact.origin.host or "", fact.fields["pod"]) for fact in facts if "pod" in fact.fields}
    shared = {short_host(host) for host, pod in pods if any(host == node and pod != name for node, name in pods)}
    names = {short_host(host): ranks for host, ranks in job.ranks_by_host().items()}
    ranks_on = {host: ranks for host, ranks in names.items() if host not in shared}
    return [placed for fact in facts for placed in _of_each_rank(fact, ranks_on)]


def _is_of_pod(fact: Evidence) -> bool:
    return fact.origin.rank is None and _WHOLE_POD.search(fact.text) is not None


def _of_each_rank(fact: Evidence, ranks_on: Mapping[str, Sequence[int]]) -> list[Evidence]:
    host = fact.origin.host
    if host is None or "node" not in fact.fields or not _is_of_pod(fact):
        return [fact]
    ranks = ranks_on.get(short_host(host), ())
    placed = [dataclasses.replace(with_origin(fact, rank=rank), rank_basis="ranks of its pod") for rank in ranks]
    return placed or [fact]
