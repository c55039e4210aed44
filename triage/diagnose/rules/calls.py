"""Rules about which collective each rank was in: by the line of the program, by operation and size, by process group,
by number.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.diagnose import sequences
from triage.diagnose.say import say_ranks
from triage.diagnose.scene import Scene, conclude, ranks_of
from triage.model.evidence import Evidence

_WORK = lazy_re(
    r"Work[NH]CCL\((?:SeqNum=(?P<seq>\d+), ?)?OpType=(?P<op>\w+)(?:, ?TensorShape=\[[^\]]*\])?(?:, ?NumelIn=(?P<numel>\d+))?[^)]*"
    r"Timeout\(ms\)=(?P<timeout>\d+)\)(?: ran for (?P<ran>\d+) milliseconds)?"
)
# Operations in which ranks may well give tensors of different sizes, or of which only two take part.
_UNEVEN = lazy_re(r"ALLTOALL|ALL_TO_ALL|SEND|RECV|COALESCED|GATHER$|SCATTER$")
# So much longer than the timeout ran what a watchdog saw late.
_STARVED = 1.2


@dataclass(frozen=True, slots=True)
class Wait:
    """The collective in which a rank timed out. `group` is what tells process groups apart, `label` what they are
    called.
    """

    rank: int
    group: str
    label: str
    seq: int | None
    op: str
    numel: int | None
    timeout: int
    ran: int | None
    fact: Evidence


def waits(scene: Scene) -> list[Wait]:
    """The first such collective of each rank and group, in order of the ranks."""
    found: dict[tuple[int, str], Wait] = {}
    for fact in scene.evidence_of("waiting"):
        work = _WORK.search(fact.text)
        if work is None or fact.origin.rank is None:
            continue
        group, label = sequences.group_of(fact.text)
        numel = int(work["numel"]) if work["numel"] else None
        wait = Wait(
            fact.origin.rank,
            group,
            label,
            int(work["seq"]) if work["seq"] else None,
            work["op"],
            numel,
            int(work["timeout"]),
            int(work["ran"]) if work["ran"] else None,
            fact,
        )
        found.setdefault((fact.origin.rank, group), wait)
    return [found[key] for key in sorted(found)]


def rank_conditional(scene: Scene) -> list[Evidence]:
    """Rank 0 alone waits in another call than all the others: a collective inside `if rank == 0`."""
    found = scene.once(divergent_call)
    if ranks_of(found) != {0}:
        return []
    return conclude(
        "rank-conditional",
        {0},
        found[0],
        found[0].text + ": that is what a collective inside `if rank == 0` looks like",
    )


def divergent_call(scene: Scene) -> list[Evidence]:
    """Every rank waits, but not in the same call: the few that wait elsewhere took another way through the program."""
    stuck = scene.evidence_of("waiting", "peer-lost") if scene.matched.get("waiting") else []
    waiting = list(
        {
            fact.origin.rank: fact
            for fact in reversed(stuck)
            if fact.origin.rank is not None and fact.fields.get("line")
        }.values()
    )
    waiting = [fact for fact in waiting if fact.fields.get("file")]
    if len(waiting) < 3 or ranks_of(waiting) != scene.everybody:
        return []
    places = Counter((fact.fields.get("op", ""), fact.fields["file"], fact.fields["line"]) for fact in waiting)
    (usual, most), *others = places.most_common()
    if not others or most * 2 <= len(waiting):
        return []
    odd = [fact for fact in waiting if (fact.fields.get("op", ""), fact.fields["file"], fact.fields["line"]) != usual]
    strange = ranks_of(odd)
    there = _call(next(fact for fact in waiting if fact.origin.rank not in strange))
    text = f"all ranks wait, but {say_ranks(strange)} in {_call(odd[0])} while the others are in {there}"
    return conclude("divergent-call", strange, odd[0], text)


def odd_operation(scene: Scene) -> list[Evidence]:
    """At the same number of the same group, most ranks wait in one operation and a few in another, or in one of another
    size.
    """
    for same in _by_group(scene.once(waits)).values():
        numbers = Counter(wait.seq for wait in same if wait.seq is not None)
        if not numbers:
            continue
        number, _ = numbers.most_common(1)[0]
        here = [wait for wait in same if wait.seq == number]
        if len(here) < 3:
            continue
        odd = _minority({wait.rank: wait.op for wait in here})
        if odd:
            return _odd_one("divergent-call", odd, here, "in {0.op}", number or 0)
        sized = {wait.rank: str(wait.numel) for wait in here if wait.numel is not None and not _UNEVEN.search(wait.op)}
        odd = _minority(sized) if len(sized) == len(here) else set()
        if odd:
            return _odd_one("shape-mismatch", odd, here, "in {0.op} of {0.numel} elements", number or 0)
    return []


def _odd_one(rule: str, odd: set[int], here: Sequence[Wait], form: str, number: int) -> list[Evidence]:
    strange = next(wait for wait in here if wait.rank in odd)
    usual = next(wait for wait in here if wait.rank not in odd)
    text = f"collective {number} of {usual.label or 'the group'}: {say_ranks(odd)} waits {form.format(strange)}, the others {form.format(usual)}"
    return conclude(rule, odd, strange.fact, text, "measured")


def odd_group(scene: Scene) -> list[Evidence]:
    """Every rank waits, most in one process group and a few in another: two groups used in different order, or the
    wrong group.
    """
    found = scene.once(waits)
    groups = _by_group(found)
    if (
        len(groups) < 2
        or {wait.rank for wait in found} != scene.everybody
        or len(found) != len({wait.rank for wait in found})
    ):
        return []
    ordered = sorted(groups.values(), key=lambda same: (-len(same), same[0].group))
    usual, *others = ordered
    odd = {wait.rank for same in others for wait in same}
    if len(usual) <= len(odd) or len(others) > 1:
        return []
    members = _members(scene)
    crossed = (
        odd <= members.get(usual[0].group, set())
        and {wait.rank for wait in usual} & members.get(others[0][0].group, set()) - odd
    )
    strange, there = others[0][0], usual[0]
    text = f"{say_ranks(odd)} waits in group {strange.label or strange.group} while {say_ranks(wait.rank for wait in usual)} wait in group {there.label or there.group}"
    if crossed:
        return conclude(
            "group-order", odd, strange.fact, text + ", and all belong to both: each waits for the other", "measured"
        )
    return conclude("wrong-group", odd, strange.fact, text, "measured")


def numbers(scene: Scene) -> list[Evidence]:
    """The watchdogs print how far each rank had come: somebody is ahead, behind, or all are at the same place."""
    found = sequences.conclude(scene.saying(sequences.SAID), scene.everybody)
    return (
        conclude(found.rule, found.ranks, found.basis, f"{say_ranks(found.ranks)} {found.text}", "measured")
        if found
        else []
    )


def watchdog_starved(scene: Scene) -> list[Evidence]:
    """A watchdog saw the timeout much later than it had to: the process, or its host, stood still."""
    late = [
        wait
        for wait in scene.once(waits)
        if wait.ran is not None and wait.ran > wait.timeout * _STARVED and wait.ran > wait.timeout + 10_000
    ]
    if not late:
        return []
    worst = max(late, key=lambda wait: (wait.ran or 0, -wait.rank))
    text = f"the watchdog of rank {worst.rank} saw after {worst.ran} ms what should have ended after {worst.timeout} ms: it did not run in between"
    return conclude("watchdog-starved", {wait.rank for wait in late}, worst.fact, text, "measured")


def _by_group(found: Sequence[Wait]) -> dict[str, list[Wait]]:
    groups: dict[str, list[Wait]] = defaultdict(list)
    for wait in found:
        groups[wait.group].append(wait)
    return dict(sorted(groups.items()))


def _minority(told: Mapping[int, str]) -> set[int]:
    """The ranks that say something else than most; empty without a clear majority."""
    counts = Counter(told.values()).most_common()
    if len(counts) < 2 or counts[0][1] * 2 <= len(told):
        return set()
    return {rank for rank, text in told.items() if text != counts[0][0]}


def _members(scene: Scene) -> dict[str, set[int]]:
    """Process group to the ranks that ever speak as its members."""
    members: dict[str, set[int]] = defaultdict(set)
    for fact in scene.saying("[PG "):
        if fact.origin.rank is not None:
            members[sequences.group_of(fact.text)[0]].add(fact.origin.rank)
    return members


def _call(fact: Evidence) -> str:
    return f"{fact.fields.get('op') or 'a call'} at {fact.fields['file'].rsplit('/', 1)[-1]}:{fact.fields['line']}"
