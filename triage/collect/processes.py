"""Which processes are meant, told by /proc."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from triage.base.errors import InputError, OptionError

PROC = Path("/proc")
MOST = 512
_RANK = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")


@dataclass(frozen=True, slots=True)
class Target:
    """One process. `environ` None: it may not be read."""

    pid: int
    rank: int | None
    command: str
    environ: dict[str, str] | None

    @property
    def folder(self) -> str:
        return f"rank{self.rank}.pid{self.pid}" if self.rank is not None else f"pid{self.pid}"


def targets(pids: Sequence[int], match: str | None) -> list[Target]:
    """The processes asked for; without a wish those that a launcher told their rank. Raises InputError when there are
    none.
    """
    if not PROC.joinpath("self").exists():
        raise InputError(
            "this system has no /proc, so its processes cannot be looked at", hint="run it on the Linux node of the job"
        )
    try:
        pattern = re.compile(match) if match is not None else None
    except re.error as error:
        raise OptionError(
            f"--match {match!r} is no regular expression: {error}", hint="write a part of the command line"
        ) from error
    if pids:
        wanted = [_target(pid) for pid in dict.fromkeys(pids)]
        gone = [pid for pid, target in zip(dict.fromkeys(pids), wanted, strict=True) if target is None]
        if gone:
            raise InputError(f"no process {', '.join(map(str, gone))}", hint="`pgrep -af python` lists those that run")
        found = [target for target in wanted if target is not None]
    else:
        ours = _ancestors()  # `sudo triage collect --match train.py` matches itself
        running = [
            _target(int(entry.name)) for entry in PROC.iterdir() if entry.name.isdigit() and int(entry.name) not in ours
        ]
        alive = [target for target in running if target is not None]
        found = [target for target in alive if (pattern.search(target.command) if pattern else _is_rank(target, alive))]
    if not found:
        hint = "name them: --pid PID (repeatable) or --match PART_OF_THE_COMMAND_LINE; run it on the node, as the user of the job or root"
        raise InputError("no process of a job runs here that may be looked at", hint=hint)
    return sorted(found, key=lambda target: (target.rank is None, target.rank or 0, target.pid))[:MOST]


def _is_rank(target: Target, alive: Sequence[Target]) -> bool:
    """The launcher gave it a rank, and it is not the child of such a one (a data loader's worker inherits the
    environment).
    """
    environ = target.environ or {}
    if target.rank is None or "WORLD_SIZE" not in environ:
        return False
    above = parent(target.pid)
    return not any(
        other.pid == above and other.rank == target.rank and "WORLD_SIZE" in (other.environ or {}) for other in alive
    )


def _ancestors() -> set[int]:
    """This process, and those that started it."""
    found: set[int] = set()
    pid: int | None = os.getpid()
    while pid and pid not in found:
        found.add(pid)
        pid = parent(pid)
    return found


def parent(pid: int) -> int | None:
    """The process that started it."""
    try:
        status = PROC.joinpath(str(pid), "status").read_text(errors="replace")
    except OSError:
        return None
    match = re.search(r"^PPid:\s*(\d+)", status, re.MULTILINE)
    return int(match[1]) if match else None


def _target(pid: int) -> Target | None:
    place = PROC / str(pid)
    try:
        command = place.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return None
    try:
        pairs = place.joinpath("environ").read_bytes().decode(errors="replace").split("\0")
        environ: dict[str, str] | None = dict(pair.partition("=")[::2] for pair in pairs if "=" in pair)
    except OSError:
        environ = None
    numbers = [(environ or {}).get(name, "") for name in _RANK]
    rank = next((int(number) for number in numbers if number.isascii() and number.isdigit() and len(number) < 8), None)
    return Target(pid, rank, command, environ)
