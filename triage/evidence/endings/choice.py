"""Choose among last lines the one that says most about the end, and the lines that belong to it."""

from __future__ import annotations

from collections.abc import Sequence

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.evidence.endings.classification import UNLIKE, LineForm, classify, strip_box
from triage.evidence.endings.failure_terms import stops_process
from triage.evidence.endings.interface import HINT, INNER_MESSAGE, LONGEST_LINE, STATEMENT, STATUS
from triage.evidence.endings.launcher_forms import PROGRAM_ERROR
from triage.evidence.endings.preceding_lines import find_reason
from triage.records.blocks import IGNORED
from triage.records.completion import read_completion
from triage.records.text import Line
from triage.records.tracebacks import HEADER, is_exception

MOST_BELONGING = 12
WEAK_REACH = 20
"""A weak form counts in so many of the last lines."""
LINES_OF_GOING_ON = 6
"""So many lines of a level below error behind a weak form show that the program went on."""
# What is called returned a code.
_RETURNED = lazy_re(r"-> \d+")
_MOST_BEFORE = 4
_STATUSES = range(STATUS, STATEMENT)
# What it announces stands behind it: `Fatal error:`, `--> FOAM FATAL ERROR: (openfoam-2212)`.
_HEADING = lazy_re(r":(?: \([\w.-]+\))?$")
_INNER_CAUSE = "cause of an exception"
"""The form of a line whose own stack follows."""
_LAST_OF = frozenset((_INNER_CAUSE, "exception", "exception group"))


@dataclass(frozen=True, slots=True)
class ChosenLine:
    """The most telling line, by its index, with its form; `stop` is behind the last line that belongs to it."""

    index: int
    form: LineForm
    stop: int


def choose_line(lines: Sequence[Line], levels: Sequence[str], *, strong_only: bool = False) -> ChosenLine | None:
    """Return the most telling of these lines, without those before a line that reports a good end.

    `levels` are those of their records.
    Without a form of failing it is the first line, as unlike; None where there is nothing to choose.
    """
    forms = _without_harmless(
        lines, [classify(line.parsed.text, level) for line, level in zip(lines, levels, strict=True)]
    )
    good_ends = (index for index, line in enumerate(lines) if forms[index].strength != "strong" and _is_good_end(line))
    start = 1 + max(good_ends, default=-1)
    weak_start = max(start, _start_of_reach(lines, forms), _last_went_on(lines, forms, levels))
    weak_start = len(lines) if strong_only else weak_start
    best = _most_telling(_without_tracebacks(lines, forms), start, weak_start)
    best = _most_telling(forms, start, weak_start) if best is None else best
    if best is None:
        if strong_only or start:
            return None
        texts = [index for index, line in enumerate(lines) if strip_box(line.parsed.text)]
        return ChosenLine(texts[-1], UNLIKE, texts[-1] + 1) if texts else None
    index, form = find_reason([strip_box(line.parsed.text) for line in lines], forms, levels, best)
    index, form = _follow(lines, forms, best) if index == best else (index, form)
    return ChosenLine(index, form, _find_stop(lines, index))


def _start_of_reach(lines: Sequence[Line], forms: Sequence[LineForm]) -> int:
    """Return the index from which on weak forms count. What launchers report of ends does not count as distance, and
    neither do the tracebacks of ranks that lost their peers, from the first to the last.
    """
    inside = _list_traceback_lines(lines)
    between = range(min(inside), max(inside) + 1) if inside else range(0)
    count = 0
    for index in range(len(lines) - 1, -1, -1):
        count += not (index in between or forms[index].weight in _STATUSES or not _has_word(lines[index]))
        if count == WEAK_REACH:
            return index
    return 0


def _has_word(line: Line) -> bool:
    return any(map(str.isalnum, line.parsed.text[:LONGEST_LINE]))


def _is_good_end(line: Line) -> bool:
    return read_completion(line.parsed.text)[0] != ""


def _without_harmless(lines: Sequence[Line], forms: Sequence[LineForm]) -> list[LineForm]:
    """Return the forms without those of exceptions that Python ignores: they end no process."""
    eligible = list(forms)
    if not any(IGNORED.match(line.parsed.text) for line in lines):
        return eligible
    is_harmless = False
    for index, line in enumerate(lines):
        text = line.parsed.text
        if IGNORED.match(text):
            is_harmless = True
        if is_harmless:
            eligible[index] = UNLIKE
            is_harmless = IGNORED.match(text) is not None or text[:1].isspace() or HEADER in text or not text
    return eligible


def _without_tracebacks(lines: Sequence[Line], forms: Sequence[LineForm]) -> list[LineForm]:
    """Return the forms without those of Python's tracebacks, which are facts of their own, and of the lines that
    announce them.
    """
    if not any(HEADER in line.parsed.text for line in lines):
        return list(forms)
    inside = _list_traceback_lines(lines)
    return [
        UNLIKE if index in inside and not _is_statement_before(lines, forms, index) else form
        for index, form in enumerate(forms)
    ]


