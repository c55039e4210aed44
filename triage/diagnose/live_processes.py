"""Where nothing failed: what the processes were doing when their stacks were dumped."""

from __future__ import annotations

from triage.base.rank_ranges import format_ranks
from triage.diagnose.reason import ReasoningResult
from triage.model import Evidence, StackDetail, Warning

_MOST_STATES = 5


def describe_live_processes(result: ReasoningResult) -> list[Warning]:
    """Return one sentence about stacks of live processes, so that a hanging job is not only called clean."""
    if result.candidates:
        return []
    phrases = _phrases(result)
    if not phrases:
        return []
    states: dict[str, set[int]] = {}
    for rank, phrase in phrases:
        states.setdefault(phrase, set()).update(() if rank is None else (rank,))
    shown = [
        f"{format_ranks(ranks)} {phrase}" if ranks else f"a process {phrase}"
        for phrase, ranks in sorted(states.items())[:_MOST_STATES]
    ]
    more = f"; and {len(states) - _MOST_STATES} other states" if len(states) > _MOST_STATES else ""
    message = f"the stacks of live processes show no failure: {'; '.join(shown)}{more}; run `triage stacks` to see them"
    return [Warning("stacks", None, message)]


def _phrases(result: ReasoningResult) -> list[tuple[int | None, str]]:
    """Return rank and state, as a phrase, of each process that is not a helper."""
    dumps = [
        (fact, fact.detail) for fact in result.facts if isinstance(fact.detail, StackDetail) and fact.detail.phrase
    ]
    if not dumps:
        return []
    from triage.stacks.live.states import HELPERS

    dumps = [(fact, detail) for fact, detail in dumps if detail.state not in HELPERS]
    dumps.sort(key=lambda dump: _preference(*dump))
    processes: dict[int | str | None, tuple[int | None, str]] = {}
    for fact, detail in dumps:
        key = fact.origin.rank if fact.origin.rank is not None else str(detail.pid or "")
        processes.setdefault(key, (fact.origin.rank, detail.phrase))
    return list(processes.values())


def _preference(fact: Evidence, detail: StackDetail) -> tuple[object, ...]:
    """Order the dumps of one process: one that shows a deadlock first, then its program."""
    from triage.stacks.live.model import KERNEL_TOOLS, PYTHON_TOOLS

    return (
        detail.op != "cycle",
        fact.component in KERNEL_TOOLS,
        fact.component not in PYTHON_TOOLS,
        fact.source,
        fact.offset,
    )
