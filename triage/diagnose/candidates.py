"""Candidates for the cause: matched signatures and unknown failures, each with the ranks that it is about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.catalog.match import Match
from triage.catalog.model import Signature
from triage.diagnose.phrases import agree
from triage.diagnose.sequences import group_of
from triage.diagnose.time_order import Clocks, StartTimes, find_start
from triage.model import EndingDetail, Evidence, InferenceDetail


@dataclass
class Candidate:
    """A possible root cause. `signature` is None for an unknown failure, which has a `cluster` instead.

    `suspects` are the ranks that it blames; None: those that show it. Reasoning fills in `why` (sentences),
    `explained_by` (ids of causes, in the order of the rules), `edge_reasons` (the sentence for each of them),
    `demotion_reason` (why it cannot be a root cause as its role says), `superseded` (why it is over), and `start`.
    `similar` are the signatures that an unknown failure looks like a new wording of.
    """

    signature: Signature | None
    cluster: str | None
    facts: list[Evidence]
    captures: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    suspects: tuple[int, ...] | None = None
    why: list[str] = field(default_factory=list)
    explained_by: list[str] = field(default_factory=list)
    edge_reasons: dict[str, str] = field(default_factory=dict)
    demotion_reason: str = ""
    superseded: str = ""
    similar: tuple[str, ...] = ()
    attempt: int = 0
    start: StartTimes = field(default_factory=StartTimes)
    clocks: Clocks = field(default_factory=Clocks)

    @property
    def id(self) -> str:
        """Id of the signature or the cluster."""
        return self.signature.id if self.signature else self.cluster or "unknown"

    @property
    def role(self) -> str:
        """Role of the signature; an unknown failure may be a cause."""
        return self.signature.role if self.signature else "cause"

    @property
    def indicates(self) -> str:
        """What it says about the rank that shows it (`tells` of the signature); empty: nothing in particular."""
        return (self.signature.indicates if self.signature else None) or ""

    @property
    def domain(self) -> str:
        """First part of the signature's id; empty for an unknown failure."""
        return self.signature.domain if self.signature else ""

    @cached_property
    def is_inferred(self) -> bool:
        """Whether no line states it."""
        return all(fact.kind == "inference" for fact in self.facts)

    @cached_property
    def is_measured(self) -> bool:
        """Whether it rests on a line, a dump or numbers, not only on the absence of something."""
        return any(
            not isinstance(fact.detail, InferenceDetail) or fact.detail.basis == "measured" for fact in self.facts
        )

    @cached_property
    def is_exit_only(self) -> bool:
        """Whether an unknown failure is known only by how processes ended."""
        return self.signature is None and all(
            fact.kind == "exit" or (isinstance(fact.detail, EndingDetail) and fact.detail.strength == "weak")
            for fact in self.facts
        )

    @cached_property
    def is_weak_ending(self) -> bool:
        """Whether an unknown failure is known only by last lines of a weak form."""
        return self.signature is None and all(
            isinstance(fact.detail, EndingDetail) and fact.detail.strength == "weak" for fact in self.facts
        )

    @cached_property
    def observed_rank_set(self) -> frozenset[int]:
        """The ranks that show it."""
        return frozenset(fact.origin.rank for fact in self.facts if fact.origin.rank is not None)

    @cached_property
    def observed_ranks(self) -> tuple[int, ...]:
        """The ranks that show it, ascending."""
        return tuple(sorted(self.observed_rank_set))

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that it is about: those that it blames, else those that show it."""
        return self.suspects if self.suspects is not None else self.observed_ranks

    @cached_property
    def process_groups(self) -> frozenset[str]:
        """The process groups that its lines name."""
        return frozenset(group for fact in self.facts if (group := group_of(fact.text)[0]))

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that show it."""
        return tuple(sorted({fact.origin.host for fact in self.facts if fact.origin.host}))

    @cached_property
    def first_time(self) -> float | None:
        """The earliest time of its lines, whatever their clocks."""
        return min((fact.origin.time for fact in self.facts if fact.origin.time is not None), default=None)

    @cached_property
    def count(self) -> int:
        """How often it was written."""
        return sum(fact.count for fact in self.facts)

    def set_clocks(self, clocks: Clocks) -> None:
        """Find out when it began."""
        self.clocks = clocks
        self.start = find_start(self.facts, clocks)

    def clearly_before(self, other: Candidate) -> bool:
        """Whether it began before the other for sure, by clocks that can be compared."""
        mine, others = self.start, other.start
        common = mine.latest.keys() & others.earliest.keys()
        return bool(common) and all(
            mine.latest[clock]
            < others.earliest[clock] - self.clocks.uncertainty(mine.host.get(clock), others.host.get(clock))
            for clock in common
        )


