"""The causal graph: candidates are its nodes, `explained_by` its edges, each with its reason. It has no circle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triage.base.lazy_dataclass import dataclass
from triage.base.rank_ranges import format_ranks
from triage.catalog.model import CausalEdge
from triage.diagnose.candidates import Candidate
from triage.diagnose.context import RuleContext
from triage.diagnose.launcher_reports import is_launcher_report
from triage.diagnose.references import is_reference
from triage.model import EndingDetail, Evidence, ExceptionDetail
from triage.ranks.identity import short_host

EMPTY_CONTEXT = RuleContext((), {}, frozenset(), None, frozenset())
NOT_A_ROOT = 9
# Forms of endings that say how a process ended, not why.
STATUS_FORMS = frozenset(
    ("ended with a status", "status other than zero", "exit status line", "signal", "killed process", "stack trace")
)


@dataclass
class CausalGraph:
    """The candidates of one attempt, and what else the rules look at.

    `ordered` has the strongest first: where two could explain each other, the one nearer to a beginning does.
    `effects` are the candidates that general rules may explain: those with a signature, of which there are few even
    where thousands of failures are unknown.
    """

    candidates: Sequence[Candidate]
    context: RuleContext = EMPTY_CONTEXT

    def __post_init__(self) -> None:
        for candidate in self.candidates:
            candidate.set_clocks(self.context.clocks)
            candidate.rank_hosts = self.context.hosts
        self.by_id = {candidate.id: candidate for candidate in self.candidates}
        self.ordered = sorted(self.candidates, key=lambda candidate: (sort_tier(candidate), candidate.id))
        self.effects = [candidate for candidate in self.ordered if candidate.signature is not None]

    def add_edge(self, cause: Candidate, effect: Candidate, reason: str = "") -> None:
        """Let `cause` explain `effect`, unless it does already or would then explain itself."""
        if effect is cause or cause.id in effect.edge_reasons or self._reaches(effect, cause):
            return
        effect.explained_by.append(cause.id)
        effect.edge_reasons[cause.id] = reason

    def set_suspects(self, candidate: Candidate, ranks: Iterable[int], reason: str) -> None:
        """Let a candidate blame these ranks."""
        candidate.suspects = tuple(sorted(set(ranks)))
        candidate.why.append(reason)

    def _reaches(self, start: Candidate, goal: Candidate) -> bool:
        """Whether `start` is already an (indirect) cause of `goal`."""
        pending, visited = [goal], {goal.id}
        while pending:
            for cause_id in pending.pop().explained_by:
                if cause_id == start.id:
                    return True
                if cause_id in self.by_id and cause_id not in visited:
                    visited.add(cause_id)
                    pending.append(self.by_id[cause_id])
        return False


def root_tier(candidate: Candidate) -> int | None:
    """Return how strong a root cause a candidate can be, 1 the strongest; None: it cannot be one."""
    if candidate.is_symptom:
        return None
    if candidate.indicates == "outside":
        return 4
    if candidate.is_weak_ending:
        return 4 if all(map(is_status_ending, candidate.facts)) else 3
    if candidate.signature is None:
        if all(map(is_launcher_report, candidate.facts)):
            return 4
        return 2 if all(map(_has_no_message, candidate.facts)) else 1
    if candidate.role == "cause":
        return (2 if candidate.is_measured else 3) if candidate.is_inferred else 1
    if candidate.role == "confirmation":
        return 2 if candidate.signature.severity in ("error", "fatal") else None  # a warning is no failure of its own
    if candidate.role == "either":
        return 3 if candidate.is_inferred else 2
    # A symptom that follows from nothing in the files, but is a failure of this very rank and not of a peer.
    return 3 if candidate.role == "symptom" and candidate.indicates == "own-failure" else None


def _has_no_message(fact: Evidence) -> bool:
    return (
        fact.kind == "exit"
        or (fact.kind == "crash" and not fact.fields.get("message"))
        or is_status_ending(fact)
        or is_reference(fact)
        or (isinstance(fact.detail, ExceptionDetail) and fact.detail.truncated)
    )


def is_status_ending(fact: Evidence) -> bool:
    """Whether the fact is a last line that says only with which status something ended."""
    return isinstance(fact.detail, EndingDetail) and fact.detail.form in STATUS_FORMS


def sort_tier(candidate: Candidate) -> int:
    """Return the tier of a root cause, or a number behind all tiers."""
    tier = root_tier(candidate)
    return NOT_A_ROOT if tier is None else tier


def is_known_rival(known: Candidate, unknown: Candidate) -> bool:
    """Whether a signature knows a possible cause that other ranks show than those of the unknown failure."""
    mine, theirs = known.observed_rank_set, unknown.observed_rank_set
    return (
        unknown.signature is None
        and known.role == "either"
        and not known.is_inferred
        and bool(mine and theirs)
        and mine.isdisjoint(theirs)
        and root_tier(unknown) == 1
    )


def edge_holds(edge: CausalEdge, cause: Candidate, effect: Candidate) -> bool:
    """Whether an edge of the catalog holds between these two, by its scope, its window and the order of time."""
    if not _in_scope(edge.scope, cause, effect):
        return False
    if cause.is_in_other_zone(effect):
        return True
    if effect.clearly_before(cause):
        return False
    if edge.window is None:
        return True
    latest, earliest = cause.start.latest, effect.start.earliest
    common = latest.keys() & earliest.keys()
    return not common or any(earliest[clock] <= latest[clock] + edge.window for clock in common)


def _in_scope(scope: str, cause: Candidate, effect: Candidate) -> bool:
    theirs = effect.observed_rank_set
    mine = cause.observed_rank_set.union(cause.suspects or ())
    if scope == "same-rank":
        return not mine or not theirs or bool(mine & theirs)
    if scope == "other-ranks":
        return not theirs or not mine or bool(theirs - mine) or len(theirs) > 1
    if scope == "same-host":
        return not cause.hosts or not effect.hosts or not _short(cause.hosts).isdisjoint(_short(effect.hosts))
    if scope == "same-group":
        return (
            not cause.process_groups or not effect.process_groups or bool(cause.process_groups & effect.process_groups)
        )
    return True


def _short(hosts: Iterable[str]) -> set[str]:
    """Return the names without domains: a kernel may write the whole name, a rank the first part."""
    return {short_host(host) for host in hosts}


def describe(candidate: Candidate) -> str:
    """Return a candidate as part of a sentence: `gloo.connection-lost (rank 3)`."""
    return f"{candidate.id} ({format_ranks(candidate.ranks)})" if candidate.ranks else candidate.id
