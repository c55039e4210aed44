"""Rules about calls: at which line of the program each rank waits, and watchdogs that did not run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from triage.base.rank_ranges import format_ranks
from triage.diagnose.context import RuleContext, ranks_of
from triage.diagnose.open_calls import read_job_progress
from triage.diagnose.progress import GroupProgress
from triage.evidence.inference import make_inferences, may_end_early
from triage.model.evidence import Evidence

# A watchdog that noticed a timeout so much too late did not run in between.
_LATE_FACTOR, _LATE_MILLISECONDS = 1.2, 10_000


def divergent_call(context: RuleContext) -> list[Evidence]:
    """Every rank waits, but not in the same call: the few that wait elsewhere took another way through the program. If
    that is rank 0 alone, a collective stands inside `if rank == 0`. In a broadcast they may as well wait for a rank
    that left it out and waits with the others: then no rank is named.
    """
    stuck = context.evidence_of("waiting", "peer-lost") if context.matched.get("waiting") else []
    by_rank = {fact.origin.rank: fact for fact in reversed(stuck) if fact.origin.rank is not None and _has_line(fact)}
    waiting = [fact for fact in by_rank.values() if fact.fields.get("file")]
    if len(waiting) < 3 or ranks_of(waiting) != context.all_ranks:
        return []
    (usual, most), *others = Counter(map(_call_site, waiting)).most_common()
    if not others or most * 2 <= len(waiting):
        return []
    odd = [fact for fact in waiting if _call_site(fact) != usual]
    strange = ranks_of(odd)
    there = _format_call(next(fact for fact in waiting if fact.origin.rank not in strange))
    text = f"all ranks wait, but {format_ranks(strange)} in {_format_call(odd[0])} and the others in {there}"
    passed = sorted({_format_call(fact) for fact in odd if may_end_early(fact.fields.get("op", ""))})
    if passed:
        uncertainty = f"the others may have passed {passed[0]}, and one of them may have left it out"
        return make_inferences("divergent-call", (), text, odd[0], basis="absence", uncertainty=uncertainty)
    rule = "divergent-call" if strange != {0} else "rank-conditional"
    text += "" if strange != {0} else "; a collective inside `if rank == 0` looks like this"
    return make_inferences(rule, strange, text, odd[0], basis="absence")


def watchdog_starved(context: RuleContext) -> list[Evidence]:
    """The watchdogs of some ranks, and not of others in the same group, saw the timeout much later than they had to:
    these processes, or their hosts, stood still.
    """
    for entries in context.once(read_job_progress).by_group.values():
        ran = {rank: entry for rank, entry in entries.items() if entry.call and entry.call.ran and entry.call.timeout}
        late = {rank: entry for rank, entry in ran.items() if _is_late(entry)}
        if late and len(late) < len(ran):
            return _infer_starved(late)
    return []


def _is_late(entry: GroupProgress) -> bool:
    ran, timeout = (entry.call.ran or 0, entry.call.timeout or 0) if entry.call else (0, 0)
    return ran > max(timeout * _LATE_FACTOR, timeout + _LATE_MILLISECONDS)


def _infer_starved(late: Mapping[int, GroupProgress]) -> list[Evidence]:
    worst = max(late.values(), key=lambda entry: (entry.call.ran or 0 if entry.call else 0, -entry.rank))
    ran, timeout = (worst.call.ran, worst.call.timeout) if worst.call else (0, 0)
    text = f"the watchdog of rank {worst.rank} saw a timeout of {timeout} ms only after {ran} ms"
    return make_inferences("watchdog-starved", late, f"{text}: it did not run in between", worst.fact)


def _has_line(fact: Evidence) -> bool:
    return bool(fact.fields.get("line"))


def _call_site(fact: Evidence) -> tuple[str, str, str]:
    return fact.fields.get("op", ""), fact.fields["file"], fact.fields["line"]


def _format_call(fact: Evidence) -> str:
    op, file, line = _call_site(fact)
    return f"{op or 'a call'} at {file.rsplit('/', 1)[-1]}:{line}"
