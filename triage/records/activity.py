"""The last activity of each rank: step, time, and whether it reported its end, from the tail of each source."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from triage.base.digit_masks import ask_masked, ask_masked_text, split_lines
from triage.base.lazy_dataclass import dataclass, replace
from triage.base.lazy_re import lazy_re
from triage.base.masked_re import masked_re
from triage.model.evidence import Origin
from triage.ranks.clocks import compute_median
from triage.ranks.layouts import PLAIN, Layout
from triage.ranks.prefix import ParsedLine
from triage.ranks.stated_ranks import read_stated_ranks
from triage.records.completion import Scope, has_hint, read_completion
from triage.records.text import Line, Text, split_line

# `step 7`; beside a loss also `it 7`, `update 7` and a bare `7/100`, which is no date.
_LOSS = r"[^\n]{0,200}\bloss\b"
_COUNTER = (
    r"(?:\b(?:global[_ ]?step|step|iteration|iter|batch)|"
    rf"\b(?:it|update)(?=[ :=#]*\[? *\d{_LOSS})|(?<![\w/.:-])(?=\d{{1,12}}/\d{{1,12}}\b(?![/ ]\d){_LOSS}))[ :=#]*\[? *"
)
STEP = masked_re(rf"(?i){_COUNTER}(\d{{1,12}})\b")
PROGRESS = lazy_re(rf"(?i){_COUNTER}\d|\bepoch[ :=#]*\[? *\d|it/s\b|s/it\b|\bsaved\b.{{0,40}}\bstep[_-]\d")
# A rank is silent when the others wrote for so many seconds longer.
SILENCE = 60.0
# How much of a file with many writers is searched for those that are not in its tail.
SEARCHED_BYTES = 1 << 24
_CHUNK = 1 << 20
# What a rank was doing when its log stopped, where that can explain why it missed a collective.
ACTIONS = (
    (
        "compiling",
        lazy_re(
            r"(?i)torch[./]_(?:inductor|dynamo)|\bautotun|\btorch\.compile\b|\brecompil(?:e|es|ing)\b"
            r"|\b(?:compiling|compilation)\b(?!.{0,80}\b(?:done|finished|completed?|took|succeeded|disabled)\b)"
            r"|\bbuilding (?:extension module|engine|(?:\w+ )?kernels?)\b"
            r"|^\[\d+/\d+\] .{0,80}\b(?:nvcc|hipcc|c\+\+|g\+\+) "
            r"|\b(?:triton|kernel|inductor|xla|jit|compilation)\b.{0,60}\bcache miss\b"
        ),
    ),
    (
        "saved",
        lazy_re(
            r"(?i)\bsaved\b.{0,60}\b(?:checkpoint|ckpt|state|model)|"
            r"\b(?:checkpoint|ckpt|state)\b.{0,60}\b(?:(?:was|is|has been) (?:saved|written)|saved\b)"
        ),
    ),
    (
        "saving",
        lazy_re(
            r"(?i)\b(?:sav(?:e|es|ing)|gathering|consolidating|writing)\b.{0,60}\b(?:checkpoint|ckpt|state[ _]?dict|"
            r"model)|\b(?:gather|collect|summon|consolidat|unshard)ing\b.{0,40}\bfull\b.{0,20}\b(?:state|model|weights|param)"
        ),
    ),
    (
        "leaving",
        lazy_re(
            r"(?i)\b(?:exiting|leaving|quitting|(?:good)?bye|nothing (?:left|more) to do|stopping training"
            r"|early[ -]stop(?:ping|ped)?:? .{0,60}(?:exit|stop|leav)\w*)\b"
            r"|process group has NOT been destroyed|destroy_process_group\(\) was not called before program exit"
        ),
    ),
    (
        "epoch-over",
        lazy_re(
            r"(?i)\bepoch \d+ (?:done|finished|complete)|\bvalidat(?:e|ing|ion)\b|\bevaluating\b|end of (?:data|epoch)"
            r"|no more batches|\b(?:(?:data)?loader|iterator|sampler|dataset|data) (?:is |was )?(?:exhausted|drained)\b"
            r"|\b(?:ran|running|is|are) out of (?:data|batches|samples)\b|\bfinished epoch \d"
        ),
    ),
)
_TAIL_LINES = 600
# `saving the model to /a/b`, `writing /a/b`, `torch.save -> /a/b`, `checkpoint /a/b written`; not `saved, from /a/b`.
_WRITTEN_PATH = lazy_re(
    r"(?i)\b(?:sav(?:e|es|ed|ing)|writ(?:e|es|ing)|wrote|dump(?:s|ed|ing)?)\b(?:(?!\b(?:from|load\w{0,3}|read)\b)[^/\n]){0,60}?"
    r"(?<![\w.])(/[^\s'\",;)]+)"
    r"|(?<![\w.])(/[^\s'\",;)]+)['\"]? (?:(?:was|is|has been|being) ){0,2}(?:saved|written|dumped)\b"
    r"|\b(?:checkpoint|ckpt|snapshot)\b:? ['\"]?(/[^\s'\",;)]+)['\"]? (?:begun|started|in progress)\b"
)
# Parts of what ACTIONS and _WRITTEN_PATH match, in lower case. Most lines hold none.
_ACTION_HINTS = (
    *("compil", "autotun", "_inductor", "_dynamo", "building ext", "sav", "gathering", "consolidating", "writ"),
    *("collecting", "summoning", "unsharding", "checkpoint", "ckpt", "snapshot"),
    *("exiting", "leaving", "quitting", "bye", "nothing ", "stop", "destroy"),
    *("wrote", "dump", "epoch", "validat", "evaluat", "end of", "no more", "exhausted", "drained", "out of"),
    *("/_inductor", "/_dynamo", "cache miss", "nvcc", "hipcc", "c++", "g++", "building"),
)
# How many lines are read of each writer, of lines without a writer, and of a source that one rank wrote.
_PER_WRITER, _WITHOUT_WRITER, _OF_ONE_RANK = 3, 60, 8
# Of the other lines, so many that may say that something ended are read, and so many that do are kept.
_MOST_HINTS, _MOST_COMPLETIONS = 200, 64
_NUMBERS = lazy_re(r"\d+")
_LONGEST_END = 400  # bytes of a line that are searched for it
_LONGEST_TAG = 200
_WRITER_BYTES = 96  # of a line that are searched for its writer
_WRITER = lazy_re(
    rb"(?P<rank>\[[Rr]ank ?\d+\])|^(?:\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:\d\d) )?"
    rb"(?P<label>\[[^\]]{1,40}\](?:<std(?:out|err)>)?:|\[\d{1,6}\] | *\d+: )"
)
# Lines of a stack, which the stamps of a collector do not make informative.
_STACK = lazy_re(rb"Traceback \(most recent call|  File \"|[\]:Z\d|>] {5,}\S|ProcessGroup[A-Z][A-Za-z]{2,8}\.cpp:")
_INFORMATIVE = lazy_re(
    rb"(?i)step|iter|batch|epoch|\bloss\b|finish|complet|done|succe|compil|autotun|exhaust|sav(?:e|ed|ing)\b|writ(?:ing|ten)\b|wrote|checkpoint|ckpt|\d\d:\d\d:\d\d"
)
# What the runtime prints for a process, whatever its program does: watchdogs, the C++ runtime, the launcher's agent.
_OF_RUNTIME = masked_re(
    r"^\s*$|^Stack trace of the failed collective |"
    r"ProcessGroup[A-Z][A-Za-z]{2,8}\.cpp:|^\[(?:PG |Rank )[^\]]{1,80}\] |^terminate called|^ *what\(\):"
    r"|torch/distributed/(?:elastic|run\.py)|^(?:slurmstepd|srun): |^Some \w+ operations have failed or timed out"
    r"|^To avoid data inconsistency, "
)


@dataclass(frozen=True, slots=True)
class Activity:
    """What one line near the end of a source says about its writer's progress.

    `finished`: the program or the job says that it ended well; `completion` says which, or that a process did.
    `action` is a name in ACTIONS, `path` the file or directory that the line says is written. `end_text` is the text by
    which a program says that it ended, without numbers: equal ones are of different ranks. `is_of_runtime`: the line
    is empty or a watchdog's or launcher's, and shows nothing of what the program does. `lines`: it stands for so many
    equal ones of different ranks.
    """

    origin: Origin
    offset: int
    writer: str
    step: int | None
    finished: bool
    action: str = ""
    path: str = ""
    completion: Scope = ""
    end_text: str = ""
    is_of_runtime: bool = False
    lines: int = 1


class _LineChoice:
    """Chooses the lines of a tail that are read, from the last line on. `one`: a single rank wrote all of it."""

    def __init__(self, *, one: bool) -> None:
        self._without_writer = _OF_ONE_RANK if one else _WITHOUT_WRITER
        self._counts: dict[str | bytes, int] = {}
        self._hints = self._completions = 0

    def is_sated(self, writer: str | bytes, glance: _Glance) -> bool:
        """Return whether `takes` certainly refuses this line, as it does most lines of a long tail."""
        count = self._counts.get(writer, 0)
        most = _PER_WRITER if writer else self._without_writer
        return count > 0 and not glance.may_say_end and (count >= most or not glance.is_informative)

    def takes(self, writer: str | bytes, data: bytes, glance: _Glance) -> bool:
        """Return whether to read this line: of each writer the last and a few informative ones, and what ended well."""
        count = self._counts.get(writer, 0)
        most = _PER_WRITER if writer else self._without_writer
        if data and count < most and (not count or glance.is_informative):
            self._counts[writer] = count + 1
            return True
        if not glance.may_say_end or self._hints >= _MOST_HINTS or self._completions >= _MOST_COMPLETIONS:
            return False
        self._hints += 1
        is_completion = bool(read_completion(data[-_LONGEST_END:].decode("utf-8", "replace"))[0])
        self._completions += is_completion
        return is_completion


@dataclass(frozen=True, slots=True)
class _Glance:
    """What a line shows by all but its digits. `writer` is its place, empty where none stands there."""

    writer: slice
    is_informative: bool
    may_say_end: bool


@ask_masked
def _glance(line: bytes) -> _Glance:
    match = _WRITER.search(line[:_WRITER_BYTES])
    writer = slice(*match.span("rank" if match["rank"] else "label")) if match else slice(0, 0)
    is_informative = _INFORMATIVE.search(line) is not None and _STACK.search(line) is None
    return _Glance(writer, is_informative, has_hint(line))


@ask_masked_text
def shows_progress(text: str) -> bool:
    """Whether a line reports a step, an epoch or a rate."""
    return PROGRESS.search(text) is not None


def read_activity(
    tail: bytes,
    offset: int,
    year: int,
    layout: Layout = PLAIN,
    *,
    whole: bool = False,
    one: bool = False,
    by_prefix: bool = False,
) -> list[Activity]:
    """Return the activity in the last lines of each writer, in file order.

    `offset` is where `tail` starts. `whole`: it starts with a whole line. `one`: a single rank wrote all of it, so that
    a few lines are enough. `by_prefix`: every line is parsed for its writer, not only those with common labels.
    """
    end = offset + len(tail)
    text = Text(
        "", lambda start, length: tail[max(0, start - offset) : max(0, start - offset + length)], end, year, layout
    )
    choice = _LineChoice(one=one)
    activity = []
    lines = split_lines(tail)
    first = 1 if offset and not whole and len(lines) > 1 else 0
    is_parsed = layout.is_wrapped or by_prefix
    last = lines[max(first, len(lines) - _TAIL_LINES) :]
    glances = _glance.of_masks([mask for mask, _ in last])
    for (mask, start), glance in zip(reversed(last), reversed(glances), strict=True):
        begin, end = start + glance.writer.start, start + glance.writer.stop
        if not is_parsed and choice.is_sated(tail[begin:end], glance):
            continue
        data, place = tail[start : start + len(mask)], offset + start
        line: Line | None = None
        if is_parsed and data:
            line = next(iter(text.parse_line(data, place)[-1:]), None)
            data = line.parsed.text.encode("utf-8", "replace") if line else b""
            is_taken = choice.takes(_writer_of(line.parsed) if line else b"", data, _glance(data))
        else:
            is_taken = choice.takes(data[glance.writer], data, glance)
        if is_taken:
            line = line or split_line(data, place, year, layout.table)[-1]
            activity.append(_activity_of(line.parsed, line.offset))
    return activity[::-1]


def find_silent_ranks(last: Mapping[int, float], finished: Collection[int]) -> dict[int, float]:
    """Return the ranks that stopped writing SILENCE before the others, with the seconds to the others' median.

    `last` has the time of each rank's last line. Ranks in `finished` reported their end and are not silent. With fewer
    than three ranks there is no majority to compare with.
    """
    if len(last) < 3:
        return {}
    usual = compute_median(last.values())
    return {
        rank: usual - time for rank, time in sorted(last.items()) if rank not in finished and usual - time > SILENCE
    }


def find_earlier_activity(
    read: Callable[[int, int], bytes], size: int, writers: Sequence[str], year: int, layout: Layout = PLAIN
) -> list[Activity]:
    """Return the last activity of `writers` that are not in the tail: search the last SEARCHED_BYTES backwards."""
    wanted = {writer.encode() for writer in writers if writer}
    activity: list[Activity] = []
    stop = max(0, size - SEARCHED_BYTES)
    end = size
    while wanted and end > stop:
        start = max(stop, end - _CHUNK)
        data = b"\n" + read(start, end - start)
        last_lines = {
            match[1]: match.start(1)
            for match in re.finditer(b"\n(" + b"|".join(map(re.escape, sorted(wanted, reverse=True))) + b")", data)
        }
        for writer, place in last_lines.items():
            line = data[place:].split(b"\n", 1)[0]
            activity += read_activity(line, start + place - 1, year, layout, whole=True)
            wanted.discard(writer)
        end = start
    return sorted(activity, key=lambda entry: entry.offset)


def _writer_of(parsed: ParsedLine) -> str:
    rank = parsed.origin.rank
    if rank is None and "rank" in parsed.text[:_LONGEST_TAG].lower():
        rank = _rank_of_tag(parsed.text)
    return parsed.writer if rank is None else f"{parsed.writer} rank {rank}"


def _rank_of_tag(text: str) -> int | None:
    """Return the rank that a line has as a tag behind its prefix: `INFO | train:88 | rank 9 | step 3`."""
    stated = read_stated_ranks(text[:_LONGEST_TAG])
    return stated.numbers[0] if stated.is_tag and stated.part == "rank" and len(stated.numbers) == 1 else None


@ask_masked_text
def _may_state_action(text: str) -> bool:
    lower = text.lower()
    return any(hint in lower for hint in _ACTION_HINTS)


def _activity_of(parsed: ParsedLine, offset: int) -> Activity:
    is_of_runtime = bool(_OF_RUNTIME.search(parsed.text[:_LONGEST_END]))
    step = None if is_of_runtime else STEP.search(parsed.text)
    number = int(step[1]) if step else None
    scope, rank = read_completion(parsed.text)
    lower = parsed.text.lower()
    if rank is None and parsed.origin.rank is None and "rank" in lower:
        rank = _rank_of_tag(parsed.text)
    origin = parsed.origin if rank is None or parsed.origin.rank is not None else replace(parsed.origin, rank=rank)
    path = action = None
    if _may_state_action(parsed.text):
        path = _WRITTEN_PATH.search(parsed.text)
        action = next((name for name, pattern in ACTIONS if pattern.search(parsed.text)), None)
    return Activity(
        origin,
        offset,
        parsed.writer,
        number,
        scope in ("program", "job"),
        action or "",
        (path[1] or path[2] or path[3]).rstrip(".") if path else "",
        scope,
        _NUMBERS.sub("", parsed.text[:_LONGEST_END]) if scope == "program" else "",
        is_of_runtime,
        parsed.lines,
    )
