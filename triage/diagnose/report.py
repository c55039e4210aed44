"""From the result of reasoning to the parts of the Diagnosis: findings, unknown failures, timeline. (States of ranks:
states.py.)
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Mapping, Sequence

from triage.base.lazy_re import lazy_re
from triage.diagnose import living
from triage.diagnose.candidates import Candidate
from triage.diagnose.collect import Left, what_to_collect
from triage.diagnose.graph import tier
from triage.diagnose.reason import Result
from triage.diagnose.say import say_ranks
from triage.model.diagnosis import Finding, Moment, Remediation, Verdict
from triage.model.evidence import Evidence, Warning
from triage.ranks import conflicts
from triage.ranks.identity import JobMap
from triage.ranks.last import fell_silent

EVIDENCE_PER_FINDING = 5
TIMELINE = 200
SILENT = 5
REASONS = 5
_PLACED = {
    "by the exit status": "the line carries no rank; it is given to the one rank that died this way",
    "alone on its host": "the line carries no rank; it is given to the one rank that ran on its host",
    "under another pid": "the rank has another pid in the files, as in a container; it is the one rank of that host that died by SIGKILL",
}
_SLOT = lazy_re(r"\{([A-Za-z_]\w*)\}")


def findings(result: Result) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Known findings, causes first then what they explain, and unknown failures."""
    ordered = sorted(result.candidates, key=lambda c: _order(c, result))
    opened: set[str] = set()
    told = [(c, finding(c, result, opened)) for c in ordered]
    return tuple(f for c, f in told if c.signature is not None), tuple(f for c, f in told if c.signature is None)


def _order(candidate: Candidate, result: Result) -> tuple[object, ...]:
    level = tier(candidate)
    noise = candidate.role == "noise"
    time = candidate.first_time
    return (
        candidate is not result.verdict.root,
        noise,
        bool(candidate.past),
        bool(candidate.explained_by),
        9 if level is None else level,
        time is None,
        time or 0.0,
        candidate.id,
    )


def finding(candidate: Candidate, result: Result, opened: set[str]) -> Finding:
    """A candidate as it is reported; the root's confidence is the verdict's.

    `opened` are the sources that findings before it show: where one of them will do, no other needs to be opened.
    """
    signature = candidate.signature
    root = candidate is result.verdict.root
    confidence = result.verdict.confidence if root else _plain_confidence(candidate)
    shown = tuple(_representatives(candidate.facts, set() if root else opened))
    opened.update(fact.source for fact in shown)
    if signature is None:
        title = candidate.facts[0].text.split("\n", 1)[0][:200]
        return Finding(
            signature=None,
            title=title,
            domain="unknown",
            role="cause",
            severity="fatal",
            confidence=confidence,
            ranks=candidate.ranks,
            hosts=candidate.hosts,
            count=candidate.count,
            first_time=candidate.first_time,
            cluster=candidate.cluster,
            explained_by=tuple(candidate.explained_by),
            why=tuple(candidate.why) + _why(candidate, result),
            evidence=shown,
        )
    values = _values(candidate)
    return Finding(
        signature=signature.id,
        title=signature.title,
        domain=signature.domain,
        role=signature.role,
        severity=signature.severity,
        confidence=confidence,
        ranks=candidate.ranks,
        hosts=candidate.hosts,
        count=candidate.count,
        first_time=candidate.first_time,
        revision=signature.revision,
        fingerprint=signature.fingerprint,
        explained_by=tuple(candidate.explained_by),
        why=tuple(candidate.why) + _why(candidate, result),
        captures=dict(candidate.captures),
        evidence=shown,
        remediation=Remediation(
            _fill(signature.summary, values),
            tuple(_fill(step, values) for step in signature.steps),
            signature.references,
        ),
    )


def _plain_confidence(candidate: Candidate) -> float:
    level = tier(candidate)
    return 0.9 if candidate.explained_by else {1: 0.8, 2: 0.6}.get(level or 9, 0.5)


