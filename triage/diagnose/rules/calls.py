"""Rules about calls: at which line of the program each rank waits, transfers without their other half, and watchdogs
that did not run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.diagnose.context import RuleContext
from triage.diagnose.open_calls import Call, read_job_progress
from triage.diagnose.phrases import agree
from triage.diagnose.progress import GroupProgress
from triage.evidence.exception_chains import FRAME
from triage.evidence.inference import Conclusion, make_inferences, may_end_early
from triage.model.evidence import Evidence
from triage.stacks.callers import CallerFrame, find_differing_callers

_REACHED = lazy_re(r"Rank (?P<rank>\d{1,7}) successfully reached monitoredBarrier")
_MISSED = lazy_re(r"\[Rank 0\]: Ranks? (?P<ranks>\d{1,7}(?:, \d{1,7})*) failed to pass monitoredBarrier")
_NO_PEER = "these lines do not name the peer, which may be the one that left out its half"
_HALVES = "either half may have made the wrong call"
# A watchdog that noticed a timeout so much too late did not run in between.
_LATE_FACTOR, _LATE_MILLISECONDS = 1.2, 10_000

# Before torch 2.1, DETAIL lets each rank print its own call, and not what the others called.
_FINGERPRINT = lazy_re(
    r"Rank (?P<rank>\d{1,7}) is running (?:inconsistent )?collective: CollectiveFingerPrint\((?:SequenceNumber=\d+, ?)?"
    r"OpType=(?P<op>\w+)(?:, TensorShape=\[(?P<shape>[\d, ]*)\](?:, TensorDtypes=(?P<dtype>\w+))?)?"
)
_COMPARED = "differ in the following aspects"
_MOST_SHOWN = 3
# One half of a transfer; `SendRecv` may be either.
_HALF = lazy_re(r"(?i)^i?(?:send|recv|receive)$")


def divergent_call(context: RuleContext) -> list[Evidence]:
    """Every rank waits, but not in the same call: the few that wait elsewhere took another way through the program. If
    that is rank 0 alone, a collective stands inside `if rank == 0`. In a broadcast they may as well wait for a rank
    that left it out and waits with the others: then no rank is named, as where half of the ranks wait in either call.
    """
    stuck = {fact.origin.rank: fact for fact in reversed(_find_stuck(context)) if fact.origin.rank is not None}
    by_rank = dict(sorted(stuck.items()))
    waiting = list(by_rank.values())
    if len(waiting) < 2 or by_rank.keys() != context.all_ranks:
        return []
    sites = dict(zip(by_rank, _call_sites(waiting), strict=True))
    if any(_transfer_half(site) for site in sites.values()):
        return _infer_unmatched(by_rank, sites)
    (usual, most), *others = Counter(sites.values()).most_common()
    if not others or most * 2 < len(waiting):
        return []
    strange = {rank for rank, site in sites.items() if site != usual}
    first = next(rank for rank in by_rank if rank in strange)
    odd, there = by_rank[first], _format_site(sites[first])
    text = f"all ranks wait, but {format_ranks(strange)} in {there} and the others in {_format_site(usual)}"
    if most * 2 == len(waiting):
        ops = {site.op for site in sites.values()}
        if len(others) > 1 or len(ops) == 1 or any(map(may_end_early, ops)):
            return []
        return make_inferences("divergent-call", (), text, odd, basis="absence", uncertainty=_HALVES)
    if passed := sorted(_format_site(sites[rank]) for rank in strange if may_end_early(sites[rank].op)):
        uncertainty = f"the others may have passed {passed[0]}, and one of them may have left it out"
        return make_inferences("divergent-call", (), text, odd, basis="absence", uncertainty=uncertainty)
    rule = "divergent-call" if strange != {0} else "rank-conditional"
    text += "" if strange != {0} else "; a collective inside `if rank == 0` looks like this"
    return make_inferences(rule, strange, text, odd, basis="absence")


def _infer_unmatched(by_rank: Mapping[int, Evidence], sites: Mapping[int, _CallSite]) -> list[Evidence]:
    """Some ranks send, or some receive, and all others are in one collective: nobody is in the other half."""
    pending = sorted(rank for rank, site in sites.items() if _transfer_half(site))
    others = {site for site in sites.values() if not _transfer_half(site)}
    if len({_transfer_half(sites[rank]) for rank in pending}) > 1 or len(others) != 1 or len(pending) * 2 > len(sites):
        return []
    there, elsewhere = _format_site(sites[pending[0]]), _format_site(others.pop())
    text = f"all ranks wait, but {format_ranks(pending)} in {there} and the others in {elsewhere}"
    text += ": no rank is in the other half of this transfer"
    fact = by_rank[pending[0]]
    return make_inferences("p2p-mismatch", pending, text, fact, basis="absence", uncertainty=_NO_PEER)


def in_another_group(context: RuleContext) -> list[Evidence]:
    """Rank 0 misses a rank in a monitored barrier, and this rank timed out in one itself: in that of another group."""
    reports = [
        (fact, match) for fact in context.facts_with("reached monitored") if (match := _REACHED.search(fact.text))
    ]
    if any(fact.origin.rank != int(match["rank"]) for fact, match in reports):
        return []  # the numbers are those of a smaller group
    timed_out = {int(match["rank"]) for fact, match in reports if "Timed out waiting" in fact.text}
    for fact in context.facts_with("failed to pass monitored"):
        missed = {int(number) for match in _MISSED.finditer(fact.text) for number in match["ranks"].split(",")}
        named = missed & timed_out if fact.origin.rank in (0, None) else set()
        if named and len(named) * 2 < len(context.all_ranks):
            waited = agree(named, "it waited in one of its own", "they waited in some of their own")
            text = f"rank 0 misses {format_ranks(named)} in a monitored barrier, and {waited}"
            text += ": the calls are of different groups"
            return make_inferences("divergent-call", named, text, fact, basis="absence")
    return []


def differing_fingerprints(context: RuleContext) -> list[Evidence]:
    """Each rank prints the collective that it called: they differ in kind, in shape or in dtype."""
    calls = {
        int(match["rank"]): (match, fact)
        for fact in context.facts_with("collective: CollectiveFingerPrint(")
        if _COMPARED not in fact.text and (match := _FINGERPRINT.search(fact.text))
    }
    for rule, part in (("divergent-call", "op"), ("shape-mismatch", "shape"), ("dtype-mismatch", "dtype")):
        ranks_of: dict[str, list[int]] = defaultdict(list)
        for rank, (match, _) in sorted(calls.items()):
            ranks_of[match[part] or ""].append(rank)
        if len(ranks_of) > 1 and "" not in ranks_of:
            usual = max(ranks_of.values(), key=len)
            odd = sorted(calls.keys() - set(usual)) if len(usual) * 2 > len(calls) else sorted(calls)
            shown = [
                f"{format_ranks(ranks)} {calls[ranks[0]][0]['op']} of [{calls[ranks[0]][0]['shape'] or ''}]"
                + (f" {value}" if part == "dtype" else "")
                for value, ranks in list(ranks_of.items())[:_MOST_SHOWN]
            ]
            return make_inferences(rule, odd, "in one collective, " + ", ".join(shown), calls[odd[0]][1])
    return []


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


class _CallSite(NamedTuple):
    """The line of the program at which a rank waits; `caller` tells apart the ways on which one function came there."""

    op: str
    file: str
    line: str
    caller: str = ""


def _transfer_half(site: _CallSite) -> str:
    return next((half for half in ("send", "recv") if half in site.op), "")


def _find_stuck(context: RuleContext) -> list[Evidence]:
    """The facts of ranks that gave up waiting at a known line; the root of a monitored barrier says whom it misses."""
    if not context.matched.get("waiting"):
        return []
    stuck = [*context.evidence_of("waiting", "peer-lost"), *context.evidence_of("awaited")]
    return [fact for fact in stuck if fact.fields.get("line") and fact.fields.get("file")]


def _call_sites(facts: Sequence[Evidence]) -> list[_CallSite]:
    sites = [_CallSite(fact.fields.get("op", ""), fact.fields["file"], fact.fields["line"]) for fact in facts]
    by_site: dict[_CallSite, list[int]] = {}
    for index, site in enumerate(sites):
        by_site.setdefault(site, []).append(index)
    for site, indexes in by_site.items():
        callers = find_differing_callers([_list_frames(facts[index].excerpt) for index in indexes])
        for index, caller in zip(indexes, callers, strict=False):
            sites[index] = site._replace(caller=caller)
    return sites


def _list_frames(traceback: str) -> list[CallerFrame]:
    matches = map(FRAME.match, traceback.splitlines())
    return [
        CallerFrame(match["function"] or "", match["file"].rpartition("/")[2], match["line"])
        for match in matches
        if match
    ]


def _format_site(site: _CallSite) -> str:
    called = f" from {site.caller}" if site.caller else ""
    return f"{site.op or 'a call'} at {site.file.rpartition('/')[2]}:{site.line}{called}"


def compare_partners(transfers: Sequence[Call]) -> Conclusion | None:
    """Two ranks both send to each other, or both receive: each names the other as its partner."""
    waiting = {rank: entry for call in transfers for rank, entry in call.waiting.items()}
    for rank, entry in waiting.items():
        partner = waiting.get(entry.partner) if entry.partner is not None else None
        if partner is None or partner.partner != rank or partner.op != entry.op:
            continue
        if _HALF.match(entry.op):
            ranks = {rank, partner.rank}
            text = f"{format_ranks(ranks)} both wait in {entry.op} of {entry.group.label}, each for the other"
            return Conclusion("p2p-mismatch", ranks, text, entry.fact)
    return None


def compare_transfers(transfers: Sequence[Call]) -> Conclusion | None:
    """Ranks wait in transfers between two ranks. The lines do not name the partner, so little can be said."""
    kinds = {rank: entry.op for call in transfers for rank, entry in call.waiting.items()}
    parts = ", ".join(f"rank {rank} in {op}" for rank, op in sorted(kinds.items())[:_MOST_SHOWN])
    fact = transfers[0].first.fact
    is_one_way = len(set(kinds.values())) == 1
    if is_one_way:
        text = f"{parts}: no rank waits in the other half of {agree(kinds, 'this transfer', 'these transfers')}"
        return Conclusion("p2p-mismatch", kinds, text, fact, "the lines do not name the partners")
    if len(kinds) != 2:
        return None
    sizes = {call.first.call.sizes for call in transfers if call.first.call}
    rule, end = ("shape-mismatch", "of different sizes") if len(sizes) > 1 else ("p2p-mismatch", "that do not end")
    return Conclusion(rule, kinds, f"{parts}, transfers {end}", fact, "the lines do not name the partners")
