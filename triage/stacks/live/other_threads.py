"""What the threads of a rank beside its main one do, as far as other ranks wait for that."""

from __future__ import annotations

from triage.stacks.live.model import Process, State, is_native
from triage.stacks.live.states import main_thread, state_of_thread


def find_call_beside(process: Process, state: State) -> str:
    """Return the collective that another thread of the program is in while the main one waits in its own; or ""."""
    main = main_thread(process)
    others = [thread for thread in process.threads if thread is not main and not all(map(is_native, thread.frames))]
    calls = map(state_of_thread, others) if state.kind == "collective" else ()
    return next((call.op for call in calls if call.kind == state.kind and call.op), "")
