"""Python tracebacks in the lines of one writer: chained, grouped, with messages of many lines, or several run together.

Form: `Traceback (most recent call last):`, frames indented by two, source and caret lines by four, then `pkg.Type:
message`, whose
further lines are free text. Chained ones are joined by an empty line and one of two sentences. (CPython
Lib/traceback.py)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from triage.base.lazy_re import lazy_re
from triage.ranks.last import PROGRESS
from triage.ranks.text import Line
from triage.ranks.unmix import FRAME, Unmixed, unmix

HEADER = "Traceback (most recent call last)"
CHAINS = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
# torch.multiprocessing.spawn quotes the traceback of the process that failed: `-- Process 1 terminated with the
# following error:`
SPAWNED = "-- Process "
# `pkg.mod.Type: message` or a bare `Type`; log levels such as `INFO:` are no exceptions.
EXCEPTION = lazy_re(
    r"(?:[\w.]+\.)?(?!INFO\b|WARNING\b|DEBUG\b|ERROR\b|CRITICAL\b)[A-Z]\w*(?:\[[\w., ]+\])?(?::(?: |$)|$)"
)
_DOTTED = lazy_re(r"(?:[a-z_]\w*\.)+\w+(?::(?: |$)|$)")
# An exception group draws its members with bars, tracebacks and all, and closes them with a line.
_GROUP = "+ Exception Group Traceback"
_MEMBER = lazy_re(r"\s+\| ")
_GROUP_END = lazy_re(r"    \+-+$")
# What C++ and torchelastic's table indent as Python does its frames.
_OTHERS = lazy_re(r"\s+(?:what\(\):|exitcode\s+: )")
_MESSAGE_LINES = 400
_FOREIGN_LINES = 200


def is_exception(text: str) -> bool:
    return EXCEPTION.match(text) is not None or _DOTTED.match(text) is not None


def collect(first: Line, following: Iterator[Line], tagged: bool) -> tuple[list[Line], Line, bool]:
    """The lines of the traceback that `first` opens, its headline, and whether several writers' ran together.

    When a second header comes before the exception line, nothing tells the writers apart: all lines are kept
    and the block is ambiguous, so that nobody builds a stack from frames that no writer wrote. `tagged`: only its
    tracebacks carry the
    writer's tag, so that all lines with it belong to the message.
    """
    lines, headline = [first], first
    state = "frames"
    foreign = 0
    table = False
    opened, group = 0, _GROUP in first.parsed.text
    for line in following:
        text = line.parsed.text
        if state == "frames":
            if HEADER in text and not (group and _MEMBER.match(text)):
                return _mixed(lines, line, following)
            if _is_frame(text) and not _opens(line, first):
                lines.append(line)
                if group and text.startswith("  | ") and is_exception(text[4:]) and headline not in lines[opened + 1 :]:
                    headline = line
                if group and _GROUP_END.match(text):
                    state = "message"
            elif is_exception(text) and not _opens(line, first):
                lines.append(line)
                headline, state, foreign = line, "message", 0
                table = "ChildFailedError" in text
            elif text.strip() and (foreign := foreign + 1) > _FOREIGN_LINES:
                break
        elif state == "message":
            if text.strip() in CHAINS or text.startswith(SPAWNED):
                lines.append(line)
                state = "chain"
            elif (_goes_on(line, first, tagged, table) or _is_named(lines[-1], line)) and len(lines) < _MESSAGE_LINES:
                lines.append(line)
                table = table and not (
                    text.startswith("=====") and sum(member.parsed.text.startswith("=====") for member in lines) > 1
                )
            else:
                break
        elif HEADER in text:
            opened, group = len(lines), _GROUP in text
            lines.append(line)
            state, foreign = "frames", 0
        elif not text.strip():
            lines.append(line)
        elif (foreign := foreign + 1) > 4:
            break
    while len(lines) > 1 and not lines[-1].parsed.text.strip():
        lines.pop()
    return lines, headline, False


def _opens(line: Line, first: Line) -> bool:
    """Does the line open a record? Where somebody stamps every line, also the first, the same stamp does not make one."""
    return line.parsed.record and not (first.parsed.record and line.parsed.layers == first.parsed.layers)


def unmixed(lines: Sequence[Line]) -> list[Unmixed]:
    """The tracebacks in lines of several writers that nothing tells apart."""
    return unmix([line.parsed.text for line in lines], lambda text: HEADER in text, is_exception, CHAINS)


def _is_frame(text: str) -> bool:
    return text.startswith(("  ", "\t", "| ")) or text.strip(" ~^") == ""


def _goes_on(line: Line, first: Line, tagged: bool, table: bool) -> bool:
    """Does a line after the exception line belong to its message? A tagged writer's lines do until a record or a new
    header.
    """
    text = line.parsed.text
    if _opens(line, first) or (HEADER in text and not table):  # torchelastic's table quotes what `@record` kept
        return False
    if table:
        return True
    if PROGRESS.search(text):  # a progress bar begins with blanks too
        return False
    if tagged and not line.parsed.record:
        return True
    return not text.strip() or text.startswith(
        (" ", "\t", "Exception raised from", "frame #", "<omitting", "[", "Original exception", "nccl", "Last error")
    )


def _is_named(before: Line, line: Line) -> bool:
    """NCCL's exceptions end with `Last error:` and, on the next line, the one sentence that matters."""
    return before.parsed.text.strip() == "Last error:" and not line.parsed.record and HEADER not in line.parsed.text


def _mixed(lines: list[Line], second: Line, following: Iterator[Line]) -> tuple[list[Line], Line, bool]:
    """All lines of the tracebacks that run together, until as many exceptions as headers have been seen and no chain
    goes on.
    """
    lines.append(second)
    headline = lines[0]
    foreign = 0
    opened, ended = 2, 0
    for line in following:
        text = line.parsed.text
        if _opens(line, lines[0]):
            break
        framed = _is_frame(text) and not _OTHERS.match(text)
        fits = HEADER in text or framed or FRAME.match(text) is not None or text.strip() in CHAINS
        opened += HEADER in text
        if is_exception(text):
            headline, fits = line if headline is lines[0] else headline, True
            ended += 1
        elif ended >= opened and text.strip() and text.strip() not in CHAINS:
            break
        if fits:
            lines.append(line)
            foreign = 0
        elif (foreign := foreign + 1) > 8 or len(lines) > 20_000:
            break
    while not lines[-1].parsed.text.strip():
        lines.pop()
    return lines, headline, True
