"""What a dump of a live process holds, and what it says when ranks are laid side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame. `module` is the library of a native frame; it has no `file` then, or the one of its source."""

    function: str
    file: str = ""
    line: int | None = None
    module: str = ""

    @property
    def native(self) -> bool:
        return not self.file.endswith((".py", ">")) and not self.file.startswith("<")

    @property
    def place(self) -> str:
        """`train.py:25`, or the library."""
        name = self.file.rsplit("/", 1)[-1]
        return f"{name}:{self.line}" if self.line and name else name or self.module


@dataclass(frozen=True, slots=True)
class Thread:
    """`frames` innermost first. `status` as the tool says it (active, idle); `gil`: it holds Python's global lock."""

    name: str
    tid: int | None
    frames: tuple[Frame, ...]
    status: str = ""
    gil: bool = False
    kernel: str = ""


@dataclass(frozen=True, slots=True)
class Process:
    """All threads of one process at one moment, as one file has them."""

    source: str
    tool: str
    pid: int | None
    threads: tuple[Thread, ...]
    command: str = ""
    rank: int | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class State:
    """What a process was doing: `kind` is one of `states.KINDS`, `words` a phrase that follows "was" or "is", `op` the call if one is known,
    `place` the line of the user's own program from which it was made."""

    kind: str
    words: str
    op: str = ""
    place: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """One process of the job and where it stands; `key` is equal for those that stand at the same place."""

    label: str
    rank: int | None
    process: Process
    state: State
    key: tuple[str, ...]
    moved: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Processes with the same stack, innermost frame first."""

    members: tuple[Member, ...]
    key: tuple[str, ...]
    state: State
    usual: bool = False


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What follows from all stacks together: `rule` for the catalog, about these ranks."""

    rule: str
    ranks: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Board:
    """All ranks side by side: the groups, largest first, helpers that are no ranks, and what follows."""

    groups: tuple[Group, ...] = ()
    helpers: tuple[Member, ...] = ()
    conclusions: tuple[Conclusion, ...] = ()
    notes: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
