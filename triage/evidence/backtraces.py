"""Backtraces in logs: the crash point and the signature of the stacks in a block."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING

from triage.base.lazy_re import lazy_re
from triage.evidence.extractor import make_evidence
from triage.model import Block, CrashDetail, Evidence, StackDetail

if TYPE_CHECKING:
    from triage.stacks.live.model import Process
    from triage.stacks.model import Stacks
    from triage.stacks.signature import Crash

FORMS = frozenset(("backtrace", "received-signal"))
_MOST_FRAMES = 24
_UNCAUGHT = lazy_re(r"Exception in thread \"|terminate called")
# Forms of stacks that are written only when a process dies.
_FATAL_FORMS = ("systemd", "stackcore", "hs-err", "ucx", "paddle", "llvm")
# Forms that are also printed by processes that live on: an exception that is caught, a race that is reported.
_NONFATAL_FORMS = ("c10", "jvm")
_UNKNOWN_KINDS = ("unknown", "")


def extract(block: Block) -> list[Evidence]:
    """Return a crash where the stack shows one, else the stack of a live process."""
    if block.form not in FORMS:
        return []  # most blocks: what reads stacks is imported for the others
    pair = find_crash(block.lines)
    if pair is None:
        return []
    stacks, crash = pair
    if stacks.form == "systemd" and stacks.pid is not None:  # the lines are systemd-coredump's, and about this process
        block = dataclasses.replace(block, origin=dataclasses.replace(block.origin, pid=stacks.pid))
    if _is_crash(block, stacks, crash):
        text = _summarise(block, crash)
        return [
            make_evidence(
                block,
                "crash",
                stacks.form,
                text,
                CrashDetail(stacks.signal, crash.kind),
                signal=stacks.signal,
                message=stacks.message,
                **crash_fields(crash),
            )
        ]
    from triage.stacks.live.boundaries import split_dumps
    from triage.stacks.live.native import to_process

    text = "\n".join(block.lines)
    if block.origin.rank is None and stacks.form == "py-spy" and (rank := split_dumps(text)[-1].rank) is not None:
        block = dataclasses.replace(block, origin=dataclasses.replace(block.origin, rank=rank))
    state = detail_of(to_process(stacks, block.source, text))
    count = str(len(stacks.threads))
    return [
        make_evidence(block, "stack", stacks.form, text, state, form=stacks.form, threads=count, **crash_fields(crash))
    ]


def _is_crash(block: Block, stacks: Stacks, crash: Crash) -> bool:
    from triage.stacks.model import HANDLER

    if stacks.error == "data race":
        return False
    if stacks.form in _NONFATAL_FORMS and not stacks.signal and not _UNCAUGHT.search(block.lines[0]):
        return False
    frames = crash.thread.frames if crash.thread is not None and crash.key else ()
    return (
        bool(stacks.signal or stacks.error)
        or stacks.form in _FATAL_FORMS
        or crash.kind not in _UNKNOWN_KINDS
        or any(frame.function == HANDLER for frame in frames)
    )


def _summarise(block: Block, crash: Crash) -> str:
    """Return the lines before the frames, the crash point and the first frames."""
    from triage.stacks.model import format_frame

    head = [line for line in block.lines[:12] if not line.lstrip().startswith("#")][:6]
    frames = crash.thread.frames[:_MOST_FRAMES] if crash.thread is not None else ()
    shown = [f"#{level}  {format_frame(frame)}" for level, frame in enumerate(frames)]
    return "\n".join([*head, *([f"crash point: {crash.text}"] if crash.key else []), *shown])


@functools.lru_cache(maxsize=256)  # many ranks print the same stack
def find_crash(lines: tuple[str, ...]) -> tuple[Stacks, Crash] | None:
    """Return the first stacks in the lines that have a crash point, else the first of all."""
    from triage.stacks.parser import parse_stacks
    from triage.stacks.signature import reduce_stacks

    pairs = [(stacks, reduce_stacks(stacks)) for stacks in parse_stacks("\n".join(lines))]
    return next((pair for pair in pairs if pair[1].key), pairs[0] if pairs else None)


def crash_fields(crash: Crash) -> dict[str, str]:
    """Return what a crash is reduced to, as fields of a fact."""
    return {
        "frame": crash.frames[0] if crash.frames else "",
        "module": crash.module,
        "thread": crash.thread.id if crash.thread is not None else "",
        "python": crash.python,
        "crash_kind": crash.kind,
        "crash_signature": crash.key,
        "crash_point": crash.point,
        "error_class": crash.error_class,
    }


def detail_of(process: Process) -> StackDetail:
    """Return what a live process was doing: state, place and the stack by which processes are compared, no secrets."""
    from triage.evidence.redact import redact
    from triage.stacks.live.other_threads import find_call_beside
    from triage.stacks.live.states import key_of, state_of

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
        main=process.main,
        beside=redact(find_call_beside(process, state)),
    )
