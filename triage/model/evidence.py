"""What was read: sources, the origin of lines, blocks and the facts extracted from them.

Times are seconds since the epoch (float); a stamp without a zone is read as UTC. Offsets are bytes in the decompressed
text, lines are 1-based. Ranks are global ranks; what is not known is None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SourceKind = Literal[
    "text", "core", "flight-recorder", "py-spy", "live-stacks", "error-file", "environment", "binary", "empty"
]


@dataclass(frozen=True, slots=True)
class Source:
    """One stream of bytes a job left behind.

    `name` is what the user would open: `logs/rank3.log`, `archive.tar.gz!/inner/path`, `-` for standard input.
    `path` is set only when the bytes lie uncompressed in a regular file and can be read at any offset.
    """

    name: str
    kind: SourceKind
    size: int | None = None
    path: str | None = None
    mtime: float | None = None


@dataclass(frozen=True, slots=True)
class Warning:  # noqa: A001 - the report calls it so
    """Something the reader must know: skipped, truncated, sampled, doubtful. "Skipped, because …" is a result."""

    code: str
    source: str | None
    message: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote a line, as far as the line, its file name and the job's maps tell."""

    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    pid: int | None = None
    stream: str | None = None
    time: float | None = None
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of one origin that belong together: a traceback, a NCCL WARN with its chain, a single line.

    `lines` have their prefixes removed; `offset` is where the first of them starts, `headline` the offset of the line
    that says what happened (the last line of a traceback). `form` is the shape: line, traceback, terminate, elastic …
    `ambiguous`: lines of several writers that nothing tells apart; `goes_on`: its writer made progress afterwards;
    `aside`: an exception that does not end its process (ignored, thread). `writers`: as many printed this same
    traceback, their lines
    mixed with those of others and nothing says who; 0: one writer's own lines. `dated`: its time stands in its own
    lines; else it is that of a line
    before, and it happened then or later.
    """

    source: str
    offset: int
    end: int
    headline: int
    form: str
    lines: tuple[str, ...]
    origin: Origin
    ambiguous: bool = False
    goes_on: bool = False
    aside: str = ""
    writers: int = 0
    dated: bool = True


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact. `kind` and `component` say who spoke, `text` what, `fields` the parts by name.

    `line` and `end_line` are filled in only for what is reported. `count` is how often the same fact was seen
    for this origin; `inferred` facts come from reasoning across ranks and carry their sentence in `text`.
    """

    kind: str
    component: str
    text: str
    origin: Origin
    source: str
    offset: int
    end: int = 0
    fields: Mapping[str, str] = field(default_factory=dict)
    excerpt: str = ""
    count: int = 1
    line: int | None = None
    end_line: int | None = None


@dataclass(frozen=True, slots=True)
class LastLine:
    """The last line that a rank wrote, wherever it stands, without its prefix."""

    rank: int
    time: float | None
    step: int | None
    text: str
    source: str
