"""Rules about what follows from what in any job: the catalog's edges, symptoms, ends of processes, outside stops."""

from __future__ import annotations

from triage.diagnose.candidates import Candidate
from triage.diagnose.graph import CausalGraph, edge_holds

# More causes of one finding are not listed, even where thousands of failures are unknown.
_MOST_CAUSES = 64
# A failure that follows an outside stop within so many seconds comes from the stop.
_STOP_EFFECT = 120.0


def catalog_edges(graph: CausalGraph) -> None:
    """The signatures say that one failure leads to another, on these ranks, within this time."""
    for cause in graph.ordered:
        for edge in cause.signature.causal_edges if cause.signature else ():
            effect = graph.by_id.get(edge.signature)
            if effect is not None and edge_holds(edge, cause, effect):
                graph.add_edge(cause, effect)


def stopped_before(graph: CausalGraph) -> None:
    """What fails within two minutes after the job was stopped from outside, and not before, fails because of that."""
    for stop in graph.ordered:
        if stop.indicates != "outside":
            continue
        for effect in graph.candidates:
            is_failure = effect.role in ("cause", "either") and effect.indicates != "outside"
            if is_failure and _begins_soon_after(stop, effect):
                graph.add_edge(stop, effect, "it began after the job was stopped")


def own_words(graph: CausalGraph) -> None:
    """The error that a rank printed explains how the rank ended, and why it is absent elsewhere."""
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


def symptoms_follow(graph: CausalGraph) -> None:
    """A failed rank leaves symptoms everywhere: what can begin a failure explains all that only follows from one."""
    for effect in graph.effects:
        if effect.role == "symptom":
            for cause in graph.ordered:
                if len(effect.explained_by) >= _MOST_CAUSES:
                    break
                is_outside = cause.indicates == "outside"
                can_begin = cause.role in ("cause", "either") or is_outside
                if can_begin and not (is_outside and effect.clearly_before(cause)):
                    graph.add_edge(cause, effect)


def outside_after(graph: CausalGraph) -> None:
    """What stops a job from outside is a cause only if nothing inside had failed before."""
    for effect in graph.effects:
        if effect.indicates == "outside":
            for cause in graph.ordered:
                if len(effect.explained_by) >= _MOST_CAUSES:
                    break
                is_inside = cause.indicates != "outside" and (cause.role == "cause" or cause.indicates == "ending")
                if is_inside and not cause.is_exit_only and not effect.clearly_before(cause):
                    graph.add_edge(cause, effect, "the job was stopped after this failure")


def _begins_soon_after(stop: Candidate, effect: Candidate) -> bool:
    if not stop.clearly_before(effect):
        return False
    first, then = stop.start.first, effect.start.first
    return all(then[clock] - first[clock] < _STOP_EFFECT for clock in first.keys() & then.keys())
