"""Candidates for the cause: matched signatures and unknown failures, each with the ranks that it is about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import field
from functools import cached_property

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.base.masked_re import masked_re
from triage.base.rank_ranges import format_ranks
from triage.catalog.match import Match
from triage.catalog.model import Signature
from triage.diagnose.phrases import agree
from triage.diagnose.progress import group_of
from triage.diagnose.time_order import Clocks, StartTimes, find_start, is_zone_apart, stands_above, stands_before
from triage.model import EndingDetail, Evidence, ExceptionDetail, InferenceDetail
from triage.ranks.identity import short_host


@dataclass
class Candidate:
    """A possible root cause. `signature` is None for an unknown failure, which has a `cluster` instead.

    `suspects` are the ranks that it blames; None: those that show it. Reasoning fills in `why` (sentences), `doubts`
    (sentences for which a root cause cannot be sure),
    `explained_by` (ids of causes, in the order of the rules), `edge_reasons` (the sentence for each of them),
    `superseded` (why it is over), and `start`.
    `similar` are the signatures that an unknown failure looks like a new wording of. `rank_hosts` has the hosts of all
    ranks of the job. `stated_hosts` are the machines that its lines call failed, also those of which no rank is known.
    `is_symptom`: it names ranks as missing, but every rank of the job waits somewhere.
    """

    signature: Signature | None
    cluster: str | None
    facts: list[Evidence]
    captures: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    suspects: tuple[int, ...] | None = None
    why: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    explained_by: list[str] = field(default_factory=list)
    edge_reasons: dict[str, str] = field(default_factory=dict)
    superseded: str = ""
    similar: tuple[str, ...] = ()
    attempt: int = 0
    start: StartTimes = field(default_factory=StartTimes)
    clocks: Clocks = field(default_factory=Clocks)
    rank_hosts: Mapping[int, Sequence[str]] = field(default_factory=dict)
    stated_hosts: tuple[str, ...] = ()
    is_symptom: bool = False

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
        """The ranks that it is about: those that it blames, else those that show it themselves."""
        if self.suspects is not None:
            return self.suspects
        if not self._machines:
            return self.observed_ranks
        return tuple(sorted({fact.origin.rank for fact in self.own_facts if fact.origin.rank is not None}))

    @property
    def own_facts(self) -> list[Evidence]:
        """Its facts without those that only confirm what the kernel of another machine states."""
        return [fact for fact in self.facts if fact.kind == "kernel" or not self._is_elsewhere(fact)]

    def _is_elsewhere(self, fact: Evidence) -> bool:
        """Whether a fact is of a rank that runs on none of the machines whose kernels state the cause."""
        hosts = self.rank_hosts.get(fact.origin.rank, ()) if fact.origin.rank is not None else ()
        machines = {short_host(host) for host in self._machines}
        return bool(machines and hosts) and machines.isdisjoint(map(short_host, hosts))

    @cached_property
    def _machines(self) -> frozenset[str]:
        """The hosts whose kernels state it."""
        return frozenset(fact.origin.host for fact in self.facts if fact.kind == "kernel" and fact.origin.host)

    @cached_property
    def process_groups(self) -> frozenset[str]:
        """The process groups that its lines name."""
        return frozenset(group for fact in self.facts if (group := group_of(fact.text).key))

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that show it."""
        return tuple(sorted({fact.origin.host for fact in self.facts if fact.origin.host}))

    @property
    def is_stop_of_job(self) -> bool:
        """Whether somebody outside stopped the whole job, so that no rank and no host is at fault."""
        return self.suspects == () and is_stop(self)

    @property
    def rank_places(self) -> tuple[str, ...]:
        """The hosts of the ranks that it is about; those that show it, where no file places these ranks. Where other
        ranks than its writers are blamed, and no file shows which or where they are, it has none.

        A kernel states its own host, whatever else the files call that machine or the host of a collector.
        """
        if self.stated_hosts:
            return self.stated_hosts
        if self.suspects == ():
            return ()
        blamed = {host for rank in self.suspects or () for host in self.rank_hosts.get(rank, ())}
        machines = self._machines
        if machines and (not blamed or blamed & {short_host(host) for host in machines}):
            return tuple(sorted(machines))
        if blamed:
            return tuple(sorted(blamed))
        writers = {fact.origin.rank for fact in self.facts if fact.kind != "inference"} - {None}
        if self.suspects and writers and writers.isdisjoint(self.suspects):
            return ()
        known = {host for rank in self.observed_ranks for host in self.rank_hosts.get(rank, ())}
        return self.hosts or tuple(sorted(known))

    @cached_property
    def first_lines(self) -> Mapping[str, Evidence]:
        """Its first line in each source, without what launchers report and what follows from comparing."""
        lines: dict[str, Evidence] = {}
        for fact in self.facts:
            if fact.kind not in ("exit", "inference") and not _is_reraised(fact):
                first = lines.setdefault(fact.source, fact)
                lines[fact.source] = min(first, fact, key=lambda line: line.offset)
        return lines

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
        self.start = find_start([fact for fact in self.facts if not _is_reraised(fact)], clocks)

    def clearly_before(self, other: Candidate) -> bool:
        """Whether it began before the other for sure: by clocks that can be compared, else in the files of both."""
        mine, others = self.start, other.start
        if common := mine.latest.keys() & others.earliest.keys():
            return all(
                mine.latest[clock]
                < others.earliest[clock] - self.clocks.uncertainty(mine.host.get(clock), others.host.get(clock))
                for clock in common
            )
        return self.stands_before(other)

    def stands_before(self, other: Candidate) -> bool:
        """Whether its lines come first, and clearly earlier by their times, in all files that have lines of both.

        Clocks of unknown hosts may be apart, but where they agree with the order of the lines, that is the order.
        """
        pairs = [(self.first_lines[source], other.first_lines[source]) for source in self.shared_sources(other)]
        return bool(pairs) and all(stands_before(*pair, self.clocks.shared_files) for pair in pairs)

    def comes_first(self, other: Candidate) -> bool:
        """Whether it began before the other by times, or stands above it in all files of both if no clock has both."""
        if self.start.first.keys() & other.start.first.keys():
            return self.clearly_before(other)
        pairs = [(self.first_lines[source], other.first_lines[source]) for source in self.shared_sources(other)]
        return bool(pairs) and all(stands_above(*pair, self.clocks.shared_files) for pair in pairs)

    def shared_sources(self, other: Candidate) -> Set[str]:
        """Return the files that have lines of both."""
        return self.first_lines.keys() & other.first_lines.keys()

    def can_be_ordered(self, other: Candidate) -> bool:
        """Whether a clock or a file has both, so that their times or places can be compared."""
        return bool(self.start.first.keys() & other.start.first.keys() or self.shared_sources(other))

    def is_in_other_zone(self, effect: Candidate) -> bool:
        """Whether only the zones of the kernel's log and another log part them: whole half hours, and a short delay."""
        kinds = {fact.kind for fact in self.facts}
        if "kernel" not in kinds or not kinds <= {"kernel", "scheduler"}:
            return False
        mine, theirs = self.start.first, effect.start.first
        common = mine.keys() & theirs.keys()
        return bool(common) and all(is_zone_apart(mine[clock], theirs[clock]) for clock in common)


