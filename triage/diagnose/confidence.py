"""How sure a diagnosis is: by the kind of evidence, by independent sources that confirm it, and less for rivals.

The scores below are set by hand. What they are worth was counted, on jobs with a known truth and on damaged copies of
them; the share that was right is the confidence (calibration.txt; docs/reasoning.md, "Confidence").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triage.base.rank_ranges import format_ranks
from triage.diagnose.calibration import calibrate
from triage.diagnose.candidates import Candidate
from triage.diagnose.graph import is_known_rival, root_tier
from triage.diagnose.phrases import join_names
from triage.diagnose.rereading import READ_AS
from triage.diagnose.survival import why_harmless, why_uncertain
from triage.model import Evidence, ExitDetail, InferenceDetail

LEAST, MOST = 0.1, 0.95
# High confidence begins at 0.8 and needs two independent sources: of a single source, all above the first number is
# squeezed up to the second.
SINGLE, SINGLE_MOST = 0.7, 0.79
UNCERTAIN = 0.45
"""The most for a failure whose lines all say that the program goes on, or may not concern the job, or were read again
in other words."""
OTHER_STORY = 0.6
"""The most for an inference that names another possible explanation, and beside a cause that may have come first."""
GUESS = 0.5
"""The most for one that follows from the absence of something besides, and for a stall that all waiting ranks show."""
# By tier: a line that states a cause; a possible or measured one; an inference from absence; a stop from outside.
_BASE = {1: 0.8, 2: 0.65, 3: 0.55, 4: 0.6}
_SOURCE_BONUS, _RIVAL, _NO_RANK, _UNKNOWN, _CONTRADICTED = 0.05, 0.15, 0.15, 0.1, 0.1
_WAITS = frozenset(("stalled", "waiting"))
_WRITTEN = frozenset(("exception", "message", "terminate", "fatal-python"))
_OTHER_RANKS = "the other ranks"
# Kinds of evidence that show processes at one moment.
_SNAPSHOTS = {"flight": "dumps", "stack": "stacks"}


def rate_confidence(
    root: Candidate,
    others: Sequence[Candidate],
    candidates: Sequence[Candidate],
    further: Iterable[tuple[str, Sequence[Evidence]]] = (),
    contradiction: str = "",
) -> float:
    """Return a confidence of 0.1 to 0.95, and add the reasons to the root's `why`.

    `others` are the other unexplained candidates, `further` the inferences of rules that fired after the first,
    `contradiction` is how lines of the ranks at fault contradict it.
    """
    level = root_tier(root) or 1
    score = _BASE[level] - (_UNKNOWN if root.signature is None else 0.0)
    if root.is_inferred:
        root.why.append("Inferred from all ranks together; no line states it")
    sources = [] if contradiction else _independent_sources(root, candidates)
    if contradiction:
        root.why.append(contradiction)
    if len(sources) > 1:
        root.why.append(f"Confirmed by {join_names(sources)}")
    score += _SOURCE_BONUS * min(3, len(sources) - 1) if sources else 0.0
    score -= _RIVAL * min(2, sum(root_tier(other) == level for other in others))
    score -= 0.0 if root.ranks or root.is_stop_of_job else _NO_RANK
    is_contradicted = bool(contradiction)
    for _, inferences in further if root.is_inferred and root.ranks else ():
        named = {fact.origin.rank for fact in inferences if fact.origin.rank is not None}
        if named and not named & set(root.ranks):
            score -= _CONTRADICTED
            is_contradicted = is_contradicted or _contradicts_dumps(root, inferences)
            root.why.append(_describe_contradiction(root, named, inferences))
    share = calibrate(round(max(LEAST, min(MOST, score)), 2))
    if len(sources) < 2 and share > SINGLE:
        if share > SINGLE_MOST:
            root.why.append("Only one source shows this")
        share = min(SINGLE_MOST, SINGLE + (share - SINGLE) * (SINGLE_MOST - SINGLE) / (MOST - SINGLE))
    share = _cap_by_doubts(root, candidates, share)
    stories = {fact.detail.uncertainty for fact in root.facts if isinstance(fact.detail, InferenceDetail)}
    if root.is_inferred and stories and "" not in stories:
        texts = "\n".join(fact.text for fact in root.facts)
        root.why.extend(f"Not certain: {story}" for story in sorted(stories) if story not in texts)
        is_from_dump = any(
            isinstance(fact.detail, InferenceDetail) and fact.detail.evidence_kind == "flight" for fact in root.facts
        )
        share = min(share, OTHER_STORY if root.is_measured or is_from_dump else GUESS)
    if is_contradicted or any(_may_come_first(root, other) for other in others):
        share = min(share, OTHER_STORY)
    readings = [fact.fields.get(READ_AS, "") for fact in root.facts]
    if readings and all(readings):
        root.why.append(f"Not certain: no line says this as it stands; read as {readings[0]!r}")
        share = min(share, UNCERTAIN)
    return round(max(LEAST, min(MOST, share)), 2)


def _cap_by_doubts(root: Candidate, candidates: Sequence[Candidate], share: float) -> float:
    """Return the confidence, at most what the doubts about the root's own lines leave, and add these to its `why`."""
    doubts = [why_uncertain(fact) for fact in root.facts] if share > UNCERTAIN else []
    if doubts and all(doubts):
        root.why.append(doubts[0])
        share = UNCERTAIN
    if share > UNCERTAIN and (sentence := why_harmless(candidates)):
        root.why.append(sentence)
        share = UNCERTAIN
    if root.doubts:
        root.why += root.doubts
        share = min(share, GUESS)
    if share > GUESS and _is_shown_by_all_that_wait(root, candidates):
        root.why.append("Every rank that waits shows it, so it does not say which rank began")
        share = GUESS
    return share


