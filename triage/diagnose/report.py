"""From the result of reasoning to the parts of the Diagnosis: findings, unknown failures, timeline, warnings.

The states of ranks are in rank_states.py.
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from triage.base.rank_ranges import format_ranks
from triage.catalog.remediation import fill_remediation
from triage.diagnose.candidates import Candidate
from triage.diagnose.collection_advice import AvailableData, advise_collection
from triage.diagnose.endings import is_among, is_stated_ending
from triage.diagnose.graph import root_tier, sort_tier
from triage.diagnose.headline import choose_headline
from triage.diagnose.phrases import capitalise, join_names, shorten
from triage.diagnose.placement_reasons import describe_rank_bases
from triage.diagnose.reason import ReasoningResult
from triage.diagnose.unknown_advice import advise_unknown
from triage.evidence.exception_chains import is_wrapper
from triage.evidence.inference import DIFFERS, HUNG
from triage.model import (
    Evidence,
    ExceptionDetail,
    Finding,
    FlightDetail,
    InferenceDetail,
    Moment,
    StackDetail,
    Verdict,
    Warning,
)
from triage.ranks import conflicts
from triage.ranks.identity import JobMap
from triage.ranks.npu_processes import describe_npu_devices
from triage.records.activity import find_silent_ranks

NEAR_BYTES = 1000  # between a failure and last lines that tell more of it
EVIDENCE_PER_FINDING = 5
MOST_MOMENTS = 200
_MOST_SILENT = 5
_MOST_CAUSES = 5
_MOST_PLACES = 3
_LONGEST_QUOTE = 160
_WEAKNESS = {"ending": 1, "exit": 2}  # shown after what states the failure itself, and a status last


def build_findings(result: ReasoningResult) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Return known findings, causes before what they explain, and unknown failures."""
    ordered = sorted(result.candidates, key=lambda candidate: _order(candidate, result))
    shown_sources: set[str] = set()
    findings = [_build_finding(candidate, result, shown_sources) for candidate in ordered]
    return (
        tuple(finding for finding in findings if finding.signature is not None),
        tuple(finding for finding in findings if finding.signature is None),
    )


def _order(candidate: Candidate, result: ReasoningResult) -> tuple[object, ...]:
    time = candidate.first_time
    return (
        candidate is not result.verdict.root,
        candidate.role == "noise",
        bool(candidate.superseded),
        bool(candidate.explained_by),
        sort_tier(candidate),
        time is None,
        time or 0.0,
        candidate.id,
    )


def _build_finding(candidate: Candidate, result: ReasoningResult, shown_sources: set[str]) -> Finding:
    """Return a candidate as it is reported.

    `shown_sources` are the sources that findings before it show: where one of them will do, no other is shown.
    """
    signature = candidate.signature
    is_root = candidate is result.verdict.root
    evidence = tuple(_representatives(candidate.own_facts, set() if is_root else shown_sources))
    if is_root and len(evidence) == 1:
        evidence = with_surroundings(evidence[0], result.facts)
    shown_sources.update(fact.source for fact in evidence)
    finding = Finding(
        signature=signature.id if signature else None,
        title=signature.title if signature else choose_headline(candidate.facts),
        domain=signature.domain if signature else "unknown",
        role=signature.role if signature else "cause",
        severity=signature.severity if signature else "fatal",
        confidence=result.verdict.confidence if is_root else _confidence_by_tier(candidate),
        ranks=candidate.ranks,
        hosts=candidate.rank_places,
        count=candidate.count,
        first_time=candidate.first_time,
        cluster=None if signature else candidate.cluster,
        explained_by=tuple(candidate.explained_by),
        why=tuple(map(capitalise, (*candidate.why, *_reasons(candidate, result)))),
        evidence=evidence,
        similar=candidate.similar,
        alongside=tuple(other.id for other in result.verdict.alongside) if is_root else (),
    )
    if signature is None:
        advice = advise_unknown(candidate.facts, candidate.ranks, candidate.cluster)
        return replace(finding, remediation=advice) if is_root else finding
    return replace(
        finding,
        revision=signature.revision,
        fingerprint=signature.fingerprint,
        captures=dict(candidate.captures),
        remediation=fill_remediation(signature, candidate.captures, candidate.ranks, candidate.rank_places),
    )


def _confidence_by_tier(candidate: Candidate) -> float:
    return 0.9 if candidate.explained_by else {1: 0.8, 2: 0.6}.get(root_tier(candidate) or 0, 0.5)