def known_candidates(
    signatures: Mapping[str, Signature],
    matches: Mapping[str, Match],
    facts: Sequence[Evidence],
    without: frozenset[str] = frozenset(),
    before: Mapping[str, tuple[Match, Candidate]] | None = None,
) -> list[Candidate]:
    """Return one candidate per matched signature, with the ranks that its text blames.

    `before` has the candidates of fewer facts; those whose match is the same object are used again.
    """
    candidates = []
    for signature_id, match in matches.items():
        if before and signature_id in before and before[signature_id][0] is match:
            candidates.append(before[signature_id][1])
            continue
        candidate = Candidate(
            signatures[signature_id], None, [facts[index] for index in match.indices], match.captures, match.values
        )
        for rule in READING:
            if rule.__name__ not in without:
                rule(candidate)
        candidates.append(candidate)
    return candidates


def unknown_candidates(groups: Mapping[str, Sequence[Evidence]]) -> list[Candidate]:
    """Return one candidate per cluster of unknown failures."""
    return [Candidate(None, cluster, list(facts)) for cluster, facts in sorted(groups.items())]


def blamed(candidate: Candidate) -> None:
    """The text names the rank at fault (`blames` in the signature)."""
    name = candidate.signature.blames if candidate.signature else None
    if name is None:
        return
    ranks = sorted({int(number) for value in candidate.values.get(name, ()) for number in re.findall(r"\d+", value)})
    if ranks:
        candidate.suspects = tuple(ranks)
        if not candidate.is_inferred:
            candidate.why.append(f"The message names {format_ranks(ranks)}")


_RUNNING = lazy_re(
    r"Rank (\d+) is running (?:inconsistent )?collective: CollectiveFingerPrint\((.*?)\)"
    r"(?=, but Rank|\. ?Collectives differ|$)",
    re.S,
)
# The second is all that torch before 2.9 prints.
_WRONG_SIZE = ("Received data size doesn't match", "op.preamble.length <= op.nbytes")
_SEQUENCE_NUMBER = lazy_re(r"SequenceNumber=\d+,? ?")


def minority(candidate: Candidate) -> None:
    """TORCH_DISTRIBUTED_DEBUG=DETAIL prints the collective of each rank: the few that differ from most are at fault."""
    running: dict[int, str] = {}
    for fact in [fact for fact in candidate.facts if " is running " in fact.text]:
        for match in _RUNNING.finditer(fact.text):
            running[int(match[1])] = _SEQUENCE_NUMBER.sub("", match[2])
    counts = Counter(running.values()).most_common()
    if len(counts) < 2 or counts[0][1] == counts[1][1]:
        return
    odd = sorted(rank for rank, text in running.items() if text != counts[0][0])
    candidate.suspects = tuple(odd)
    candidate.why.append(f"{counts[0][1]} of {len(running)} ranks ran the same collective; {format_ranks(odd)} did not")


def receiver(candidate: Candidate) -> None:
    """Gloo notices a wrong size on the receiving rank, which aborts: the rank at fault is one that sends to it."""
    receiving = {fact.origin.rank for text in _WRONG_SIZE for fact in candidate.facts if text in fact.text}
    if not receiving:
        return
    others = tuple(rank for rank in candidate.observed_ranks if rank not in receiving)
    candidate.suspects = others if len(others) == 1 else ()  # among several the sender is not known
    ranks = {rank for rank in receiving if rank is not None}
    if ranks:
        candidate.why.append(
            f"{format_ranks(ranks)} received a tensor of an unexpected size and aborted;"
            f" a rank that sends to {agree(ranks, 'it', 'them')} has the wrong size"
        )


# Rules that read from the text which rank is at fault, in this order: the last that finds one decides.
READING: tuple[Callable[[Candidate], None], ...] = (receiver, minority, blamed)
