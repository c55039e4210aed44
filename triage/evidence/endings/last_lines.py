"""The last lines of each writer that are unlike its usual output: the end of a source is looked at, never all of it.

Physical lines are compared by their shapes first, as bytes. A healthy log ends in a usual line, and costs no more.
"""

from __future__ import annotations

import bisect
import functools
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from triage.base.digit_masks import ask_masked, mask_digits, split_lines
from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.evidence.endings.classification import UNLIKE, LineForm, classify_raw
from triage.evidence.endings.failure_terms import stops_process
from triage.evidence.endings.printed_tracebacks import find_traceback_lines
from triage.evidence.endings.shapes import FEWEST, has_text, is_progress, is_stack, is_usual, shape_of
from triage.ranks.prefix import parse_prefix
from triage.scan.edges import SAMPLE_BYTES, sample_offsets

Read = Callable[[int, int], bytes]

MOST_LINES = 500
MOST_LAST_LINES = 160
"""Of longer endings, the last so many lines are looked at."""
# A few usual lines may follow where writers cannot be told apart: others went on before they waited.
MOST_USUAL_BEHIND = 3
_MANY = 10
_REACH_OF_FAILURE = 12
_FEWEST_COUNTED = 5
_GLANCE, _FEWEST_AT_A_GLANCE, _GLANCE_BYTES = 24, 12, 1 << 13
_LONGEST_HINT, _PREFIX_BYTES = 2000, 200
_WINDOW_BEFORE, _WINDOW_BEHIND = 1 << 14, 1 << 12
_WHOLE, _NOTHING = slice(0, 1 << 62), slice(0, 0)
_STATED_RANK = lazy_re(rb"(?i)\brank[ =:]?(\d{1,7})\b")
_NUMBER = lazy_re(rb"\s*\d+: |\[\d+\] ")
_STREAM = lazy_re(rb"<std(?:out|err|diag)>")
_PREFIX = lazy_re(
    rb"(?:\x1b\[\d+m)?(?:(?:[A-Z][a-z]{2} ){2}[ \d]\d \d\d:\d\d:\d\d \d{4}(?=\[\d)|"
    rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S{0,12} (?=\[(?:[Rr]ank ?|default)?\d{1,7}\])|"
    rb"\d{4}-\d\d-\d\dT\S{8,24} (?:std(?:out|err) [FP] |[\w.-]{1,60} [\w.@-]{1,60}\[\d{1,8}\]: |"
    rb"[\w./-]{1,80} (?=[\[(]))?)?"
    rb"(?P<writer>\[[Rr]ank ?\d+\]:?|"
    rb"\[[^\]\s]{1,40}\](?:\[[^\]\s]{1,40}\])?(?:<std\w+>)?:|\[pod/[^\]]{1,120}\]|"
    rb"\([\w.:<>-]{1,60}(?:,? \w+=[^\s,]+)?,? pid=\d+[^)]{0,60}\)(?:\x1b\[\d*m)?| {0,5}\d{1,6}: |"
    rb"\[\d{1,6}\] |[\w.-]{1,60} +\| )? ?"
)
_JSON_WRITER = lazy_re(rb'"(?:global_|_)?[rR]ank"\s*:\s*"?(\d{1,7})')
# A field of JSON with a field a line: of most only the message is a log line.
_JSON_FIELD = lazy_re(rb'[ \t]+"(?:(message|textPayload|log)|[\w.@-]{1,60})": ?(?:"(?P<text>.*?)"?,?$)?')
# A collector's record of an empty line or of a rule between blocks.
_EMPTY_RECORD = lazy_re(rb'"(?:log|message|msg|MESSAGE|textPayload)" ?: ?"(?:\\[nrt]|[^\w"\\\x80-\xff])*"')
_HINT = lazy_re(
    rb"(?i)err|fail|fatal|abort|exception|assert|panic|kill|crit|dead|crash|corrupt|lost|denied|refus|cannot|"
    rb"can't|unable|timeout|"
    rb"timed out|\bexit|[\x80-\xff]{6}|\b[EF]\d{3,4} "
)


