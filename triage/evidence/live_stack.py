"""What a live process was doing, as the detail of a fact of kind `stack`: `artifacts.stacks` compares the ranks."""

from __future__ import annotations

from triage.evidence.redact import redact
from triage.model.details import StackDetail
from triage.stacks.live.model import Process
from triage.stacks.live.states import key_of, state_of


def detail_of(process: Process) -> StackDetail:
    """Return state, place and the stack by which processes are compared, without secrets."""
    state = state_of(process)
    return StackDetail(
        state=state.kind,
        phrase=state.phrase,
        op=redact(state.op),
        place=redact(state.place),
        remark=redact(state.remark),
        key=tuple(map(redact, key_of(process))),
        pid=process.pid,
        age=process.age,
    )
