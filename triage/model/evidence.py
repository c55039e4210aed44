"""What was read: sources, the origin of lines, blocks and the facts extracted from them.

Times are seconds since the epoch (float); a timestamp without a zone is read as UTC. Offsets are bytes in the
decompressed text, lines are 1-based. Ranks are global ranks; what is not known is None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from triage.base.lazy_dataclass import dataclass
from triage.model.details import Detail, RankBasis

SourceKind = Literal[
    "text", "core", "flight-recorder", "py-spy", "live-stacks", "error-file", "environment", "binary", "empty"
]


@dataclass(frozen=True, slots=True)
class Source:
    """One stream of bytes that a job left: a file, a member of an archive, or standard input.

    `name` is what the user would open: `logs/rank3.log`, `archive.tar.gz!/inner/path`, `-` for standard input. `path`
    is set only if the bytes are uncompressed in a regular file and can be read at any offset. `size` is in bytes,
    `mtime` is the time of the last change.
    """

    name: str
    kind: SourceKind
    size: int | None = None
    path: str | None = None
    mtime: float | None = None


@dataclass(frozen=True, slots=True)
class Warning:  # noqa: A001 - the report calls it so
    """Something the reader must know: what was skipped, truncated, sampled or is uncertain, and why."""

    code: str
    source: str | None
    message: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote a line and when, as far as its prefix, its file name and the job map tell.

    `rank` is the global rank, `local_rank` the rank on its host. `stream` is stdout or stderr. `attempt` counts the
    restarts of the job.
    """

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
    `ambiguous`: lines of several writers that cannot be separated. `continued`: its writer made progress afterwards.
    `ends_writer`: nothing of its writer follows, as far as was read. `nonfatal`: an exception that does not end its
    process (`ignored`, `thread`). `caught`: one that the job's own code caught and printed, and not as an error of its
    logger; its process may have gone on. `writers`: so many processes printed this same traceback, their lines mixed;
    0: all lines are of one writer. `has_own_time`: its own lines have a time; else the time is that of an earlier line,
    and it happened then or later.
    """

    source: str
    offset: int
    end: int
    headline: int
    form: str
    lines: tuple[str, ...]
    origin: Origin
    ambiguous: bool = False
    continued: bool = False
    ends_writer: bool = False
    nonfatal: str = ""
    caught: bool = False
    writers: int = 0
    has_own_time: bool = True


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact. `kind` and `component` say who wrote it, `text` what, `fields` are its parts as signatures match them.

    `line` and `end_line` are filled in only for what is reported. `count` is how often the same fact was written by
    this origin. `inference` facts come from reasoning across ranks; their `text` is the sentence that says why.

    What follows is for reasoning, and no part of a report or of the store: `detail` has the parts with their types,
    `inherits_time` says that the time is that of an earlier line, so that it happened then or later, and `rank_basis`
    how reasoning found the rank.
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
    detail: Detail | None = field(default=None, repr=False, compare=False)
    inherits_time: bool = field(default=False, repr=False, compare=False)
    rank_basis: RankBasis = field(default="", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class LastLine:
    """The last line that a rank wrote in any source, without its prefix; `step` is the training step in it."""

    rank: int
    time: float | None
    step: int | None
    text: str
    source: str
    offset: int = 0
