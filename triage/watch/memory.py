"""What a watch remembers over a restart: what it said of which attempt. The files themselves are read again, which takes seconds."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from triage.errors import InputError
from triage.watch.follow import Identity
from triage.watch.policy import Said

_VERSION = 2
_FILES = 64


def place(paths: Sequence[str]) -> Path:
    """Where a watch of these paths keeps its memory: below `$XDG_STATE_HOME/triage/watch`, `~/.local/state` where that is not set."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if os.path.isabs(state) else Path(os.path.expanduser("~")) / ".local" / "state"
    name = hashlib.sha256("\0".join(sorted(os.path.abspath(path) for path in paths)).encode()).hexdigest()[:16]
    return base / "triage" / "watch" / f"{name}.json"


def load(path: Path, files: Iterable[Identity]) -> dict[int, Said]:
    """What was said, if any of the files is one of those it was said of; else it was another job under the same paths."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["version"] != _VERSION or not {tuple(pair) for pair in kept["files"]} & set(files):
            return {}
        return {
            int(attempt): Said((str(verdict), str(what), tuple(map(int, ranks))), int(revisions), float(first))
            for attempt, (verdict, what, ranks, revisions, first) in kept["said"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}  # none yet, or one that nobody can read: the failure is said again, which is better than not at all


def save(path: Path, files: Iterable[Identity], said: dict[int, Said]) -> None:
    """Write it so that a kill at any moment leaves the old or the new. Raises InputError when the place cannot be written."""
    told = {str(attempt): [*known.key, known.revisions, known.first] for attempt, known in said.items()}
    text = json.dumps({"version": _VERSION, "files": sorted(files)[:_FILES], "said": told})
    scratch = path.with_name(path.name + f".{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)
    except OSError as error:
        hint = "Give a place that can be written with --state FILE, or --no-state to say things again after a restart."
        raise InputError(f"the memory of the watch cannot be written: {error.strerror}", hint=hint, path=str(path)) from error
