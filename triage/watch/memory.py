"""What a watch remembers over a restart: what it said of which attempt, and of the pace. The files themselves are read
again, which takes seconds.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from triage.base.errors import InputError
from triage.model.watch import Episode
from triage.render import watch as render
from triage.render.watch import read_episode
from triage.watch.follow import Identity
from triage.watch.policy import Said

_VERSION = 3
_FILES = 64


def place(paths: Sequence[str]) -> Path:
    """Where a watch of these paths keeps its memory: below `$XDG_STATE_HOME/triage/watch`, `~/.local/state` where that
    is not set.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if os.path.isabs(state) else Path(os.path.expanduser("~")) / ".local" / "state"
    name = hashlib.sha256("\0".join(sorted(os.path.abspath(path) for path in paths)).encode()).hexdigest()[:16]
    return base / "triage" / "watch" / f"{name}.json"


@dataclass(frozen=True, slots=True)
class Memory:
    """`said` of each attempt; those of `unsure` were about to be told when this was written. `base`: the first
    durations of steps.
    """

    said: Mapping[int, Said] = field(default_factory=dict)
    unsure: frozenset[int] = frozenset()
    episode: Episode | None = None
    base: tuple[float, ...] = ()


def load(path: Path, files: Iterable[Identity]) -> Memory:
    """What was said, if any of the files is one of those it was said of; else it was another job under the same paths."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["version"] != _VERSION or not {tuple(pair) for pair in kept["files"]} & set(files):
            return Memory()
        said = {
            int(attempt): Said((str(verdict), str(what), tuple(map(int, ranks))), int(revisions), float(first))
            for attempt, (verdict, what, ranks, revisions, first) in kept["said"].items()
        }
        episode = read_episode(kept["episode"]) if kept["episode"] is not None else None
        return Memory(said, frozenset(map(int, kept["unsure"])), episode, tuple(map(float, kept["base"])))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return (
            Memory()
        )  # none yet, or one that nobody can read: the failure is said again, which is better than not at all


def save(path: Path, files: Iterable[Identity], memory: Memory) -> None:
    """Write it so that a kill at any moment leaves the old or the new. Raises InputError when the place cannot be
    written.
    """
    body = {
        "version": _VERSION,
        "files": sorted(files)[:_FILES],
        "said": {str(attempt): [*known.key, known.revisions, known.first] for attempt, known in memory.said.items()},
        "unsure": sorted(memory.unsure),
        "episode": render.episode(memory.episode) if memory.episode is not None else None,
        "base": memory.base,
    }
    text = json.dumps(body)
    scratch = path.with_name(path.name + f".{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)
    except OSError as error:
        hint = "Give a place that can be written with --state FILE, or --no-state to say things again after a restart."
        raise InputError(
            f"the memory of the watch cannot be written: {error.strerror}", hint=hint, path=str(path)
        ) from error
