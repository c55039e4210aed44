"""Group lines into blocks: the lines of one writer that belong together, such as a traceback.

FORMS is the ordered list of shapes. The first form that a line opens collects the block. Lines of other writers are
skipped, so the traceback of rank 3 comes out whole from between the lines of 63 other ranks.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator

from triage.base.lazy_dataclass import dataclass, replace
from triage.base.lazy_re import lazy_re
from triage.model.evidence import Block, Origin
from triage.records import backtraces, headerless, panics, pytests, ras_lines, tracebacks
from triage.records.deinterleave import FRAME, has_repeated_exception_name
from triage.records.later_progress import Sequel, read_sequel
from triage.records.text import REACH, STAMP_REACH, Line, Text, find_time_before

Named = tuple[int, int, tuple[str, ...], int]
"""Start and end of a hit line, the literals in it, and how many lines of its kind the scan dropped."""

_HEADING_REACH = 1 << 15
_NEAR_BEFORE = 16
_NEAR_BEHIND = 24
_GAP = 400  # lines of others in a row
_INCOMPLETE = b"  [frames that cannot be attributed to one writer are left out]"
_C10D_RANK = lazy_re(r" ?\[rank\d+\]:$")
IGNORED = lazy_re(
    r"Exception ignored in|Error in atexit\._run_exitfuncs|Error in sys\.excepthook|Exception in callback|"
    r"Task exception was never retrieved"
)
_LOGGED = lazy_re(r"ERROR|WARN|CRITICAL|FATAL|xception|[Ff]ail")
_NPU_ERROR_CODE = lazy_re(r"ERR\d{5} ")
_LOGGED_AS_ERROR = lazy_re(r"\b(?:ERROR|CRITICAL|FATAL)\b")


@dataclass(frozen=True, slots=True)
class CollectedLines:
    """The lines of a block, and the headline that says what happened.

    `ambiguous`: the lines of several writers could not be separated. `writers`: how many printed this traceback.
    `parts`: these are several blocks.
    """

    lines: list[Line]
    headline: Line
    ambiguous: bool = False
    writers: int = 0
    parts: tuple[CollectedLines, ...] = ()


@dataclass(frozen=True, slots=True)
class BlockForm:
    """A shape of blocks: which lines open one, and how its lines are collected."""

    name: str
    is_opened_by: Callable[[Line], bool]
    collect: Callable[[Text, Line], CollectedLines]


# The entries of a list below a line that ends in a colon: `Missing key(s) in state_dict: …`, `/job:jax_worker/task:3`,
# numbers of tasks.
_ENTRY = lazy_re(r"\s+\S|- \S|/\S+$|\d{1,7}(?:, ?\d{1,7}){0,200}$")
_MOST_ENTRIES, _FEWEST_BLANKS = 12, 3


def _contains(*literals: str) -> Callable[[Line], bool]:
    return lambda line: any(literal in line.parsed.text for literal in literals)


def _matches(literal: str, pattern: str) -> Callable[[Line], bool]:
    """Make a check for lines that hold `literal` (a quick test) and match `pattern` from their start."""
    compiled = lazy_re(pattern)
    return lambda line: literal in line.parsed.text and compiled.match(line.parsed.text) is not None


def _collect_while(pattern: str, most: int) -> Callable[[Text, Line], CollectedLines]:
    """Make a function that collects lines of the same writer while they open no record and match `pattern`, or are
    entries of the list that the first line announces.
    """
    compiled = lazy_re(pattern)

    def collect(text: Text, first: Line) -> CollectedLines:
        announces, own = _announces(first), first.parsed.writer

        def lines_of(writer: str, *, ends_at_record: bool) -> list[Line]:
            lines = [first]
            for line in same_writer(text, first, writer, gap=_GAP):
                is_entry = announces and len(lines) <= _MOST_ENTRIES and _ENTRY.match(line.parsed.text) is not None
                belongs = is_entry or compiled.match(line.parsed.text) is not None
                if not belongs or (ends_at_record and line.parsed.opens_record) or len(lines) >= most:
                    break
                lines.append(line)
            return lines

        if not first.parsed.opens_record:
            return CollectedLines(lines_of(own, ends_at_record=True), first)
        # A record of several lines has the timestamp and the `[rank3]:` of c10d on its first line only, unless a
        # collector stamped every line.
        as_record = lines_of(_C10D_RANK.sub("", own), ends_at_record=True)
        as_stamped = lines_of(own, ends_at_record=False)
        if len(as_record) == len(as_stamped) == 1:
            return CollectedLines([first], first)
        return CollectedLines(as_stamped if _is_stamped(text, first) else as_record, first)

    return collect


def _collect_list(text: Text, hit: Line) -> CollectedLines:
    """Collect a line with the entries of the list that it announces, or that it stands in."""
    first = _line_announcing(text, hit) if hit.parsed.text[:1].isspace() else hit
    if first is None or not _announces(first):
        return CollectedLines([hit], hit)
    lines = _COLLECT_ENTRIES(text, first).lines
    return CollectedLines(lines, first) if hit.offset in {line.offset for line in lines} else CollectedLines([hit], hit)


def _line_announcing(text: Text, entry: Line) -> Line | None:
    """Return the line that announces the list in which an entry stands."""
    writer = entry.parsed.writer
    before = text.lines_before(entry.offset, _HEADING_REACH, entry.start_of(writer))
    own = (line for line in itertools.islice(before, _GAP) if line.parsed.writer == writer)
    return next((line for line in itertools.islice(own, _MOST_ENTRIES) if not _ENTRY.match(line.parsed.text)), None)


def _announces(line: Line) -> bool:
    """Whether a line is a sentence that announces a list; the heading of a part of a document is shorter."""
    text = line.parsed.text.rstrip()
    return text.endswith(":") and text.count(" ") >= _FEWEST_BLANKS


def same_writer(text: Text, first: Line, writer: str | None = None, gap: int = 4000) -> Iterator[Line]:
    """Yield the lines after `first` by its writer (if it has no prefix: without one), until `gap` lines of others."""
    writer = first.parsed.writer if writer is None else writer
    start, others = first.start_of(writer), 0
    if not start:
        yield from (line for line in text.lines_of(writer, first.end, REACH, gap) if line.offset > first.offset)
        return
    for line in text.lines_from(first.end, REACH, start, gap):
        if line.offset > first.offset and line.parsed.writer == writer:
            others = 0
            yield line
        elif (others := others + 1) > gap:
            return


def _is_stamped(text: Text, first: Line) -> bool:
    return first.parsed.opens_record and backtraces.has_stamp_on_every_line(first, _lines_behind(text, first))


def _lines_behind(text: Text, first: Line) -> Iterator[Line]:
    """Yield the lines by the same writer among the next few."""
    writer = first.parsed.writer
    following = text.lines_from(first.end, REACH, first.start_of(writer), _GAP)
    near = itertools.islice((line for line in following if line.offset > first.offset), _NEAR_BEHIND)
    return (line for line in near if line.parsed.writer == writer)


def _collect_nccl(text: Text, first: Line) -> CollectedLines:
    """Collect a NCCL WARN and the chain of return codes (`file:line -> rc`) that the same process prints after it."""
    lines = [first]
    own = first.parsed
    pid = b":%d:" % own.origin.pid if own.origin.pid is not None else b"NCCL"
    chain = re.compile(r"NCCL INFO \S+:\d+ -> \d+")
    for line in itertools.islice(text.lines_from(first.end, REACH, first.start_of(own.writer), 64), 32):
        if (
            pid in line.data
            and b"NCCL" in line.data
            and line.parsed.writer == own.writer
            and line.parsed.origin.pid == own.origin.pid
        ):
            if not chain.search(line.parsed.text) or len(lines) > 16:
                break
            lines.append(line)
    return CollectedLines(lines, first)


def _collect_elastic_entry(text: Text, first: Line) -> CollectedLines:
    """Collect one entry of torchelastic's failure table: the lines around `exitcode  :`."""
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
    return CollectedLines([*reversed(before), first, *after], first)


