"""What follows a traceback: did its writer, or the job, go on? Then the exception was handled, or ended no rank."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.model.evidence import Origin
from triage.ranks.prefix import REPEATED_LAYER, ParsedLine
from triage.records.activity import STEP, shows_progress
from triage.records.completion import read_completion
from triage.records.text import REACH, Line, Text

# Other ranks take at most a few steps more before they wait for the failed one.
_STEPS_OF_PROGRESS = 5
_PROGRESS_LINES = 20
# A caught exception may end no process, and less shows that it did not.
_STEPS_AFTER_CAUGHT = 3
# After an error of a process that is no rank, other writers must reach so many steps.
_STEPS_OF_OTHERS = 8
_MOST_LINES, _MOST_BEFORE, _NEAR = 2000, 200, 20
_GAP = 4000  # lines of others in a row
# Seconds by which the lines of one log may come late.
_LATE = 60.0
_LOCAL_RANK = lazy_re(r"\d\]?:?$|<std|rank")


@dataclass(frozen=True, slots=True)
class Sequel:
    """What stands behind a traceback.

    `continued`: its writer made progress, or ranks of which it is none did. `ends_writer`: nothing of its writer
    follows, only lines of others, or a log that begins at an earlier time.
    """

    continued: bool = False
    ends_writer: bool = False


def read_sequel(text: Text, lines: Sequence[Line], origin: Origin, writer: str, caught: bool = False) -> Sequel:
    """Return what follows a traceback, its `lines`. `caught`: the job's own code caught the exception."""
    is_named = origin.rank is not None or bool(writer)
    own = _lines_behind(text, lines[-1], origin, writer)
    first = next(own, None)
    if first is None and is_named:
        return Sequel(_others_went_on(text, lines, origin, writer), not _writes_again(text, lines[-1], writer))
    behind = itertools.chain([first] if first else [], own)
    if not is_named:
        early = list(itertools.islice(behind, _NEAR))
        if _begins_earlier(text, lines[0], early, origin):
            return Sequel(ends_writer=True)
        behind = itertools.chain(early, behind)
    enough = _STEPS_AFTER_CAUGHT if caught else _STEPS_OF_PROGRESS
    return Sequel(
        _made_progress(text, lines[0], behind, origin, writer, enough) or _others_went_on(text, lines, origin, writer)
    )


def _lines_behind(text: Text, last: Line, origin: Origin, writer: str) -> Iterator[ParsedLine]:
    """Yield the lines of the same rank or writer behind a traceback."""
    # The exception may be on <stderr> and the progress on <stdout> of the same rank.
    start = writer.partition(f"<{origin.stream}>")[0] if origin.stream else writer
    behind = itertools.islice(text.lines_from(last.end + 1, REACH, last.start_of(start), _GAP), _MOST_LINES)
    return (line.parsed for line in behind if _is_same(line.parsed, origin, writer))


def _writes_again(text: Text, last: Line, writer: str) -> bool:
    """Whether a line behind has the outermost label of the writer: `[default1]:` of `[default1]:[rank1]:`."""
    label = writer[: writer.find("]:") + 2] if "]:" in writer else writer
    behind = itertools.islice(text.lines_from(last.end + 1, REACH, last.start_of(label), _GAP), _MOST_LINES)
    return any(line.parsed.writer.startswith(label) for line in behind)


def _made_progress(
    text: Text, first: Line, behind: Iterator[ParsedLine], origin: Origin, writer: str, enough: int
) -> bool:
    """Return whether the same rank made progress after a traceback, so that the exception was handled.

    Where lines name no writer, steps up to the last one before its `first` line are of another rank whose log follows,
    and `enough` steps must follow.
    """
    is_named = origin.rank is not None or bool(writer)
    later = (parsed for parsed in behind if not _is_late(parsed, origin) and _is_progress(parsed.text))
    if is_named:
        return next(later, None) is not None
    count, done = 0, _last_step_before(text, first, origin, writer)
    steps: set[int] = set()
    for parsed in later:
        step = _step_of(parsed)
        if step is None or done is None or step > done:
            count += 1
            steps |= {step} if step is not None else set()
        if count >= _PROGRESS_LINES or len(steps) >= enough:
            return True
    return False


def _step_of(parsed: ParsedLine) -> int | None:
    step = STEP.search(parsed.text)
    return int(step[1]) if step else None


def _is_same(parsed: ParsedLine, origin: Origin, writer: str) -> bool:
    if origin.rank is not None and parsed.origin.rank is not None:
        return parsed.origin.rank == origin.rank
    return parsed.writer == writer


def _last_step_before(text: Text, first: Line, origin: Origin, writer: str) -> int | None:
    """Return the number of the last step that the same rank or writer printed before; None if none is near."""
    before = itertools.islice(text.lines_before(first.offset, REACH >> 3, first.start_of(writer)), _MOST_BEFORE)
    steps = (_step_of(line.parsed) for line in before if _is_same(line.parsed, origin, writer))
    return next((step for step in steps if step is not None), None)


def _begins_earlier(text: Text, first: Line, behind: Sequence[ParsedLine], origin: Origin) -> bool:
    """Whether the log goes on at an earlier time: several logs stand one after another.

    A collector and the program that it reads may be in different time zones. So the time of a line behind is compared
    with that of the nearest line of the same form before, where there is one.
    """
    later = next((parsed for parsed in behind if parsed.origin.time is not None), None)
    if later is None:
        return False
    before = itertools.islice(text.lines_before(first.offset, REACH >> 3), _NEAR)
    times = (line.parsed.origin.time for line in before if line.parsed.layers == later.layers)
    since = next((time for time in times if time is not None), origin.time)
    return since is not None and later.origin.time is not None and later.origin.time < since - _LATE


def _is_progress(text: str) -> bool:
    return shows_progress(text) or read_completion(text)[0] in ("program", "job")


def _is_late(parsed: ParsedLine, origin: Origin) -> bool:
    """Whether a line below an exception may have been written before it: a collector delivered it late."""
    is_older = parsed.origin.time is not None and origin.time is not None and parsed.origin.time < origin.time
    return is_older or REPEATED_LAYER in parsed.layers


def _others_went_on(text: Text, lines: Sequence[Line], origin: Origin, writer: str) -> bool:
    """Did ranks go on to train after an error of a process that is no rank, such as a controller?"""
    if origin.rank is not None or not writer or _LOCAL_RANK.search(writer):
        return False
    numbers: set[int] = set()
    for line in itertools.islice(text.lines_from(lines[-1].end + 1, REACH), _MOST_LINES):
        step = _step_of(line.parsed) if line.parsed.writer != writer else None
        if step is not None and not _is_late(line.parsed, origin):
            numbers.add(step)
    return len(numbers) >= _STEPS_OF_OTHERS and _last_step_before(text, lines[0], origin, writer) is None
