"""The common reader of forms with one line for each frame: `LineFormat` describes a form, `LineReader` reads it.

Most forms number their frames. Where several threads write at once, a frame goes to the stack with the number before
its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field, replace

from triage.base.lazy_dataclass import dataclass
from triage.stacks.forms.interface import SIGNAL_NUMBERS, SIGNAL_TEXTS, parse_decimal, parse_hex
from triage.stacks.model import Frame, Language, Stacks, Thread

_UNKNOWN_NAMES = (
    "??",
    "???",
    "n/a",
    "<unknown function>",
    "(unknown)",
    "<unknown>",
    "unknown",
    "Unknown",
    "(nil)",
    "[unknown]",
)
_MAX_FRAME = 1 << 14
_MAX_OPEN = 64


@dataclass(frozen=True, slots=True)
class LineFormat:
    """A form as data.

    Groups of `frames`: n, addr, func, module, offset, file, line, plus, build, args, and who (a prefix that separates
    processes); all are optional. Groups of `facts`, searched in all other lines: signal, code, address, message, error,
    pid, tid, command. `start` matches the beginning of a frame that a terminal may have wrapped, `ends` closes a stack.
    `reverse`: the innermost frame comes last.
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
    """A stack while it is read; `last` is the number of its last frame."""

    head: Thread
    frames: list[Frame] = field(default_factory=list)
    last: int = -1
    tag: str = ""


class LineReader:
    """Reads texts of one format."""

    def __init__(self, format_: LineFormat) -> None:
        self.format = format_
        self.name = format_.name
        self.mark = format_.mark

    def read(self, lines: Iterable[str]) -> Stacks | None:
        """Return the stacks in the lines, None for none."""
        return _Reader(self.format).read(lines)


class _Reader:
    """Reads one text; `pending` is a frame that may continue in the next line."""

    def __init__(self, format_: LineFormat) -> None:
        self.format = format_
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
            start = self.format.start
            if start is not None and start.match(line):
                self.pending = line
        return self._result()

    def _joined(self, line: str) -> bool:
        """Whether the line continues a frame that a terminal has wrapped."""
        start = self.format.start
        if not line.strip() or (start is not None and start.match(line)) or len(self.pending) > _MAX_FRAME:
            return False
        self.pending += (
            line.strip() if not line[:1].isspace() or self.pending.endswith((" ", "/", "_")) else " " + line.strip()
        )
        if self._line(self.pending):
            self.pending = ""
        return True

    def _line(self, line: str) -> bool:
        format_ = self.format
        for pattern in format_.frames:
            match = pattern.match(line)
            if match is not None:
                self._frame(match.groupdict())
                return True
        if format_.thread is not None and (match := format_.thread.match(line)) is not None:
            self._thread(match.groupdict())
            self._facts(line)
            return True
        if format_.ends is not None and format_.ends.match(line):
            self.current = None
        self._facts(line)
        return False

    def _facts(self, line: str) -> None:
        for pattern in self.format.facts:
            match = pattern.search(line)
            if match is not None:
                for name, value in match.groupdict().items():
                    if value and name not in self.facts:
                        self.facts[name] = value.strip()

    def _thread(self, parts: dict[str, str | None]) -> None:
        self.current = None
        self.head = Thread(
            id=parts.get("id") or "",
            tid=parse_decimal(parts.get("tid")),
            handle=parse_hex((parts.get("handle") or "").removeprefix("0x") or None),
            name=parts.get("name") or "",
            state=parts.get("state") or "",
            crashed=bool(parts.get("crashed")),
        )

    def _frame(self, parts: dict[str, str | None]) -> None:
        frame = _frame(parts, self.format.language)
        level = parse_decimal(parts.get("n"))
        stack = self._stack(level, parts.get("who") or "")
        if stack.frames and level is not None and level <= stack.last:
            return  # printed twice
        stack.frames.append(frame)
        stack.last = level if level is not None else stack.last + 1

    def _stack(self, level: int | None, tag: str) -> _Open:
        """The stack of a frame with this number, a new one for the first frame."""
        current = self.current if self.current is None or self.current.tag == tag else None
        if current is not None and (
            level is None or level == current.last + 1 or (self.format.thread is not None and level > current.last)
        ):
            return current
        if level:
            for stack in reversed(self.stacks[-_MAX_OPEN:]):
                if stack.last == level - 1 and stack.tag == tag:
                    self.current = stack
                    return stack
            if current is not None and level > current.last:
                return current
        self.current = _Open(self.head or Thread(), tag=tag)
        self.head = None
        self.stacks.append(self.current)
        return self.current

    def _result(self) -> Stacks | None:
        threads: list[Thread] = []
        for stack in self.stacks:
            frames = tuple(reversed(stack.frames)) if self.format.reverse else tuple(stack.frames)
            is_repeated = any(other.frames == frames and not stack.head.id for other in threads)
            if frames and not is_repeated:  # some programs print a stack twice
                threads.append(replace(stack.head, frames=frames))
        if not threads:
            return None
        facts, signal = self.facts, self._signal()
        address = facts.get("address", "")
        return Stacks(
            self.format.name,
            tuple(self._crashed(threads, signal)),
            signal=signal,
            code=_code(facts.get("code")),
            address=parse_hex(address) if re.fullmatch(r"(?:0x)?[0-9a-f]{1,16}", address) else None,
            message=facts.get("message", ""),
            error=facts.get("error", ""),
            pid=parse_decimal(facts.get("pid")),
            command=facts.get("command", ""),
        )

    def _signal(self) -> str:
        """The name of the signal, from its number or text."""
        text = self.facts.get("signal", "")
        known = SIGNAL_NUMBERS.get(text) or SIGNAL_TEXTS.get(text) or self.format.signals.get(text)
        return known or (text if text.startswith("SIG") else f"SIG{text}" if text.isupper() else "")

    def _crashed(self, threads: list[Thread], signal: str) -> list[Thread]:
        """The threads, with a mark on the one that crashed."""
        if any(thread.crashed for thread in threads):
            return threads
        tid = parse_decimal(self.facts.get("tid"))
        mark = next((index for index, thread in enumerate(threads) if tid is not None and thread.tid == tid), None)
        if mark is None and (self.format.first_crashed or (signal and len(threads) == 1)):
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
    if file in ("??", "<null>", "Unknown"):
        file = ""
    function = "" if function in _UNKNOWN_NAMES else function
    module = _module(parts.get("module"))
    offset, plus = (parse_hex((parts.get(name) or "").removeprefix("0x") or None) for name in ("offset", "plus"))
    if not function and module and offset is None:
        offset, plus = plus, None  # `lib.so(+0x12)` is an offset from the start of the library
    return Frame(
        function=function,
        module=module,
        offset=offset,
        address=parse_hex((parts.get("addr") or "").removeprefix("0x") or None),
        file=file,
        line=parse_decimal(parts.get("line")) if file else None,
        args=(parts.get("args") or "").strip(),
        plus=plus,
        build_id=parts.get("build") or "",
        language=language,
    )


def _module(text: str | None) -> str:
    name = (text or "").strip()
    return "" if name in ("??", "<unknown module>", "<null>", "unknown file", "<unknown>", "n/a") else name
