"""Save and load the state of a watch, so that a restarted watch repeats no report.

The state holds the reports of each attempt and the pace; of the log files only those lines are read
again that pipeline/earlier_readings.py does not know.
"""

from __future__ import annotations

import glob
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
from triage.watch.policy import Announcement

_VERSION = 3
_MAX_FILES = 64


def default_path(paths: Sequence[str]) -> Path:
    """Return the default state file for these paths, in any order: in $XDG_STATE_HOME, else in ~/.local/state."""
    home = os.environ.get("XDG_STATE_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path(os.path.expanduser("~")) / ".local" / "state"
    name = hashlib.sha256("\0".join(sorted(os.path.abspath(path) for path in paths)).encode()).hexdigest()[:16]
    return base / "triage" / "watch" / f"{name}.json"


@dataclass(frozen=True, slots=True)
class WatchState:
    """What a watch needs after a restart.

    `announced`: the last report of each attempt; those of `unconfirmed` attempts were in progress when the state was
    saved. `first_durations`: seconds of the first steps.
    """

    announced: Mapping[int, Announcement] = field(default_factory=dict)
    unconfirmed: frozenset[int] = frozenset()
    episode: Episode | None = None
    first_durations: tuple[float, ...] = ()


def load(path: Path, files: Iterable[Identity]) -> WatchState:
    """Load the state if it belongs to one of these files; otherwise return an empty state.

    Without a common file the paths now hold another job. A missing or damaged state file counts as empty: a repeated
    report is better than none.
    """
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["version"] != _VERSION or not {tuple(pair) for pair in stored["files"]} & set(files):
            return WatchState()
        announced = {
            int(attempt): Announcement((str(verdict), str(cause), tuple(map(int, ranks))), int(revisions), float(first))
            for attempt, (verdict, cause, ranks, revisions, first) in stored["said"].items()
        }
        episode = read_episode(stored["episode"]) if stored["episode"] is not None else None
        return WatchState(announced, frozenset(map(int, stored["unsure"])), episode, tuple(map(float, stored["base"])))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return WatchState()


def save(path: Path, files: Iterable[Identity], state: WatchState) -> None:
    """Write the state atomically. Raises InputError when the file cannot be written."""
    body = {
        "version": _VERSION,
        "files": sorted(files)[:_MAX_FILES],
        "said": {str(attempt): [*last.key, last.revisions, last.first_at] for attempt, last in state.announced.items()},
        "unsure": sorted(state.unconfirmed),
        "episode": render.episode_as_dict(state.episode) if state.episode is not None else None,
        "base": state.first_durations,
    }
    text = json.dumps(body)
    scratch = path.with_name(path.name + f".{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_parts(path)
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)
    except OSError as error:
        raise InputError(
            f"cannot write the state file: {error.strerror}",
            hint="give a writable file with --state FILE, or use --no-state to run without one",
            path=str(path),
        ) from error


def _remove_parts(path: Path) -> None:
    """Remove what watches left that were killed while they wrote; their names hold their pids."""
    for part in path.parent.glob(f"{glob.escape(path.name)}.*.part"):
        pid = part.name.removeprefix(f"{path.name}.").removesuffix(".part")
        if pid.isdecimal() and not _is_running(int(pid)):
            part.unlink(missing_ok=True)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # a process of another user
        return True
    return True
