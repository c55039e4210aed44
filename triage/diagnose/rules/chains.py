"""Rules about what follows from what in any job: the catalog's edges, symptoms, ends of processes, outside stops."""

from __future__ import annotations

import math
from collections.abc import Collection

from triage.base.lazy_re import lazy_re
from triage.diagnose.candidates import Candidate, is_stop
from triage.diagnose.graph import CausalGraph, edge_holds, is_status_ending
from triage.diagnose.launcher_reports import is_end_report, is_launcher_report
from triage.diagnose.references import is_reference
from triage.diagnose.survival import is_uncertain
from triage.diagnose.time_order import is_zone_apart
from triage.evidence.harmless_signs import HARMLESS
from triage.model import Evidence, InferenceDetail

# More causes of one finding are not listed, even where thousands of failures are unknown.
_MOST_CAUSES = 64
_PRINTED = frozenset(("message", "exception", "terminate", "ending"))
# A failure that follows an outside stop within so many seconds comes from the stop.
_STOP_EFFECT = 120.0
# What says how a process ended, and not what it saw before.
_ENDS = frozenset(("ending", "killed", "stopped-by-launcher", "outside"))
# What programs print that compare the values of their ranks themselves.
_REPORTS_DIFFERENCE = lazy_re(
    r"(?i)\bdis(?:agree|crepanc)|\bdiffer(?:s|ed|ent|ing)?\b|\bdiverge|\bmis-?match|\bin-?consisten|\bconsistency\b"
    r"|\bnot (?:all )?(?:the same|identical|equal|consistent|in sync)\b|\bde-?sync|\bout of sync"
    r"|\bdo(?:es)?(?: not|n.t) match"
)
_OF_SHAPES = lazy_re(r"(?i)\b(?:size|shape|dtype|type|dimension|version|key|device)s? mis-?match|\bsizes? of\b")
_LONGEST_REPORT = 2000
# What a process says whose peer, child, server or reader is gone. Broken pipe, reset, aborted: errno 32, 104, 103.
_LOST_END = lazy_re(
    r"(?i)\bbroken pipe\b|\breset by (?:remote )?(?:peer|host)\b|\bEOFError(?:: ?)?$|\bunexpected (?:EOF|end of file)\b"
    r"|\b(?:connection|socket|stream|channel|pipe)(?: was| is)? (?:reset|aborted|closed|lost|broken|shut down)\b"
    r"|\b(?:server|peer|remote end|other side|client)(?: has)? (?:closed|disconnected|hung up)\b|\bgot 0 bytes\b"
    r"|\bEOF occurred\b|\bsoftware caused connection abort\b"
)

# The other end is a server, which no rank of the job is.
_OF_SERVER = lazy_re(r"(?i)\b[a-z0-9]{2,8}://|\bhttps?\b|\burllib3?\b|\bbotocore\b|\b(?:sql|redis|kafka|grpc)\b")


def catalog_edges(graph: CausalGraph) -> None:
    """The signatures say that one failure leads to another, on these ranks, within this time. No symptom leads to the
    stop of the job that stands above it in the same file, and no end of a process explains that the same one waited.
    """
    for cause in graph.ordered:
        for edge in cause.signature.causal_edges if cause.signature else ():
            effect = graph.by_id.get(edge.signature)
            if effect is None or not edge_holds(edge, cause, effect) or _is_symptom_of_stop(cause, effect):
                continue
            if not _waited_before_end(graph, cause, effect):
                graph.add_edge(cause, effect)


def _waited_before_end(graph: CausalGraph, report: Candidate, effect: Candidate) -> bool:
    """Whether a launcher reports the end of a process without its rank, and each rank that this can be gave up waiting
    itself: then nobody waited for it.
    """
    if report.indicates != "own-failure" or report.role != "symptom" or report.ranks or effect.indicates != "waiting":
        return False
    causes = [graph.by_id[name] for name in report.explained_by if name in graph.by_id]
    ended = frozenset[int]().union(*(one.observed_rank_set for one in causes if one.indicates == "ending"))
    possible = ended or graph.context.all_ranks
    return bool(possible) and possible <= effect.observed_rank_set


def stopped_before(graph: CausalGraph) -> None:
    """What fails within two minutes after the job was stopped from outside, and not before, fails because of that. So
    does, where no times order them, a process that only says that the other end of a connection or a pipe was gone.
    """
    for stop in filter(is_stop, graph.ordered):
        for effect in graph.candidates:
            if effect.role not in ("cause", "either") or is_stop(effect):
                continue
            if _begins_soon_after(stop, effect):
                graph.add_edge(stop, effect, "it began after the job was stopped")
            elif _is_unordered(stop, effect) and _is_effect_of_stop(stop, effect):
                graph.add_edge(stop, effect, "others had ended because the job was stopped")


