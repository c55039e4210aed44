"""From facts to the diagnosis: match, reason across ranks, choose the root, and keep why.

STAGES in order: settle who wrote what and in which attempt, drop what was handled or superseded; then for each attempt
match the catalog,
conclude from the ranks together, match again with what was concluded, weigh, choose. The last attempt that has a root
decides.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from triage.catalog.match import Match, Matcher
from triage.catalog.model import Catalog, Signature
from triage.diagnose import attempts, candidates, causes, facts, rules, unknown
from triage.diagnose.candidates import Candidate
from triage.diagnose.clocks import Clocks, clocks
from triage.diagnose.confidence import confidence
from triage.diagnose.graph import Case
from triage.diagnose.outcome import Outcome, outcome
from triage.diagnose.scene import Scene
from triage.model.evidence import Evidence
from triage.ranks.identity import JobMap, short
from triage.ranks.last import Word


@dataclass(frozen=True, slots=True)
class Result:
    """What reasoning gives: all facts, the candidates with their reasons, the decision and how the job ended.

    `suspects` and `suspicion` are what the ranks together suggest, `left_out` the facts that ended nothing and why,
    `spoken` the names of
    the rules that did something, `absent` the ranks of which no file is.
    """

    facts: tuple[Evidence, ...]
    candidates: tuple[Candidate, ...]
    verdict: causes.Verdict
    outcome: Outcome
    matches: dict[str, Match]
    suspects: tuple[int, ...] = ()
    suspicion: str = ""
    left_out: tuple[tuple[Evidence, str], ...] = ()
    spoken: frozenset[str] = frozenset()
    absent: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The answer for one attempt."""

    number: int
    facts: tuple[Evidence, ...]
    candidates: tuple[Candidate, ...]
    verdict: causes.Verdict
    matches: dict[str, Match]
    heard: tuple[Evidence, ...]
    spoken: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Job:
    """What all attempts share."""

    map: JobMap
    outcome: Outcome
    clocks: Clocks
    last_time: Mapping[int, tuple[str, float]]
    matcher: Matcher
    signatures: Mapping[str, Signature]
    handled: tuple[Evidence, ...]
    without: frozenset[str]


def diagnose(
    evidence: Sequence[Evidence],
    words: Sequence[tuple[str, Word]],
    job: JobMap,
    catalog: Catalog,
    without: frozenset[str] = frozenset(),
    matcher: Matcher | None = None,
) -> Result:
    """Reason over the evidence of one job.

    `without` names rules to leave out, to see what they are worth; `matcher` is that of the catalog, where many jobs
    are diagnosed.
    """
    placed, moved = facts.place(evidence, job, without)
    last_words = [
        (source, dataclasses.replace(word, origin=job.on_one_clock(job.complete(source, word.origin))))
        for source, word in words
    ]
    unsure = {host: read.doubt for host, read in job.clocks.by_host.items()}
    clock = clocks(((word.origin, word.step) for _, word in last_words if word.step is not None), _hosts(job), unsure)
    further = {source: word.offset for source, word in last_words if word.step is not None}
    numbered, last = attempts.assign(placed, further, clock)
    settled = facts.fold(numbered)
    ended = outcome(settled, last_words, job, last)
    over = tuple((fact, why) for fact in settled if (why := ended.why_over(fact)))
    gone = {id(fact) for fact, _ in over}
    live = [fact for fact in settled if id(fact) not in gone] if gone else settled
    shared = _Job(
        job,
        ended,
        clock,
        _last_times(last_words, clock),
        matcher or Matcher(catalog),
        {signature.id: signature for signature in catalog.signatures},
        tuple(fact for fact, _ in over),
        without,
    )
    solved = [_solve(shared, number, part) for number, part in _by_attempt(live)] or [_solve(shared, last, [])]
    chosen = next((one for one in reversed(solved) if one.verdict.root is not None), solved[-1])
    past = _past(shared, over) if ended.ends else []
    return dataclasses.replace(_together(solved, chosen, past, ended, over, moved), absent=job.missing())


def _last_times(words: Iterable[tuple[str, Word]], clock: Clocks) -> dict[int, tuple[str, float]]:
    """When each rank wrote last, by the clock of its host."""
    times: dict[int, tuple[str, float]] = {}
    for source, word in words:
        reading = clock.at(word.origin, source)
        if reading is not None and word.origin.rank is not None:
            times[word.origin.rank] = max(reading, times.get(word.origin.rank, reading))
    return times


def _by_attempt(live: Iterable[Evidence]) -> list[tuple[int, list[Evidence]]]:
    parts: dict[int, list[Evidence]] = {}
    for fact in live:
        parts.setdefault(fact.origin.attempt, []).append(fact)
    return sorted(parts.items())


