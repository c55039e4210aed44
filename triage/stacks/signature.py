"""From the stacks of a crash to the frame that matters, and to a signature that is the same for every build and
machine.

`reduce` walks the crashing thread from the inside, drops the frames of each class of `rules/`, and keeps a note for
every step.
The signature is the kind of the crash and the first meaningful functions; libraries count only where a function has no
name, because
debuggers that know the source line do not print them. The crash point is the kind and the first function alone: the
coarser key, under which
the same crash meets whether gdb, c10, faulthandler or a scan of the stack has seen it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from triage.base.lazy_re import lazy_re
from triage.stacks.model import Frame, Stacks, Thread
from triage.stacks.names import library, normal, source_name
from triage.stacks.rules import Rule, Rules, shipped

TOP = 3
"""How many meaningful frames a signature holds."""
_CYCLE = 8
_CHAIN = 24  # the frames among which the abort chain is looked for
# So many frames with so few functions: a recursion without end.
_DEEP, _FEW = 48, 8
_TEARDOWN = frozenset(
    ("__run_exit_handlers", "_dl_fini", "__cxa_finalize", "Py_FinalizeEx", "Py_Finalize", "__call_tls_dtors")
)
_KINDS = {
    "SIGSEGV": "segv", "SIGBUS": "bus", "SIGFPE": "fpe", "SIGILL": "ill", "SIGTRAP": "trap", "SIGABRT": "abort", "SIGSYS": "sys",
}  # fmt: skip
_MESSAGES = (
    (
        "heap-corruption",
        lazy_re(
            r"double free|free\(\): |malloc\(\)|corrupted (?:size|double)|munmap_chunk|realloc\(\): |malloc_consolidate"
        ),
    ),
    ("buffer-overflow", lazy_re(r"stack smashing|buffer overflow detected")),
    ("assert", lazy_re(r"Assertion [`'\"].*failed|Assertion failed")),
    ("exception", lazy_re(r"terminate called|Exception raised from")),
)
# A name that says nothing alone: the next frame joins it in the crash point.
_GENERIC = lazy_re(r"(?:\{lambda\}|operator\(\)|run|_run|_M_run|main|_FUN|\{anon\}|call|invoke|apply)$")


@dataclass(frozen=True, slots=True)
class Note:
    """One step: the frame as printed, what was done with it, and why (with the rule's file and line)."""

    level: int | None
    frame: str
    done: str
    why: str


@dataclass(frozen=True, slots=True)
class Crash:
    """What a crash is reduced to. `key` and `point` are ids, "" when no frame has a name or a place.

    `frames` are the comparable names of the meaningful frames, `frame` the first of them as printed. `python` is the
    innermost Python frame.
    """

    kind: str
    frames: tuple[str, ...]
    frame: Frame | None
    module: str
    thread: Thread | None
    key: str
    point: str
    text: str
    python: str = ""
    error_class: str = ""
    notes: tuple[Note, ...] = ()


def reduce(stacks: Stacks, rules: Rules | None = None, kind: str = "") -> Crash:
    """The crash point of the thread that crashed; of the first with a sign of a crash where the dump does not say
    which.

    `kind` is given where something else than the stacks tells it (an address below the stack).
    """
    rules = rules or shipped()
    thread = crashing(stacks, rules)
    notes: list[Note] = []
    kind = kind or next(
        (name for name, words in _MESSAGES if words.search(stacks.message)), _KINDS.get(stacks.signal, "")
    )
    if stacks.form in ("asan", "tsan", "ubsan", "msan", "memcheck") and stacks.error:
        kind = stacks.error
    if thread is None:
        notes.append(Note(None, "", "stopped", "no thread shows a sign of a crash"))
        return Crash(kind or "unknown", (), None, "", None, "", "", kind or "unknown", notes=tuple(notes))
    walk = _Walk(rules, notes, kind)
    walk.thread(thread)
    kind = walk.kind or ("exception" if stacks.error else "") or kind or "unknown"
    if walk.recursion and kind in ("segv", "bus", "unknown"):
        notes.append(Note(None, "", "kind stack-overflow", "few functions fill a deep stack"))
        kind = "stack-overflow"
    error_class = rules.error_class(f"{stacks.error} {stacks.message}") if walk.watchdog else ""
    names = [f"watchdog:{error_class or 'error'}"] if walk.watchdog and not walk.before_watchdog else []
    names += [name for name, _ in walk.kept]
    if not walk.kept and walk.python and not names:
        notes.append(Note(None, "", "Python frames count", "no native frame has a meaning of its own"))
        names = list(walk.python)
    return _crash(kind + (" at exit" if walk.teardown else ""), names[:TOP], walk, thread, error_class, notes)


def _crash(kind: str, names: list[str], walk: _Walk, thread: Thread, error_class: str, notes: list[Note]) -> Crash:
    frame = walk.kept[0][1] if walk.kept else None
    module = library(frame.module) if frame else ""
    python = walk.python[0] if walk.python else ""
    text = " | ".join([kind, *names]) + (f" [{module}]" if module and names and module not in names[0] else "")
    if not names:
        notes.append(
            Note(None, "", "no signature", "no frame has a name or a known place; unknown frames are never equal")
        )
        return Crash(kind, (), frame, module, thread, "", "", text, python, error_class, tuple(notes))
    count = next((index for index, name in enumerate(names, 1) if not _GENERIC.search(name)), len(names))
    family = kind.removesuffix(" at exit")
    point = _id("p", [family, *names[:count]])
    return Crash(
        kind,
        tuple(names),
        frame,
        module,
        thread,
        _id("c", [kind, *names]),
        point,
        text,
        python,
        error_class,
        tuple(notes),
    )


def crashing(stacks: Stacks, rules: Rules | None = None) -> Thread | None:
    """The thread that crashed: the one the dump names, else the first with a handler's or an abort's frames, else the
    only one.
    """
    rules = rules or shipped()
    named = stacks.crashed
    if named is not None:
        return named
    for labels in (("signal",), ("abort",)):
        for thread in stacks.threads:
            if any((rule := _rule(frame, rules)) is not None and rule.label in labels for frame in thread.frames[:64]):
                return thread
    return stacks.threads[0] if len(stacks.threads) == 1 or (stacks.signal and stacks.threads) else None


def name_of(frame: Frame) -> str:
    """What stands for a frame in comparisons: its normalised function, else library, build-id and offset, else ""
    (never equal).
    """
    if frame.language != "native":
        return f"{source_name(frame.file)}:{frame.function}" if frame.function else ""
    name = normal(frame.function)
    if name:
        return name
    if frame.offset is not None and frame.module and frame.build_id:
        return f"{library(frame.module)}!{frame.build_id[:12]}+{frame.offset:#x}"
    return ""


def _rule(frame: Frame, rules: Rules) -> Rule | None:
    if frame.language != "native":
        return None
    return rules.find(normal(frame.function) or "??", library(frame.module))


class _Walk:
    """One pass over a thread from the inside, with what has been learnt so far."""

    def __init__(self, rules: Rules, notes: list[Note], kind: str) -> None:
        self.rules = rules
        self.notes = notes
        self.kind = kind
        self.kept: list[tuple[str, Frame]] = []
        self.python: list[str] = []
        self.watchdog = False
        self.before_watchdog = False
        self.teardown = False
        self.recursion = False

    def thread(self, thread: Thread) -> None:
        frames = self._below_signal(thread.frames)
        self.recursion = len(frames) >= _DEEP and len({name_of(frame) for frame in frames[:256]}) <= _FEW
        start = self._below_abort(frames)
        for level, frame in frames_without_cycles(frames[start:], self.notes):
            self._frame(level + start, frame)

    def _below_abort(self, frames: Sequence[Frame]) -> int:
        """How many frames belong to the abort: all inside of the outermost frame of its chain, whatever they are
        called.
        """
        if self.kind in ("segv", "bus", "fpe", "ill", "stack-overflow"):
            return 0
        last = -1
        for index, frame in enumerate(frames[:_CHAIN]):
            rule = _rule(frame, self.rules)
            if rule is None or rule.label != "abort" or not rule.kind or rule.kind == "sanitizer":
                continue
            last, where = index, rule.where
            if _stronger(rule.kind, self.kind):
                self.notes.append(Note(index, shown(frame), f"kind {rule.kind}", f"abort ({rule.where})"))
                self.kind = rule.kind
        if last >= 0:
            self.notes.append(Note(last, shown(frames[last]), f"frames 0 to {last} dropped", f"abort ({where})"))
        return last + 1

    def _below_signal(self, frames: Sequence[Frame]) -> Sequence[Frame]:
        last = -1
        for index, frame in enumerate(frames):
            rule = _rule(frame, self.rules)
            if rule is not None and rule.label == "signal":
                last = index
                where = rule.where
        if last >= 0:
            self.notes.append(Note(last, shown(frames[last]), f"frames 0 to {last} dropped", f"signal ({where})"))
        return frames[last + 1 :]

    def _frame(self, level: int, frame: Frame) -> None:
        if frame.language != "native":
            self.python.append(name_of(frame))
            return
        name = name_of(frame)
        rule = _rule(frame, self.rules)
        if normal(frame.function) in _TEARDOWN:
            self.teardown = True
        if rule is None:
            self._keep(level, frame, name)
            return
        if len(self.kept) < TOP:
            self.notes.append(Note(level, shown(frame), "dropped", f"{rule.label} ({rule.where})"))
        if rule.kind and not self.kept and _stronger(rule.kind, self.kind):
            self.notes.append(Note(level, shown(frame), f"kind {rule.kind}", f"{rule.label} ({rule.where})"))
            self.kind = rule.kind
        if rule.label == "watchdog" and not self.watchdog:
            self.watchdog, self.before_watchdog = True, bool(self.kept)

    def _keep(self, level: int, frame: Frame, name: str) -> None:
        if len(self.kept) >= TOP:
            return
        if not name:
            self.notes.append(
                Note(level, shown(frame), "left out", "it has no name, and no library with a build-id and an offset")
            )
            return
        self.notes.append(
            Note(level, shown(frame), f"kept as {name}", "crash point" if not self.kept else "next meaningful frame")
        )
        self.kept.append((name, frame))


def _stronger(new: str, old: str) -> bool:
    """`abort` is how most kinds end; what stands further out says why."""
    order = (
        "",
        "unknown",
        "abort",
        "exception",
        "check",
        "assert",
        "panic",
        "buffer-overflow",
        "heap-corruption",
        "python-fatal",
        "sanitizer",
    )
    if old in ("segv", "bus", "fpe", "ill"):
        return new in ("python-fatal", "sanitizer")
    return new in order and (old not in order or order.index(new) > order.index(old))


def frames_without_cycles(frames: Sequence[Frame], notes: list[Note]) -> list[tuple[int, Frame]]:
    """Frames with their levels, repeated runs of up to eight frames kept once."""
    names = [name_of(frame) for frame in frames]
    kept: list[tuple[int, Frame]] = []
    level = 0
    while level < len(frames):
        period = next((p for p in range(1, _CYCLE + 1) if _repeats(names, level, p)), 0)
        if not period:
            kept.append((level, frames[level]))
            level += 1
            continue
        end = level + period
        while end < len(frames) and names[end] == names[end - period]:
            end += 1
        notes.append(Note(level, shown(frames[level]), f"frames {level} to {end - 1} taken as {period}", "they repeat"))
        kept.extend((level + step, frames[level + step]) for step in range(period))
        level = end
    return kept


def _repeats(names: list[str], level: int, period: int) -> bool:
    """At least one whole repetition of named frames."""
    first, second = names[level : level + period], names[level + period : level + 2 * period]
    return first == second and all(first)


def shown(frame: Frame) -> str:
    """A frame in a few words."""
    where = source_name(frame.module) if frame.module else ""
    offset = f"+{frame.offset:#x}" if frame.offset is not None and not frame.function else ""
    return f"{frame.function or '??'}" + (f" [{where}{offset}]" if where else "")


def _id(letter: str, parts: Sequence[str]) -> str:
    return f"{letter}-{hashlib.sha256(chr(0).join(parts).encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def with_thread(stacks: Stacks, thread: Thread) -> Stacks:
    """The same stacks, `thread` marked as the one that crashed."""
    return replace(stacks, threads=tuple(replace(other, crashed=other is thread) for other in stacks.threads))