def differing_values(graph: CausalGraph) -> None:
    """An exception that says that values are not the same follows from the difference that the logged values show."""
    measured = [one for one in graph.candidates if any(map(_is_measured_difference, one.facts))]
    for cause in measured:
        for effect in graph.candidates:
            is_check = effect.signature is None and any(_reports_difference(fact.text) for fact in effect.facts)
            if is_check and not effect.clearly_before(cause):
                graph.add_edge(cause, effect, "it reports that values differ, as the logged values show")


def shown_by_error(graph: CausalGraph) -> None:
    """An error from which a cause was inferred follows from that cause, and so does an exit that nothing explains."""
    for cause in graph.candidates:
        places = {(fact.source, fact.offset) for fact in cause.facts if fact.fields.get("shown_by") == "error"}
        errors = {fact.text for fact in graph.context.facts if (fact.source, fact.offset) in places} if places else ()
        for effect in graph.candidates if errors else ():
            may_follow = effect.signature is None or effect.role == "either"
            if may_follow and any(_repeats(fact.text, errors) for fact in effect.facts):
                graph.add_edge(cause, effect, "this error shows it")
            elif effect.is_exit_only:
                graph.add_edge(cause, effect, "the process ended after such an error")


def reports_follow(graph: CausalGraph) -> None:
    """A line that says only that a process failed, with which status, or that another line has the reason, follows from
    the symptoms that lines of the job state, if it is not of another rank.
    """
    reports = [one for one in graph.candidates if one.signature is None and all(map(_only_reports, one.facts))]
    for symptom in graph.effects if reports else ():
        if _is_stated_symptom(symptom):
            for report in reports:
                is_of_other = not report.observed_rank_set <= symptom.observed_rank_set
                if not is_of_other and not report.clearly_before(symptom):
                    graph.add_edge(symptom, report, "it only reports a failure that other lines show")


def _only_reports(fact: Evidence) -> bool:
    return is_launcher_report(fact) or is_reference(fact) or is_status_ending(fact)


def _is_stated_symptom(one: Candidate) -> bool:
    """Whether lines show a failure that is not just the end of a process."""
    is_failure = one.signature is not None and one.role == "symptom" and one.signature.severity in ("error", "fatal")
    return is_failure and one.indicates not in _ENDS and not one.is_inferred and not all(map(is_end_report, one.facts))


def consequences_follow(graph: CausalGraph) -> None:
    """A failed rank leaves symptoms everywhere: what can begin a failure explains them. The error that a rank printed
    explains how it ended, why it is absent elsewhere, and that others only say that their peer was gone; and a failure
    explains a later stop from outside.
    """
    _explain_ends(graph)
    _explain_symptoms(graph)
    _explain_lost_ends(graph)
    _explain_stops(graph)


def _explain_ends(graph: CausalGraph) -> None:
    exits = [one for one in graph.candidates if one.is_exit_only]
    for cause in graph.ordered:
        if cause.role not in ("cause", "either") or cause.indicates in ("outside", "ending") or cause.is_inferred:
            continue
        if cause.is_exit_only:
            continue
        mine = set(cause.ranks) | set(cause.observed_ranks)
        for effect in graph.effects:
            is_end = effect.indicates == "ending" and effect.role != "cause"
            if is_end and (mine & set(effect.observed_ranks) or not effect.observed_ranks):
                graph.add_edge(cause, effect, "the rank printed this error before it ended")
            elif effect.is_inferred and mine & set(effect.ranks):
                graph.add_edge(cause, effect, "this error is why the rank did not come")
        may_end = not cause.indicates and any(map(_may_end_process, cause.facts))
        for effect in exits if may_end else ():
            if not mine or mine & effect.observed_rank_set:
                graph.add_edge(cause, effect, "the process printed this error before it ended")


def _may_end_process(fact: Evidence) -> bool:
    """Whether a process printed it, and no line says that the process went on."""
    return fact.kind in _PRINTED and HARMLESS not in fact.fields and not is_uncertain(fact)


def _explain_symptoms(graph: CausalGraph) -> None:
    for effect in graph.effects:
        if effect.role == "symptom":
            for cause in graph.ordered:
                if len(effect.explained_by) >= _MOST_CAUSES:
                    break
                is_outside = cause.indicates == "outside"
                can_begin = cause.role in ("cause", "either") or is_outside
                if can_begin and not (is_outside and effect.clearly_before(cause)):
                    graph.add_edge(cause, effect)