def _representatives(facts: Sequence[Evidence], opened: set[str]) -> list[Evidence]:
    """A few facts to show, in time order: the earliest, then one each of further ranks, from sources that are open
    already if there are any.
    """
    near = [fact for fact in facts if fact.source in opened] if opened else []
    first: dict[int | None, tuple[tuple[object, ...], Evidence]] = {}
    for fact in near or facts:
        early, known = _earliness(fact), first.get(fact.origin.rank)
        if known is None or early < known[0]:
            first[fact.origin.rank] = (early, fact)
    chosen = [fact for _, fact in heapq.nsmallest(EVIDENCE_PER_FINDING, first.values(), key=operator.itemgetter(0))]
    if len(chosen) < 2 and not near:
        chosen += [
            fact for fact in heapq.nsmallest(EVIDENCE_PER_FINDING + 1, facts, key=_earliness) if fact not in chosen
        ]
    return chosen[:EVIDENCE_PER_FINDING]


def _earliness(fact: Evidence) -> tuple[object, ...]:
    origin = fact.origin
    return (origin.rank is None, fact.kind == "exit", origin.time is None, origin.time or 0.0, fact.source, fact.offset)


def _why(candidate: Candidate, result: Result) -> tuple[str, ...]:
    reasons: list[str] = [candidate.past] if candidate.past else []
    reasons += [f"follows from {cause}: {because}" for cause, because in list(candidate.because.items())[:REASONS]]
    effects = [other for other in result.candidates if candidate.id in other.explained_by]
    if candidate is result.verdict.root:
        if effects:
            reasons.append(
                "explains "
                + ", ".join(
                    f"{other.id} ({say_ranks(other.shown_by)})" if other.shown_by else other.id for other in effects
                )
            )
        reasons.extend(sorted({fact.text for fact in candidate.facts if fact.kind == "inference"}))
        reasons.extend(_where(candidate))
        reasons.extend(sorted({_PLACED[how] for fact in candidate.facts if (how := fact.fields.get("placed"))}))
        if any(fact.fields.get("interleaved") for fact in candidate.facts):
            reasons.append(
                "tracebacks of several writers run together without prefixes: the ranks cannot be told, only counted"
            )
    return tuple(reasons)


def _where(candidate: Candidate) -> list[str]:
    """The line of the user's program that raised, if a traceback says so: one sentence for each different place, at
    most three.
    """
    places = {
        (fact.fields.get("function", ""), fact.fields["file"], fact.fields["line"]): fact.fields.get("code", "")
        for fact in candidate.facts
        if fact.kind in ("exception", "fatal-python") and fact.fields.get("file") and fact.fields.get("line")
    }
    return [
        f"raised in {function or 'the program'} at {file}:{line}" + (f": {code[:120]}" if code else "")
        for (function, file, line), code in list(places.items())[:3]
    ]


def _values(candidate: Candidate) -> dict[str, str]:
    ranks = candidate.ranks
    host = ", ".join(candidate.hosts[:3])
    return {
        **candidate.captures,
        "rank": str(ranks[0]) if len(ranks) == 1 else ", ".join(map(str, ranks[:8])) or "?",
        "ranks": say_ranks(ranks) if ranks else "the affected ranks",
        "host": host or "the host",
    }


def _fill(text: str, values: Mapping[str, str]) -> str:
    """Put captures into a text; what is no placeholder stays as it is, braces of a command among them."""
    return _SLOT.sub(lambda found: values.get(found[1], found[0]), text)


def root_cause(result: Result, versions: Mapping[str, str] | None = None) -> tuple[Verdict, Finding | None]:
    """The verdict and what to act on. Symptoms alone make an unknown failure with the suspects, never a cause.

    `versions` of programs, as far as known, decide what their settings are called in the advice on what to collect.
    """
    root = result.verdict.root
    if root is not None:
        return ("known" if root.signature else "unknown"), finding(root, result, set())
    symptoms = [
        candidate
        for candidate in result.candidates
        if candidate.role not in ("noise", "confirmation") and not candidate.past
    ]
    if symptoms:
        return "unknown", _symptoms_only(symptoms, result, versions or {})
    undecided = [fact for fact in result.facts if fact.fields.get("end") == "open"]
    if undecided and not result.outcome.ends:
        return "unknown", _undecided(undecided, _advice(result, versions or {}))
    return "clean", None


def _advice(result: Result, versions: Mapping[str, str]) -> tuple[str, ...]:
    """What to collect next time, if anything is missing."""
    told = what_to_collect(Left(result.facts, versions, result.absent))
    return (told,) if told else ()


