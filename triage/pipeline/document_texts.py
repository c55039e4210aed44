"""Tell by its text whether a file is the output of a job, or a document, a program or a set of data that quotes one.

A line is output when it has a timestamp, a rank, a level or a count of steps, or when lines of its shape with other
numbers stand again and again. A document has headings, lists and paragraphs; what it fences or indents, it quotes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.evidence.endings.classification import classify
from triage.evidence.endings.logger_levels import read_level
from triage.evidence.endings.shapes import FEWEST, is_progress, shape_of
from triage.ranks.prefix import parse_prefix
from triage.records.ras_lines import is_of_report
from triage.records.tracebacks import HEADER

TextKind = Literal["output", "failure", "document", "program", "data", "unclear"]
"""`failure`: its last lines state a failure; `unclear`: nothing by its text alone, so that the name decides."""

SAMPLE_BYTES = 1 << 15
"""So much of the start, and half as much of the end, of a text is looked at."""
OUTPUT_SHARE = 0.5
"""From this share of its lines on, a text is output; it has at least FEWEST_OUTPUT such lines, or no other line."""
FEWEST_OUTPUT = 3
DOCUMENT_SHARE = 0.5
"""From this share of its lines on, a text is a document, if less than MOST_OUTPUT of them is output."""
FEWEST_DOCUMENT = 3
MOST_OUTPUT = 0.1
_MOST_LINES = 400
_LONGEST = 600
_FEWEST_RECORDS = 3
_FEWEST_DEFINITIONS, _PROGRAM_SHARE = 2, 0.4
_FEWEST_OPTIONS = 3
_MOST_LAST = 3

_FENCE = lazy_re(r"^ {0,3}(?:```|~~~)")
_INDENTED = lazy_re(r"^(?: {4}|\t)|^ {0,3}> ?")
# A label of srun looks like an item of a numbered list.
_AMBIGUOUS_LAYER = "srun --label"
_HEADING = lazy_re(
    r"^#{1,6} \S|^={1,6} \S.* ={1,6}$|^\|(?:\s?:?-{3,}:?\s?\|){2,}\s*$|^\.\. [\w-]+::|"
    r"^(?:TODO|FIXME|NOTE|Q|A)\b ?: |^(?:v\d+\.\d+(?:\.\d+)?|\d+\.\d+\.\d+)(?:[-.]?(?:rc|a|b|dev|post)\d*)?[ :]+\S|"
    r"^\d{1,2}\.? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\w*(?: \d{4})?: "
)
_ITEM = lazy_re(r"^\s{0,6}(?:[-*+•]|\d{1,3}[.)]) +(?P<text>\S.*)")
_UNDERLINE = lazy_re(r"^(?:={3,}|-{3,}|~{3,}|\^{3,})\s*$")
_PLAIN_WORD = lazy_re(r"^[(\"'“‘`]?[A-Za-zÀ-ÿ]+(?:[-'’][A-Za-zÀ-ÿ]+)*[)\"'”’`.,;:!?]{0,3}$")
_SENTENCE_END = lazy_re(r"[.:;?!)\"'”`][*_]{0,2}\s*$")
# A row of a table that kubectl, sacct and others print: four columns, divided by two blanks or more.
_COLUMNS = lazy_re(r"^\S(?: ?\S)*(?: {2,}\S(?: ?\S)*){3}")
_PROSE_WORDS, _ITEM_WORDS, _PROSE_SHARE = 6, 3, 0.7
_DEFINITION = lazy_re(
    r"^\s{0,12}(?:import \w|from [\w.]+ import |(?:async )?def \w+\(|class \w+[(:{ ]|#include [<\"]|func \w+\(|"
    r"package \w|(?:pub )?fn \w+|use [\w:]+|public |private |const \w+ =|let \w+ =|function \w+|@\w+|using [\w ]+;|"
    r"struct \w+|module \w+|export \w+=|set -\w+|#!/)"
)
_CODE = lazy_re(
    r"^\s*(?:return\b|raise \w|throw |if .*[:{]$|elif .*:$|else[: {]|for .*[:{]$|while .*[:{]$|try[: {]|except.*:$|"
    r"finally[: {]|with .*:$|[}\])]+[;,]?$|#|//|/\*|\*/|\"\"\")|[;{]\s*$|^\s*[\w.\[\]\"']+ ?(?:[+-]?=|:=) ?\S|"
    r"^\s+[\w.]+\(.*\)$"
)
_OPTION = lazy_re(r"^\s{1,12}-{1,2}\w")
_USAGE = lazy_re(r"(?i)^usage: ")
_USAGE_ERROR = lazy_re(r"^\S{1,80}: error: ")
# Keys of records and columns of tables: who wrote when, and what people collect to learn or to look up.
# What `git log`, `git status` and `git diff` print, by its first line and by its other lines.
_GIT_START = lazy_re(r"commit [0-9a-f]{40}\b|diff --git |On branch \S|HEAD detached (?:at|from) |[0-9a-f]{40}$")
_GIT_LINE = lazy_re(
    r"commit [0-9a-f]{40}\b|(?:Author|AuthorDate|Commit|CommitDate|Date|Merge|Refs?): |tag: | {4}|\t|"
    r"[ MADRCU?!]{2} \S|(?:On branch|HEAD detached|Your branch|Changes |Untracked files:|nothing to commit|"
    r"no changes) ?|diff --git |index [0-9a-f]{4,40}|(?:new|deleted) file mode |similarity index |rename |"
    r"Binary files |[-+@ \\]|[0-9a-f]{40}$"
)

_LOG_KEYS = frozenset(
    (
        *("time", "timestamp", "ts", "@timestamp", "datetime", "date", "asctime", "created", "level", "levelname"),
        *("severity", "lvl", "levelno", "loglevel", "step", "global_step", "iteration", "iter", "epoch", "rank"),
        *("local_rank", "global_rank", "host", "hostname", "node", "pid", "process", "pod", "container", "logger"),
        *("exit_code", "exitcode", "job_id", "jobid", "worker", "thread", "@t", "@l", "lasttimestamp", "traceback"),
    )
)
_DATA_KEYS = frozenset(
    (
        *("text", "label", "labels", "prompt", "completion", "question", "answer", "instruction", "response", "body"),
        *("category", "class", "target", "sentence", "meaning", "fix", "solution", "advice", "remedy", "explanation"),
        *("expected", "annotation", "chosen", "rejected", "conversations", "messages", "intent", "translation"),
        *("input", "output", "root_cause", "known_cause", "hint", "pattern", "regex"),
    )
)
_JSON_KEY = lazy_re(r'"([\w@.-]{1,40})"\s*:')


@dataclass(frozen=True, slots=True)
class _Share:
    """How many of the lines that a text does not quote are output, and how many are those of a document."""

    lines: int
    output: int
    document: int


def classify_text(data: bytes, *, is_named_document: bool = False) -> TextKind:
    """Return what a text is; `data` is its start, and for a long text its end behind it.

    The paragraphs of a document by its name (`is_named_document`) may end in a line that states a failure.
    """
    lines = _lines_of(data)
    if not lines:
        return "unclear"
    own = _without_quotes(lines)
    if any(map(is_of_report, own)):
        return "output"
    if is_data(lines):
        return "data"
    if _is_of_git(lines):
        return "document"
    share = _count(own)
    if share.output >= max(OUTPUT_SHARE * share.lines, min(FEWEST_OUTPUT, share.lines), 1):
        return "output"
    if _is_program(lines, share):
        return "program"
    few_output = share.output < max(1, MOST_OUTPUT * share.lines)
    is_written = few_output and share.document >= max(
        DOCUMENT_SHARE * share.lines, 1 if is_named_document else FEWEST_DOCUMENT
    )
    if not (is_written and is_named_document) and _ends_with_failure(own):
        return "failure"
    return "document" if is_written or (few_output and _is_help(lines)) else "unclear"


def quotes_lines(data: bytes) -> bool:
    """Whether a text fences or indents lines, as people quote the output of a job."""
    lines = [line for line in _lines_of(data) if line]
    return len(_without_quotes(lines)) < len(lines)


def _lines_of(data: bytes) -> list[str]:
    text = data.decode("utf-8", "replace")
    lines = [line.rstrip()[:_LONGEST] for line in text.split("\n")]
    half = _MOST_LINES // 2
    chosen = lines if len(lines) <= _MOST_LINES else [*lines[:half], *lines[-half:]]
    return chosen if any(chosen) else []


def _is_of_git(lines: Sequence[str]) -> bool:
    """Whether each line is one of git's. A job may print a commit before its own lines."""
    written = [line for line in lines if line]
    return _GIT_START.match(written[0]) is not None and all(map(_GIT_LINE.match, written))


