"""The layout of one source: its prefix grammars and what wraps or cuts its lines, detected from a sample of them."""

from __future__ import annotations

from collections.abc import Sequence

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.ranks import word_wrap
from triage.ranks.file_prefixes import SAMPLED_LINES, UNLABELLED, detect_table
from triage.ranks.grammar import Table
from triage.ranks.grammars import BY_START
from triage.ranks.log_wrappers import WrapperKind, detect_wrapper, is_journal_export, read_message_fields, unwrap_json
from triage.ranks.nesting import resolve_labels
from triage.ranks.prefix import parse_prefix, read_layers
from triage.ranks.terminal_wrap import detect_width

# The widths at which collectors cut lines: util-linux and srun 1,024 bytes; BusyBox and BSD read 1,023 at a time.
CUT_WIDTHS = (1024, 1023)
LONGEST_PREFIX = 160
LONGEST_CUT_LINE = max(CUT_WIDTHS) + LONGEST_PREFIX
# The grammars of collectors that cut long lines, by name.
LABEL_PREFIXES = frozenset({"srun --label", "srun --label on every line", "srun --label of het jobs"})
SYSLOG_PREFIXES = frozenset({"syslog", "journal with ISO stamps"})
CUTTING_PREFIXES = LABEL_PREFIXES | SYSLOG_PREFIXES | {"PALS --label"}
_COLLECTOR_SAMPLES = 12
_COLOUR = lazy_re(r"\x1b\[[0-9;]*[A-Za-z]")
# What a paste leaves of a colour when it drops the escape character, on a line that has the end of a colour too.
_COLOUR_WITHOUT_ESCAPE = lazy_re(r"\[(?:[0-9]{1,3}(?:;[0-9]{1,3}){0,5})?m")


@dataclass(frozen=True, slots=True)
class Layout:
    """How the lines of one source are written.

    `table` has their grammars, `wrapper` is the log wrapper around them, and `width` is where a terminal broke them,
    `word_width` where an editor broke them between words.
    `cuts_lines`: a collector cuts long lines. `escapes_newlines`: a collector writes several lines as one.
    """

    table: Table
    wrapper: WrapperKind = ""
    width: int = 0
    cuts_lines: bool = False
    escapes_newlines: bool = False
    word_width: int = 0

    @property
    def is_joined(self) -> bool:
        """Did a terminal or an editor break its lines?"""
        return bool(self.width or self.word_width)

    @property
    def has_whole_lines(self) -> bool:
        """Is each line of the file one line of a writer, neither wrapped nor cut?"""
        return not (self.is_joined or self.wrapper or self.cuts_lines or self.escapes_newlines)

    @property
    def is_wrapped(self) -> bool:
        """Is there more around the lines than the prefixes that any file may have?"""
        return bool(self.wrapper or self.is_joined or self.escapes_newlines) or not (
            self.table is BY_START or self.table is UNLABELLED
        )


PLAIN = Layout(BY_START)
_RANK_LABEL = lazy_re(r"\[\d{1,6}\] ")
_SHORTEST_LABEL = len("[0] ")


