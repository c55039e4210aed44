"""Backtraces in logs: the crash point and signature of what `triage.stacks` reads in a block."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from triage.base.lazy_re import lazy_re
from triage.evidence.interface import evidence
from triage.model.evidence import Block, Evidence

if TYPE_CHECKING:
    from triage.stacks import Crash, Stacks

FORMS = frozenset(("backtrace", "received-signal"))
_FRAMES = 24
_UNCAUGHT = lazy_re(r"Exception in thread \"|terminate called")
_CRASHES = ("systemd", "stackcore", "hs-err", "ucx", "paddle", "llvm")  # written only when a process dies
# Printed by processes that live on too: an exception that somebody catches, a race that is reported.
_ALIVE = ("c10", "jvm")
_KINDS = ("unknown", "")


def read(block: Block) -> list[Evidence]:
    """A crash where the stack shows one; a plain stack (of a process that hangs, or was looked at) where it does not."""
    if block.form not in FORMS:
        return []  # most blocks: what reads stacks is imported for the others
    from triage.stacks import HANDLER
    from triage.stacks.write import frame

    found = crash_of(block.lines)
    if found is None:
        return []
    stacks, crash = found
    if stacks.form == "systemd" and stacks.pid is not None:  # the lines are systemd-coredump's, and about this process
        block = dataclasses.replace(block, origin=dataclasses.replace(block.origin, pid=stacks.pid))
    handled = (
        crash.thread is not None and bool(crash.key) and any(frame.function == HANDLER for frame in crash.thread.frames)
    )
    crashed = bool(stacks.signal or stacks.error) or stacks.form in _CRASHES or crash.kind not in _KINDS or handled
    if (
        stacks.form in _ALIVE and not stacks.signal and not _UNCAUGHT.search(block.lines[0])
    ) or stacks.error == "data race":
        crashed = False
    head = [line for line in block.lines[:12] if not line.lstrip().startswith("#")][:6]
    shown = (
        [f"#{level}  {frame(item)}" for level, item in enumerate(crash.thread.frames[:_FRAMES])]
        if crash.thread is not None
        else []
    )
    text = "\n".join([*head, *([f"crash point: {crash.text}"] if crashed and crash.key else []), *shown])
    if not crashed:
        from triage.evidence import live
        from triage.stacks.live.native import process

        told = live.fields(process(stacks, block.source, "\n".join(block.lines)))
        return [
            evidence(
                block,
                "stack",
                stacks.form,
                "\n".join(block.lines),
                form=stacks.form,
                threads=str(len(stacks.threads)),
                **told,
                **fields(crash),
            )
        ]
    return [evidence(block, "crash", stacks.form, text, signal=stacks.signal, message=stacks.message, **fields(crash))]


def crash_of(lines: tuple[str, ...]) -> tuple[Stacks, Crash] | None:
    """The first stacks in the lines that give a crash point, else the first at all."""
    from triage.stacks import parse, reduce

    found = [(stacks, reduce(stacks)) for stacks in parse("\n".join(lines))]
    return next((pair for pair in found if pair[1].key), found[0] if found else None)


def fields(crash: Crash) -> dict[str, str]:
    """What a crash is reduced to, as fields of a fact."""
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
