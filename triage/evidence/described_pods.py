"""Statuses in the description of a pod are about its node: `Reason: OOMKilled` below `Node: gpu-144/10.0.0.10`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from triage.base.masked_re import masked_re
from triage.model import Evidence
from triage.records.described_pods import REACH, DescribedPod, read_description, texts_of
from triage.records.text import Text

_STATUS = masked_re(
    r"\b(?:OOMKilled|Evicted|ContainerStatusUnknown|DeadlineExceeded|NodeLost|NodeShutdown|Preempt\w{0,8}|"
    r"TerminationByKubelet|DeletionByTaintManager)\b|^\s*(?:Reason|Message|Exit Code): |was low on resource"
)
_KINDS = frozenset(("scheduler", "ending", "message"))


def place_on_nodes(facts: Sequence[Evidence], text: Text, read: Callable[[int, int], bytes]) -> list[Evidence]:
    """Return the facts; those in the description of a pod have its node as their host, and no other."""
    return [
        _on_node(fact, pod)
        if fact.kind in _KINDS
        and fact.origin.rank is None
        and _STATUS.search(fact.text)
        and (pod := _pod_above(fact.offset, text, read)) is not None
        else fact
        for fact in facts
    ]


def _on_node(fact: Evidence, pod: DescribedPod) -> Evidence:
    fields = {**fact.fields, "node": pod.node, **({"pod": pod.name} if pod.name else {})}
    return dataclasses.replace(fact, origin=dataclasses.replace(fact.origin, host=pod.node), fields=fields)


def _pod_above(offset: int, text: Text, read: Callable[[int, int], bytes]) -> DescribedPod | None:
    start = max(0, offset - REACH)
    return read_description(texts_of(text, read(start, offset - start).removesuffix(b"\n"), start))
