"""Evidence of kind `stack` of one job → inferences from all of it together, once the rank of each process is known."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from triage.artifacts.interface import ReadResult
from triage.artifacts.stacks.comparison import DumpState, compare_stacks
from triage.base.lazy_re import lazy_re
from triage.evidence.inference import HUNG, make_inferences
from triage.model import Basis, Evidence, Origin, StackDetail, Warning
from triage.records.activity import Activity
from triage.stacks.live.model import PYTHON_TOOLS, Process, State
from triage.stacks.live.states import HELPERS

_TIMEOUT = lazy_re(r"(?im)\btimed[ -]?out\b|^Timeout \(\d+:\d\d:\d\d")
CompleteOrigin = Callable[[str, Origin], Origin]
"""Gives the origin in a source, completed by what the whole job shows."""
Activities = Sequence[tuple[str, Activity]]
"""The last activity of each rank, with its source."""


def infer_from_stacks(
    facts: Sequence[Evidence], complete: CompleteOrigin, activities: Activities = (), ranks: Collection[int] = ()
) -> ReadResult:
    """Return what follows from all stacks among the facts, once for each rank concerned, at the place of its dump.

    `ranks` are those that the job is known to have.
    """
    result = ReadResult([], [])
    stacks = sorted(drop_outdated(facts, complete, activities), key=_order)
    states: list[DumpState] = []
    dumps: dict[int, Evidence] = {}
    for fact in stacks:
        states.append(to_dump_state(fact, complete))
        rank = states[-1].process.rank
        if rank is not None and (
            rank not in dumps or (fact.component in PYTHON_TOOLS and dumps[rank].component not in PYTHON_TOOLS)
        ):
            dumps[rank] = fact
    comparison = compare_stacks(states, ranks, any(map(_states_timeout, facts)))
    for inference in comparison.inferences:
        first = next((dumps[rank] for rank in inference.ranks if rank in dumps), stacks[0])
        basis: Basis = "absence" if inference.rule == HUNG else "measured"
        for fact in make_inferences(
            inference.rule,
            inference.ranks,
            inference.text,
            first,
            basis=basis,
            waiting=inference.waiting,
            uncertainty=inference.uncertainty,
            seen_in="stacks",
        ):
            own = dumps.get(fact.origin.rank, first) if fact.origin.rank is not None else first
            result.evidence.append(
                replace(fact, source=own.source, offset=own.offset, end=own.end, excerpt=own.excerpt)
            )
    result.warnings.extend(Warning("stacks", None, note) for note in comparison.notes)
    return result


def _states_timeout(fact: Evidence) -> bool:
    """Whether a line says that something took too long: the job hangs, and is not only slow."""
    return fact.kind not in ("inference", "setting") and _TIMEOUT.search(fact.text) is not None


def _order(fact: Evidence) -> tuple[str, int, str]:
    pid = fact.detail.pid if isinstance(fact.detail, StackDetail) else None
    return fact.source, fact.offset, "" if pid is None else str(pid)


def drop_outdated(facts: Iterable[Evidence], complete: CompleteOrigin, activities: Activities) -> list[Evidence]:
    """Return the stacks in `facts` after which their rank printed no step and did not finish."""
    stacks = [
        (fact, (fact.source, complete(fact.source, fact.origin).rank))
        for fact in facts
        if isinstance(fact.detail, StackDetail)
    ]
    ends = {key: fact.end for fact, key in sorted(stacks, key=lambda each: each[0].end)}
    outdated = {
        key
        for source, activity in activities
        if (activity.finished or activity.step is not None)
        and activity.offset >= ends.get(key := (source, complete(source, activity.origin).rank), 1 << 62)
    }
    return [fact for fact, key in stacks if key not in outdated]


def to_dump_state(fact: Evidence, complete: CompleteOrigin) -> DumpState:
    """Return what `compare_stacks` needs of a stack. Helpers write into the log of a rank, but are no ranks."""
    detail = fact.detail
    if not isinstance(detail, StackDetail):
        raise TypeError(f"not the stack of a live process: {fact.kind}")
    origin = fact.origin
    pid = detail.pid if detail.pid is not None else origin.pid
    if detail.state in HELPERS:
        origin = Origin(host=origin.host, pid=pid)
    else:
        origin = complete(fact.source, origin if origin.pid is not None or pid is None else replace(origin, pid=pid))
    process = Process(
        fact.source,
        fact.component,
        origin.pid,
        (),
        rank=origin.rank,
        host=origin.host,
        age=detail.age,
        main=detail.main,
    )
    state = State(detail.state, detail.phrase, detail.op, detail.place, detail.remark, detail.beside)
    return DumpState(process, state, detail.key)
