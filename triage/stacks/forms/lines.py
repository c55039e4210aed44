"""The common reader of forms that have one line a frame: a `Shape` is data, `Lines` goes through a text with it.

Frames are numbered in most forms. Where threads write at once, a frame goes to the stack whose number comes before its
own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from triage.stacks.forms.interface import decimal, number
from triage.stacks.model import Frame, Language, Stacks, Thread

_NAMES = ("??", "???", "n/a", "<unknown function>", "(unknown)", "<unknown>", "unknown", "(nil)", "[unknown]")
_SIGNALS = {
    "4": "SIGILL", "5": "SIGTRAP", "6": "SIGABRT", "7": "SIGBUS", "8": "SIGFPE", "9": "SIGKILL", "11": "SIGSEGV", "13": "SIGPIPE", "15": "SIGTERM",
    "Segmentation fault": "SIGSEGV", "Aborted": "SIGABRT", "Bus error": "SIGBUS", "Floating point exception": "SIGFPE",
    "Floating-point exception": "SIGFPE", "Illegal instruction": "SIGILL", "Process abort signal": "SIGABRT", "Erroneous arithmetic operation": "SIGFPE",
    "Access to an undefined portion of a memory object": "SIGBUS",
}  # fmt: skip
_LONGEST = 1 << 14
_MOST_OPEN = 64


@dataclass(frozen=True, slots=True)
class Shape:
    """A form as data. Groups of `frame`: n, addr, func, module, offset, file, line, plus, build, args,
    and who, where a prefix tells processes apart (all optional but one).

    `facts` are looked for in lines that are no frame: signal, code, address, message, error, pid, tid, command. `start`
    is how a frame begins, where
    terminals may tear it. `reverse`: the innermost frame comes last. `ends` closes the stack.
    """

    name: str
    mark: re.Pattern[str]
    frames: tuple[re.Pattern[str], ...]
    thread: re.Pattern[str] | None = None
    facts: tuple[re.Pattern[str], ...] = ()
    start: re.Pattern[str] | None = None
    ends: re.Pattern[str] | None = None
    reverse: bool = False
    first_crashed: bool = False
    language: Language = "native"
    signals: dict[str, str] = field(default_factory=dict)


@dataclass
class _Open:
    """A stack that is being read."""

    head: Thread
    frames: list[Frame] = field(default_factory=list)
    last: int = -1
    who: str = ""


class Lines:
    """Reads texts of one shape."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.name = shape.name
        self.mark = shape.mark

    def read(self, lines: Iterable[str]) -> Stacks | None:
        return _Reader(self.shape).read(lines)