@dataclass(frozen=True, slots=True)
class _Form:
    """What all lines have in common that differ only in their digits.

    `writer` has the places of the prefix that all lines of a writer have, which stands behind `label`; `text` is the
    place behind it. `is_stack`: the text may belong to a stack, or to a rule between blocks. `is_counted`: it has text
    and is no stack, so lines of the form can be the usual output of a program.
    """

    shape: bytes
    label: bytes
    writer: tuple[slice, ...]
    text: slice
    has_text: bool
    is_stack: bool
    is_counted: bool


@dataclass(slots=True, eq=False)  # not frozen, for speed: one is made for every line
class PhysicalLine:
    """A line of a source as bytes. `writer` is the prefix that all lines of its writer have."""

    offset: int
    data: bytes
    writer: bytes
    form: _Form

    @property
    def end(self) -> int:
        """The offset of its end."""
        return self.offset + len(self.data)


@dataclass(frozen=True, slots=True)
class LastLines:
    """The lines of one writer behind its last usual line.

    `usual` is that line, None where the writer has none: then nothing is known of its usual output. `usual_behind`
    counts usual lines of other or unknown writers that follow.
    """

    writer: bytes
    lines: tuple[PhysicalLine, ...]
    usual: PhysicalLine | None
    usual_behind: int = 0


def find_last_lines(head: bytes, tail: bytes, tail_offset: int) -> list[LastLines]:
    """Return for each writer in `tail` its lines behind the last usual one, if there are any.

    `head` is the start of the source, or empty where `tail` holds all of it.
    """
    near = max(0, tail_offset + len(tail) - _GLANCE_BYTES) or -1
    if _ends_as_usual([line for line in _split(tail, tail_offset, _GLANCE) if line.offset > near]):
        return []
    return _find_in_lines(head, _split(tail, tail_offset, MOST_LINES))


def find_earlier_last_lines(head: bytes, read: Read, offsets: Sequence[int]) -> list[LastLines]:
    """Return the last lines of the writers whose last lines stand at these offsets. Near ones are read together."""
    results: list[LastLines] = []
    for near in _group_near(sorted(offsets)):
        start = max(0, near[0] - _WINDOW_BEFORE)
        window = read(start, near[-1] + _WINDOW_BEHIND - start)
        end = window.find(b"\n", near[-1] - start)
        lines = _split(window[: end if end >= 0 else None], start)
        starts = [line.offset for line in lines]
        writers = {lines[bisect.bisect_right(starts, offset) - 1].writer for offset in near} if lines else set()
        results += [one for one in _find_in_lines(head, lines) if one.writer in writers]
    return results


def find_last_lines_before(head: bytes, read: Read, offset: int) -> list[LastLines]:
    """Return for each writer that wrote right before this offset its lines behind the last usual one."""
    start = max(0, offset - _WINDOW_BEFORE)
    return _find_in_lines(head, _split(read(start, offset - start), start))


def _group_near(offsets: Sequence[int]) -> Iterator[list[int]]:
    group: list[int] = []
    for offset in offsets:
        if group and offset - group[0] > _WINDOW_BEFORE:
            yield group
            group = []
        group.append(offset)
    if group:
        yield group


def _find_in_lines(head: bytes, split: list[PhysicalLine]) -> list[LastLines]:
    """Return for each writer its lines behind the last usual one."""
    lines = _join_numbered_lists(split)
    usual = _usual_shapes(head, lines)
    writers: dict[bytes, list[PhysicalLine]] = defaultdict(list)
    for line in lines:
        if line.form.has_text:
            writers[line.writer].append(line)
    results = (_behind_usual(writer, own, usual) for writer, own in writers.items())
    return [result for result in results if result is not None]


def sample_shapes(read: Read, size: int) -> set[bytes]:
    """Return the shapes in a few chunks between the start and the end of a source, without stacks and rules."""
    masks = set[bytes]()
    for offset in sample_offsets(size):
        masks.update(mask_digits(read(offset, SAMPLE_BYTES)).split(b"\n")[1:-1])
    return {form.shape for form in _read_form.of_masks(list(masks)) if form.is_counted}


def without_usual(lines: Sequence[PhysicalLine], shapes: Collection[bytes]) -> tuple[PhysicalLine, ...]:
    """Return the lines whose shape does not stand in the middle of the source, and stacks with the line below each:
    where many ranks fail, their exceptions stand in the middle too.
    """
    is_below = [False, *(line.form.is_stack for line in lines[:-1])]
    return tuple(
        line
        for line, below in zip(lines, is_below, strict=True)
        if line.form.is_stack or below or line.form.shape not in shapes
    )


