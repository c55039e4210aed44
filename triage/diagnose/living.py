"""Where nothing failed: what processes were doing when somebody looked at them."""

from __future__ import annotations

from triage.diagnose.reason import Result
from triage.diagnose.say import say_ranks
from triage.model.evidence import Evidence, Warning

_SHOWN = 5


def remarks(result: Result) -> list[Warning]:
    """One sentence, so that a job that hangs without a word is not called clean and nothing more."""
    dumps = [fact for fact in result.facts if fact.kind == "stack" and fact.fields.get("words")]
    if not dumps or result.candidates:
        return []
    from triage.stacks.live.model import KERNEL_TOOLS, PYTHON_TOOLS
    from triage.stacks.live.states import HELPERS

    dumps = [fact for fact in dumps if fact.fields["state"] not in HELPERS]
    if not dumps:
        return []
    # Of several dumps of a process the one that shows a deadlock, else its program.
    dumps.sort(
        key=lambda fact: (
            fact.fields.get("op") != "cycle",
            fact.component in KERNEL_TOOLS,
            fact.component not in PYTHON_TOOLS,
            fact.source,
            fact.offset,
        )
    )
    processes: dict[int | str | None, Evidence] = {}
    for fact in dumps:
        processes.setdefault(fact.origin.rank if fact.origin.rank is not None else fact.fields.get("pid"), fact)
    states: dict[str, set[int]] = {}
    for fact in processes.values():
        states.setdefault(fact.fields["words"], set()).update(() if fact.origin.rank is None else (fact.origin.rank,))
    told = [
        f"{say_ranks(ranks)} {words}" if ranks else f"a process {words}"
        for words, ranks in sorted(states.items())[:_SHOWN]
    ]
    more = f"; and {len(states) - _SHOWN} other states" if len(states) > _SHOWN else ""
    message = (
        f"nothing follows from the stacks of live processes alone: {'; '.join(told)}{more}; `triage stacks` shows them"
    )
    return [Warning("stacks", None, message)]