def _is_reraised(fact: Evidence) -> bool:
    """Whether a launcher raises the error of a process again: it does so when all processes have ended."""
    return isinstance(fact.detail, ExceptionDetail) and fact.detail.spawn_index is not None


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
            if rule.__name__.replace("_", "-") not in without:
                rule(candidate)
        candidates.append(candidate)
    return candidates


def unknown_candidates(groups: Mapping[str, Sequence[Evidence]]) -> list[Candidate]:
    """Return one candidate per cluster of unknown failures."""
    return [Candidate(None, cluster, list(facts)) for cluster, facts in sorted(groups.items())]


def blamed(candidate: Candidate) -> None:
    """The text names the rank at fault (`blames` in the signature); who waits for others names these or nobody."""
    name = (candidate.signature.blames if candidate.signature else None) or ""
    ranks = sorted(
        {int(number) for value in candidate.values.get(name, ()) for number in re.findall(r"\d{1,18}", value)}
    )
    if ranks:
        candidate.suspects = tuple(ranks)
        if not candidate.is_inferred:
            candidate.why.append(f"The message names {format_ranks(ranks)}")
    elif candidate.indicates == "awaited" and not candidate.is_inferred:
        candidate.suspects = ()


_RUNNING = lazy_re(
    r"Rank (\d{1,18}) is running (?:inconsistent )?collective: CollectiveFingerPrint\((.*?)\)"
    r"(?=, but Rank|\. ?Collectives differ|$)",
    re.S,
)
# The second is all that torch before 2.9 prints.
_WRONG_SIZE = ("Received data size doesn't match", "op.preamble.length <= op.nbytes")
_SEQUENCE_NUMBER = lazy_re(r"SequenceNumber=\d+,? ?")
# `Rank 2 has 315 params, while rank 1 has inconsistent 316 params`: ranks and the values that they have.
_HAS_VALUE = masked_re(
    r"(?i)\brank (\d{1,6}) (?:has|had|reports?|uses|expects|holds) (?:inconsistent )?"
    r"((?:[a-z]{1,20} ){0,2}[\w.+-]{0,40}\d[\w.+-]{0,40})"
)
# `local [8192], remote [4096]`, `local end 8192, remote end 4096`: a rank compares its own value with a neighbour's.
_LOCAL_VALUE = masked_re(
    r"(?i)\blocal(?: (?:end|rank|size|value))? ?[\[=:(]{0,2} ?(\d[\w.]{0,40}?)[\])]?[,;]? .{0,40}?"
    r"\bremote(?: (?:end|rank|size|value))? ?[\[=:(]{0,2} ?\d"
)
_BARRIER = lazy_re(r"\[Rank (\d{1,6})\]: Ranks? (\d[\d, ]{0,2000}) failed to pass monitoredBarrier")
_LONGEST_COMPARISON = 4000
_INTERRUPT = "KeyboardInterrupt"
# Slurm's reasons for ending a job that did not fail.
_CANCELLED = lazy_re(r"\bCANCELLED AT [^\n]{0,80}?\bDUE TO (?:TIME LIMIT|PREEMPTION|JOB REQUEUE)")
# `torch.float64 if rank == 1 else torch.float32`, `dist.get_rank() == 0`; not `local_rank == 1`, nor of another group.
_RANK_CONDITION = lazy_re(
    r"(?i)(?<![a-z_.])(?:(?:self|args|cfg|config)\.|(?:dist\.)?get_|global_|world_)?rank(?:\(\))? ?== ?(\d{1,6})\b"
)


