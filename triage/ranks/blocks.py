"""From hits to blocks: the lines of one writer that belong together.

FORMS is the ordered list of shapes; the first whose `opens` says yes collects the block. Lines of other writers in
between are passed over,
so a traceback of rank 3 comes out whole from between the lines of 63 others.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.model.evidence import Block, Origin
from triage.ranks import backtraces, headless, pytests, tracebacks
from triage.ranks.files import origin_of
from triage.ranks.last import FINISHED, PROGRESS, STEP
from triage.ranks.shuffled import is_torn
from triage.ranks.text import Line, Text
from triage.ranks.unmix import FRAME

# How far a block may reach, in bytes of the file, lines of others included.
REACH = 1 << 19
_STAMP_REACH = 1 << 12
_HEAD_REACH = 1 << 15  # for the lines above a backtrace that say what it is about
_FEW = 8
_NEAR = 16
_BEHIND = 24
# Other ranks take a step or two more before they wait for the one that failed, never so many.
_STEPS_ON = 5
_COLOURS = lazy_re(rb"(?:\x1b\[[0-9;]*m)+")
_UNDECIDED = b"  [frames that nothing gives to one writer are left out]"
_C10D_RANK = lazy_re(r" ?\[rank\d+\]:$")
_IGNORED = lazy_re(
    r"Exception ignored in|Error in atexit\._run_exitfuncs|Error in sys\.excepthook|Exception in callback|Task exception was never retrieved"
)
_LOGGED = lazy_re(r"ERROR|WARN|CRITICAL|FATAL|xception|[Ff]ail")


@dataclass(frozen=True, slots=True)
class Collected:
    """The lines of a block, the one that says what happened, and whether writers could not be told apart. `parts`: it
    is several blocks.
    """

    lines: list[Line]
    headline: Line
    ambiguous: bool = False
    writers: int = 0
    parts: tuple[Collected, ...] = ()


@dataclass(frozen=True, slots=True)
class Form:
    name: str
    opens: Callable[[Line], bool]
    collect: Callable[[Text, Line], Collected]


def _has(*words: str) -> Callable[[Line], bool]:
    return lambda line: any(word in line.parsed.text for word in words)


def _matches(word: str, pattern: str) -> Callable[[Line], bool]:
    """Lines that hold `word` (a quick look) and match `pattern` from their start."""
    compiled = lazy_re(pattern)
    return lambda line: word in line.parsed.text and compiled.match(line.parsed.text) is not None


def _continuing(pattern: str, most: int) -> Callable[[Text, Line], Collected]:
    """A block that goes on while lines of the same writer that open no record match `pattern`."""
    compiled = lazy_re(pattern)

    def collect(text: Text, first: Line) -> Collected:
        lines = [first]
        # A record of several lines has the stamp and the `[rank3]:` of c10d on its first line only.
        stamped = _stamped(text, first)
        writer = _C10D_RANK.sub("", first.parsed.writer) if first.parsed.record and not stamped else None
        for line in same_writer(text, first, writer, gap=400):
            if (line.parsed.record and not stamped) or len(lines) >= most or not compiled.match(line.parsed.text):
                break
            lines.append(line)
        return Collected(lines, first)

    return collect


def same_writer(text: Text, first: Line, writer: str | None = None, gap: int = 4000) -> Iterator[Line]:
    """The lines after `first` by the same writer, until `gap` lines of others follow each other.

    Without a prefix, lines that have one are somebody else's.
    """
    writer = first.parsed.writer if writer is None else writer
    for line in text.lines_from(first.end, REACH, _start(first, writer), gap):
        if line.offset > first.offset and line.parsed.writer == writer:
            yield line


def _stamped(text: Text, first: Line) -> bool:
    return first.parsed.record and backtraces.stamped(first, _right_behind(text, first))


def _right_behind(text: Text, first: Line) -> Iterator[Line]:
    """The lines by the same writer among the few that follow."""
    writer = first.parsed.writer
    following = (
        line for line in text.lines_from(first.end, REACH, _start(first, writer), 400) if line.offset > first.offset
    )
    return (line for line in itertools.islice(following, _BEHIND) if line.parsed.writer == writer)


def _start(line: Line, writer: str) -> bytes:
    """What the lines of a writer start with, colours and all: most prefixes stand at the very start. Empty: anything."""
    colour = _COLOURS.match(line.data)
    start = (colour.group() if colour else b"") + writer.encode()
    return start if writer and line.data.startswith(start) else b""


def _nccl(text: Text, first: Line) -> Collected:
    """A NCCL WARN and the return-code chain (`file:line -> rc`) that the same process prints after it."""
    lines = [first]
    own = first.parsed
    pid = b":%d:" % own.origin.pid if own.origin.pid is not None else b"NCCL"
    chain = re.compile(r"NCCL INFO \S+:\d+ -> \d+")
    for line in itertools.islice(text.lines_from(first.end, REACH, _start(first, own.writer), 64), 32):
        if (
            pid in line.data
            and b"NCCL" in line.data
            and line.parsed.writer == own.writer
            and line.parsed.origin.pid == own.origin.pid
        ):
            if not chain.search(line.parsed.text) or len(lines) > 16:
                break
            lines.append(line)
    return Collected(lines, first)


def _elastic_entry(text: Text, first: Line) -> Collected:
    """One entry of torchelastic's table: the lines around `exitcode  :`."""
    before: list[Line] = []
    for line in text.lines_before(first.offset, 2048):
        if line.parsed.writer == first.parsed.writer:
            before.append(line)
            if len(before) == 5 or re.match(r"\s*\[\d+\]:", line.parsed.text):
                break
    after: list[Line] = []
    for line in same_writer(text, first):
        if len(after) == 3 or re.match(r"\s*(\[\d+\]:|[-=]{10})", line.parsed.text):
            break
        after.append(line)
    return Collected([*reversed(before), first, *after], first)