def _undecided(facts: Sequence[Evidence], advice: tuple[str, ...]) -> Finding:
    """Somebody wrote dumps, they show no fault, and no log says that the job finished: that is no good end."""
    return Finding(
        signature=None,
        title="No fault in the dumps, and no proof of a good end",
        domain="unknown",
        role="symptom",
        severity="fatal",
        confidence=0.1,
        count=len(facts),
        why=(*sorted({fact.text for fact in facts}), *advice),
        evidence=tuple(_representatives(facts, set())),
    )


def _symptoms_only(symptoms: Sequence[Candidate], result: Result, versions: Mapping[str, str]) -> Finding:
    named = sorted({rank for candidate in symptoms for rank in candidate.suspects or ()})
    suspects = result.suspects or tuple(named)
    first = min(
        symptoms,
        key=lambda c: (c.tells not in ("waiting", "peer-lost"), c.first_time is None, c.first_time or 0.0, c.id),
    )
    why = ["the files hold only symptoms: " + ", ".join(sorted(candidate.id for candidate in symptoms))]
    if result.suspicion:
        why.append(result.suspicion)
    why += _advice(result, versions)
    return Finding(
        signature=None,
        title=f"Symptoms only, suspects: {say_ranks(suspects)}" if suspects else "Symptoms only",
        domain="unknown",
        role="symptom",
        severity="fatal",
        confidence=0.3 if suspects else 0.1,
        ranks=suspects,
        count=sum(candidate.count for candidate in symptoms),
        first_time=first.first_time,
        why=tuple(why),
        evidence=tuple(_representatives(first.facts, set())),
    )


def timeline(result: Result) -> tuple[Moment, ...]:
    """The facts with a time, each with the signature that knows it; the first ones of a long list."""
    signature_of: dict[int, str] = {}
    for candidate in reversed(result.candidates):
        signature_of.update(dict.fromkeys(map(id, candidate.facts), candidate.id))
    timed = [fact for fact in result.facts if fact.origin.time is not None and id(fact) in signature_of]
    if len(timed) > TIMELINE:  # plain numbers first: of a million facts few need to be compared in all
        last = sorted(fact.origin.time for fact in timed if fact.origin.time is not None)[TIMELINE - 1]
        timed = [fact for fact in timed if fact.origin.time is not None and fact.origin.time <= last]
    told = heapq.nsmallest(
        TIMELINE,
        timed,
        key=lambda fact: (fact.origin.time, fact.origin.rank is None, fact.origin.rank or 0, fact.source, fact.offset),
    )
    moments = []
    for fact in told:
        name = signature_of[id(fact)]
        moments.append(
            Moment(
                fact.origin.time,
                fact.origin.rank,
                fact.text.split("\n", 1)[0][:200],
                None if name.startswith("u-") else name,
            )
        )
    outcome = result.outcome
    for rank, seconds in _most_silent(result)[:SILENT]:
        step = f" (step {outcome.last_step[rank]})" if rank in outcome.last_step else ""
        moments.append(
            Moment(outcome.last_time[rank], rank, f"its last line{step}; the others went on for {seconds:.0f} s", None)
        )
    moments.sort(key=lambda moment: moment.time or 0.0)
    return tuple(moments)


def remarks(result: Result, job: JobMap) -> list[Warning]:
    """What was left out of the reasoning, and why; contradictions, missing ranks and clocks; ranks that stopped writing
    before the others.
    """
    return [
        *conflicts.remarks(job),
        *_silent(result),
        *living.remarks(result),
        *(
            Warning("handled", fact.source, f"{fact.text.splitlines()[0][:160]!r} did not end the job: {why}")
            for fact, why in result.left_out
        ),
    ]


def _silent(result: Result) -> list[Warning]:
    """Ranks whose last line is long before the last lines of the others: they died, hang or wait."""
    silent = _most_silent(result)
    if not silent:
        return []
    steps = result.outcome.last_step
    told = "; ".join(
        f"rank {rank} {seconds:.0f} s" + (f" (step {steps[rank]})" if rank in steps else "")
        for rank, seconds in silent[:SILENT]
    )
    more = f"; and {len(silent) - SILENT} more" if len(silent) > SILENT else ""
    return [Warning("fell-silent", None, f"wrote nothing any more before the others' last lines: {told}{more}")]


def _most_silent(result: Result) -> list[tuple[int, float]]:
    """Ranks that fell silent before the others, with for how many seconds, the longest first."""
    silent = fell_silent(result.outcome.last_time, result.outcome.finished)
    return sorted(silent.items(), key=lambda pair: (-pair[1], pair[0]))