def _collect_rendezvous(text: Text, first: Line) -> CollectedLines:
    """Collect what torchelastic's agent prints about its workers, one setting per line between the workers' lines."""
    near = itertools.islice(same_writer(text, first), 60)
    settings = (line for line in near if re.match(r"\s+\w+=", line.parsed.text))
    return CollectedLines([first, *itertools.islice(settings, 12)], first)


def _collect_traceback(text: Text, first: Line) -> CollectedLines:
    return CollectedLines(*tracebacks.collect(first, same_writer(text, first), _is_tagged_by_torch(text, first)))


def _is_tagged_by_torch(text: Text, first: Line) -> bool:
    """Does torch's excepthook write the tag before the line? It tags tracebacks only, and no output before them."""
    if "c10d rank" not in first.parsed.layers:
        return False
    before = text.lines_before(first.offset, REACH >> 3, first.start_of(first.parsed.writer))
    near = (line.parsed for line in itertools.islice(before, _NEAR_BEFORE))
    same = (parsed for parsed in near if parsed.writer == first.parsed.writer and parsed.text.strip())
    nearest = next((parsed for parsed in same if not parsed.opens_record), None)
    return nearest is None or tracebacks.is_exception(nearest.text) or nearest.text.startswith(" ")


_NAMES_SIGNAL = lazy_re(
    r"\s*(?:(?:Segmentation fault|Aborted|Bus error|Floating point exception)\b|"
    r"(?:[a-z][\w$]*\.)+[\w$]+(?:Exception|Error)(?:: |$))"
)