def _rendezvous(text: Text, first: Line) -> Collected:
    """What torchelastic's agent says of its workers, one setting a line; their own lines may stand between."""
    following = (
        line for line in itertools.islice(same_writer(text, first), 60) if re.match(r"\s+\w+=", line.parsed.text)
    )
    return Collected([first, *itertools.islice(following, 12)], first)


def _traceback(text: Text, first: Line) -> Collected:
    lines, headline, ambiguous = tracebacks.collect(first, same_writer(text, first), _is_hook(text, first))
    return Collected(lines, headline, ambiguous)


def _is_hook(text: Text, first: Line) -> bool:
    """Is the tag before the line that of torch's excepthook, which tags tracebacks only? Not where output before it has
    the same tag.
    """
    if "c10d rank" not in first.parsed.layers:
        return False
    before = itertools.islice(text.lines_before(first.offset, REACH >> 3, _start(first, first.parsed.writer)), _NEAR)
    same = (line.parsed for line in before if line.parsed.writer == first.parsed.writer and line.parsed.text.strip())
    nearest = next((parsed for parsed in same if not parsed.record), None)
    return nearest is None or tracebacks.is_exception(nearest.text) or nearest.text.startswith(" ")


_DIED = lazy_re(
    r"\s*(?:(?:Segmentation fault|Aborted|Bus error|Floating point exception)\b|(?:[a-z][\w$]*\.)+[\w$]+(?:Exception|Error)(?:: |$))"
)


def _stack_below(text: Text, line: Line) -> Line | None:
    """The line that opens a backtrace right behind one that names the signal or Java's exception: they are one."""
    below = next(_right_behind(text, line), None) if _DIED.match(line.parsed.text) else None
    return below if below is not None and backtraces.opens(below) else None


def _backtrace(text: Text, first: Line) -> Collected:
    head = backtraces.head(first, text.lines_before(first.offset, _HEAD_REACH, _start(first, first.parsed.writer)))
    return Collected(
        [*head, *backtraces.collect(first, same_writer(text, first, gap=400), _stamped(text, first))], first
    )


def _pytest(text: Text, first: Line) -> Collected:
    """One block a failed test: the lines that say why, far above, and the line of the summary."""
    start = _start(first, first.parsed.writer)
    above = (
        line for line in text.lines_before(first.offset, REACH, start) if line.parsed.writer == first.parsed.writer
    )
    why = pytests.reasons(above)
    parts = []
    for entry in pytests.entries(same_writer(text, first, gap=400)):
        reason = why.get(pytests.name_of(entry.parsed.text), [])
        headline = next((line for line in reason if line.parsed.text.startswith("E")), entry)
        parts.append(Collected([*reason, entry], headline))
    return Collected([first, *(line for part in parts for line in part.lines)], first, parts=tuple(parts))


