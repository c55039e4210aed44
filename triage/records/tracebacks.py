"""Collect Python tracebacks from the lines of one writer: chained ones, groups, long messages, and mixed ones.

Form: `Traceback (most recent call last):`, frames indented by two blanks, source and caret lines by four, then
`pkg.Type: message`, whose further lines are free text. Chained tracebacks are joined by an empty line and one of two
sentences (CPython Lib/traceback.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from triage.base.lazy_re import lazy_re
from triage.records.activity import PROGRESS
from triage.records.deinterleave import FRAME, SharedTraceback, deinterleave_tracebacks
from triage.records.text import Line

HEADER = "Traceback (most recent call last)"
CHAINS = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
# torch.multiprocessing.spawn quotes the traceback of the failed process behind
# `-- Process 1 terminated with the following error:`.
_SPAWNED = "-- Process "
# `ray.exceptions.RayTaskError(ValueError): ray::Trainer.fit() (pid=412, ip=10.0.0.7)` stands between the frames of the
# driver and those of the worker.
_RAISED_AGAIN = "): ray::"
# `pkg.mod.Type: message` or a bare `Type`; log levels such as `INFO:` are not exceptions.
_EXCEPTION = lazy_re(
    r"(?:[\w.]+\.)?(?!INFO\b|WARNING\b|DEBUG\b|ERROR\b|CRITICAL\b)[A-Z]\w*(?:\[[\w., ]+\])?(?::(?: |$)|$)"
)
_DOTTED = lazy_re(r"(?:[a-z_]\w*\.)+\w+(?::(?: |$)|$)")
# An exception group draws bars before the tracebacks of its members, and a line behind the last one.
_GROUP = "+ Exception Group Traceback"
_MEMBER = lazy_re(r"\s+\| ")
_GROUP_END = lazy_re(r"    \+-+$")
# Lines of C++ and of torchelastic's table that are indented like Python frames.
_INDENTED_OTHERS = lazy_re(r"\s+(?:what\(\):|exitcode\s+: )")
# Lines that continue the message of an exception; the last are those of XLA's list of tasks, what gRPC adds, and the
# exception of the other side of Py4J.
_MESSAGE_STARTS = (
    *(" ", "\t", "Exception raised from", "frame #", "<omitting", "[", "Original exception", "nccl", "Last error"),
    *("/job:", "Additional GRPC error information", ": "),
)
# NCCL's reason, and the blocks of Tenstorrent's: the sentence stands in the next line.
_LABEL = lazy_re(r"Last error:|[a-z]{3,20}:")
# A named detail of a message: `details = "fenced since epoch 7"`.
_DETAIL = lazy_re(r"\s+[a-z]\w{1,40} = ")
_MESSAGE_LINES = 400
_OTHER_LINES = 200
# A message may have lines of any form: they belong to it where a sentence that joins exceptions stands behind so many.
_LINES_BEFORE_JOINT = 40
# torch quotes the traceback of a DataLoader's worker so (torch/_utils.py, ExceptionWrapper).
_ORIGINAL = "Original "
# pydantic names the field between `1 validation error for Spec` and the reason: `parallel -> tensor`.
_FIELD = lazy_re(r"[\w.\[\]-]{1,120}(?: -> [\w.\[\]-]{1,120}){0,20}$")
_FIELDS_FOLLOW = lazy_re(r"validation errors? for [\w. \[\],]{1,120}$")
# PaddlePaddle ends the exception line behind the colon; the stack of C++ and, in the last section, the message follow.
NATIVE_SECTION = lazy_re(r"C\+\+ (?:Traceback|Call Stacks) \(")
_SUMMARY = "Error Message Summary:"
_SECTION = lazy_re(rf"-{{10,}}$|{NATIVE_SECTION.pattern}|Python Call Stacks \(|{_SUMMARY}$")
_NATIVE_FRAME = lazy_re(r"\d{1,3} {1,3}\S")
# Files that are no part of the job's own code. Compiled modules of libraries name theirs without a directory of the
# machine: `pyarrow/error.pxi`.
LIBRARY = lazy_re(
    r"^[^/][^\n]*\.p(?:yx|xi|xd)$|site-packages|dist-packages|/lib/python\d|<frozen|<string>|/opt/conda/lib|\btorch/distributed/"
)
_OUTERMOST = lazy_re(r'\s*File "(?P<file>[^"]+)", line \d+, in (?P<function>.+)')


def is_exception(text: str) -> bool:
    """Is it the exception line of a traceback: `pkg.Type: message` or a bare `Type`?"""
    return _EXCEPTION.match(text) is not None or _DOTTED.match(text) is not None


def is_caught(lines: Sequence[str]) -> bool:
    """Whether the job's own code caught the exception of a traceback, and printed it.

    The outermost frame of an exception that ends a program or a thread is `<module>`, or of what started it; that of a
    caught one is the function that caught it. Of a chain the last traceback counts. What a launcher or a parent process
    quotes of another one begins in the function that it ran there, and was not caught by the job.
    """
    headers = [index for index, line in enumerate(lines) if HEADER in line]
    above = next(filter(None, (line.strip() for line in reversed(lines[: headers[-1]]))), "") if headers else ""
    if above and above not in CHAINS:
        return False
    below = filter(str.strip, lines[headers[-1] + 1 :]) if headers else ()
    outermost = _OUTERMOST.match(next(iter(below), ""))
    if outermost is None or outermost["function"] == "<module>":
        return False
    # Ray's workers are started by compiled code: `File "python/ray/_raylet.pyx"`.
    return not outermost["file"].endswith(".pyx") and not LIBRARY.search(outermost["file"])


def collect(first: Line, following: Iterator[Line], is_tagged: bool) -> tuple[list[Line], Line, bool]:
    """Return the lines of the traceback that `first` opens, its headline, and whether it is ambiguous.

    When a second header comes before the exception line, nothing separates the writers: all lines are returned as
    ambiguous, so that no stack is built from frames that no writer wrote. `is_tagged`: the writer tags only its
    tracebacks, so that all lines with the tag belong to the message.
    """
    lines, headline = [first], first
    state, others, in_table = "frames", 0, False
    opened, in_group = 0, _GROUP in first.parsed.text
    margin = measure_margin(first.parsed.text)
    pending: list[Line] = []
    for line in following:
        text = without_margin(line.parsed.text, margin)
        if state == "frames":
            if HEADER in text and not (in_group and _MEMBER.match(text)):
                return _collect_mixed(lines, line, following)
            if _is_frame(text) and not _opens_record(line, first):
                lines.append(line)
                is_member_exception = in_group and text.startswith("  | ") and is_exception(text[4:])
                if is_member_exception and headline not in lines[opened + 1 :]:
                    headline = line
                if in_group and _GROUP_END.match(text):
                    state = "message"
            elif is_exception(text) and not _opens_record(line, first):
                lines.append(line)
                headline, state, others = line, "message", 0
                in_table = "ChildFailedError" in text
            elif _RAISED_AGAIN in text and not _opens_record(line, first):
                lines.append(line)
            elif text.strip() and (others := others + 1) > _OTHER_LINES:
                break
        elif state == "message":
            if text.strip() in CHAINS or text.startswith(_SPAWNED):
                lines += [*pending, line]
                state, pending = "chain", []
            elif not in_table and not pending and _opens_quote(lines[-1], text) and not _opens_record(line, first):
                opened, margin = len(lines), margin + measure_margin(text)
                lines.append(line)
                state, others = "frames", 0
            elif not pending and (
                _extends(lines, line, text, first, is_tagged, in_table) or _is_below(lines, headline, line, first)
            ):
                lines.append(line)
                in_table = in_table and not (text.startswith("=====") and _count_rulers(lines) > 1)
            elif _may_precede_joint(line, first) and len(pending) < _LINES_BEFORE_JOINT:
                pending.append(line)
            else:
                break
        elif HEADER in text:
            opened, in_group = len(lines), _GROUP in text
            lines.append(line)
            state, others = "frames", 0
        elif not text.strip():
            lines.append(line)
        elif (others := others + 1) > 4:
            break
    while len(lines) > 1 and not lines[-1].parsed.text.strip():
        lines.pop()
    return lines, headline, False


def deinterleave_lines(lines: Sequence[Line]) -> list[SharedTraceback]:
    """Return the tracebacks in the mixed lines of several writers."""
    texts = [line.parsed.text for line in lines]
    return deinterleave_tracebacks(texts, lambda text: HEADER in text, is_exception, CHAINS)


def _count_rulers(lines: Sequence[Line]) -> int:
    return sum(line.parsed.text.startswith("=====") for line in lines)


def _opens_record(line: Line, first: Line) -> bool:
    """Does the line open a new record? Not where every line has the same timestamp prefix, the first one too."""
    return line.parsed.opens_record and not (first.parsed.opens_record and line.parsed.layers == first.parsed.layers)


def _is_frame(text: str) -> bool:
    is_indented = text.startswith(("  ", "\t", "| ")) and not _INDENTED_OTHERS.match(text)
    return is_indented or text.strip(" ~^") == ""


def measure_margin(header: str) -> int:
    """Return how many blanks stand before a header, and so before all lines of a quoted traceback."""
    text = header.lstrip(" ")
    return len(header) - len(text) if text.startswith(HEADER) else 0


def without_margin(text: str, margin: int) -> str:
    """Return a line of a quoted traceback without the blanks that stand before all its lines."""
    return text[margin:] if margin and not text[:margin].strip(" ") else text


def _opens_quote(before: Line, text: str) -> bool:
    """Is it the header of a traceback that a message quotes: `TaskFailed: rank 4 failed:`, then the traceback?"""
    if not text.lstrip(" ").removeprefix(_ORIGINAL).startswith(HEADER):
        return False
    return text.startswith((" ", _ORIGINAL)) or before.parsed.text.rstrip().endswith(":")


def _may_precede_joint(line: Line, first: Line) -> bool:
    return not (_opens_record(line, first) or HEADER in line.parsed.text or PROGRESS.search(line.parsed.text))


def _extends(lines: Sequence[Line], line: Line, text: str, first: Line, is_tagged: bool, in_table: bool) -> bool:
    if len(lines) >= _MESSAGE_LINES:
        return False
    is_field = _FIELD.match(text) is not None and any(
        _FIELDS_FOLLOW.search(other.parsed.text.rstrip()) for other in lines[-_LINES_BEFORE_JOINT:]
    )
    return (
        _continues_message(line, text, first, is_tagged, in_table)
        or _is_labelled(lines[-1], line)
        or (is_field and not _opens_record(line, first))
    )


def _continues_message(line: Line, text: str, first: Line, is_tagged: bool, in_table: bool) -> bool:
    """Does a line after the exception line belong to its message?

    Lines of a tagged writer do, until a record or a new header.
    """
    # torchelastic's table quotes the tracebacks that `@record` stored.
    if _opens_record(line, first) or (HEADER in text and not in_table):
        return False
    if in_table:
        return True
    if PROGRESS.search(text) and not _DETAIL.match(text):  # a progress bar begins with blanks too
        return False
    if is_tagged and not line.parsed.opens_record:
        return True
    return not text.strip() or text.startswith(_MESSAGE_STARTS)


def _is_labelled(before: Line, line: Line) -> bool:
    """Is it a label on a line of its own below an exception, or the line behind one?"""
    is_plain = not line.parsed.opens_record and HEADER not in line.parsed.text
    return is_plain and any(_LABEL.fullmatch(one.parsed.text.strip()) for one in (before, line))


def _is_below(lines: Sequence[Line], headline: Line, line: Line, first: Line) -> bool:
    """Does it belong to sections or paragraphs below a headline that ends in a colon?"""
    return _adds_section(lines, headline, line, first) or _is_of_paragraphs(lines, headline, line, first)


def _adds_section(lines: Sequence[Line], headline: Line, line: Line, first: Line) -> bool:
    """Is it a line of the sections behind an exception of PaddlePaddle, up to the message in the last of them?"""
    text = line.parsed.text.rstrip()
    if not headline.parsed.text.rstrip().endswith(":") or _opens_record(line, first) or len(lines) >= _MESSAGE_LINES:
        return False
    sections = [other.parsed.text.rstrip() for other in lines[lines.index(headline) + 1 :]]
    if _SUMMARY not in sections:
        return _SECTION.match(text) is not None or (
            _NATIVE_FRAME.match(text) is not None and any(map(NATIVE_SECTION.match, sections))
        )
    message = [other for other in sections[sections.index(_SUMMARY) + 1 :] if other]
    # The message, and where it begins with a bare name (`ResourceExhaustedError:`) the first line behind it.
    return len(message) <= 1 or (len(message) == 2 and message[-1].endswith(":"))


def _is_of_paragraphs(lines: Sequence[Line], headline: Line, line: Line, first: Line) -> bool:
    """Is it a line of the paragraphs below a heading: `UnavailableError: Graph execution error:` and an empty line?"""
    if not headline.parsed.text.rstrip().endswith(":") or not _may_precede_joint(line, first):
        return False
    below = [other.parsed.text.strip() for other in lines[lines.index(headline) + 1 :]]
    has_sections = any(map(_SECTION.match, [*below, line.parsed.text.strip()]))
    return below[:1] == [""] and len(below) < _LINES_BEFORE_JOINT and not has_sections


def _collect_mixed(lines: list[Line], second: Line, following: Iterator[Line]) -> tuple[list[Line], Line, bool]:
    """Return all lines of tracebacks that run together, until each header has its exception and no chain continues.

    They have one headline each: `deinterleave_lines` finds them.
    """
    lines.append(second)
    others = 0
    opened, ended = 2, 0
    for line in following:
        text = line.parsed.text
        if _opens_record(line, lines[0]):
            break
        belongs = HEADER in text or _is_frame(text) or FRAME.match(text) is not None or text.strip() in CHAINS
        opened += HEADER in text
        if is_exception(text):
            belongs = True
            ended += 1
        elif ended >= opened and text.strip() and text.strip() not in CHAINS:
            break
        if belongs:
            lines.append(line)
            others = 0
        elif (others := others + 1) > 8 or len(lines) > 20_000:
            break
    while not lines[-1].parsed.text.strip():
        lines.pop()
    return lines, lines[0], True