def _is_shown_by_all_that_wait(root: Candidate, candidates: Sequence[Candidate]) -> bool:
    """Whether a stall is shown by several ranks, and no other rank only waits: then all may be victims."""
    waiting = frozenset[int]().union(*(one.observed_rank_set for one in candidates if one.indicates in _WAITS))
    return root.indicates == "stalled" and len(waiting) > 1 and root.observed_rank_set >= waiting


def _may_come_first(root: Candidate, other: Candidate) -> bool:
    """Whether another cause is as strong, or known where the root is not, on other ranks, and no clock and no file says
    which of them came first. The order of lines alone puts no known possible cause before an unknown failure for sure.
    """
    if is_known_rival(other, root):
        return not root.comes_first(other)
    if is_known_rival(root, other):
        return not root.clearly_before(other)
    return (
        root_tier(other) == root_tier(root)
        and not set(root.ranks) & set(other.ranks)
        and not root.can_be_ordered(other)
    )


def _contradicts_dumps(root: Candidate, inferences: Sequence[Evidence]) -> bool:
    """Whether the root follows from dumps or stacks alone, and what others measured allows no other story."""
    kinds = {fact.detail.evidence_kind for fact in root.facts if isinstance(fact.detail, InferenceDetail)}
    details = [fact.detail for fact in inferences if isinstance(fact.detail, InferenceDetail)]
    is_certain = any(detail.basis == "measured" and not detail.uncertainty for detail in details)
    return kinds <= _SNAPSHOTS.keys() and is_certain


def _describe_contradiction(root: Candidate, named: set[int], inferences: Sequence[Evidence]) -> str:
    kinds = {fact.detail.evidence_kind for fact in root.facts if isinstance(fact.detail, InferenceDetail)}
    if kinds and kinds <= _SNAPSHOTS.keys():
        names = join_names(sorted(_SNAPSHOTS[kind] for kind in kinds))
        return f"The {names} and the watchdog lines do not agree; the lines say: {inferences[0].text}"
    return f"Weaker evidence points to {format_ranks(named)} instead: {inferences[0].text}"


def _independent_sources(root: Candidate, candidates: Sequence[Candidate]) -> list[str]:
    """Return who shows it: its own log, its launcher, the kernel, the scheduler, a dump, the other ranks."""
    ranks, hosts = set(root.ranks), set(root.hosts)
    own_log = {0: "its own log", 1: "this rank's log"}.get(len(ranks), "the logs of these ranks")
    # What is inferred from one of these lines is no further source.
    lines = {(fact.source, fact.offset) for fact in root.facts if fact.kind in _WRITTEN}
    sources: set[str] = set()
    for candidate in candidates:
        is_related = candidate is root or root.id in candidate.explained_by or candidate.id in root.explained_by
        if not is_related or candidate.role == "noise":
            continue
        for fact in candidate.facts:
            if candidate is root and fact.kind == "inference" and (fact.source, fact.offset) in lines:
                continue
            is_own = fact.origin.rank in ranks if fact.origin.rank is not None else candidate is root
            if fact.kind not in _WRITTEN:
                sources.add(_source_name(fact, is_own, bool(hosts) and fact.origin.host in hosts))
            elif is_own or fact.origin.rank is not None:
                sources.add(own_log if is_own else _OTHER_RANKS)
    return sorted(sources - {""}, key=lambda name: (name == _OTHER_RANKS, name != own_log, name))


def _source_name(fact: Evidence, is_own: bool, is_on_host: bool) -> str:
    """Return who wrote a fact that is no line of a rank; empty where it confirms nothing about these ranks."""
    if fact.kind in ("kernel", "scheduler"):
        return f"the {fact.kind}" if is_own or is_on_host else ""
    if not is_own:
        return ""
    if isinstance(fact.detail, ExitDetail):
        return "" if fact.detail.stopped_by_agent else "the launcher"
    if isinstance(fact.detail, InferenceDetail):
        return "a dump or measured values" if fact.detail.basis == "measured" else _OTHER_RANKS
    return ""