_BACKTRACE = Form("backtrace", backtraces.opens, _backtrace)
FORMS: tuple[Form, ...] = (
    Form(
        "traceback",
        lambda line: tracebacks.HEADER in line.parsed.text and "C++ Traceback" not in line.parsed.text,
        _traceback,
    ),
    Form(
        "terminate",
        _matches("terminate called", "terminate called"),
        _continuing(
            r"  what\(\)|Exception raised from|frame #\d|<omitting|\s|$|CUDA kernel errors|For debugging consider|Compile with|Device-side|Search for|"
            r"Last error:|nccl\w+: ",
            80,
        ),
    ),
    Form(
        "fatal-python",
        _matches("Fatal Python", "Fatal Python error: "),
        _continuing(
            r"$|Python runtime state|Thread 0x|Current thread|  File |  \.\.\.|  <|Extension modules|  Binary file|Current C stack|<",
            400,
        ),
    ),
    Form("nccl", _has("NCCL WARN"), _nccl),
    Form("elastic", _matches("exitcode", r"\s*exitcode\s+: "), _elastic_entry),
    Form("rendezvous", _has("Rendezvous complete for workers"), _rendezvous),
    Form(
        "cann",
        _matches("", r"(?:\[PID: \d+\] (?:[\d:.-]+ )?)?(?:\w+\()?[EW][A-Z0-9]\d{4}\b"),
        _continuing(r"\s+\S|Solution:|Possible Cause:|TraceBack", 30),
    ),
    Form(
        "c10",
        lambda line: line.parsed.record and "glog" in line.parsed.layers[-1],
        _continuing(r"Exception raised from|frame #\d|<omitting|  what", 80),
    ),
    Form(
        "received-signal",
        _has("*** Process received signal ***", "==== backtrace"),
        _continuing(r"\[|=|\s*\d+ |Signal|\s", 80),
    ),
    _BACKTRACE,
    Form("pytest", pytests.opens, _pytest),
    Form("line", lambda line: True, lambda text, line: Collected([line], line)),
)


def build(
    text: Text, hits: Iterable[tuple[int, int, tuple[str, ...], int]], loose: Iterable[list[Line]] = ()
) -> Iterator[tuple[Block, int]]:
    """Blocks of one source in file order, each line in one block at most, with how many lines of its kind were only
    counted.

    `hits` are (start, end, literals in the line, lines of the kind left out), ascending. `loose` are tracebacks without
    a header; they
    come first, then what pytest sums up at its end, with the lines above that say why.
    """
    taken: set[int] = set()
    for run in loose:
        taken.update(line.offset for line in run)
        for single in _headless(run):
            yield _block(text, "traceback", single), 0
    for start, end, literals, more in sorted(
        hits, key=lambda hit: not any(pytests.SUMMARY in literal for literal in hit[2])
    ):
        for part in text.at(start, end):
            line = None if part.offset in taken else part.showing(literals)
            if line is None:
                continue
            form = next(form for form in FORMS if form.opens(line))
            if form.name == "line" and (below := _stack_below(text, line)) is not None and below.offset not in taken:
                form, line = _BACKTRACE, below
            whole = form.collect(text, line)
            collected = _without(whole, taken, line)
            parts = [_without(part, taken, part.lines[-1]) for part in whole.parts]
            taken.update(member.offset for member in collected.lines)
            for single in parts or _unmixed(collected) or [collected]:
                yield _block(text, form.name, single), more
                more = 0


def _headless(run: list[Line]) -> list[Collected]:
    """The tracebacks in frames and exception lines without a header: one where no frame comes twice, else what counting
    gives.
    """
    ends = [line for line in run if headless.is_end(line)]
    frames = [line.parsed.text.strip() for line in run if FRAME.match(line.parsed.text)]
    mixed = not run[0].parsed.writer and (len(ends) > 1 or len(set(frames)) < len(frames))
    whole = Collected(run, ends[-1], mixed)
    return _unmixed(whole) or [whole]


def _unmixed(collected: Collected) -> list[Collected]:
    """The tracebacks of several writers that run together, each once; of an ambiguous one what is common, and a line
    that says so.
    """
    if not collected.ambiguous:
        return []
    parts = []
    for found in tracebacks.unmixed(collected.lines):
        lines = [collected.lines[index] for index in found.lines]
        headline = collected.lines[found.headline]
        if not found.decided:
            lines.insert(-1, Line(headline.offset, _UNDECIDED, headline.year))
        parts.append(Collected(lines, headline, not found.decided, found.count))
    return parts