def _ends_as_usual(lines: Sequence[PhysicalLine]) -> bool:
    """Whether a few last lines of one writer show that it ended in its usual output: most logs do."""
    texts = [line for line in lines if line.form.has_text]
    if len({line.writer for line in texts}) != 1 or any(line.form.is_stack for line in texts):
        return False
    shapes = [line.form.shape for line in texts]
    counts = Counter(shapes)
    last = range(-1, -2 - MOST_USUAL_BEHIND, -1)
    return len(texts) > _FEWEST_AT_A_GLANCE and all(
        counts[shapes[index]] >= FEWEST
        and not _HINT.search(texts[index].data)
        and not _stops_process(texts[index].data)
        and not _is_failure_of_each_rank(texts, shapes[index], texts[index].data)
        for index in last
    )


def _split(tail: bytes, offset: int, most: int | None = None) -> list[PhysicalLine]:
    """Return the lines of the end of a source, or the last `most`; the first may be only a part of one."""
    parts = split_lines(tail)
    first = len(parts) - most if most is not None and len(parts) > most else 1 if offset else 0
    lines = []
    own = parts[first:]
    for (mask, start), form in zip(own, _read_form.of_masks([mask for mask, _ in own]), strict=True):
        data = tail[start : start + len(mask)]
        lines.append(PhysicalLine(offset + start, data, _writer_of(data, form), form))
    return lines


def _writer_of(data: bytes, form: _Form) -> bytes:
    if len(form.writer) == 1:
        return form.label + data[form.writer[0]]
    return form.label + b"".join([data[place] for place in form.writer]) if form.writer else b""


def _join_numbered_lists(lines: Sequence[PhysicalLine]) -> Sequence[PhysicalLine]:
    """Return the lines with `0: …`, `1: …` as items of a list, not as ranks, where most lines have no such prefix, or
    where it counts the lines of the file.
    """
    writers = {writer for writer in {line.writer for line in lines} if _NUMBER.fullmatch(writer)}
    numbers = [int(line.writer.strip(b"[]: ")) for line in lines if line.writer in writers] if writers else []
    is_rising = all(then - one == 1 for one, then in itertools.pairwise(numbers))
    is_counter = is_rising and len(numbers) >= _FEWEST_COUNTED and numbers[0] > 0
    if not numbers or (2 * len(numbers) > sum(has_text(line.data) for line in lines) and not is_counter):
        return lines
    return [
        PhysicalLine(line.offset, line.data, b"", _read_form_without_prefix(line.data))
        if line.writer in writers
        else line
        for line in lines
    ]


@functools.lru_cache(maxsize=4)
def _count_head(head: bytes) -> Counter[bytes]:
    """Return the shapes in the start of a source; it is the same for all its writers."""
    return _count_shapes(mask_digits(head).split(b"\n")[:-1])


def _count_shapes(masks: Sequence[bytes]) -> Counter[bytes]:
    """Return how often each shape stands in lines, whose masks these are, without stacks and rules between blocks."""
    counts: Counter[bytes] = Counter()
    by_mask = Counter(masks)
    for form, count in zip(_read_form.of_masks(list(by_mask)), by_mask.values(), strict=True):
        if form.is_counted:
            counts[form.shape] += count
    return counts


@ask_masked
def _read_form(line: bytes) -> _Form:
    label, writer, text = _split_prefix(line)
    return _make_form(line, label, writer, text)


@ask_masked
def _read_form_without_prefix(line: bytes) -> _Form:
    return _make_form(line, b"", (), _WHOLE)


def _make_form(line: bytes, label: bytes, writer: tuple[slice, ...], text: slice) -> _Form:
    with_text = has_text(line[text]) and not (b'{"' in line[:300] and _EMPTY_RECORD.search(line) is not None)
    in_stack = is_stack(line[text])
    return _Form(shape_of(line), label, writer, text, with_text, in_stack, with_text and not in_stack)