class _Reader:
    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.stacks: list[_Open] = []
        self.current: _Open | None = None
        self.head: Thread | None = None
        self.facts: dict[str, str] = {}
        self.pending = ""

    def read(self, lines: Iterable[str]) -> Stacks | None:
        for line in lines:
            if self.pending:
                if self._joined(line):
                    continue
                self.pending = ""
            if self._line(line):
                continue
            start = self.shape.start
            if start is not None and start.match(line):
                self.pending = line
        return self._result()

    def _joined(self, line: str) -> bool:
        """A frame that a terminal has torn goes on here."""
        start = self.shape.start
        if not line.strip() or (start is not None and start.match(line)) or len(self.pending) > _LONGEST:
            return False
        self.pending += (
            line.strip() if not line[:1].isspace() or self.pending.endswith((" ", "/", "_")) else " " + line.strip()
        )
        if self._line(self.pending):
            self.pending = ""
        return True

    def _line(self, line: str) -> bool:
        shape = self.shape
        for pattern in shape.frames:
            match = pattern.match(line)
            if match is not None:
                self._frame(match.groupdict())
                return True
        if shape.thread is not None and (match := shape.thread.match(line)) is not None:
            self._thread(match.groupdict())
            self._facts(line)
            return True
        if shape.ends is not None and shape.ends.match(line):
            self.current = None
        self._facts(line)
        return False

    def _facts(self, line: str) -> None:
        for pattern in self.shape.facts:
            match = pattern.search(line)
            if match is not None:
                for name, value in match.groupdict().items():
                    if value and name not in self.facts:
                        self.facts[name] = value.strip()

    def _thread(self, parts: dict[str, str | None]) -> None:
        self.current = None
        self.head = Thread(
            id=parts.get("id") or "",
            tid=decimal(parts.get("tid")),
            handle=number((parts.get("handle") or "").removeprefix("0x") or None),
            name=parts.get("name") or "",
            state=parts.get("state") or "",
            crashed=bool(parts.get("crashed")),
        )

    def _frame(self, parts: dict[str, str | None]) -> None:
        frame = _frame(parts, self.shape.language)
        level = decimal(parts.get("n"))
        stack = self._stack(level, parts.get("who") or "")
        if stack.frames and level is not None and level <= stack.last:
            return  # printed twice
        stack.frames.append(frame)
        stack.last = level if level is not None else stack.last + 1

    def _stack(self, level: int | None, who: str) -> _Open:
        """The stack that a frame of this number belongs to."""
        current = self.current if self.current is None or self.current.who == who else None
        if current is not None and (
            level is None or level == current.last + 1 or (self.shape.thread is not None and level > current.last)
        ):
            return current
        if level:
            for stack in reversed(self.stacks[-_MOST_OPEN:]):
                if stack.last == level - 1 and stack.who == who:
                    self.current = stack
                    return stack
            if current is not None and level > current.last:
                return current
        self.current = _Open(self.head or Thread(), who=who)
        self.head = None
        self.stacks.append(self.current)
        return self.current

    def _result(self) -> Stacks | None:
        threads: list[Thread] = []
        for stack in self.stacks:
            frames = tuple(reversed(stack.frames)) if self.shape.reverse else tuple(stack.frames)
            if frames and not any(
                other.frames == frames and not stack.head.id for other in threads
            ):  # some print a stack twice
                threads.append(replace(stack.head, frames=frames))
        if not threads:
            return None
        facts = self.facts
        signal = facts.get("signal", "")
        signal = (
            _SIGNALS.get(signal)
            or self.shape.signals.get(signal)
            or (signal if signal.startswith("SIG") else f"SIG{signal}" if signal.isupper() else "")
        )
        threads = self._crashed(threads, signal)
        return Stacks(
            self.shape.name,
            tuple(threads),
            signal=signal,
            code=_code(facts.get("code")),
            address=number(facts["address"].removeprefix("0x"))
            if re.fullmatch(r"(?:0x)?[0-9a-f]{1,16}", facts.get("address", ""))
            else None,
            message=facts.get("message", ""),
            error=facts.get("error", ""),
            pid=decimal(facts.get("pid")),
            command=facts.get("command", ""),
        )

    def _crashed(self, threads: list[Thread], signal: str) -> list[Thread]:
        if any(thread.crashed for thread in threads):
            return threads
        tid = decimal(self.facts.get("tid"))
        mark = next((index for index, thread in enumerate(threads) if tid is not None and thread.tid == tid), None)
        if mark is None and (self.shape.first_crashed or (signal and len(threads) == 1)):
            mark = 0
        if mark is not None:
            threads[mark] = replace(threads[mark], crashed=True)
        return threads


def _code(text: str | None) -> int | None:
    if text is None:
        return None
    return int(text) if re.fullmatch(r"-?\d{1,6}", text) else None


def _frame(parts: dict[str, str | None], language: Language) -> Frame:
    function = (parts.get("func") or "").strip()
    file = (parts.get("file") or "").strip()
    if file in ("??", "<null>"):
        file = ""
    function = "" if function in _NAMES else function
    module = _module(parts.get("module"))
    offset, plus = (number((parts.get(name) or "").removeprefix("0x") or None) for name in ("offset", "plus"))
    if not function and module and offset is None:
        offset, plus = plus, None  # `lib.so(+0x12)` counts from the start of the library
    return Frame(
        function=function,
        module=module,
        offset=offset,
        address=number((parts.get("addr") or "").removeprefix("0x") or None),
        file=file,
        line=decimal(parts.get("line")) if file else None,
        args=(parts.get("args") or "").strip(),
        plus=plus,
        build_id=parts.get("build") or "",
        language=language,
    )


def _module(text: str | None) -> str:
    name = (text or "").strip()
    return "" if name in ("??", "<unknown module>", "<null>", "unknown file", "<unknown>", "n/a") else name