def _without_quotes(lines: Iterable[str]) -> list[str]:
    """Return the lines outside of fences and indented blocks, without blank ones."""
    own, is_fenced = list[str](), False
    for line in lines:
        if _FENCE.match(line):
            is_fenced = not is_fenced
        elif line and not is_fenced and not _INDENTED.match(line):
            own.append(line)
    return own


def _count(lines: Sequence[str]) -> _Share:
    shapes = Counter(shape_of(line.encode()) for line in lines if any(map(str.isdigit, line)))
    output = document = 0
    for number, line in enumerate(lines):
        is_marked = _is_marked(line)
        is_title = number + 1 < len(lines) and _UNDERLINE.match(lines[number + 1]) is not None
        if not is_marked and _is_output(line, shapes):
            output += 1
        elif is_marked or is_title or _UNDERLINE.match(line) or _is_prose(line):
            document += 1
    return _Share(len(lines), output, document)


def _is_marked(line: str) -> bool:
    """Whether a line is a heading, an entry of a changelog or an item of a list of words."""
    item = _ITEM.match(line)
    return _HEADING.match(line) is not None or (item is not None and _is_prose(item["text"], _ITEM_WORDS))


def _is_output(line: str, shapes: Counter[bytes]) -> bool:
    parsed = parse_prefix(line)
    origin = parsed.origin
    if origin.time is not None or (origin.rank is not None and _AMBIGUOUS_LAYER not in parsed.layers):
        return True
    if _COLUMNS.match(line):
        return True
    if _is_prose(line):
        return False
    if line.startswith(HEADER) or read_level(line) or is_progress(line.encode()):
        return True
    return any(map(str.isdigit, line)) and shapes[shape_of(line.encode())] >= FEWEST