def _backtrace_behind(text: Text, line: Line) -> Line | None:
    """Return the first line of the backtrace directly behind a line that names a signal or a Java exception."""
    behind = next(_lines_behind(text, line), None) if _NAMES_SIGNAL.match(line.parsed.text) else None
    return behind if behind is not None and backtraces.opens_backtrace(behind) else None


# PaddlePaddle prints it behind the stack.
_STATED_SIGNAL = lazy_re(r"FatalError: [^\n]{1,100} is detected by the operating system")


def _collect_backtrace(text: Text, first: Line) -> CollectedLines:
    before = text.lines_before(first.offset, _HEADING_REACH, first.start_of(first.parsed.writer))
    heading = backtraces.read_heading(first, before)
    lines = backtraces.collect(first, same_writer(text, first, gap=_GAP), _is_stamped(text, first))
    stated = (line for line in lines if _STATED_SIGNAL.match(line.parsed.text))
    return CollectedLines([*heading, *lines], next(stated, first))


def _collect_panic(text: Text, first: Line) -> CollectedLines:
    return CollectedLines(panics.collect(first, same_writer(text, first, gap=_GAP)), first)


def _collect_pytest(text: Text, first: Line) -> CollectedLines:
    """Collect one block per failed test: the lines with its reason, far above, and its line of the summary."""
    writer = first.parsed.writer
    before = text.lines_before(first.offset, REACH, first.start_of(writer))
    reasons = pytests.failure_reasons(line for line in before if line.parsed.writer == writer)
    parts = []
    for failure in pytests.failure_lines(same_writer(text, first, gap=_GAP)):
        reason = reasons.get(pytests.section_name(failure.parsed.text), [])
        headline = next((line for line in reason if line.parsed.text.startswith("E")), failure)
        parts.append(CollectedLines([*reason, failure], headline))
    return CollectedLines([first, *(line for part in parts for line in part.lines)], first, parts=tuple(parts))


def _collect_ras(text: Text, hit: Line) -> CollectedLines:
    return CollectedLines(ras_lines.collect_report(text, hit), hit)


_COLLECT_ENTRIES = _collect_while(r"(?!)", 1 + _MOST_ENTRIES)
_BACKTRACE = BlockForm("backtrace", backtraces.opens_backtrace, _collect_backtrace)
FORMS: tuple[BlockForm, ...] = (
    BlockForm(
        "traceback",
        lambda line: tracebacks.HEADER in line.parsed.text and "C++ Traceback" not in line.parsed.text,
        _collect_traceback,
    ),
    BlockForm(
        "terminate",
        _matches("terminate called", "terminate called"),
        _collect_while(
            r"  what\(\)|Exception raised from|frame #\d|<omitting|\s|$|CUDA kernel errors|For debugging consider|"
            r"Compile with|Device-side|Search for|"
            r"Last error:|nccl\w+: ",
            80,
        ),
    ),
    BlockForm(
        "fatal-python",
        _matches("Fatal Python", "Fatal Python error: "),
        _collect_while(
            r"$|Python runtime state|Thread 0x|Current thread|  File |  \.\.\.|  <|Extension modules|  Binary file|"
            r"Current C stack|<",
            400,
        ),
    ),
    BlockForm(panics.FORM, panics.opens_panic, _collect_panic),
    BlockForm("nccl", _contains("NCCL WARN"), _collect_nccl),
    BlockForm(ras_lines.FORM, ras_lines.opens_report, _collect_ras),
    BlockForm("elastic", _matches("exitcode", r"\s*exitcode\s+: "), _collect_elastic_entry),
    BlockForm(
        "notice", _matches("process rank", r"\S+ noticed that process rank"), _collect_while(r"(?![-=*_]{5})\s*\S", 6)
    ),
    BlockForm(
        "abort", _matches("MPI_ABORT", r"MPI_ABORT was invoked on rank"), _collect_while(r"(?![-=*_]{5})\s*\S", 4)
    ),
    BlockForm(
        "termination",
        _matches("BAD TERMINATION", r"= +BAD TERMINATION OF ONE OF YOUR APPLICATION"),
        _collect_while(r"\s*$|= +(?:(?:RANK \d{1,7} )?PID \d|EXIT (?:CODE|STATUS): |KILLED BY SIGNAL: )", 5),
    ),
    BlockForm(
        "process-name",
        _matches("Process name", r"\s*Process name: \[{0,2}\w"),
        _collect_while(r"\s*(?:Exit code:|$)", 3),
    ),
    BlockForm(
        "stall",
        _contains(" were submitted to be reduced, gathered or broadcasted "),
        _collect_while(r"(?:Missing ranks|Stalled \w+): *$|\d{1,7}: \[|\S+ \[missing ranks: ", 40),
    ),
    BlockForm("rendezvous", _contains("Rendezvous complete for workers"), _collect_rendezvous),
    BlockForm(
        "cann",
        _matches("", r"(?:\[PID: \d+\] (?:[\d:.-]+ )?)?(?:\w+\()?[EW][A-Z0-9]\d{4}\b"),
        _collect_while(r"\s+\S|Solution:|Possible Cause:|TraceBack", 30),
    ),
    BlockForm(
        "c10",
        lambda line: line.parsed.opens_record and "glog" in line.parsed.layers[-1],
        _collect_while(r"Exception raised from|frame #\d|<omitting|  what", 80),
    ),
    BlockForm(
        "received-signal",
        _contains("*** Process received signal ***", "==== backtrace"),
        _collect_while(r"\[|=|\s*\d+ |Signal|\s", 80),
    ),
    _BACKTRACE,
    BlockForm("pytest", pytests.opens_summary, _collect_pytest),
    BlockForm("line", lambda line: True, _collect_list),
)


