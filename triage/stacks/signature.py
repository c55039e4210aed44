"""The stacks of a crash → the frame that matters, and a signature that is equal for every build and machine.

`reduce_stacks` walks the crashed thread from its innermost frame, drops the frames of each class of `rules/`, and notes
every step. The signature is the kind of the crash and the first meaningful functions; libraries count only where a
function has no name, because debuggers that know the source line do not print them. The crash point is the kind and the
first function alone: it is equal for the same crash, whether gdb, c10, faulthandler or a scan of the stack printed it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.stacks.model import Frame, Stacks, Thread
from triage.stacks.names import library_name, normalise_function, source_name
from triage.stacks.rules import Rule, Rules, shipped_rules

TOP = 3
"""Meaningful frames of a signature."""
_MAX_CYCLE = 8
_ABORT_FRAMES = 24  # innermost frames that may belong to an abort
# At least so many frames with at most so many functions are an endless recursion.
_MIN_DEPTH, _MAX_FUNCTIONS = 48, 8
_TEARDOWN = frozenset(
    ("__run_exit_handlers", "_dl_fini", "__cxa_finalize", "Py_FinalizeEx", "Py_Finalize", "__call_tls_dtors")
)
_KINDS = {
    "SIGSEGV": "segv",
    "SIGBUS": "bus",
    "SIGFPE": "fpe",
    "SIGILL": "ill",
    "SIGTRAP": "trap",
    "SIGABRT": "abort",
    "SIGSYS": "sys",
}
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
_ERRORS = {"Check failed": "check"}
_NAMED_KINDS = frozenset(("asan", "tsan", "ubsan", "msan", "memcheck", "julia", "oops"))
"""Forms whose error is the kind of the crash."""
_OF_JULIA = Rule("glue", "*.jl", "Base", "", "Julia's own function")
# Names that mean nothing alone: the crash point includes the next frame.
_GENERIC = lazy_re(r"(?:\{lambda\}|operator\(\)|run|_run|_M_run|main|_FUN|\{anon\}|call|invoke|apply)$")


@dataclass(frozen=True, slots=True)
class Note:
    """One step of the reduction: the frame as printed, the action, and its reason (with the rule's file and line)."""

    level: int | None
    frame: str
    action: str
    why: str


@dataclass(frozen=True, slots=True)
class Crash:
    """The crash point of a thread.

    `key` is the id of the signature and `point` that of the crash point, "" when no frame has a name or a place.
    `frames` are the comparable names of the meaningful frames, `frame` the first of them as printed, `python` the
    innermost Python frame, `notes` the steps of the reduction.
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


def reduce_stacks(stacks: Stacks, rules: Rules | None = None, kind: str = "") -> Crash:
    """Return the crash point of the thread that crashed; `kind`, known from another source, overrides the stacks'."""
    rules = rules or shipped_rules()
    thread = find_crashed_thread(stacks, rules)
    notes: list[Note] = []
    kind = kind or _kind_of(stacks)
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
    names += [name for name, _ in walk.meaningful]
    if walk.python and not names:
        notes.append(Note(None, "", "Python frames count", "no native frame has a meaning of its own"))
        names = list(walk.python)
    return _crash(kind + (" at exit" if walk.teardown else ""), names[:TOP], walk, thread, error_class)


def _kind_of(stacks: Stacks) -> str:
    """The kind of crash that message, signal or form show."""
    if stacks.error and (stacks.form in _NAMED_KINDS or stacks.signal.startswith("CUDA_EXCEPTION")):
        return stacks.error
    if stacks.error in _ERRORS:
        return _ERRORS[stacks.error]
    return next((kind for kind, pattern in _MESSAGES if pattern.search(stacks.message)), _KINDS.get(stacks.signal, ""))


def _crash(kind: str, names: list[str], walk: _Walk, thread: Thread, error_class: str) -> Crash:
    frame = walk.meaningful[0][1] if walk.meaningful else None
    module = library_name(frame.module) if frame else ""
    text = " | ".join([kind, *names]) + (f" [{module}]" if module and names and module not in names[0] else "")
    key = point = ""
    if names:
        count = next((index for index, name in enumerate(names, 1) if not _GENERIC.search(name)), len(names))
        key, point = _id("c", [kind, *names]), _id("p", [kind.removesuffix(" at exit"), *names[:count]])
    else:
        walk.notes.append(
            Note(None, "", "no signature", "no frame has a name or a known place; unknown frames are never equal")
        )
    return Crash(
        kind,
        tuple(names),
        frame,
        module,
        thread,
        key,
        point,
        text,
        python=walk.python[0] if walk.python else "",
        error_class=error_class,
        notes=tuple(walk.notes),
    )


def find_crashed_thread(stacks: Stacks, rules: Rules | None = None) -> Thread | None:
    """Return the thread that crashed.

    It is the one that the dump names, else the first with frames of a signal handler or an abort, else the only one.
    """
    rules = rules or shipped_rules()
    if stacks.crashed is not None:
        return stacks.crashed
    for label in ("signal", "abort"):
        for thread in stacks.threads:
            if any((rule := _rule(frame, rules)) is not None and rule.label == label for frame in thread.frames[:64]):
                return thread
    return stacks.threads[0] if len(stacks.threads) == 1 or (stacks.signal and stacks.threads) else None


def comparable_name(frame: Frame) -> str:
    """Return the normalised function, else library, build-id and offset, else "" (which is never equal)."""
    if frame.language != "native":
        return f"{source_name(frame.file)}:{frame.function}" if frame.function else ""
    name = normalise_function(frame.function)
    if name:
        return name
    if frame.offset is not None and frame.module and frame.build_id:
        return f"{library_name(frame.module)}!{frame.build_id[:12]}+{frame.offset:#x}"
    return ""


def _rule(frame: Frame, rules: Rules) -> Rule | None:
    if frame.language != "native":
        return None
    if frame.file.endswith(".jl") and (frame.module.split(".")[0] or frame.file[:2]) in ("Base", "Core", "./"):
        return _OF_JULIA
    return rules.find(normalise_function(frame.function) or "??", library_name(frame.module))


class _Walk:
    """One pass over a thread from its innermost frame, with what it has found so far."""

    def __init__(self, rules: Rules, notes: list[Note], kind: str) -> None:
        self.rules = rules
        self.notes = notes
        self.kind = kind
        self.meaningful: list[tuple[str, Frame]] = []
        self.python: list[str] = []
        self.watchdog = False
        self.before_watchdog = False
        self.teardown = False
        self.recursion = False

    def thread(self, thread: Thread) -> None:
        """Walk over all frames of a thread."""
        frames = self._below_signal(thread.frames)
        functions = {comparable_name(frame) for frame in frames[:256]}
        self.recursion = len(frames) >= _MIN_DEPTH and len(functions) <= _MAX_FUNCTIONS
        start = self._below_abort(frames)
        for level, frame in frames_without_cycles(frames[start:], self.notes):
            self._frame(level + start, frame)

    def _note(self, level: int, frame: Frame, action: str, reason: str) -> None:
        self.notes.append(Note(level, format_short(frame), action, reason))

    def _below_abort(self, frames: Sequence[Frame]) -> int:
        """How many frames belong to the abort: all up to its outermost frame, whatever their names."""
        if self.kind in ("segv", "bus", "fpe", "ill", "stack-overflow"):
            return 0
        last = -1
        for index, frame in enumerate(frames[:_ABORT_FRAMES]):
            rule = _rule(frame, self.rules)
            if rule is None or rule.label != "abort" or not rule.kind or rule.kind == "sanitizer":
                continue
            last, where = index, rule.where
            if _stronger(rule.kind, self.kind):
                self._note(index, frame, f"kind {rule.kind}", f"abort ({rule.where})")
                self.kind = rule.kind
        if last >= 0:
            self._note(last, frames[last], f"frames 0 to {last} dropped", f"abort ({where})")
        return last + 1

    def _below_signal(self, frames: Sequence[Frame]) -> Sequence[Frame]:
        """The frames outside of the last signal handler."""
        last = -1
        for index, frame in enumerate(frames):
            rule = _rule(frame, self.rules)
            if rule is not None and rule.label == "signal":
                last, where = index, rule.where
        if last >= 0:
            self._note(last, frames[last], f"frames 0 to {last} dropped", f"signal ({where})")
        return frames[last + 1 :]

    def _frame(self, level: int, frame: Frame) -> None:
        if frame.language != "native":
            self.python.append(comparable_name(frame))
            return
        rule = _rule(frame, self.rules)
        if normalise_function(frame.function) in _TEARDOWN:
            self.teardown = True
        if rule is None:
            self._add(level, frame)
            return
        if len(self.meaningful) < TOP:
            self._note(level, frame, "dropped", f"{rule.label} ({rule.where})")
        if rule.kind and not self.meaningful and _stronger(rule.kind, self.kind):
            self._note(level, frame, f"kind {rule.kind}", f"{rule.label} ({rule.where})")
            self.kind = rule.kind
        if rule.label == "watchdog" and not self.watchdog:
            self.watchdog, self.before_watchdog = True, bool(self.meaningful)

    def _add(self, level: int, frame: Frame) -> None:
        """Take a meaningful frame, if it has a name."""
        if len(self.meaningful) >= TOP:
            return
        name = comparable_name(frame)
        if not name:
            self._note(level, frame, "left out", "it has no name, and no library with a build-id and an offset")
            return
        self._note(level, frame, f"kept as {name}", "next meaningful frame" if self.meaningful else "crash point")
        self.meaningful.append((name, frame))


_STRENGTH = (
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


def _stronger(new: str, old: str) -> bool:
    """Whether a kind explains more than another: most kinds end with `abort`, and outer frames show why."""
    if old in ("segv", "bus", "fpe", "ill"):
        return new in ("python-fatal", "sanitizer")
    if new == "sanitizer" and old and old not in _STRENGTH and old not in _KINDS.values():
        return False  # the sanitizer says what it found
    return new in _STRENGTH and (old not in _STRENGTH or _STRENGTH.index(new) > _STRENGTH.index(old))


def frames_without_cycles(frames: Sequence[Frame], notes: list[Note]) -> list[tuple[int, Frame]]:
    """Return the frames with their levels; of repeated runs of up to eight frames only the first."""
    names = [comparable_name(frame) for frame in frames]
    unique: list[tuple[int, Frame]] = []
    level = 0
    while level < len(frames):
        period = next((p for p in range(1, _MAX_CYCLE + 1) if _repeats(names, level, p)), 0)
        if not period:
            unique.append((level, frames[level]))
            level += 1
            continue
        end = level + period
        while end < len(frames) and names[end] == names[end - period]:
            end += 1
        notes.append(
            Note(level, format_short(frames[level]), f"frames {level} to {end - 1} taken as {period}", "they repeat")
        )
        unique.extend((level + step, frames[level + step]) for step in range(period))
        level = end
    return unique


def _repeats(names: list[str], level: int, period: int) -> bool:
    """Whether a run of named frames repeats at least once."""
    first, second = names[level : level + period], names[level + period : level + 2 * period]
    return first == second and all(first)


def format_short(frame: Frame) -> str:
    """Return function and library of a frame."""
    where = source_name(frame.module) if frame.module else ""
    offset = f"+{frame.offset:#x}" if frame.offset is not None and not frame.function else ""
    return f"{frame.function or '??'}" + (f" [{where}{offset}]" if where else "")


def _id(letter: str, parts: Sequence[str]) -> str:
    return f"{letter}-{hashlib.sha256(chr(0).join(parts).encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