def _is_prose(line: str, fewest: int = _PROSE_WORDS) -> bool:
    """Whether a line reads as part of a paragraph: words, hardly any numbers or signs."""
    tokens = line.split()
    if len(tokens) < fewest or line[0] in "{[<" or tokens[0].endswith(":"):
        return False
    plain = sum(_PLAIN_WORD.match(token) is not None for token in tokens)
    return plain >= _PROSE_SHARE * len(tokens) and ("=" not in line or _SENTENCE_END.search(line) is not None)


def _is_program(lines: Sequence[str], share: _Share) -> bool:
    if lines[0].startswith("#!"):
        return True
    written = [line for line in lines if line]
    definitions = sum(_DEFINITION.match(line) is not None for line in written)
    code = sum(_DEFINITION.match(line) is not None or _CODE.search(line) is not None for line in written)
    return definitions >= _FEWEST_DEFINITIONS and code >= _PROGRAM_SHARE * len(written) and not share.output


def _is_help(lines: Sequence[str]) -> bool:
    """Whether it is the help of a program, and not what it prints about a wrong option."""
    written = [line for line in lines if line]
    return (
        any(_USAGE.match(line) for line in written[:3])
        and sum(_OPTION.match(line) is not None for line in written) >= _FEWEST_OPTIONS
        and not any(_USAGE_ERROR.match(line) for line in written)
    )


def _ends_with_failure(own: Sequence[str]) -> bool:
    """Whether one of the last lines states a failure by itself, as of a program that printed sentences before."""
    return any(map(_states_failure, own[-_MOST_LAST:])) or any(line.startswith(HEADER) for line in own)


def _states_failure(line: str) -> bool:
    if _is_marked(line) or _is_prose(line):
        return False
    form = classify(parse_prefix(line).text, read_level(line))
    return form.strength == "strong" or (form.strength == "weak" and form.name != "term of failing")


def is_data(lines: Sequence[str]) -> bool:
    """Whether the lines are records without a time, a step or a writer, as in a data set or a table of messages."""
    written = [line for line in lines if line]
    first = written[0].lstrip()[:1]
    if first in "{[":
        return _is_json_data(written)
    return _is_table_data(written)


def _is_json_data(lines: Sequence[str]) -> bool:
    records = [record for line in lines[:50] if isinstance(record := _load(line), dict)]
    if len(records) >= min(len(lines), 50) - 1 and records:
        keys = {str(key).lower() for record in records for key in record}
        return len(records) >= _FEWEST_RECORDS and _holds_data(keys)
    if not lines[0].lstrip().startswith("["):
        return False
    all_keys = [match[1].lower() for line in lines for match in _JSON_KEY.finditer(line)]
    return bool(all_keys) and Counter(all_keys).most_common(1)[0][1] >= _FEWEST_RECORDS and _holds_data(set(all_keys))


def _load(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        # A long record is cut: its keys are enough.
        keys = _JSON_KEY.findall(line) if len(line) == _LONGEST and line.startswith("{") else []
        return dict.fromkeys(keys) if keys else None


def _is_table_data(lines: Sequence[str]) -> bool:
    for separator in (",", "\t", ";", "|"):
        header = [name.strip(" \"'").lower() for name in lines[0].strip("|").split(separator)]
        if len(header) < 2 or not all(name.replace("_", "").replace(" ", "").isalpha() for name in header):
            continue
        rows = sum(line.count(separator) >= len(header) - 1 for line in lines[1:])
        if rows >= 2 and rows >= 0.9 * (len(lines) - 1):
            return _holds_data({name.replace(" ", "_") for name in header})
    return False


def _holds_data(keys: set[str]) -> bool:
    return bool(keys & _DATA_KEYS) and not keys & _LOG_KEYS