def _explain_lost_ends(graph: CausalGraph) -> None:
    for effect in graph.candidates:
        if not _is_lost_end(effect) or any(_OF_SERVER.search(fact.text[:_LONGEST_REPORT]) for fact in effect.facts):
            continue
        for cause in graph.ordered:
            can_begin = cause.role in ("cause", "either") and cause.indicates != "outside" and not _is_lost_end(cause)
            is_of_others = bool(cause.observed_rank_set) and not cause.observed_rank_set & effect.observed_rank_set
            if can_begin and is_of_others and effect.observed_rank_set and not effect.clearly_before(cause):
                graph.add_edge(cause, effect, "it says only that its peer was gone")


def _explain_stops(graph: CausalGraph) -> None:
    for effect in graph.effects:
        if effect.indicates == "outside":
            for cause in graph.ordered:
                if len(effect.explained_by) >= _MOST_CAUSES:
                    break
                is_inside = cause.indicates != "outside" and (cause.role == "cause" or cause.indicates == "ending")
                if is_inside and not cause.is_exit_only and not effect.clearly_before(cause):
                    graph.add_edge(cause, effect, "the job was stopped after this failure")


def _repeats(text: str, errors: Collection[str]) -> bool:
    """Whether a text is one of the errors, alone or with the lines around it."""
    return any(text.startswith(error) for error in errors)


def _is_measured_difference(fact: Evidence) -> bool:
    return isinstance(fact.detail, InferenceDetail) and fact.detail.rule == "value-diverged"


def _reports_difference(text: str) -> bool:
    start = text[:_LONGEST_REPORT]
    return _REPORTS_DIFFERENCE.search(start) is not None and _OF_SHAPES.search(start) is None


def _begins_soon_after(stop: Candidate, effect: Candidate) -> bool:
    if not stop.clearly_before(effect):
        return False
    first, then = stop.start.first, effect.start.first
    return all(then[clock] - first[clock] < _STOP_EFFECT for clock in first.keys() & then.keys())


def _is_unordered(stop: Candidate, effect: Candidate) -> bool:
    """Whether no times say that the effect came first, or that it came too late to follow from the stop."""
    first, then, latest = stop.start.first, effect.start.first, effect.start.latest
    common = first.keys() & then.keys()
    if effect.clearly_before(stop):
        return _stands_below(stop, effect) and all(is_zone_apart(first[clock], then[clock]) for clock in common)
    return not any(then[clock] - first[clock] >= _STOP_EFFECT and latest[clock] < math.inf for clock in common)


def _is_symptom_of_stop(symptom: Candidate, stop: Candidate) -> bool:
    """Whether a symptom stands below the stop, and no time contradicts that."""
    is_stop = stop.indicates == "outside" and symptom.role == "symptom"
    return is_stop and _is_unordered(stop, symptom) and _stands_below(stop, symptom)


def _stands_below(stop: Candidate, effect: Candidate) -> bool:
    """Whether each of its lines stands below the stop, as the same rank or somebody of no rank writes it there. An
    inference stands where the line stands on which it rests.
    """
    return all(
        any(
            one.source == fact.source
            and one.offset < fact.offset
            and (one.origin.rank in (None, fact.origin.rank) or fact.kind == "inference")
            for one in stop.facts
        )
        for fact in effect.facts
    )


def _is_effect_of_stop(stop: Candidate, effect: Candidate) -> bool:
    """Whether it is what follows from other processes that end: a lost connection, or a wait that began below it."""
    if effect.is_inferred:
        return not effect.is_measured and _stands_below(stop, effect)
    return _is_lost_end(effect) and _reaches(stop, effect)


def _is_lost_end(effect: Candidate) -> bool:
    """Whether nobody knows this failure, and it says only that the other end of a connection or a pipe was gone."""
    return effect.signature is None and all(
        fact.kind in ("exception", "ending") and _LOST_END.search(fact.text.partition("\n")[0][:_LONGEST_REPORT])
        for fact in effect.facts
    )


def _reaches(stop: Candidate, effect: Candidate) -> bool:
    """Whether the stop also reached the ranks that fail. SIGTERM on other ranks alone may come from a launcher that
    cleans up after them; Ctrl-C and what a scheduler or an agent says that it got do not.
    """
    if stop.is_stop_of_job or any(fact.origin.rank is None for fact in stop.facts):
        return True
    return effect.observed_rank_set <= stop.observed_rank_set
