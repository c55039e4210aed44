"""Python's own stacks: faulthandler (with the C stack of 3.14) and pystack.

The frames of faulthandler have no comma before `in`; those of a traceback have one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from triage.base.lazy_re import lazy_re
from triage.stacks.forms.interface import SIGNAL_TEXTS, parse_decimal, parse_hex
from triage.stacks.forms.lines import LineFormat, LineReader
from triage.stacks.model import Frame, Stacks, Thread

_FATAL = lazy_re(r"Fatal Python error: (?P<message>.*)")
_THREAD = lazy_re(
    r"(?P<current>Current thread|Thread) (?P<handle>0x[0-9a-f]+)(?: \[(?P<name>[^\]]*)\])?(?: \("
    r"(?P<state>[^)]*)\))? ?\(most recent call first\):|"
    r"Stack \(most recent call first\):|(?P<current2>Current thread|Thread) (?P<handle2>0x[0-9a-f]+)"
)
_FRAME = lazy_re(r'\s+File "(?P<file>[^"]*)", line (?P<line>\d+) in (?P<function>.*\S)')
_C_STACK = lazy_re(r"Current thread's C stack trace \(most recent call first\):")
_C_FRAME = lazy_re(
    r'\s+Binary file "(?P<module>[^"]*)"(?:, at (?P<func>[^+\s]*)(?:\+(?P<plus>0x[0-9a-f]+))?)? \['
    r"(?P<addr>0x[0-9a-f]+)\]"
)


class FaultHandler:
    """Stacks of all Python threads, printed by `faulthandler`."""

    name = "faulthandler"
    mark = lazy_re(
        r"^\s*(?:Fatal Python error: |(?:Current thread|Thread) 0x[0-9a-f]+ .*\(most recent call first\)|"
        r"Stack \(most recent call first\)|"
        r"Current thread's C stack)",
        re.MULTILINE,
    )

    def read(self, lines: Iterable[str]) -> Stacks | None:
        """Return the stacks in the lines, None for none."""
        threads: list[Thread] = []
        native: list[Frame] = []
        frames: list[Frame] | None = None
        into_native = False
        message = ""
        for line in lines:
            head = _THREAD.match(line.lstrip()) if "hread 0x" in line or "Stack (most" in line else None
            if head is not None:
                frames = []
                threads.append(_thread(head))
                into_native = False
            elif (match := _FRAME.match(line)) is not None and frames is not None:
                frames.append(
                    Frame(match["function"], file=match["file"], line=parse_decimal(match["line"]), language="python")
                )
                threads[-1] = replace(threads[-1], frames=tuple(frames))
            elif (match := _C_FRAME.match(line)) is not None and into_native:
                native.append(_native(match))
            elif _C_STACK.match(line.strip()):
                into_native = True
            elif (match := _FATAL.search(line)) is not None:
                message = message or match["message"].strip()
        return self._result([thread for thread in threads if thread.frames or thread.crashed], native, message)

    def _result(self, threads: list[Thread], native: list[Frame], message: str) -> Stacks | None:
        current = next((index for index, thread in enumerate(threads) if thread.crashed), None)
        if native:
            if current is None:
                threads.insert(0, Thread(crashed=True))
                current = 0
            threads[current] = replace(threads[current], frames=(*native, *threads[current].frames))
        signal = next((name for text, name in SIGNAL_TEXTS.items() if message.startswith(text)), "")
        if not message:  # a dump on request (a timer, a signal): nothing crashed
            threads = [replace(thread, crashed=bool(native) and thread.crashed) for thread in threads]
        if not any(thread.frames for thread in threads):
            return None
        return Stacks(
            "faulthandler",
            tuple(threads),
            signal=signal or ("SIGABRT" if message else ""),
            message=message if not signal else "",
            error="",
        )


def _thread(head: re.Match[str]) -> Thread:
    return Thread(
        handle=parse_hex((head["handle"] or head["handle2"] or "").removeprefix("0x")),
        name=head["name"] or "",
        state=head["state"] or "",
        crashed=(head["current"] or head["current2"]) == "Current thread",
    )


def _native(match: re.Match[str]) -> Frame:
    """A C frame; without a function the number after `+` is the offset in the file."""
    plus = parse_hex((match["plus"] or "").removeprefix("0x") or None)
    named = bool(match["func"])
    return Frame(
        match["func"] or "",
        match["module"],
        offset=None if named else plus,
        address=parse_hex(match["addr"].removeprefix("0x")),
        plus=plus if named else None,
    )


_PYSTACK = LineReader(
    LineFormat(
        name="pystack",
        mark=lazy_re(r"^\s*\((?:C|Python)\) File \"", re.MULTILINE),
        frames=(
            lazy_re(
                r"\s*\(C\) File \"(?P<file>[^\"]*)\", line (?P<line>\d+), in (?P<func>.+?)(?: \("
                r"(?P<module>[^()]+)\))?\s*$"
            ),
            lazy_re(r"\s*\(Python\) File \"(?P<file>[^\"]*)\", line (?P<line>\d+), in (?P<func>.+?)(?P<module>)\s*$"),
        ),
        thread=lazy_re(r"Traceback for thread (?P<tid>\d+)(?: \((?P<name>[^)]*)\))? \[(?P<state>[^\]]*)\]"),
        facts=(
            lazy_re(
                r"The process died due (?:to )?receiving signal (?P<signal>SIG\w+)(?:.*address: "
                r"(?P<address>0x[0-9a-fA-F]+))?"
            ),
            lazy_re(r"^pid: (?P<pid>\d+)"),
            lazy_re(r"arguments: (?P<command>.*\S)"),
        ),
        reverse=True,
    )
)


class PyStack:
    """pystack's text: native and Python frames in one stack, the innermost last."""

    name = "pystack"
    mark = _PYSTACK.mark

    def read(self, lines: Iterable[str]) -> Stacks | None:
        """Return the stacks in the lines, None for none."""
        text = list(lines)
        stacks = _PYSTACK.read(text)
        if stacks is None:
            return None
        python = {
            (match[1], match[2])
            for line in text
            if (match := re.match(r'\s*\(Python\) File "([^"]*)", line (\d+)', line))
        }
        threads = tuple(
            replace(
                thread,
                state="active+gil" if "Has the GIL" in thread.state else thread.state,
                frames=tuple(
                    replace(frame, language="python")
                    if (frame.file, str(frame.line)) in python and not frame.module
                    else frame
                    for frame in thread.frames
                ),
            )
            for thread in stacks.threads
        )
        return replace(stacks, threads=threads)
