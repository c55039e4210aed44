"""From facts to the diagnosis: match, infer across ranks, choose the root cause, and say why.

The stages in order: attribute facts to ranks and attempts, and drop what did not end the job; then for each attempt
match the catalog, read unknown lines again where it knows no cause, infer from all ranks together, match again with the
inferences, weigh, choose. The last attempt that has a root cause decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from triage.base.lazy_dataclass import dataclass, replace
from triage.catalog.match import Match, Matcher, MatchSession, find_matcher
from triage.catalog.model import Catalog, Signature
from triage.diagnose import attempts, attribution, causes, rules
from triage.diagnose.candidates import Candidate, known_candidates, unknown_candidates
from triage.diagnose.confidence import rate_confidence
from triage.diagnose.context import RuleContext
from triage.diagnose.contradictions import describe_contradiction
from triage.diagnose.endings import MatchedFacts, read_exceptions, split_endings
from triage.diagnose.graph import CausalGraph
from triage.diagnose.launcher_reports import is_end_report, is_launcher_report
from triage.diagnose.outcome import Outcome, find_outcome
from triage.diagnose.phrases import join_names
from triage.diagnose.references import is_reference
from triage.diagnose.remarks import add_remarks
from triage.diagnose.rereading import reread
from triage.diagnose.time_order import Clocks, tie_clocks
from triage.diagnose.unknown import group_unknown
from triage.evidence.inference import BLOCKED
from triage.model import EndingDetail, Evidence, FlightDetail, InferenceDetail
from triage.ranks.identity import JobMap, short_host
from triage.ranks.npu_processes import find_devices, place_devices
from triage.ranks.places import place_each
from triage.records.activity import Activity


@dataclass(frozen=True, slots=True)
class ReasoningResult:
    """All facts, the candidates with their reasons, the decision, and how the job ended.

    `suspects` and `suspicion` are what the ranks together suggest. `left_out` has the facts that did not end the job,
    and why. `fired_rules` names the rules that changed something, `absent` the ranks without a line in any file,
    `timeouts` the signatures with a pattern that needed too much time. `npu_devices` has the server and the device of
    each rank whose NPU is known.
    """

    facts: tuple[Evidence, ...]
    candidates: tuple[Candidate, ...]
    verdict: causes.Verdict
    outcome: Outcome
    matches: dict[str, Match]
    suspects: tuple[int, ...] = ()
    suspicion: str = ""
    left_out: tuple[tuple[Evidence, str], ...] = ()
    fired_rules: frozenset[str] = frozenset()
    absent: tuple[int, ...] = ()
    timeouts: tuple[str, ...] = ()
    npu_devices: Mapping[int, tuple[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _AttemptResult:
    """The answer for one attempt."""

    number: int
    facts: tuple[Evidence, ...]
    candidates: tuple[Candidate, ...]
    verdict: causes.Verdict
    matches: dict[str, Match]
    inferences: tuple[Evidence, ...]
    fired_rules: frozenset[str]
    timeouts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _JobContext:
    """What all attempts share."""

    map: JobMap
    outcome: Outcome
    clocks: Clocks
    last_time: Mapping[int, tuple[str, float]]
    matcher: Matcher
    signatures: Mapping[str, Signature]
    handled: tuple[Evidence, ...]
    without: frozenset[str]


@dataclass(frozen=True, slots=True)
class _MatchedFacts:
    """The facts of an attempt, `endings` last, with the signatures that they match and the failures that none knows."""

    session: MatchSession
    matches: dict[str, Match]
    stated: list[Evidence]
    endings: list[Evidence]
    facts: list[Evidence]
    known: list[Candidate]
    groups: dict[str, list[Evidence]]


def diagnose(
    evidence: Sequence[Evidence],
    activities: Sequence[tuple[str, Activity]],
    job: JobMap,
    catalog: Catalog,
    without: frozenset[str] = frozenset(),
    matcher: Matcher | None = None,
) -> ReasoningResult:
    """Reason over the evidence of one job.

    `without` names rules to leave out, to measure what they are worth; `matcher` is that of the catalog, where many
    jobs are diagnosed.
    """
    attributed, attributing_rules = attribution.attribute(evidence, job, without)
    placed = place_each(job.place, ((source, one.origin) for source, one in activities))
    activities = [
        (source, replace(one, origin=job.with_corrected_time(origin)))
        for (source, one), (origin, _) in zip(activities, placed, strict=True)
    ]
    clocks = _tie_clocks(activities, job)
    last_progress = {source: one.offset for source, one in activities if one.step is not None}
    numbered, last = attempts.assign_attempts(attributed, last_progress, clocks)
    facts = attribution.merge_copies(numbered)
    outcome = find_outcome(facts, activities, job, last)
    left_out = _with_their_endings([(fact, why) for fact in facts if (why := outcome.why_over(fact))], facts)
    gone = {id(fact) for fact, _ in left_out}
    remaining = [fact for fact in facts if id(fact) not in gone] if gone else facts
    shared = _JobContext(
        job,
        outcome,
        clocks,
        _last_times(activities, clocks),
        matcher or find_matcher(catalog),
        {signature.id: signature for signature in catalog.signatures},
        tuple(fact for fact, _ in left_out),
        without,
    )
    solved = [_solve(shared, number, part) for number, part in _by_attempt(remaining)] or [_solve(shared, last, [])]
    superseded = _solve_superseded(shared, left_out) if outcome.finish_offsets else []
    result = _combine(solved, superseded, outcome)
    fired_rules = attributing_rules | result.fired_rules
    return replace(
        result,
        left_out=left_out,
        fired_rules=fired_rules,
        absent=job.missing_ranks(),
        npu_devices=find_devices(job.npus, job.complete),
    )


def _with_their_endings(
    left_out: list[tuple[Evidence, str]], facts: Sequence[Evidence]
) -> tuple[tuple[Evidence, str], ...]:
    """Return the facts that did not end the job, with last lines that are lines of them."""
    gone = {id(fact) for fact, _ in left_out}
    places = [(fact.source, fact.offset, fact.end, why) for fact, why in left_out if fact.kind == "exception"]
    endings = [fact for fact in facts if fact.kind == "ending" and id(fact) not in gone] if places else []
    for ending in endings:
        for source, start, end, why in places:
            if ending.source == source and start <= ending.offset < end:
                left_out.append((ending, why))
                break
    return tuple(left_out)


def _tie_clocks(activities: Sequence[tuple[str, Activity]], job: JobMap) -> Clocks:
    hosts = {name for names in job.hosts.values() for name in names}
    hosts |= {short_host(origin.host) for origin in job.sources.values() if origin.host}
    errors = {host: clock.uncertainty for host, clock in job.clocks.by_host.items()}
    return tie_clocks(activities, hosts, errors)


def _last_times(activities: Iterable[tuple[str, Activity]], clocks: Clocks) -> dict[int, tuple[str, float]]:
    """Return when each rank wrote last, by the clock of its host."""
    times: dict[int, tuple[str, float]] = {}
    for source, activity in activities:
        reading = clocks.read_origin(activity.origin, source)
        if reading is not None and activity.origin.rank is not None:
            times[activity.origin.rank] = max(reading, times.get(activity.origin.rank, reading))
    return times


def _by_attempt(facts: Iterable[Evidence]) -> list[tuple[int, list[Evidence]]]:
    parts: dict[int, list[Evidence]] = {}
    for fact in facts:
        parts.setdefault(fact.origin.attempt, []).append(fact)
    return sorted(parts.items())


def _solve(job: _JobContext, number: int, facts: list[Evidence]) -> _AttemptResult:
    """Match, infer, weigh and choose among the facts of one attempt."""
    matched = _match(job, facts)
    if matched.groups and not any(one.role in ("cause", "either") for one in matched.known):
        unknown = (fact for group in matched.groups.values() for fact in group)
        if readings := reread(unknown, job.matcher.evaluate, job.signatures):
            matched = _match(job, [readings.get(id(fact), fact) for fact in matched.facts])
    session, matches, known, groups = matched.session, matched.matches, matched.known, matched.groups
    stated, endings, facts = matched.stated, matched.endings, matched.facts
    context = _make_context(job, facts, matches, known)
    handed_in = [fact for fact in facts if fact.kind == "inference"]
    has_cause = _states_cause(known, groups.values())
    # Stacks that only wait state no cause; beside dumps they confirm that nothing else is to be told from lines.
    has_dumps = any(isinstance(fact.detail, FlightDetail) for fact in stated)
    has_measured = any(
        isinstance(fact.detail, InferenceDetail)
        and fact.detail.basis == "measured"
        and (has_dumps or fact.detail.rule != BLOCKED)
        for fact in handed_in
    )
    inferred = rules.infer(context, has_cause=has_cause, is_measured=has_measured, without=job.without)
    if inferred.inferences:
        facts = [*stated, *inferred.inferences, *endings]
        before = {one.id: (matches[one.id], one) for one in known}
        matches = session.add(inferred.inferences)
        known = known_candidates(job.signatures, matches, facts, job.without, before)
        groups = group_unknown(facts, *_explained(job, matches, facts))
    noise = [candidate for candidate in known if candidate.role == "noise"]
    others = [candidate for candidate in known if candidate.role != "noise"]
    graph = CausalGraph([*others, *unknown_candidates(groups)], context)
    fired_rules = inferred.fired_rules | {rule for rule, _ in inferred.others} | rules.weigh(graph, job.without)
    add_remarks(graph)
    root, rivals = causes.choose_root(graph.candidates, job.without, context)
    fired_rules |= {rules.name_of(rule) for rule in rules.CHOOSING if rivals}
    confidence = _rate(root, rivals, graph, inferred) if root else 0.0
    if root and root.is_inferred:
        from triage.diagnose.refutations import list_refutations  # few jobs need it

        root.why.extend(list_refutations(root))
    for candidate in graph.candidates:
        candidate.attempt = number
    verdict = causes.Verdict(root, rivals, confidence, causes.began_together(root, rivals) if root else ())
    inferences = (*handed_in, *inferred.inferences) or tuple(fact for _, part in inferred.others[:1] for fact in part)
    return _AttemptResult(
        number,
        tuple(facts),
        (*graph.candidates, *noise),
        verdict,
        matches,
        inferences,
        fired_rules,
        session.list_timeouts(),
    )


def _match(job: _JobContext, facts: Sequence[Evidence]) -> _MatchedFacts:
    """Match the catalog, and group what no signature knows."""
    stated, endings = split_endings(facts)
    session = job.matcher.start_session()
    matches = session.add(read_exceptions(stated, endings))
    ordered = [*stated, *endings]
    known = known_candidates(job.signatures, matches, ordered, job.without)
    groups = group_unknown(ordered, *_explained(job, matches, ordered))
    return _MatchedFacts(session, matches, stated, endings, ordered, known, groups)


def _rate(root: Candidate, rivals: Sequence[Candidate], graph: CausalGraph, inferred: rules.InferenceResult) -> float:
    contradiction = describe_contradiction(graph.context, root)
    return rate_confidence(root, rivals, graph.candidates, inferred.others, contradiction)


def _states_cause(known: Iterable[Candidate], groups: Iterable[Sequence[Evidence]]) -> bool:
    """Whether a line states a cause: not only that a process ended, or a last line that says little."""
    if any(not all(map(_says_little, facts)) for facts in groups):
        return True
    return any(one.role == "cause" and one.indicates != "outside" and not one.is_inferred for one in known)


def _says_little(fact: Evidence) -> bool:
    return (
        is_launcher_report(fact)
        or is_reference(fact)
        or (isinstance(fact.detail, EndingDetail) and fact.detail.strength != "strong")
    )


def _make_context(
    job: _JobContext, facts: Sequence[Evidence], matches: Mapping[str, Match], known: Sequence[Candidate]
) -> RuleContext:
    matched: dict[str, list[int]] = {}
    for name, match in matches.items():
        if indicates := job.signatures[name].indicates:
            matched.setdefault(indicates, []).extend(match.indices)
    return RuleContext(
        facts=facts,
        matched=matched,
        ranks=frozenset(job.map.ranks),
        world_size=job.map.world_size(),
        failed=frozenset(
            rank for one in known if one.role in ("either", "confirmation") for rank in one.observed_ranks
        ),
        complaining=frozenset(rank for one in known if one.role != "noise" for rank in one.observed_ranks),
        finished=frozenset(job.outcome.finished),
        one_host=job.map.is_one_host(),
        last_step=job.outcome.last_step,
        last_time=job.last_time,
        doing=job.outcome.doing,
        unplaced=job.outcome.unplaced,
        hosts={rank: sorted(hosts) for rank, hosts in sorted(job.map.hosts.items())},
        devices={
            f"{bus[0]:x}:{bus[1]:02x}:{bus[2]:02x} of {host}": sorted(ranks)
            for (host, bus), ranks in sorted(job.map.by_bus.items())
        },
        clocks=job.clocks,
        handled=job.handled,
        files=_files_by_host(job.map),
        addresses=job.map.addresses,
        local={**job.map.by_local, **place_devices(job.map.npus, job.map.complete)},
        pids=job.map.by_pid,
        writes=job.outcome.writes,
        writers=job.outcome.writers,
        memberships=job.map.memberships,
        host_names=job.map.host_names.canonical,
        has_gaps=job.map.has_gaps,
        finish_offsets=job.outcome.finish_offsets,
        step_times=job.outcome.progress.list_times(),
    )


def _files_by_host(job: JobMap) -> dict[str, list[str]]:
    files: dict[str, list[str]] = {}
    for source, origin in job.sources.items():
        if origin.host is not None:
            files.setdefault(short_host(origin.host), []).append(source)
    return files


def _explained(
    job: _JobContext, matches: Mapping[str, Match], facts: Sequence[Evidence]
) -> tuple[MatchedFacts, set[int | None]]:
    """Return which facts signatures match, and the ranks of which lines say why they ended: for a cause of their own,
    or because they waited in vain for others.
    """
    known, causing, others = set[int](), set[int](), set[int]()
    signals, victims, stops, noise, waits, outside = (set[int]() for _ in range(6))
    for name, match in matches.items():
        signature = job.signatures[name]
        if signature.role == "noise":
            noise.update(match.indices)
            continue
        is_cause = signature.role in ("cause", "either")
        known.update(match.indices)
        causing.update(match.indices if is_cause else ())
        if signature.indicates == "ending":
            signals.update(match.indices)
        else:  # a launcher's report of a signal says no more than the signal
            others.update(index for index in match.indices if is_cause or not is_end_report(facts[index]))
        victims.update(match.indices if signature.indicates in ("peer-lost", "waiting") else ())
        waits.update(match.indices if signature.indicates == "waiting" else ())
        stops.update(match.indices if signature.indicates == "stopped-by-launcher" else ())
        outside.update(match.indices if signature.indicates == "outside" else ())
    matched = MatchedFacts(
        frozenset(known),
        frozenset(causing),
        frozenset(signals - others),
        frozenset(victims - causing),
        frozenset(stops - causing),
        frozenset(noise),
        frozenset(outside),
    )
    return matched, {facts[index].origin.rank for index in causing | waits}


def _solve_superseded(job: _JobContext, left_out: Iterable[tuple[Evidence, str]]) -> list[_AttemptResult]:
    """Find out what ended the attempts before the one that finished."""
    before = [fact for fact, _ in left_out if fact.origin.attempt < job.outcome.attempt]
    solved = [_solve(job, number, part) for number, part in _by_attempt(before)]
    for one in solved:
        for candidate in one.candidates:
            candidate.superseded = f"Ended attempt {one.number}; a later attempt finished"
    return solved


def _combine(
    solved: Sequence[_AttemptResult], superseded: Sequence[_AttemptResult], outcome: Outcome
) -> ReasoningResult:
    """Return one answer from those for each attempt: the last with a root cause decides."""
    chosen = next((one for one in reversed(solved) if one.verdict.root is not None), solved[-1])
    suspecting = [fact for fact in chosen.inferences if fact.fields.get("rule") != BLOCKED]
    _compare_attempts([one for one in solved if one is not chosen], chosen)
    rest = [one for one in (*solved, *superseded) if one is not chosen]
    candidates: dict[str, Candidate] = {}
    for candidate in (candidate for one in (chosen, *rest) for candidate in one.candidates):
        candidates.setdefault(candidate.id, candidate)
    return ReasoningResult(
        facts=tuple(fact for one in solved for fact in one.facts),
        candidates=tuple(candidates.values()),
        verdict=chosen.verdict,
        outcome=outcome,
        matches={name: match for one in solved for name, match in one.matches.items()},
        suspects=tuple(sorted({fact.origin.rank for fact in suspecting if fact.origin.rank is not None})),
        suspicion=next((fact.text for fact in suspecting), ""),
        fired_rules=frozenset().union(*(one.fired_rules for one in (*solved, *superseded))),
        timeouts=tuple(sorted({name for one in (*solved, *superseded) for name in one.timeouts})),
    )


def _compare_attempts(others: Iterable[_AttemptResult], chosen: _AttemptResult) -> None:
    """Say in the `why` of each root how its attempt compares with the chosen one."""
    root = chosen.verdict.root
    same = []
    for one in others:
        earlier = one.verdict.root
        if root is None or earlier is None:
            continue
        earlier.why.append(
            f"Ended attempt {one.number}, which was restarted; the diagnosis is of attempt {chosen.number}"
        )
        if earlier.id == root.id:
            same.append(one.number)
        else:
            root.why.append(f"Attempt {one.number} failed with {earlier.id}")
    if root is not None and same:
        root.why.append(f"Attempts {join_names(list(map(str, [*same, chosen.number])))} failed the same way")