def _representatives(facts: Sequence[Evidence], shown_sources: set[str]) -> list[Evidence]:
    """Return a few facts to show: the earliest, then one of each further rank, from sources that are shown already if
    there are any.
    """
    near = [fact for fact in facts if fact.source in shown_sources] if shown_sources else []
    first: dict[int | None, tuple[tuple[object, ...], Evidence]] = {}
    for fact in near or facts:
        earliness, known = _earliness(fact), first.get(fact.origin.rank)
        if known is None or earliness < known[0]:
            first[fact.origin.rank] = (earliness, fact)
    chosen = [fact for _, fact in heapq.nsmallest(EVIDENCE_PER_FINDING, first.values(), key=operator.itemgetter(0))]
    if len(chosen) < 2 and not near:
        chosen += [
            fact for fact in heapq.nsmallest(EVIDENCE_PER_FINDING + 1, facts, key=_earliness) if fact not in chosen
        ]
    return chosen[:EVIDENCE_PER_FINDING]


def with_surroundings(fact: Evidence, facts: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Return a failure with what its process printed around it: the exception that was being handled, its last lines.

    Last lines that only repeat the failure, or stand more than NEAR_BYTES from it, are left out.
    """
    endings = [
        other
        for other in facts
        if is_stated_ending(other)
        and other is not fact
        and is_among(fact, other)
        and (None in (ranks := {fact.origin.rank, other.origin.rank}) or len(ranks) == 1)
        and abs(other.offset - fact.offset) <= NEAR_BYTES
        and _first_line(other) not in fact.text
    ]
    handled = next((other for other in facts if _is_handled_by(other, fact)), None)
    if handled is not None:
        fact = replace(fact, text=f"{fact.text}\nraised while handling {_first_line(handled)}")
    return (fact, *endings[:1])


def _is_handled_by(other: Evidence, fact: Evidence) -> bool:
    """Whether the other fact is the exception during whose handling this one was raised."""
    is_context = isinstance(other.detail, ExceptionDetail) and other.detail.chain == "context"
    is_context = is_context and not is_wrapper(other.fields.get("type", ""), other.fields.get("message", ""))
    return is_context and other is not fact and (other.source, other.end) == (fact.source, fact.end)


def _earliness(fact: Evidence) -> tuple[object, ...]:
    origin = fact.origin
    time = origin.time is None, origin.time or 0.0
    return (origin.rank is None, _WEAKNESS.get(fact.kind, 0), *time, fact.source, fact.offset)


def _reasons(candidate: Candidate, result: ReasoningResult) -> Iterator[str]:
    """Yield the sentences that reasoning did not write yet: what it follows from and, of the root, what it explains."""
    if candidate.superseded:
        yield candidate.superseded
    if candidate.edge_reasons:
        yield _consequence_of(candidate)
    if candidate is not result.verdict.root:
        return
    effects = [other for other in result.candidates if candidate.id in other.explained_by]
    if effects:
        yield "Explains " + ", ".join(
            f"{other.id} ({format_ranks(other.observed_ranks)})" if other.observed_ranks else other.id
            for other in effects
        )
    inferences = sorted({fact.text for fact in candidate.facts if fact.kind == "inference"})
    yield from inferences
    if candidate.is_inferred:
        from triage.diagnose.recorded_calls import describe_recorded_calls  # few jobs need it

        yield from describe_recorded_calls(result.facts, inferences)
    yield from _name_devices(candidate, result)
    yield from _places(candidate)
    yield from describe_rank_bases(candidate.facts)
    if any(isinstance(fact.detail, ExceptionDetail) and fact.detail.interleaved for fact in candidate.facts):
        yield "Tracebacks of several ranks are mixed without prefixes: they can be counted, not assigned to ranks"


def _consequence_of(candidate: Candidate) -> str:
    """Return one line that names the causes of a finding; if there is only one, with the reason."""
    causes = list(candidate.edge_reasons)
    reason = candidate.edge_reasons[causes[0]] if len(causes) == 1 else ""
    more = [f"{len(causes) - _MOST_CAUSES} more"] if len(causes) > _MOST_CAUSES else []
    return f"Consequence of {join_names([*causes[:_MOST_CAUSES], *more])}" + (f": {reason}" if reason else "")


def _name_devices(candidate: Candidate, result: ReasoningResult) -> list[str]:
    """Return the NPUs of the ranks, unless another reason names the device."""
    named = any("device " in reason for reason in candidate.why)
    return [] if named else [*describe_npu_devices(candidate.ranks, result.npu_devices, result.facts)]


def _places(candidate: Candidate) -> list[str]:
    """Return a sentence for each line of the user's program that raised, as tracebacks say, at most three."""
    places = {
        (fact.fields.get("function", ""), fact.fields["file"], fact.fields["line"]): fact.fields.get("code", "")
        for fact in candidate.facts
        if fact.kind in ("exception", "fatal-python") and fact.fields.get("file") and fact.fields.get("line")
    }
    return [
        f"Raised in {function or 'the program'} at {file}:{line}" + (f": {code[:120]}" if code else "")
        for (function, file, line), code in list(places.items())[:_MOST_PLACES]
    ]


_ASK_AGAIN = ("Ask again: in a running job the counts move",)


def decide_verdict(
    result: ReasoningResult, versions: Mapping[str, str] | None = None
) -> tuple[Verdict, Finding | None]:
    """Return the verdict and the finding to act on. Symptoms alone make an unknown failure with suspects, no cause.

    Without a failure the job is clean only if it is proved that it ended well.

    `versions` of programs, as far as known, decide what settings are called in the advice on what to collect.
    """
    root = result.verdict.root
    if root is not None:
        return ("known" if root.signature else "unknown"), _build_finding(root, result, set())
    symptoms = [
        candidate
        for candidate in result.candidates
        if candidate.role not in ("noise", "confirmation") and not candidate.superseded
    ]
    hung = [fact for fact in result.facts if isinstance(fact.detail, InferenceDetail) and fact.detail.rule == HUNG]
    is_over = result.outcome.is_success and not any(map(result.outcome.follows_end, hung))
    if hung and not is_over and all(symptom.is_inferred for symptom in symptoms):
        return "unknown", _hung(hung, result, versions or {})
    differing = [
        fact for fact in result.facts if isinstance(fact.detail, InferenceDetail) and fact.detail.rule == DIFFERS
    ]
    if differing and not symptoms and not result.outcome.finish_offsets:
        return "unknown", _differing(differing, result, versions or {})
    if symptoms:
        return "unknown", _symptoms_only(symptoms, result, versions or {})
    undecided = [fact for fact in result.facts if isinstance(fact.detail, FlightDetail) and fact.detail.undecided]
    if undecided and not result.outcome.finish_offsets:
        return "unknown", _undecided(undecided, _advice(result, versions or {}))
    return ("clean" if result.outcome.is_success else "inconclusive"), None


def _advice(result: ReasoningResult, versions: Mapping[str, str]) -> tuple[str, ...]:
    """Return what to collect next time, if anything is missing."""
    return tuple(filter(None, (advise_collection(AvailableData(result.facts, versions, result.absent)),)))


def _hung(facts: Sequence[Evidence], result: ReasoningResult, versions: Mapping[str, str]) -> Finding:
    """Return a finding that says where each rank of a hung job stands, as its stacks show and nothing explains."""
    from triage.diagnose.recorded_calls import describe_recorded_calls  # few jobs need it

    ranks = tuple(sorted({int(rank) for fact in facts for rank in fact.fields["ranks"].split(",") if rank}))
    stacks = [fact for fact in result.facts if isinstance(fact.detail, StackDetail)]
    own = [fact for fact in stacks if fact.origin.rank in ranks] or stacks
    return Finding(
        signature=None,
        title=f"Hung: {facts[0].text[:1].lower()}{facts[0].text[1:]}",
        domain="unknown",
        role="symptom",
        severity="fatal",
        confidence=0.3 if ranks else 0.1,
        ranks=ranks,
        count=len(stacks),
        why=(
            capitalise(facts[0].text),
            "No line, exit or signature explains it: the stacks show where each rank stands, not why",
            *describe_recorded_calls(result.facts, [facts[0].text]),
            *_advice(result, versions),
        ),
        evidence=tuple(_representatives(own, set())),
    )


def _differing(facts: Sequence[Evidence], result: ReasoningResult, versions: Mapping[str, str]) -> Finding:
    """Return a finding for what NCCL counted, where ranks differ and nothing shows which of them is at fault."""
    is_report = any(isinstance(fact.detail, InferenceDetail) and fact.detail.evidence_kind == "ras" for fact in facts)
    source, advice = ("NCCL's RAS report shows", _ASK_AGAIN) if is_report else ("NCCL's log shows", ())
    ranks = tuple(sorted({fact.origin.rank for fact in facts if fact.origin.rank is not None}))
    return Finding(
        signature=None,
        title=f"{source} ranks that differ, and not which of them is at fault",
        domain="unknown",
        role="symptom",
        severity="fatal",
        confidence=0.3 if ranks else 0.1,
        ranks=ranks,
        count=len(facts),
        why=(facts[0].text, *advice, *_advice(result, versions)),
        evidence=tuple(_representatives(facts, set())),
    )


def _undecided(facts: Sequence[Evidence], advice: tuple[str, ...]) -> Finding:
    """Return a finding for dumps without a fault, where no log shows that the job finished."""
    return Finding(
        signature=None,
        title="The dumps show no fault, and no log shows that the job finished",
        domain="unknown",
        role="symptom",
        severity="fatal",
        confidence=0.1,
        count=len(facts),
        why=(*sorted({capitalise(fact.text) for fact in facts}), *advice),
        evidence=tuple(_representatives(facts, set())),
    )


def _symptoms_only(symptoms: Sequence[Candidate], result: ReasoningResult, versions: Mapping[str, str]) -> Finding:
    # A line that names the rank that ended is no reason to suspect it where another symptom explains the end.
    blaming = [one for one in symptoms if not (one.indicates == "ending" and one.explained_by)]
    suspects = result.suspects or tuple(sorted({rank for one in blaming for rank in one.suspects or ()}))
    first = min(
        symptoms,
        key=lambda c: (c.indicates not in ("waiting", "peer-lost"), c.first_time is None, c.first_time or 0.0, c.id),
    )
    why = [f"The files show only symptoms: {', '.join(sorted(candidate.id for candidate in symptoms))}"]
    why += [capitalise(result.suspicion)] if result.suspicion else []
    return Finding(
        signature=None,
        title=f"Symptoms only, suspects: {format_ranks(suspects)}" if suspects else "Symptoms only",
        domain="unknown",
        role="symptom",
        severity="fatal",
        confidence=0.3 if suspects else 0.1,
        ranks=suspects,
        hosts=tuple(sorted({host for rank in suspects for host in first.rank_hosts.get(rank, ())})),
        count=sum(candidate.count for candidate in symptoms),
        first_time=first.first_time,
        why=(*why, *_advice(result, versions)),
        evidence=tuple(_representatives(first.facts, set())),
    )


def build_moments(result: ReasoningResult) -> tuple[Moment, ...]:
    """Return the facts with a time, each with its signature, and the last lines of silent ranks; of many the first."""
    signature_of: dict[int, str] = {}
    for candidate in reversed(result.candidates):
        signature_of.update(dict.fromkeys(map(id, candidate.facts), candidate.id))
    timed = [
        (time, fact) for fact in result.facts if (time := fact.origin.time) is not None and id(fact) in signature_of
    ]
    if len(timed) > MOST_MOMENTS:  # plain numbers first: of a million facts few need to be compared in all
        last = sorted(time for time, _ in timed)[MOST_MOMENTS - 1]
        timed = [(time, fact) for time, fact in timed if time <= last]
    first = heapq.nsmallest(
        MOST_MOMENTS,
        timed,
        key=lambda pair: (
            pair[0],
            pair[1].origin.rank is None,
            pair[1].origin.rank or 0,
            pair[1].source,
            pair[1].offset,
        ),
    )
    moments = []
    for time, fact in first:
        name = signature_of[id(fact)]
        text = fact.text.split("\n", 1)[0][:200]
        signature = None if name.startswith("u-") else name
        moments.append(Moment(time, fact.origin.rank, text, signature, fact.inherits_time))
    outcome = result.outcome
    for rank, seconds in _silent_ranks(result)[:_MOST_SILENT]:
        step = f" (step {outcome.last_step[rank]})" if rank in outcome.last_step else ""
        text = f"its last line{step}; the others went on for {seconds:.0f} s"
        moments.append(Moment(outcome.last_time[rank], rank, text, None))
    moments.sort(key=lambda moment: moment.time or 0.0)
    return tuple(moments)


def collect_warnings(result: ReasoningResult, job: JobMap) -> list[Warning]:
    """Return contradictions, missing ranks, clocks, silent ranks, and failures that did not end the job, with the
    reason.
    """
    return [
        *conflicts.find_conflicts(job),
        *_warn_of_silent_ranks(result),
        *(
            Warning("pattern-timeout", None, f"A pattern of {name} took too long, so it was not searched in every line")
            for name in result.timeouts
        ),
        *(
            Warning("handled", fact.source, f"{_first_line(fact)!r} did not end the job: {why}")
            for fact, why in result.left_out
        ),
    ]


def _first_line(fact: Evidence) -> str:
    return shorten(fact.text.partition("\n")[0], _LONGEST_QUOTE)


def _warn_of_silent_ranks(result: ReasoningResult) -> list[Warning]:
    """Return a warning about ranks whose last line is long before those of the others: they died, hang or wait."""
    silent = _silent_ranks(result)
    if not silent:
        return []
    steps = result.outcome.last_step
    shown = [
        f"rank {rank} went silent {seconds:.0f} s before the others"
        + (f" (last step {steps[rank]})" if rank in steps else "")
        for rank, seconds in silent[:_MOST_SILENT]
    ]
    more = [f"{len(silent) - _MOST_SILENT} more"] if len(silent) > _MOST_SILENT else []
    return [Warning("fell-silent", None, capitalise("; ".join([*shown, *more])))]


def _silent_ranks(result: ReasoningResult) -> list[tuple[int, float]]:
    """Return ranks that went silent before the others, and for how many seconds, the longest first."""
    silent = find_silent_ranks(result.outcome.last_time, result.outcome.finished)
    return sorted(silent.items(), key=lambda pair: (-pair[1], pair[0]))
