"""Statuses in the description of a pod are about its node: `Reason: OOMKilled` below `Node: gpu-144/10.0.0.10`; those
of its containers have the time at which the container ended.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from triage.base.masked_re import masked_re
from triage.model import Evidence
from triage.records.described_pods import REACH, DescribedPod, read_description, texts_of
from triage.records.text import Text

ENDED_LATER = "ended-later"
"""Field of a status of a container: another container of its pod had failed before."""
_STATUS = masked_re(
    r"\b(?:OOMKilled|Evicted|ContainerStatusUnknown|DeadlineExceeded|NodeLost|NodeShutdown|Preempt\w{0,8}|"
    r"TerminationByKubelet|DeletionByTaintManager)\b|^\s*(?:Reason|Message|Exit Code): |was low on resource"
)
_KINDS = frozenset(("scheduler", "ending", "message"))


def place_pods(facts: list[Evidence], text: Text, read: Callable[[int, int], bytes], size: int) -> list[Evidence]:
    """Return the facts of a source; those in the description of a pod have its node as their host, and no other, and
    those of its containers the time of their end.
    """
    if not any(map(is_pod_status, facts)):
        return facts
    from triage.evidence.container_ends import with_end  # few jobs have such lines

    return [_place(with_end(fact, read, size), text, read) if is_pod_status(fact) else fact for fact in facts]


def _place(fact: Evidence, text: Text, read: Callable[[int, int], bytes]) -> Evidence:
    pod = _pod_above(fact.offset, text, read)
    return fact if pod is None else _on_node(fact, pod)


def is_pod_status(fact: Evidence) -> bool:
    """Whether a line may be the status of a pod or of a container."""
    return fact.kind in _KINDS and fact.origin.rank is None and _STATUS.search(fact.text) is not None


def _on_node(fact: Evidence, pod: DescribedPod) -> Evidence:
    fields = {**fact.fields, "node": pod.node, **({"pod": pod.name} if pod.name else {})}
    return dataclasses.replace(fact, origin=dataclasses.replace(fact.origin, host=pod.node), fields=fields)


def _pod_above(offset: int, text: Text, read: Callable[[int, int], bytes]) -> DescribedPod | None:
    start = max(0, offset - REACH)
    return read_description(texts_of(text, read(start, offset - start).removesuffix(b"\n"), start))