def _split_prefix(data: bytes) -> tuple[bytes, tuple[slice, ...], slice]:
    """Return the label and the places of the writer of a line, and the place of the text behind its prefix."""
    if data[:1] in b" \t" and (field := _JSON_FIELD.match(data)) is not None:
        if not (field[1] and field["text"]):
            return b"", (), _NOTHING
        label, writer, text = _split_prefix(field["text"])
        start = field.start("text")
        return label, tuple(_shift(place, start) for place in writer), _shift(text, start)
    writer, start = _find_prefix(data[:_PREFIX_BYTES])
    if not writer and b'{"' in data[:300]:
        rank = _JSON_WRITER.search(data[:8000])
        if rank is not None:
            return b"rank ", (slice(*rank.span(1)),), slice(start, len(data))
    return b"", writer, slice(start, len(data))


def _shift(place: slice, by: int) -> slice:
    return slice(place.start + by, place.stop + by)


@ask_masked
def _find_prefix(start: bytes) -> tuple[tuple[slice, ...], int]:
    """Return where the parts of the writer stand in a line, without the stream, and where its text begins."""
    match = _PREFIX.match(start)
    if match is None or match["writer"] is None:
        return (), match.end() if match is not None else 0
    begin, end = match.span("writer")
    streams = [stream.span() for stream in _STREAM.finditer(start, begin, end)]
    edges = [begin, *(place for span in streams for place in span), end]
    return tuple(slice(*part) for part in zip(edges[::2], edges[1::2], strict=True)), match.end()


def _usual_shapes(head: bytes, lines: Sequence[PhysicalLine]) -> set[bytes]:
    """Return the shapes of usual lines: one writer wrote them several times, and they are no failures.

    A failure's shape is usual too where usual lines follow it: the program went on.
    """
    head_counts = _count_head(head)
    tracebacks = find_traceback_lines([line.data for line in lines])
    counted = [line for index, line in enumerate(lines) if line.form.is_counted and index not in tracebacks]
    examples = {line.form.shape: line.data for line in reversed(counted)}
    owns = Counter([(line.writer, line.form.shape) for line in counted])
    totals: Counter[bytes] = Counter()
    for (writer, _), own in owns.items():
        totals[writer] += own
    usual = {shape for shape, count in head_counts.items() if count >= FEWEST}
    belonging = _list_belonging(lines, examples) | _list_repeated(lines, examples)
    for (writer, shape), own in owns.items():
        if shape in belonging or _stops_process(examples[shape]):
            continue
        total = own + min(head_counts[shape], FEWEST)
        if not is_usual(examples[shape], total):
            continue
        if total < FEWEST and _is_announced(lines, shape):
            continue
        if _is_harmless(examples[shape], own, totals[writer], is_rare=total < FEWEST) and not _is_failure_of_each_rank(
            lines, shape, examples[shape]
        ):
            usual.add(shape)
    behind: Counter[bytes] = Counter()
    unusual = next((index for index, line in enumerate(lines) if line.form.shape not in usual), len(lines))
    for index in range(len(lines) - 1, unusual - 1, -1):  # before these there is nothing to add
        line = lines[index]
        shape = line.form.shape
        if shape in usual:
            behind[line.writer] += 1
        elif behind[line.writer] > MOST_USUAL_BEHIND and not (line.form.is_stack or index in tracebacks):
            usual.add(shape)
    return usual


def _list_belonging(lines: Sequence[PhysicalLine], examples: Mapping[bytes, bytes]) -> set[bytes]:
    """Return the shapes that stand only right behind strong forms, and behind several of them: what each of many
    ranks prints below its failure is not the usual output.
    """
    strong = {shape for shape, data in examples.items() if _is_strong(data[:_LONGEST_HINT])}
    if not strong:
        return set()
    failures: dict[bytes, set[int]] = defaultdict(set)
    elsewhere, last = set[bytes](), dict[bytes, int]()
    for index, line in enumerate(lines):
        shape, failure = line.form.shape, last.get(line.writer, -_REACH_OF_FAILURE - 1)
        if shape in strong:
            last[line.writer] = index
        elif index - failure <= _REACH_OF_FAILURE:
            failures[shape].add(failure)
        else:
            elsewhere.add(shape)
    return {shape for shape, behind in failures.items() if len(behind) > 1} - elsewhere