def _solve(job: _Job, number: int, live: list[Evidence]) -> _Attempt:
    """Match, conclude, weigh and choose among the facts of one attempt."""
    session = job.matcher.begin()
    matches = session.add(live)
    known = candidates.known(job.signatures, matches, live, job.without)
    groups = unknown.group(live, *_covered(job, matches, live))
    scene = _scene(job, live, matches, known)
    given = [fact for fact in live if fact.kind == "inference"]
    stated = bool(groups) or any(one.role == "cause" and one.tells != "outside" and not one.inferred for one in known)
    measured = any(fact.fields.get("ground") != "silence" for fact in given)
    heard = rules.infer(scene, stated=stated or measured, without=job.without)
    if heard.inferences:
        live = [*live, *heard.inferences]
        before = {one.id: (matches[one.id], one) for one in known}
        matches = session.add(heard.inferences)
        known = candidates.known(job.signatures, matches, live, job.without, before)
        groups = unknown.group(live, *_covered(job, matches, live))
    noise = [candidate for candidate in known if candidate.role == "noise"]
    case = Case([*(candidate for candidate in known if candidate.role != "noise"), *candidates.unknown(groups)], scene)
    spoken = heard.spoken | {rule for rule, _ in heard.others} | rules.weigh(case, job.without)
    root, others = causes.decide(case.candidates, job.without, scene)
    spoken |= {rules.name_of(rule) for rule in rules.CHOOSING if others}
    sure = confidence(root, others, case.candidates, heard.others) if root else 0.0
    for candidate in case.candidates:
        candidate.attempt = number
    verdict = causes.Verdict(root, others, sure)
    told = (*given, *heard.inferences) or tuple(fact for _, found in heard.others[:1] for fact in found)
    return _Attempt(number, tuple(live), (*case.candidates, *noise), verdict, matches, tuple(told), spoken)


def _scene(job: _Job, live: Sequence[Evidence], matches: Mapping[str, Match], known: Sequence[Candidate]) -> Scene:
    told: dict[str, list[int]] = {}
    for name, match in matches.items():
        if tells := job.signatures[name].tells:
            told.setdefault(tells, []).extend(match.indices)
    return Scene(
        facts=live,
        matched=told,
        ranks=frozenset(job.map.ranks),
        world_size=job.map.world_size(),
        failed=frozenset(rank for one in known if one.role in ("either", "confirmation") for rank in one.shown_by),
        complaining=frozenset(rank for one in known if one.role != "noise" for rank in one.shown_by),
        finished=frozenset(job.outcome.finished),
        one_host=job.map.one_host(),
        last_step=job.outcome.last_step,
        last_time=job.last_time,
        doing=job.outcome.doing,
        hosts={rank: sorted(hosts) for rank, hosts in sorted(job.map.hosts.items())},
        devices={
            f"{bus[0]:x}:{bus[1]:02x}:{bus[2]:02x} of {host}": sorted(ranks)
            for (host, bus), ranks in sorted(job.map.by_bus.items())
        },
        clocks=job.clocks,
        handled=job.handled,
        files=_files(job.map),
        addresses=job.map.addresses,
        local={**job.map.by_local, **job.map.by_device},
        pids=job.map.by_pid,
        writes=job.outcome.writes,
    )


def _files(job: JobMap) -> dict[str, list[str]]:
    files: dict[str, list[str]] = {}
    for source, named in job.sources.items():
        if named.host is not None:
            files.setdefault(short(named.host), []).append(source)
    return files


def _covered(job: _Job, matches: Mapping[str, Match], live: Sequence[Evidence]) -> tuple[set[int], set[int | None]]:
    """The facts that signatures know, and the ranks of which a cause speaks."""
    roles = {name: job.signatures[name].role for name in matches}
    known = {index for name, match in matches.items() if roles[name] != "noise" for index in match.indices}
    causes = (match for name, match in matches.items() if roles[name] in ("cause", "either"))
    return known, {live[index].origin.rank for match in causes for index in match.indices}


def _hosts(job: JobMap) -> set[str]:
    return {name for names in job.hosts.values() for name in names} | {
        short(named.host) for named in job.sources.values() if named.host
    }


def _past(job: _Job, over: Iterable[tuple[Evidence, str]]) -> list[_Attempt]:
    """What ended the attempts before the one that finished."""
    before = [fact for fact, _ in over if fact.origin.attempt < job.outcome.attempt]
    solved = [_solve(job, number, part) for number, part in _by_attempt(before)]
    for one in solved:
        for candidate in one.candidates:
            candidate.past = f"of attempt {one.number}; a later attempt finished"
    return solved


def _together(
    solved: Sequence[_Attempt],
    chosen: _Attempt,
    past: Sequence[_Attempt],
    ended: Outcome,
    over: tuple[tuple[Evidence, str], ...],
    moved: frozenset[str],
) -> Result:
    """One answer from those for each attempt."""
    for one in solved:
        if one is not chosen and one.verdict.root is not None:
            _tell_of_another(one, chosen)
    everything = [*solved, *past]
    return Result(
        facts=tuple(fact for one in solved for fact in one.facts),
        candidates=tuple(_once([chosen, *(one for one in everything if one is not chosen)])),
        verdict=chosen.verdict,
        outcome=ended,
        matches={name: match for one in solved for name, match in one.matches.items()},
        suspects=tuple(sorted({fact.origin.rank for fact in chosen.heard if fact.origin.rank is not None})),
        suspicion=next((fact.text for fact in chosen.heard), ""),
        left_out=over,
        spoken=moved.union(*(one.spoken for one in everything)),
    )


def _tell_of_another(one: _Attempt, chosen: _Attempt) -> None:
    root, mine = one.verdict.root, chosen.verdict.root
    if root is None or mine is None:
        return
    root.why.append(f"began attempt {one.number}, which was repeated; the root is that of attempt {chosen.number}")
    same = "the same" if root.id == mine.id else root.id
    mine.why.append(f"attempt {one.number} ended before, of {same}")


def _once(solved: Iterable[_Attempt]) -> Iterable[Candidate]:
    """Each finding once: that of the chosen attempt before those of others."""
    seen = set()
    for one in solved:
        for candidate in one.candidates:
            if candidate.id not in seen:
                seen.add(candidate.id)
                yield candidate
