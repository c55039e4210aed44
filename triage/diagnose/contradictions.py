"""Where two sources show one rank at two places: a dump that says it never came to a call, and its own watchdog."""

from __future__ import annotations

from triage.base.rank_ranges import format_ranks
from triage.diagnose.candidates import Candidate
from triage.diagnose.context import RuleContext
from triage.diagnose.open_calls import Call, find_job_calls
from triage.diagnose.phrases import agree
from triage.model import Evidence, InferenceDetail

_SNAPSHOTS = {"flight": "dump", "stack": "stack"}
_ABSENT = frozenset(("never-joined", "lagging-rank"))
"""Rules by which a rank did not come to a call."""
_DIFFERENT = frozenset(("divergent-call", "shape-mismatch"))
"""Rules by which a rank made another call than others."""


def describe_contradiction(context: RuleContext, root: Candidate) -> str:
    """Return how the watchdog lines of the ranks at fault contradict a root that dumps or stacks alone show; else "".

    They do where such a rank timed out in one call with a rank that, as the dumps say, waits for it.
    """
    for fact in root.facts:
        detail = fact.detail
        if not isinstance(detail, InferenceDetail) or detail.evidence_kind not in _SNAPSHOTS:
            return ""
        rank = fact.origin.rank
        if rank is None or (call := _find_shared_call(context, fact, detail, rank)) is None:
            continue
        others = sorted(call.waiting.keys() & set(detail.waiting))
        source = _SNAPSHOTS[detail.evidence_kind]
        return (
            f"Its own watchdog contradicts the {source} of rank {rank}: rank {rank} timed out in {call}, where "
            f"{format_ranks(others)} {agree(others, 'waits', 'wait')}; the {source} may be of an earlier moment"
        )
    return ""


def _find_shared_call(context: RuleContext, fact: Evidence, detail: InferenceDetail, rank: int) -> Call | None:
    """Return the call in which the watchdogs of the rank and of one that waits for it gave up, where a dump says no."""
    is_absent = detail.rule in _ABSENT
    if not is_absent and (detail.rule not in _DIFFERENT or "since" in fact.fields):
        return None
    for call in context.once(find_job_calls):
        own = call.waiting.get(rank)
        if own is None or own.call is None or not own.call.has_timed_out or call.is_transfer or call.seq is None:
            continue
        for other in sorted(call.waiting.keys() & set(detail.waiting)):
            theirs = call.waiting[other].call
            if theirs is not None and (is_absent or (theirs.op, theirs.sizes) == (own.call.op, own.call.sizes)):
                return call
    return None