def _list_repeated(lines: Sequence[PhysicalLine], examples: Mapping[bytes, bytes]) -> set[bytes]:
    """Return the shapes of a block of a few lines that a writer repeats up to its end, with a failure in each, and that
    stand nowhere else: many ranks print it into one file.
    """
    owns: dict[bytes, list[PhysicalLine]] = defaultdict(list)
    for line in lines:
        owns[line.writer].append(line)
    repeated, elsewhere = set[bytes](), set[bytes]()
    for own in owns.values():
        start = _find_repeated(own, examples)
        run = {line.form.shape for line in own[start:]} & examples.keys()
        is_block = not any(is_progress(examples[shape]) for shape in run)
        repeated |= run if is_block else set()
        elsewhere |= {line.form.shape for line in (own[:start] if is_block else own)}
    return {shape for shape in repeated - elsewhere if not _is_failing(examples[shape][:_LONGEST_HINT])}


def _find_repeated(lines: Sequence[PhysicalLine], examples: Mapping[bytes, bytes]) -> int:
    """Return the index from which on lines of one writer repeat a block with a failure; their number if none does."""
    last, start = dict[bytes, int](), len(lines)
    for index, line in enumerate(lines):
        shape = line.form.shape
        before = last.get(shape)
        last[shape] = index
        if before is None or index - before > _REACH_OF_FAILURE or shape not in examples:
            continue
        if _is_failing(examples[shape][:_LONGEST_HINT]):
            start = min(start, max(0, before - (index - before) + 1))
    return start


@ask_masked
def _is_strong(line: bytes) -> bool:
    return _strength_of(line) == "strong"


@ask_masked
def _stops_process(line: bytes) -> bool:
    return stops_process(line.decode("utf-8", "replace"))


@ask_masked
def _is_failing(line: bytes) -> bool:
    return _strength_of(line) != "unlike"


def _strength_of(line: bytes) -> str:
    return _classify(line).strength if _has_hint(line) else "unlike"


def _classify(line: bytes) -> LineForm:
    text = line.decode("utf-8", "replace")
    return classify_raw(text, parse_prefix(text).text)


def _is_announced(lines: Sequence[PhysicalLine], shape: bytes) -> bool:
    """Whether the first line of a shape stands behind one that announces a failure, as a panic and its place."""
    index = next(index for index, line in enumerate(lines) if line.form.shape == shape)
    return _classify(lines[max(0, index - 1)].data[:_LONGEST_HINT]).points_to == "next line"


@ask_masked
def _has_hint(line: bytes) -> bool:
    return _HINT.search(line) is not None


def _is_harmless(line: bytes, count: int, total: int, *, is_rare: bool) -> bool:
    """Whether lines of a shape are no failure by their form, or are so many that they are the writer's report.

    `is_rare`: too few to be usual but for their numbers, which a failure may have too: `80 GiB of 79 GiB`.
    """
    if not is_rare and not _has_hint(line[:_LONGEST_HINT]):
        return True
    form = _classify(line[:_LONGEST_HINT])
    is_report = count >= _MANY and (is_progress(line) or 2 * count >= total)
    return form is UNLIKE or (is_report and form.strength != "strong")


def _is_failure_of_each_rank(lines: Sequence[PhysicalLine], shape: bytes, example: bytes) -> bool:
    """Whether several lines of a shape state a failure, each of another rank: no writer repeats it."""
    if _STATED_RANK.search(example) is None:
        return False
    ranks = [_STATED_RANK.findall(line.data) for line in lines if line.form.shape == shape]
    return len(set(map(tuple, ranks))) == len(ranks) >= FEWEST and _classify(example[:_LONGEST_HINT]) is not UNLIKE


def _behind_usual(writer: bytes, lines: Sequence[PhysicalLine], usual: set[bytes]) -> LastLines | None:
    """Return the lines of one writer behind its last usual line; or, up to a few usual lines, those before them."""
    stop, behind = len(lines), 0
    while stop and lines[stop - 1].form.shape in usual:
        stop -= 1
        behind += 1
    if not stop or behind > MOST_USUAL_BEHIND:
        return None
    start = stop
    while start and (lines[start - 1].form.shape not in usual or lines[start - 1].form.is_stack):
        start -= 1
    if start == stop or (behind and start == 0):
        return None
    own = tuple(lines[max(start, stop - MOST_LAST_LINES) : stop])
    return LastLines(writer, own, lines[start - 1] if start else None, behind)
