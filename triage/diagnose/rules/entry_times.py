"""Rules about when each rank asked for its HCCL group, by the lines that HCCL writes at the entry of its calls."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.diagnose.context import RuleContext
from triage.evidence.inference import make_inferences
from triage.model.evidence import Evidence

_ENTRY = lazy_re(r"Entry-HcclCommInit\w{0,60}:[^\n]{0,200}?\brank\[(\d{1,7})\]")
_IDENTIFIER = lazy_re(r"identifier\[([^\]\n]{0,200})\]")
_CONNECT_TIMEOUT = lazy_re(r"HCCL_CONNECT_TIMEOUT\D{0,40}?(\d{2,5})")
_DEFAULT_CONNECT_TIMEOUT = 120
# What the root of a group says when it gives up: how long it waited, and which ranks are missing.
_WAITED = lazy_re(r"socket timeout\D{0,20}timeout\[(\d{2,5})")
_MISSING = lazy_re(r"(?i)connect(?: agent|FailedAgentIdList)\[(\d[\d, ]{0,2000})\]")

Entries = Mapping[int, tuple[float, Evidence]]


def late_entry(context: RuleContext) -> list[Evidence]:
    """HCCL's `Entry-` lines say when each rank asked for a group: the last came later than the first would wait. Clocks
    of different hosts count only where the root gave up waiting, and misses no other ranks.
    """
    limit = _connect_timeout(context)
    by_clock, by_group = _read_entries(context)
    for _, ranks in sorted(by_clock.items(), key=lambda item: item[0]):
        if late := _find_late(ranks, limit):
            return _infer_late(ranks, late, limit, "")
    reports = [*context.facts_with("topo exchange server get socket timeout"), *context.facts_with("onnect")]
    missing = {
        int(rank) for fact in reports for part in _MISSING.findall(fact.text) for rank in part.split(",") if rank
    }
    for _, ranks in sorted(by_group.items(), key=lambda item: item[0]):
        late = _find_late(ranks, limit)
        if late and (missing == late.keys() or (not missing and reports)):
            return _infer_late(ranks, late, limit, ", by the clocks of their hosts")
    return []


def _connect_timeout(context: RuleContext) -> int:
    """Return how many seconds a rank waits for the others: as HCCL says, as the environment says, or the default."""
    stated = [match for fact in context.facts_with("timeout[") if (match := _WAITED.search(fact.text))]
    stated += [
        match for fact in context.facts_with("HCCL_CONNECT_TIMEOUT") if (match := _CONNECT_TIMEOUT.search(fact.text))
    ]
    return int(stated[-1][1]) if stated else _DEFAULT_CONNECT_TIMEOUT


def _read_entries(
    context: RuleContext,
) -> tuple[dict[tuple[str, str], dict[int, tuple[float, Evidence]]], dict[str, dict[int, tuple[float, Evidence]]]]:
    """Return the first entry of each rank by clock and group, and, with times of unequal clocks, by group alone."""
    by_clock: dict[tuple[str, str], dict[int, tuple[float, Evidence]]] = {}
    by_group: dict[str, dict[int, tuple[float, Evidence]]] = {}
    for fact in context.facts_with("Entry-Hccl"):
        entry, when = _ENTRY.search(fact.text), fact.origin.time
        reading = context.clocks.read(fact)
        if fact.kind == "ending" or entry is None or reading is None or when is None:
            continue
        identifier, rank = _IDENTIFIER.search(fact.text), int(entry[1])
        group = identifier[1] if identifier else ""
        by_clock.setdefault((reading[0], group), {}).setdefault(rank, (reading[1], fact))
        by_group.setdefault(group, {}).setdefault(rank, (when, fact))
    return by_clock, by_group


def _find_late(ranks: Entries, limit: int) -> dict[int, float]:
    """Return the ranks that came too late, with their delay after the first in seconds."""
    first = min(when for when, _ in ranks.values())
    return {rank: when - first for rank, (when, _) in ranks.items() if when - first > limit}


def _infer_late(ranks: Entries, late: Mapping[int, float], limit: int, how: str) -> list[Evidence]:
    """Return the inference. The others were without these ranks since the first of them came: this is its time."""
    _, first = min(ranks.values(), key=lambda entry: entry[0])
    shown = ranks[min(late)][1]
    shown = dataclasses.replace(shown, origin=dataclasses.replace(shown.origin, time=first.origin.time))
    delay = max(late.values())
    joined = f"{format_ranks(late)} joined the group {delay:.0f} s after the first rank{how}"
    return make_inferences("late-entry", late, f"{joined}, which waits only {limit} s", shown)
