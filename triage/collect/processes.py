"""Find the processes of a job in /proc."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from triage.base.errors import InputError, OptionError

PROC = Path("/proc")
MAX_TARGETS = 512
_RANK_VARIABLES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")


@dataclass(frozen=True, slots=True)
class Target:
    """One process. `environ` is None if it may not be read."""

    pid: int
    rank: int | None
    command: str
    environ: dict[str, str] | None

    @property
    def folder(self) -> str:
        """The directory of this process in the bundle."""
        return f"rank{self.rank}.pid{self.pid}" if self.rank is not None else f"pid{self.pid}"


def find_targets(pids: Sequence[int], match: str | None) -> list[Target]:
    """Return the processes with these pids or this command line, or those with a rank from a launcher.

    Raises InputError if there are none.
    """
    if not PROC.joinpath("self").exists():
        raise InputError("this system has no /proc", hint="run it on the Linux node of the job")
    try:
        pattern = re.compile(match) if match is not None else None
    except re.error as error:
        raise OptionError(
            f"--match {match!r} is not a regular expression: {error}", hint="write a part of the command line"
        ) from error
    if pids:
        by_pid = {pid: _read_target(pid) for pid in pids}
        missing = [str(pid) for pid, target in by_pid.items() if target is None]
        if missing:
            raise InputError(f"no process {', '.join(missing)}", hint="`pgrep -af python` lists running processes")
        selected = [target for target in by_pid.values() if target is not None]
    else:
        selected = _select_running(pattern)
    if not selected:
        raise InputError(
            "no readable process of a job runs here",
            hint="select them with --pid PID or --match PATTERN; run it on the node, as the user of the job or as root",
        )
    return sorted(selected, key=lambda target: (target.rank is None, target.rank or 0, target.pid))[:MAX_TARGETS]


def _select_running(pattern: re.Pattern[str] | None) -> list[Target]:
    own = _ancestors()  # `sudo triage collect --match train.py` matches itself
    pids = [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]
    running = [target for pid in pids if pid not in own and (target := _read_target(pid)) is not None]
    if pattern is not None:
        return [target for target in running if pattern.search(target.command)]
    return [target for target in running if _is_rank(target, running)]


def _is_rank(target: Target, running: Sequence[Target]) -> bool:
    """Return whether a launcher gave the process its rank; a data loader worker only inherits it from its parent."""
    environ = target.environ or {}
    if target.rank is None or "WORLD_SIZE" not in environ:
        return False
    parent_pid = find_parent(target.pid)
    return not any(
        other.pid == parent_pid and other.rank == target.rank and "WORLD_SIZE" in (other.environ or {})
        for other in running
    )


def _ancestors() -> set[int]:
    """Return this process and its ancestors."""
    pids: set[int] = set()
    pid: int | None = os.getpid()
    while pid and pid not in pids:
        pids.add(pid)
        pid = find_parent(pid)
    return pids


def find_parent(pid: int) -> int | None:
    """Return the pid of the parent process."""
    try:
        status = PROC.joinpath(str(pid), "status").read_text(errors="replace")
    except OSError:
        return None
    match = re.search(r"^PPid:\s*(\d+)", status, re.MULTILINE)
    return int(match[1]) if match else None


def _read_target(pid: int) -> Target | None:
    directory = PROC / str(pid)
    try:
        command = directory.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return None
    try:
        pairs = directory.joinpath("environ").read_bytes().decode(errors="replace").split("\0")
        environ: dict[str, str] | None = dict(pair.partition("=")[::2] for pair in pairs if "=" in pair)
    except OSError:
        environ = None
    numbers = [(environ or {}).get(name, "") for name in _RANK_VARIABLES]
    rank = next((int(number) for number in numbers if number.isascii() and number.isdigit() and len(number) < 8), None)
    return Target(pid, rank, command, environ)
