"""Matched signatures and unknown failures side by side, as candidates for the cause, each with the ranks it speaks of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from triage.base.lazy_re import lazy_re
from triage.catalog.match import Match
from triage.catalog.model import Signature
from triage.diagnose.clocks import Begin, Clocks, begins
from triage.diagnose.say import say_ranks
from triage.diagnose.sequences import group_of
from triage.model.evidence import Evidence


@dataclass
class Candidate:
    """`ranks` are those that show it, `suspects` those it blames (None: itself).

    Filled in while reasoning: `why` (sentences), `explained_by` (ids, in the order in which they were found), `because`
    (the reason of each),
    `lowered` (why it cannot stand for a cause as its role says), `past` (why it is over), `begin` (when its first fact
    happened).
    """

    signature: Signature | None
    cluster: str | None
    facts: list[Evidence]
    captures: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    suspects: tuple[int, ...] | None = None
    why: list[str] = field(default_factory=list)
    explained_by: list[str] = field(default_factory=list)
    because: dict[str, str] = field(default_factory=dict)
    lowered: str = ""
    past: str = ""
    attempt: int = 0
    begin: Begin = field(default_factory=Begin)
    clocks: Clocks = field(default_factory=Clocks)

    @property
    def id(self) -> str:
        return self.signature.id if self.signature else self.cluster or "unknown"

    @property
    def role(self) -> str:
        return self.signature.role if self.signature else "cause"

    @property
    def tells(self) -> str:
        """What it says of the rank that shows it (`tells` of the signature); empty: nothing in particular."""
        return (self.signature.tells if self.signature else None) or ""

    @cached_property
    def inferred(self) -> bool:
        """No line states it: it is concluded."""
        return all(fact.kind == "inference" for fact in self.facts)

    @cached_property
    def measured(self) -> bool:
        """Concluded from a dump or from numbers, not from silence."""
        return any(fact.kind != "inference" or fact.fields.get("ground") == "measured" for fact in self.facts)

    @cached_property
    def showing(self) -> frozenset[int]:
        """The ranks that show it, as a set."""
        return frozenset(fact.origin.rank for fact in self.facts if fact.origin.rank is not None)

    @cached_property
    def shown_by(self) -> tuple[int, ...]:
        return tuple(sorted(self.showing))

    @property
    def ranks(self) -> tuple[int, ...]:
        return self.suspects if self.suspects is not None else self.shown_by

    @cached_property
    def groups(self) -> frozenset[str]:
        """The process groups that its lines name."""
        return frozenset(group for fact in self.facts if (group := group_of(fact.text)[0]))

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        return tuple(sorted({fact.origin.host for fact in self.facts if fact.origin.host}))

    @cached_property
    def first_time(self) -> float | None:
        return min((fact.origin.time for fact in self.facts if fact.origin.time is not None), default=None)

    @cached_property
    def count(self) -> int:
        return sum(fact.count for fact in self.facts)

    def time(self, clocks: Clocks) -> None:
        """Read when it began."""
        self.clocks = clocks
        self.begin = begins(self.facts, clocks)

    @property
    def began(self) -> Mapping[str, float]:
        """By clock the time of its first fact."""
        return self.begin.told

    def clearly_before(self, other: Candidate) -> bool:
        """Did it surely begin before the other? Only stamps of clocks that can be compared say so."""
        mine, others = self.begin, other.begin
        common = mine.sure.keys() & others.possible.keys()
        return bool(common) and all(
            mine.sure[clock]
            < others.possible[clock] - self.clocks.doubt(mine.where.get(clock), others.where.get(clock))
            for clock in common
        )


def known(
    signatures: Mapping[str, Signature],
    matches: Mapping[str, Match],
    facts: Sequence[Evidence],
    without: frozenset[str] = frozenset(),
    before: Mapping[str, tuple[Match, Candidate]] | None = None,
) -> list[Candidate]:
    """One candidate a matched signature, with the ranks that its text names where it names any. `before`: those of
    fewer facts, which stay where
    their match did."""
    candidates = []
    for signature_id, match in matches.items():
        if before and signature_id in before and before[signature_id][0] is match:
            candidates.append(before[signature_id][1])
            continue
        candidate = Candidate(
            signatures[signature_id], None, [facts[index] for index in match.indices], match.captures, match.values
        )
        for read in READING:
            if read.__name__ not in without:
                read(candidate)
        candidates.append(candidate)
    return candidates


def unknown(groups: Mapping[str, Sequence[Evidence]]) -> list[Candidate]:
    return [Candidate(None, cluster, list(facts)) for cluster, facts in sorted(groups.items())]


def blamed(candidate: Candidate) -> None:
    """The text itself names the rank at fault (`blames` in the signature)."""
    name = candidate.signature.blames if candidate.signature else None
    if name is None:
        return
    ranks = sorted({int(number) for value in candidate.values.get(name, ()) for number in re.findall(r"\d+", value)})
    if ranks:
        candidate.suspects = tuple(ranks)
        if any(fact.kind != "inference" for fact in candidate.facts):
            candidate.why.append(f"the message itself names {say_ranks(ranks)}")


_RUNNING = lazy_re(
    r"Rank (\d+) is running (?:inconsistent )?collective: CollectiveFingerPrint\((.*?)\)(?=, but Rank|\. ?Collectives differ|$)",
    re.S,
)
# Before torch 2.9 without the sentence.
_RECEIVED = ("Received data size doesn't match", "op.preamble.length <= op.nbytes")
_VARYING = lazy_re(r"SequenceNumber=\d+,? ?")


def minority(candidate: Candidate) -> None:
    """TORCH_DISTRIBUTED_DEBUG=DETAIL prints pairs of fingerprints: the rank whose collective differs from most is the
    odd one.
    """
    running: dict[int, str] = {}
    for fact in [fact for fact in candidate.facts if " is running " in fact.text]:
        for match in _RUNNING.finditer(fact.text):
            running[int(match[1])] = _VARYING.sub("", match[2])
    counts = Counter(running.values()).most_common()
    if len(counts) < 2 or (counts[0][1] == counts[1][1]):
        return
    odd = sorted(rank for rank, text in running.items() if text != counts[0][0])
    candidate.suspects = tuple(odd)
    candidate.why.append(
        f"{counts[0][1]} of {len(running)} ranks ran the same collective, {say_ranks(odd)} another one"
    )


def receiver(candidate: Candidate) -> None:
    """Gloo notices a wrong size on the receiving rank, which then aborts: the tensor of another size is its
    neighbour's.
    """
    receiving = {fact.origin.rank for said in _RECEIVED for fact in candidate.facts if said in fact.text}
    if not receiving:
        return
    others = tuple(rank for rank in candidate.shown_by if rank not in receiving)
    candidate.suspects = others if len(others) == 1 else ()  # among several, victims cannot be told from the sender
    told = say_ranks([rank for rank in receiving if rank is not None])
    candidate.why.append(
        f"{told} received a tensor of an unexpected size and aborted; the odd one is a rank that sends to it"
    )


# Whom the text itself speaks of, in this order: the last that names somebody is believed.
READING: tuple[Callable[[Candidate], None], ...] = (receiver, minority, blamed)
