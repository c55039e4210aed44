"""Rules about transfers between two ends: was it the link, or had one end failed?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.diagnose.candidates import Candidate
from triage.diagnose.context import RuleContext
from triage.diagnose.graph import CausalGraph
from triage.diagnose.npu_tasks import find_linked_rank, find_rank_at
from triage.diagnose.phrases import agree, join_names
from triage.diagnose.rules.waits import open_calls
from triage.model.evidence import Evidence

_LEAST_REPORTS = 2  # ranks that must report a lost peer before the one that does not is that peer
# How HCCL names the other end: the heartbeat, error completions and their messages, old releases.
_PLACE = lazy_re(
    r"(?:Cluster Exception Location\[IP/ID\]:\[|crimer rank \[)(?P<heartbeat>[^/\]\n]{1,64})/(?P<id>\d{1,4})\]"
    r"|remoteIP\{server\[(?P<server>[^\]\n]{1,64})\],deviceId\[(?P<device>\d{1,4})\]"
    r"|Peer information: server (?P<peer>[^,\s]{1,64}), device ID (?P<peer_id>\d{1,4})"
    r"|\bserverId\[(?P<lost>[^\]\n]{1,64})\], deviceId\[(?P<lost_id>\d{1,4})\], Heartbeat"
)
# The heartbeat and the check of parameters compare a call of two members.
_COMPARED = lazy_re(
    r"CMD information (?P<parameter>\w{1,40}) check fail\.? ?local\[(?P<local>[^\]\n]{0,400})\], ?"
    r"remote\[(?P<remote>[^\]\n]{0,400})\]"
)
_NODES = lazy_re(
    r"index\[(?P<index>\d{1,19})\], ?local\((?:node\[[^\]\n]{1,80}\] )?(?P<local>[^)\n]{1,300})\); ?"
    r"remote\(node\[(?P<node>[^/\]\n]{1,64})/(?P<id>\d{1,4})\] (?P<remote>[^)\n]{1,300})\)"
)
_LONGEST_TEXT = 4000
_LONGEST_VALUE = 60

Place = tuple[str, int]
End = int | str
"""A rank, or the name of a device whose rank no file shows."""


def heartbeat_location(graph: CausalGraph) -> None:
    """HCCL's heartbeat names host and device of the end that was lost: the rank there is the suspect, and its own
    failure the cause. Of several ends the one counts that most processes name first. Error completions name both ends:
    one that all of them share is the suspect, else, where the other end is alive, both are.
    """
    for candidate in graph.candidates:
        if candidate.domain != "hccl" or candidate.suspects is not None:
            continue
        if candidate.indicates == "link" and (pairs := _find_pairs(graph.context, candidate)):
            _suspect_ends(graph, candidate, pairs)
        elif (place := _first_named(candidate.facts) or _captured_place(candidate)) is not None:
            _suspect_place(graph, candidate, place)


def _find_pairs(context: RuleContext, candidate: Candidate) -> dict[tuple[int, int], Place]:
    """Return (rank that reports, rank at the other end) with the place of the latter."""
    return {
        (fact.origin.rank, rank): place
        for fact in candidate.facts
        for place in _read_places(fact)
        if fact.origin.rank is not None
        and (rank := find_rank_at(context, *place)) is not None
        and rank != fact.origin.rank
    }


def _suspect_ends(graph: CausalGraph, candidate: Candidate, pairs: Mapping[tuple[int, int], Place]) -> None:
    """Suspect the end that all broken links share; of a single link both ends, unless the other one is silent."""
    links = {frozenset(pair) for pair in pairs}
    common = frozenset.intersection(*links)
    (reporter, other), (address, device) = min(pairs.items())
    if len(links) > 1 and len(common) == 1:
        others = frozenset.union(*links) - common
        graph.set_suspects(
            candidate, common, f"All broken links, to {format_ranks(others)}, end at {format_ranks(common)}"
        )
    elif len(links) == 1:
        named = f"The message names device {device} of {address}, which is rank {other}"
        is_alive = other in graph.context.complaining
        why = f"{named}; it reports errors too, so either end or the link may be at fault" if is_alive else named
        graph.set_suspects(candidate, {reporter, other} if is_alive else {other}, why)
    else:
        return
    _add_failures(graph, candidate, candidate.suspects or ())


def _suspect_place(graph: CausalGraph, candidate: Candidate, place: Place) -> None:
    named = f"The message names device {place[1]} of {place[0]}"
    rank, why = find_rank_at(graph.context, *place), "which is rank {}"
    if rank is None:
        rank, why = _only_other(graph.context, candidate), "and rank {} is the only one that does not report it"
    if rank is not None:
        graph.set_suspects(candidate, {rank}, f"{named}, {why.format(rank)}")
        _add_failures(graph, candidate, (rank,))


def _add_failures(graph: CausalGraph, candidate: Candidate, ranks: Iterable[int]) -> None:
    """Let failures of the ranks explain that the others lost them."""
    for rank in ranks:
        for cause in graph.ordered:
            if _is_failure_of(cause, rank, candidate) and not candidate.clearly_before(cause):
                graph.add_edge(cause, candidate, f"rank {rank}, whose heartbeat was lost, had failed")


def _read_places(fact: Evidence) -> Iterator[Place]:
    for match in _PLACE.finditer(fact.text[:_LONGEST_TEXT]):
        address, device = (part for part in match.groups() if part is not None)
        yield address, int(device)


def _first_named(facts: Iterable[Evidence]) -> Place | None:
    """Return the place that more than half of the processes name first."""
    first: dict[str, tuple[float, int, Place]] = {}
    for fact in facts:
        process = fact.source if fact.origin.rank is None else str(fact.origin.rank)
        for place in _read_places(fact):
            named = (fact.origin.time or 0.0, fact.offset, place)
            first[process] = min(named, first.get(process, named))
    counts = Counter(place for _, _, place in first.values())
    return next((place for place, count in counts.items() if 2 * count > len(first)), None)


def _captured_place(candidate: Candidate) -> Place | None:
    """Return the only place in the captures of the signature."""
    peers, devices = candidate.values.get("peer", ()), candidate.values.get("device", ())
    return (peers[0], int(devices[0])) if len(peers) == len(devices) == 1 and devices[0].isdecimal() else None


def _only_other(context: RuleContext, lost: Candidate) -> int | None:
    """Return the one rank that does not report a peer that all others lost; None where it is not one of many."""
    others = set(context.all_ranks - lost.observed_rank_set)
    return others.pop() if len(others) == 1 and len(lost.observed_rank_set) >= _LEAST_REPORTS else None


def _is_failure_of(cause: Candidate, rank: int, lost: Candidate) -> bool:
    return (
        cause.role in ("cause", "either")
        and not cause.is_inferred
        and cause.indicates not in ("link", "outside")
        and rank in cause.observed_ranks
        and rank not in lost.observed_ranks
    )


def compared_calls(graph: CausalGraph) -> None:
    """HCCL compares the call of a rank with that of another one: the few that differ from most are the suspects, else
    both ends. An end whose rank no file shows counts, too: if it alone differs, no known rank is at fault.
    """
    for candidate in graph.candidates:
        if candidate.domain != "hccl" or candidate.is_inferred:
            continue
        values = _compared_values(graph.context, candidate)
        ends = {end for by_end in values.values() for end in by_end}
        ranks = {end for end in ends if isinstance(end, int)}
        if len(ends) < 2 or not ranks or not set(candidate.suspects or ()) <= ranks:
            continue
        odd = {end for by_end in values.values() for end in _find_odd(by_end)}
        odd = odd or _find_odd_waiting(graph.context, ranks)
        suspects = {end for end in odd if isinstance(end, int)} if odd else ranks
        parameter, by_end = next((one for one in sorted(values.items()) if _find_odd(one[1])), min(values.items()))
        graph.set_suspects(candidate, suspects, _describe(parameter, by_end, has_majority=bool(odd)))


def _find_odd_waiting(context: RuleContext, ranks: Set[int]) -> set[End]:
    """Return those of the ranks that wait in another call than most members of the group, if some of them do not."""
    odd = {fact.origin.rank for fact in open_calls(context) if fact.origin.rank is not None}
    return {*(odd & ranks)} if odd < ranks else set()


def _find_odd(by_end: Mapping[End, str]) -> set[End]:
    """Return the ends that differ from more than half; empty where there is no such majority."""
    value, count = Counter(by_end.values()).most_common(1)[0]
    return {end for end in by_end if by_end[end] != value} if 2 * count > len(by_end) else set()


def _describe(parameter: str, by_end: Mapping[End, str], *, has_majority: bool) -> str:
    ends_of: dict[str, list[End]] = defaultdict(list)
    for end in sorted(by_end, key=str):
        ends_of[by_end[end]].append(end)
    parts = [_describe_ends(ends, value) for value, ends in ends_of.items()]
    return f"Of {parameter} {join_names(parts[:4])}{'' if has_majority else '; no value is that of most'}"


def _describe_ends(ends: Sequence[End], value: str) -> str:
    ranks = sorted(end for end in ends if isinstance(end, int))
    names = [format_ranks(ranks)] if ranks else []
    names += [f"{end}, whose rank no file shows," for end in ends if isinstance(end, str)]
    return f"{join_names(names)} {agree(ends, 'has', 'have')} {value[:_LONGEST_VALUE]}"


def _compared_values(context: RuleContext, candidate: Candidate) -> dict[str, dict[End, str]]:
    """Return by parameter, or by number of the call, what each end brought."""
    values: dict[str, dict[End, str]] = defaultdict(dict)
    for fact in candidate.facts:
        text = fact.text[:_LONGEST_TEXT]
        if (match := _COMPARED.search(text)) is not None:
            remote, name, compared = find_linked_rank(context, fact), "the other end", match["parameter"]
        elif (match := _NODES.search(text)) is not None:
            remote, compared = find_rank_at(context, match["node"], int(match["id"])), f"call {match['index']}"
            name = f"device {match['id']} of {match['node']}"
        else:
            continue
        if fact.origin.rank is not None:
            values[compared][fact.origin.rank] = match["local"]
        values[compared][name if remote is None else remote] = match["remote"]
    return values