def _is_statement_before(lines: Sequence[Line], forms: Sequence[LineForm], index: int) -> bool:
    """Whether the line right before a traceback is a message of a program of its own: `restore: error: 3 parts are
    lost`. What announces a traceback is logged, or ends with a colon.
    """
    text, behind = lines[index].parsed.text, lines[index + 1 : index + 2]
    is_before = HEADER not in text and any(HEADER in line.parsed.text for line in behind)
    return is_before and forms[index].name == PROGRAM_ERROR and not text.rstrip().endswith(":")


def _list_traceback_lines(lines: Sequence[Line]) -> set[int]:
    """Return the indices of lines from the headers of tracebacks to their exceptions, and of those right before."""
    inside: set[int] = set()
    is_open = False
    for index, line in enumerate(lines):
        text = line.parsed.text
        if HEADER in text:
            is_open = True
            if index and lines[index - 1].parsed.origin.rank == line.parsed.origin.rank:
                inside.add(index - 1)
        if is_open:
            inside.add(index)
            is_open = HEADER in text or text[:1].isspace() or not is_exception(text)
    return inside


def _last_went_on(lines: Sequence[Line], forms: Sequence[LineForm], levels: Sequence[str]) -> int:
    """Return the index from which on too few lines of a level below error follow to show that the program went on."""
    count = 0
    for index in range(len(lines) - 1, -1, -1):
        is_low = levels[index] == "low" and forms[index] is UNLIKE
        text = lines[index].parsed.text
        count += is_low and not (stops_process(text) or _RETURNED.search(text))
        if count >= LINES_OF_GOING_ON:
            return index + 1
    return 0


def _most_telling(forms: Sequence[LineForm], start: int, weak_start: int) -> int | None:
    """Return the index of the best form. Of equals the first; of exceptions, which come in chains, the last."""
    candidates = [
        index
        for index in range(start, len(forms))
        if forms[index].strength == "strong" or (forms[index].strength == "weak" and index >= weak_start)
    ]
    if not candidates:
        return None
    weight = max(forms[index].weight for index in candidates)
    equal = [index for index in candidates if forms[index].weight == weight]
    return equal[-1] if forms[equal[0]].name in _LAST_OF and weight == INNER_MESSAGE else equal[0]


def _follow(lines: Sequence[Line], forms: Sequence[LineForm], index: int) -> tuple[int, LineForm]:
    """Return the line with the message, where the form's own line only announces it."""
    form = forms[index]
    text = lines[index].parsed.text.strip()
    is_heading = text.endswith(":") and (form.weight <= HINT or " " not in text)
    is_open = form.points_to == "next line" or is_heading
    if is_open:
        for behind in range(index + 1, min(len(lines), index + 3)):
            if strip_box(lines[behind].parsed.text):
                return behind, form
    return index, form


def _find_stop(lines: Sequence[Line], index: int) -> int:
    """Return the index behind the last line that belongs to the chosen one. Rules between blocks do not count."""
    belonging = [behind for behind in range(index, len(lines)) if _has_word(lines[behind])]
    return belonging[:MOST_BELONGING][-1] + 1 if belonging else index + 1


def text_of(lines: Sequence[Line], chosen: ChosenLine) -> str:
    """Return the chosen line, with what announces it and the error of its record, then the lines around it."""
    before = lines[max(0, chosen.index - _MOST_BEFORE) : chosen.index] if chosen.form.strength != "unlike" else []
    behind = lines[chosen.index + 1 : chosen.stop]
    statement = _state(lines, chosen)
    is_heading = chosen.form.name == _INNER_CAUSE or _HEADING.search(statement) is not None
    others = (*behind, *before) if is_heading else (*before, *behind)
    texts = [statement, *(strip_box(line.parsed.text) for line in others)]
    return "\n".join(text for text in texts if text and (text is texts[0] or any(map(str.isalnum, text))))


def _state(lines: Sequence[Line], chosen: ChosenLine) -> str:
    """Return the chosen line, behind the line that announces it: `panicked at src/plan.rs:84:21:`; or before the error
    that its JSON record holds beside the message.
    """
    line = lines[chosen.index]
    text = strip_box(line.parsed.text)
    if chosen.form.points_to == "next line":
        earlier = (strip_box(lines[index].parsed.text) for index in range(chosen.index - 1, -1, -1))
        return f"{next(filter(None, earlier), '')} {text}".strip()
    behind = lines[chosen.index + 1 : chosen.index + 3]
    # Lines of one record stand a byte apart.
    is_pair = [one.offset - line.offset == number for number, one in enumerate(behind, 1)] in ([True], [True, False])
    if is_pair and text[-1:].isalnum() and behind[0].parsed.text.strip():
        return f"{text}: {strip_box(behind[0].parsed.text)}"
    return text
