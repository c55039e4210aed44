"""What a prefix grammar is: the pattern of one layer of the text before a line, and what it says about the origin."""

from __future__ import annotations

import re
from typing import Literal

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re

Kind = Literal["writer", "record", "carrier"]
ORIGIN_PARTS = ("rank", "local_rank", "host", "pid", "stream")
START_CLASSES = ("[d", "[a", "[_", "date", "d", "a", "(", "_")
_GROUPS = lazy_re(r"\(\?P<(\w+)>")


@dataclass(frozen=True, slots=True, eq=False)
class Grammar:
    """One layer of a prefix.

    A *writer* layer names a writer: all lines of one writer carry the same text (torchrun's tee, ranks, srun). A
    *record* layer opens a message (timestamps, glog, NCCL, plog). A *carrier* layer stands before any line (container
    runtimes). Only lines of the same writer can continue a block, and a line that opens a record cannot.

    `pattern` is matched where the line has no prefix removed yet; its groups rank, local_rank, host, pid, stream and
    the parts of a time are read. Its group `who` is what is the same on all lines of a writer, where the prefix also
    has a timestamp. `required_text` stands in every such line, for a quick check. `samples` are lines that begin with
    it (for a file prefix: one text of several lines). `since` is the first version that writes it. `most`: so often it
    may stand in one prefix, as that of a collector may before that of another.
    """

    name: str
    kind: Kind
    since: str
    samples: tuple[str, ...]
    pattern: re.Pattern[str]
    start_classes: tuple[str, ...]
    origin_parts: tuple[str, ...]
    has_time: bool
    has_zone: bool
    has_writer_group: bool
    required_text: str
    most: int = 1

    @property
    def example(self) -> str:
        """A line that begins with the prefix."""
        return self.samples[0]

    @property
    def is_writer(self) -> bool:
        """Do all lines of one writer carry the same text?"""
        return self.kind == "writer"

    @property
    def is_record(self) -> bool:
        """Does it open a message?"""
        return self.kind == "record"


def make_grammar(
    name: str,
    kind: Kind,
    since: str,
    start_classes: str,
    samples: str | tuple[str, ...],
    pattern: str,
    required_text: str = "",
    most: int = 1,
) -> Grammar:
    """Make a grammar. `start_classes` are the results of `start_class` with which it can begin, separated by blanks."""
    groups = set(_GROUPS.findall(pattern))
    return Grammar(
        name,
        kind,
        since,
        (samples,) if isinstance(samples, str) else samples,
        lazy_re(pattern),
        tuple(start_classes.split()),
        tuple(key for key in ORIGIN_PARTS if key in groups),
        "h" in groups,
        "z" in groups,
        "who" in groups,
        required_text,
        most,
    )


def start_class(line: str, position: int) -> str:
    """Return the class of the text at `position`: only grammars that can begin with it are tried.

    The classes are `[d`, `[a` and `[_` (a bracket and a digit, letter or other), `date`, `d`, `a`, `(` and `_` (other).
    """
    first = line[position : position + 1]
    if first == "[":
        following = line[position + 1 : position + 2]
        return "[d" if following.isdigit() else "[a" if following.isalpha() else "[_"
    if first.isdigit():
        is_date = line[position + 4 : position + 5] in ("-", "/") and line[position : position + 4].isdigit()
        return "date" if is_date else "d"
    return "a" if first.isalpha() else "(" if first == "(" else "_"


class Table(dict[str, tuple[Grammar, ...]]):
    """For each start class the grammars that can begin with it, in their order. Each table is equal only to itself."""

    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__


def build_table(grammars: tuple[Grammar, ...]) -> Table:
    """Return the table of these grammars."""
    return Table({start: tuple(entry for entry in grammars if start in entry.start_classes) for start in START_CLASSES})