def detect_layout(head: bytes, tail: bytes = b"") -> Layout:
    """Detect the layout of a source from its first and last bytes. Both may end within a line."""
    if is_journal_export(head or tail):
        messages = [
            line[8:] for line in (head + tail).decode("utf-8", "replace").split("\n") if line.startswith("MESSAGE=")
        ]
        return Layout(detect_table(messages[-2 * SAMPLED_LINES :]), "export")
    width = detect_width(tail or head) if not (head and tail) else 0
    if width:
        unbroken = b"\n".join(_join_broken(width, tail or head))
        return Layout(resolve_labels(detect_table(_sample(unbroken, SAMPLED_LINES)), unbroken), "", width)
    word_width = word_wrap.detect_width(tail or head) if not (head and tail) else 0
    if word_width:
        joined = word_wrap.join_lines(word_width, tail or head)
        return Layout(resolve_labels(detect_table(_sample(joined, SAMPLED_LINES)), joined), word_width=word_width)
    half = SAMPLED_LINES // 2
    lines = _sample(head, half) + _sample(tail[tail.find(b"\n") + 1 :], half)
    table = resolve_labels(detect_table(lines), head, tail)
    wrapper = detect_wrapper(lines, table, head + b"\n" + tail)
    if wrapper == "json":
        messages = [message for line in lines for message in _json_messages(line, table)]
        table = resolve_labels(detect_table(messages, table), "\n".join(messages).encode("utf-8", "replace"))
    elif wrapper == "json-lines":
        unwrapped = "\n".join(read_message_fields(head + b"\n" + tail)).encode("utf-8", "replace")
        table = resolve_labels(detect_table(_sample(unwrapped, SAMPLED_LINES)), unwrapped)
    elif wrapper == "csv":
        from triage.ranks.csv_records import list_messages

        messages = list_messages(head)
        table = resolve_labels(
            detect_table(messages[: 2 * SAMPLED_LINES]), "\n".join(messages).encode("utf-8", "replace")
        )
    if wrapper:
        return Layout(table, wrapper)
    layout = Layout(table, "", 0, *_detect_collector(lines, table, head, tail))
    return PLAIN if table is BY_START and not (layout.cuts_lines or layout.escapes_newlines) else layout


def _detect_collector(lines: Sequence[str], table: Table, head: bytes, tail: bytes) -> tuple[bool, bool]:
    """Return whether a collector that cuts long lines, and one that escapes newlines, writes most sampled lines.

    The first counts only if no line of the head and the tail is longer than it allows. rsyslog writes a newline as
    `#012`.
    """
    layers = [read_layers(line, table) for line in lines[:: len(lines) // _COLLECTOR_SAMPLES or 1]]
    cuts, escapes = (
        2 * sum(not names.isdisjoint(prefixes) for prefixes in layers) >= len(layers) > 0
        for names in (CUTTING_PREFIXES, SYSLOG_PREFIXES)
    )
    return cuts and max(max(map(len, data.split(b"\n"))) for data in (head, tail)) <= LONGEST_CUT_LINE, escapes


def _join_broken(width: int, data: bytes) -> list[bytes]:
    lines: list[bytes] = []
    continues = False
    for piece in data.split(b"\n"):
        if continues:
            lines[-1] += piece
        else:
            lines.append(piece)
        continues = len(piece.decode("utf-8", "replace")) == width
    return lines


def _json_messages(line: str, table: Table) -> list[str]:
    messages = unwrap_json(parse_prefix(line, 1970, table), 1970)
    return [line] if messages is None else [text for text, _ in messages]


def _sample(data: bytes, most: int) -> list[str]:
    """Return at most `most` lines, spread over `data`. A last line that is cut off is left out if there are others.

    The distances between them vary, so that more than one of the lines of a record of several lines is sampled.
    """
    lines = data.split(b"\n")
    lines = (lines[:-1] or lines) if lines[-1] else lines
    full = [line for line in lines if line.strip()]
    step = max(1, len(full) // most)
    return [
        strip_colours(line[: 1 << 11].replace(b"\0", b"").decode("utf-8", "replace").removeprefix("\ufeff"))
        for line in (full[number * step + number * number % step] for number in range(len(full) // step))
    ][:most]


def strip_colours(text: str) -> str:
    """Return a line without terminal colours, also where a paste dropped the escape character: `[31mError[0m`."""
    text = _COLOUR.sub("", text) if "\x1b" in text else text
    return _COLOUR_WITHOUT_ESCAPE.sub("", text) if "[0m" in text or "[39m" in text else text


def remove_repeated_labels(text: str) -> str:
    """Return a line without the rank labels that mpiexec of MPICH and Intel MPI writes before each part of it.

    A program that prints a line in parts gets the label before each: `[2] IndexError[2] : [2] bad row[2] `. The last
    one stands before the newline, which no other text has.
    """
    label = text[: text.find(" ") + 1]
    if len(label) < _SHORTEST_LABEL or not text.endswith(label) or _RANK_LABEL.fullmatch(label) is None:
        return text
    return label + text[len(label) :].replace(label, "")