def build_blocks(
    text: Text, hits: Iterable[Named], headerless_runs: Iterable[list[Line]] = ()
) -> Iterator[tuple[Block, int]]:
    """Yield the blocks of one source, each with the number of further lines of its kind that were only counted.

    `hits` are ascending. `headerless_runs` are tracebacks
    without a header. They come first, then the failures of pytest, whose reasons stand far above, then the other blocks
    in file order. A line is in one block at most.
    """
    used: set[int] = set()
    for run in headerless_runs:
        used.update(line.offset for line in run)
        for part in _split_headerless(run):
            yield _block(text, "traceback", part), 0
    for start, end, literals, more in sorted(
        hits, key=lambda hit: not any(pytests.SUMMARY in literal for literal in hit[2])
    ):
        for part_of_line in text.lines_at(start, end):
            line = None if part_of_line.offset in used else part_of_line.showing(literals)
            if line is None:
                continue
            form, first = _form_of(text, line, used)
            collected = form.collect(text, first)
            parts = [_without_used(part, used, part.lines[-1]) for part in collected.parts]
            rest = _without_used(collected, used, first)
            used.update(member.offset for member in rest.lines)
            for part in parts or _split_mixed(rest) or [rest]:
                yield _block(text, form.name, part), more
                more = 0


def _form_of(text: Text, line: Line, used: set[int]) -> tuple[BlockForm, Line]:
    """Return the form that the line opens, and the line to collect from."""
    form = next(form for form in FORMS if form.is_opened_by(line))
    behind = _backtrace_behind(text, line) if form.name == "line" else None
    return (_BACKTRACE, behind) if behind is not None and behind.offset not in used else (form, line)


def _split_headerless(run: list[Line]) -> list[CollectedLines]:
    """Return the tracebacks in lines without a header: one if no frame repeats, else what counting gives."""
    ends = [line for line in run if headerless.is_exception_line(line)]
    frames = [line.parsed.text.strip() for line in run if FRAME.match(line.parsed.text)]
    is_mixed = not run[0].parsed.writer and (len(ends) > 1 or len(set(frames)) < len(frames))
    collected = CollectedLines(run, ends[-1], is_mixed)
    return _split_mixed(collected) or [collected]


def _split_mixed(collected: CollectedLines) -> list[CollectedLines]:
    """Return the tracebacks of several writers that run together, each once.

    An incomplete one holds what all writers have in common, and a line that says so.
    """
    if not collected.ambiguous:
        return []
    parts = []
    for shared in tracebacks.deinterleave_lines(collected.lines):
        lines = [collected.lines[index] for index in shared.lines]
        headline = collected.lines[shared.headline]
        if not shared.is_complete:
            lines.insert(-1, Line(headline.offset, _INCOMPLETE, headline.year))
        parts.append(CollectedLines(lines, headline, not shared.is_complete, shared.count))
    return parts


