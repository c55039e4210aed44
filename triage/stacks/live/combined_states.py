"""The state of one process from two dumps: what Python frames, native frames and the kernel show together."""

from __future__ import annotations

from dataclasses import replace

from triage.stacks.live import kernel
from triage.stacks.live.model import State
from triage.stacks.live.states import HELPERS, WAITING, WEAK


def add_native_state(program: State, native: State) -> State:
    """Combine what a dump of Python frames and one of native frames show: `in load_shard, waiting for the network`."""
    if native.kind in WAITING or native.kind == "deadlock" or native.phrase in program.phrase:
        return replace(native, place=program.place)
    kind = native.kind if program.kind in ("idle", "running", "unknown", "backward") else program.kind
    return replace(native, kind=kind, phrase=f"{program.phrase}, {native.phrase}", op=program.op, place=program.place)


def combine_states(state: State, below: State | None) -> State:
    """Combine what the program and the kernel show: `in a checkpoint write to /mnt/ckpt.pt`."""
    if below is None:
        return state
    if below.op == "cycle":
        return State(below.kind, below.phrase, below.op, state.place, below.remark)
    if state.kind in WAITING or state.kind in HELPERS or below.kind not in kernel.SPECIFIC_KINDS:
        return state
    if state.kind == "checkpoint":
        if state.phrase == "in a checkpoint write" and below.phrase.startswith("in write to "):
            phrase = f"{state.phrase} to {below.phrase.removeprefix('in write to ')}"
        else:
            phrase = f"{state.phrase}, {below.phrase}"
        return State("checkpoint", phrase, state.op, state.place, below.remark)
    return State(
        below.kind if state.kind in ("idle", "running", "unknown", *WEAK) else state.kind,
        f"{state.phrase}, {below.phrase}" if below.phrase not in state.phrase else state.phrase,
        state.op,
        state.place,
        below.remark,
    )
