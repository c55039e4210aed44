"""Failures that no signature knows, grouped by what they say.

The group's id comes from the failure's fingerprint alone, so the same failure has the same id in every job.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from triage.clusters import fingerprint
from triage.clusters.fingerprint import short
from triage.diagnose.facts import ECHOES
from triage.model.evidence import Evidence

_KINDS = frozenset(("exception", "terminate", "fatal-python", "exit", "crash", "core"))


def group(facts: Sequence[Evidence], known: set[int], told: Collection[int | None] = ()) -> dict[str, list[Evidence]]:
    """Cluster id to the facts of failures that no signature explains.

    `known` are the indices of those that one does, `told` the ranks of which a known cause speaks: how such a rank
    ended is no news.
    """
    if not [fact for index, fact in enumerate(facts) if fact.kind in _KINDS and index not in known]:
        return {}
    explained = {_place(facts[index]) for index in known}
    speaking = {fact.origin.rank for fact in facts if fact.kind in _KINDS and fact.kind != "exit"} | ({*told} - {None})
    failures = [
        fact
        for index, fact in enumerate(facts)
        if index not in known and fact.kind in _KINDS and _place(fact) not in explained and _is_failure(fact, speaking)
    ]
    prints = [fingerprint(fact) for fact in failures]
    # `Caught ValueError in DataLoader worker process 3` beside the exception that it caught.
    said = {_place(fact) for fact, print_ in zip(failures, prints, strict=True) if print_.anchored}
    groups: dict[str, list[Evidence]] = {}
    for fact, print_ in zip(failures, prints, strict=True):
        if print_.anchored or _place(fact) not in said:
            groups.setdefault(short(print_.key), []).append(fact)
    return groups


def _place(fact: Evidence) -> tuple[str, int, int]:
    """Facts of one block share its end: when a signature knows one exception of a chain, the chain is known."""
    return (fact.source, fact.end, 0) if fact.kind == "exception" else (fact.source, fact.end, fact.offset)


def _is_failure(fact: Evidence, speaking: set[int | None]) -> bool:
    if fact.kind == "exit":
        code = fact.fields.get("exitcode", "0")
        said = fact.origin.rank in speaking or (None in speaking and not fact.fields.get("signal"))
        return code not in ("0", "") and fact.fields.get("by") != "agent" and fact.origin.rank is not None and not said
    if fact.kind == "exception":
        return fact.fields.get("chain") in ("final", "cause") and fact.fields.get("type") not in ECHOES
    if fact.kind in ("crash", "core"):
        return "crash_kind" in fact.fields
    return True
