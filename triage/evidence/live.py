"""What a live process was doing, as the fields of a fact of kind `stack`: `artifacts.conclude` lays them side by side."""

from __future__ import annotations

from triage.stacks.live.model import Process
from triage.stacks.live.states import key_of, state_of


def fields(process: Process) -> dict[str, str]:
    """State, place and the stack by which processes are compared; `state` is one of the kinds of `states.RULES` or
    `kernel.RULES`.
    """
    state = state_of(process)
    return {
        "state": state.kind,
        "words": state.words,
        "op": state.op,
        "place": state.place,
        "detail": state.detail,
        "stack": "\n".join(key_of(process)),
        "pid": str(process.pid) if process.pid is not None else "",
        **({"age": str(process.age)} if process.age is not None else {}),
    }