def minority(candidate: Candidate) -> None:
    """Messages compare the collectives or values of ranks: the few that differ from most are at fault, else all."""
    values = _compared_values(candidate.facts)
    counts = Counter(values.values()).most_common()
    if len(counts) < 2:
        return
    if counts[0][1] == counts[1][1]:
        _blame_without_majority(candidate, sorted(values))
        return
    odd = sorted(rank for rank, text in values.items() if text != counts[0][0])
    candidate.suspects = tuple(odd)
    same = "ran the same collective" if _is_collective(counts[0][0]) else f"have the same value, {counts[0][0]}"
    candidate.why.append(f"{counts[0][1]} of {len(values)} ranks {same}; {format_ranks(odd)} did not")


def _blame_without_majority(candidate: Candidate, ranks: Sequence[int]) -> None:
    """Blame the one rank for which the line that raised does something else, as the traceback quotes it, else all."""
    code = [fact.fields["code"] for fact in candidate.facts if fact.fields.get("code")]
    special = {int(number) for line in code for number in _RANK_CONDITION.findall(line)} & set(ranks)
    if len(special) == 1:
        candidate.suspects = tuple(special)
        candidate.why.append(f"The line that raised does something else on {format_ranks(special)}")
        return
    candidate.suspects = tuple(ranks)
    candidate.why.append(f"The messages compare {format_ranks(ranks)}; no value is that of most")


def _compared_values(facts: Sequence[Evidence]) -> dict[int, str]:
    """Return what messages that compare ranks say of each: its collective, or the value that it has."""
    values = _running_collectives([fact for fact in facts if " is running " in fact.text])
    for fact in (fact for fact in facts if " is running " not in fact.text):
        if len(stated := dict(_HAS_VALUE.findall(fact.text[:_LONGEST_COMPARISON]))) > 1:
            values.update((int(rank), value) for rank, value in stated.items())
        elif fact.origin.rank is not None and (own := _LOCAL_VALUE.search(fact.text[:_LONGEST_COMPARISON])):
            values[fact.origin.rank] = own[1]
    return values