def _without(collected: Collected, taken: set[int], hit: Line) -> Collected:
    """Lines that an earlier block has stay there; `hit` is the line that is new for certain."""
    if taken.isdisjoint(line.offset for line in collected.lines):
        return collected
    lines = [line for line in collected.lines if line.offset not in taken]
    return Collected(lines, hit if collected.headline.offset in taken else collected.headline, collected.ambiguous)


def _block(text: Text, form: str, collected: Collected) -> Block:
    first, headline = collected.lines[0], collected.headline
    origin = first.parsed.origin
    aside = ""
    if form == "traceback":
        before = next(
            (line for line in text.lines_before(first.offset, 1 << 12) if line.parsed.writer == first.parsed.writer),
            None,
        )
        aside = _aside(before)
        if (
            not first.parsed.layers
            and before is not None
            and before.parsed.record
            and _LOGGED.search(before.parsed.text)
        ):
            origin = (
                before.parsed.origin
            )  # `logging.exception` writes its record first and the traceback, without a prefix, right after it
    dated = origin.time is not None
    if not dated:
        origin = dataclasses.replace(origin, time=_time_before(text, first))
    return Block(
        source=text.name,
        offset=first.offset,
        end=collected.lines[-1].end,
        headline=headline.offset,
        form=form,
        lines=tuple(line.parsed.text for line in collected.lines),
        origin=_with_inner(origin, collected.lines),
        ambiguous=collected.ambiguous or is_torn(headline.parsed.text),
        writers=collected.writers,
        aside=aside,
        dated=dated,
        goes_on=form == "traceback" and _goes_on(text, collected.lines[-1], origin, first.parsed.writer),
    )


def _aside(before: Line | None) -> str:
    """Python announces exceptions that do not end the process: in a thread, in a destructor, at exit."""
    text = before.parsed.text if before is not None else ""
    return "ignored" if _IGNORED.match(text) else "thread" if text.startswith("Exception in thread ") else ""


def _goes_on(text: Text, last: Line, origin: Origin, writer: str) -> bool:
    """Did the same rank make progress after it, so that the exception was handled? Without a rank, much progress is
    asked for.
    """
    seen = 0
    steps: set[int] = set()
    enough = 1 if origin.rank is not None or writer else 20
    # The exception may stand on <stderr> and the progress on <stdout> of the same rank.
    start = writer.partition(f"<{origin.stream}>")[0] if origin.stream else writer
    for line in itertools.islice(text.lines_from(last.end + 1, REACH, _start(last, start), 4000), 2000):
        parsed = line.parsed
        same = (
            parsed.origin.rank == origin.rank
            if origin.rank is not None and parsed.origin.rank is not None
            else parsed.writer == writer
        )
        if same and (PROGRESS.search(parsed.text) or FINISHED.search(parsed.text)):
            seen += 1
            step = STEP.search(parsed.text)
            if step is not None:
                steps.add(int(step[1]))
        if seen >= enough or len(steps) >= _STEPS_ON:
            return True
    return False


def _with_inner(origin: Origin, lines: list[Line]) -> Origin:
    """A later line of the block may know more of the same writer (a stamp line with the rank in it)."""
    for line in lines[1:4]:
        other = line.parsed.origin
        if origin.rank is None and other.rank is not None:
            origin = dataclasses.replace(origin, rank=other.rank)
    return origin


def _time_before(text: Text, line: Line) -> float | None:
    """The stamp of the nearest line before it by the same writer or rank: the block is not older than that."""
    own = line.parsed
    outermost = own.writer[: own.writer.find("]:") + 2] if "]:" in own.writer else own.writer
    rank = own.origin.rank
    for before in text.lines_before(line.offset, _STAMP_REACH, _start(line, outermost)):
        other = before.parsed
        if other.origin.time is not None and (
            other.writer == own.writer or (rank is not None and other.origin.rank == rank)
        ):
            return other.origin.time
    # The program's logger puts another prefix before its lines than `[rank3]: `.
    others = {rank, None} if rank is not None and origin_of(text.name).rank == rank else {rank}
    for before in itertools.islice(text.lines_before(line.offset, _STAMP_REACH), _FEW) if rank is not None else ():
        if before.parsed.origin.time is not None and before.parsed.origin.rank in others:
            return before.parsed.origin.time
    return None