def _without_used(collected: CollectedLines, used: set[int], hit: Line) -> CollectedLines:
    """Remove the lines that are in an earlier block; `hit` is certainly new."""
    if used.isdisjoint(line.offset for line in collected.lines):
        return collected
    lines = [line for line in collected.lines if line.offset not in used]
    headline = hit if collected.headline.offset in used else collected.headline
    return CollectedLines(lines, headline, collected.ambiguous)


def _block(text: Text, form: str, collected: CollectedLines) -> Block:
    first, headline = collected.lines[0], collected.headline
    origin = first.parsed.origin
    nonfatal, is_logged_as_error = "", False
    is_traceback = form == "traceback"
    if is_traceback:
        before, is_next = _line_before(text, first)
        nonfatal = _nonfatal_kind(before)
        is_logged_as_error = before is not None and is_next and _LOGGED_AS_ERROR.search(before.parsed.text) is not None
        if before is not None and is_next and _is_record_of(before, first) and _LOGGED.search(before.parsed.text):
            # `logging.exception` writes its record, and directly after it the traceback without a prefix.
            origin = before.parsed.origin
    has_own_time = origin.time is not None
    if not has_own_time:
        origin = replace(origin, time=find_time_before(text, first))
    lines = tuple(line.parsed.text for line in collected.lines)
    if not first.offset and _is_title(text, first):
        lines = (lines[0].removeprefix("# "), *lines[1:])
    caught = is_traceback and not is_logged_as_error and tracebacks.is_caught(lines)
    sequel = read_sequel(text, collected.lines, origin, first.parsed.writer, caught) if is_traceback else Sequel()
    return Block(
        source=text.name,
        offset=first.offset,
        end=collected.lines[-1].end,
        headline=headline.offset,
        form=form,
        lines=lines,
        origin=_with_inner_rank(
            origin, [*collected.lines[1:4], *(_error_code_behind(text, collected) if is_traceback else ())]
        ),
        ambiguous=collected.ambiguous or has_repeated_exception_name(headline.parsed.text),
        writers=collected.writers,
        nonfatal=nonfatal,
        has_own_time=has_own_time,
        continued=sequel.continued,
        ends_writer=sequel.ends_writer,
        caught=caught,
    )


def _is_title(text: Text, first: Line) -> bool:
    """Whether the first line of a source is the heading of a post in Markdown, and no comment of a program."""
    if not first.raw.startswith("# "):
        return False
    behind = next((line for line in text.lines_from(first.end, REACH) if line.offset > first.offset), None)
    return behind is not None and (not behind.raw.strip() or headerless.names_exception(first.raw[2:]))


def _line_before(text: Text, first: Line) -> tuple[Line | None, bool]:
    """Return the line before a block by its writer, and whether no line that may be of this writer stands between."""
    is_next = True
    for line in text.lines_before(first.offset, STAMP_REACH):
        if line.parsed.writer == first.parsed.writer:
            return line, is_next
        is_next = is_next and bool(line.parsed.writer)
    return None, False


def _is_record_of(before: Line, first: Line) -> bool:
    """Whether the line before a traceback is a record of a logger, with the layers of its first line and its own."""
    own, layers = first.parsed.layers, before.parsed.layers
    return before.parsed.opens_record and not first.parsed.opens_record and layers[: len(own)] == own != layers


def _nonfatal_kind(before: Line | None) -> str:
    """Return "ignored" or "thread" if Python announces that the exception does not end the process, else ""."""
    text = before.parsed.text if before is not None else ""
    return "ignored" if IGNORED.match(text) else "thread" if text.startswith("Exception in thread ") else ""


def _error_code_behind(text: Text, collected: CollectedLines) -> list[Line]:
    """Return the line with which torch_npu ends the message of an exception: its code, process, device and rank."""
    end = collected.lines[-1].end
    behind = next((line for line in text.lines_from(end, REACH) if line.offset >= end and line.raw.strip()), None)
    return [behind] if behind is not None and _NPU_ERROR_CODE.match(behind.parsed.text) else []


def _with_inner_rank(origin: Origin, lines: list[Line]) -> Origin:
    """Take the rank from other lines of the block where the first has none (a timestamp line with a rank in it)."""
    if origin.rank is not None:
        return origin
    rank = next((line.parsed.origin.rank for line in lines if line.parsed.origin.rank is not None), None)
    return replace(origin, rank=rank) if rank is not None else origin