def _running_collectives(facts: Sequence[Evidence]) -> dict[int, str]:
    """Return the collective of each rank, as TORCH_DISTRIBUTED_DEBUG=DETAIL prints it.

    A message names its writer's collective first, by its rank in the process group. What it says of another rank only
    counts where all writers have their ranks of the job, and where that one wrote none: torch decodes the fingerprint
    of a longer or shorter call wrongly, as `SequenceNumber=0OpType=GATHER`.
    """
    values: dict[int, str] = {}
    of_others: dict[int, str] = {}
    is_of_group = False
    for fact in facts:
        running = [(int(one[1]), _SEQUENCE_NUMBER.sub("", one[2])) for one in _RUNNING.finditer(fact.text)]
        for number, collective in running[:1]:
            writer = number if fact.origin.rank is None else fact.origin.rank
            values[writer] = collective
            is_of_group = is_of_group or writer != number
        of_others.update(running[1:])
    return values if is_of_group else {**of_others, **values}


def _is_collective(value: str) -> bool:
    return "OpType" in value


def of_smaller_group(candidate: Candidate) -> None:
    """A monitored barrier numbers the ranks of its process group: where its writer has another rank in the job, the
    numbers that it names are no ranks of the job. Then the ranks that say nothing are suspected, if they are as many.
    """
    pairs = [(fact.origin.rank, match) for fact in candidate.facts if (match := _BARRIER.search(fact.text))]
    moved = [(rank, int(match[1])) for rank, match in pairs if rank is not None and rank != int(match[1])]
    if moved:
        rank, number = moved[0]
        silent = {fact.origin.rank for fact in candidate.facts if fact.kind == "inference"} - {None}
        is_count = any(match[2].count(",") + 1 == len(silent) for own, match in pairs if own != int(match[1]))
        candidate.suspects = tuple(sorted(one for one in silent if one is not None)) if is_count else ()
        candidate.why.append(f"The message numbers the ranks of a process group, where rank {rank} is number {number}")


def receiver(candidate: Candidate) -> None:
    """Gloo notices a wrong size on the receiving rank, which aborts: the rank at fault is one that sends to it."""
    stated = [fact for fact in candidate.facts if fact.kind != "inference"]
    receiving = {fact.origin.rank for text in _WRONG_SIZE for fact in stated if text in fact.text}
    if not receiving:
        return
    measured = [fact for fact in candidate.facts if fact.kind == "inference" and fact.origin.rank is not None]
    if measured:
        candidate.suspects = tuple(sorted({fact.origin.rank for fact in measured if fact.origin.rank is not None}))
        candidate.why.append(measured[0].text)
        return
    others = tuple(rank for rank in candidate.observed_ranks if rank not in receiving)
    candidate.suspects = others if len(others) == 1 else ()  # among several the sender is not known
    ranks = {rank for rank in receiving if rank is not None}
    if ranks:
        candidate.why.append(
            f"{format_ranks(ranks)} received a tensor of an unexpected size and aborted;"
            f" a rank that sends to {agree(ranks, 'it', 'them')} has the wrong size"
        )


def is_stop(candidate: Candidate) -> bool:
    """Whether somebody or something outside stopped the job, or one of its processes."""
    return candidate.indicates == "outside" or any(
        fact.kind == "scheduler" and _CANCELLED.search(fact.text[:_LONGEST_COMPARISON]) for fact in candidate.facts
    )


def stop_of_job(candidate: Candidate) -> None:
    """Ctrl-C reaches all processes of a terminal, and a scheduler cancels whole jobs: no rank is at fault."""
    if not is_stop(candidate):
        return
    by_ranks = [fact for fact in candidate.facts if fact.origin.rank is not None and fact.kind != "scheduler"]
    is_interrupt = all(isinstance(one.detail, ExceptionDetail) and one.detail.type == _INTERRUPT for one in by_ranks)
    is_cancelled = candidate.domain == "slurm" and not by_ranks
    # Of many like lines of one file the scan keeps a few: the ranks of the others are not known.
    is_incomplete = candidate.count > len(by_ranks) == len(candidate.observed_rank_set) > 1
    if is_cancelled or is_incomplete or (by_ranks and is_interrupt):
        candidate.suspects = ()
        candidate.why.append("Somebody or something outside stopped the whole job, so no rank is at fault")


# Rules that read from the text which rank is at fault, in this order: the last that finds one decides.
READING: tuple[Callable[[Candidate], None], ...] = (stop_of_job, receiver, minority, blamed, of_smaller_group)
