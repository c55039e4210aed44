"""Which files a process writes its logs to: its output, other open logs, and what NCCL and HCCL were told to write.

Patterns: NCCL's NCCL_DEBUG_FILE knows `%h` (host name up to the first dot), `%p` (pid) and `%%`. CANN writes
`{debug,run,security}/{plog,device-N}/*-PID_TIME.log` below ASCEND_PROCESS_LOG_PATH, ASCEND_WORK_PATH/log or
~/ascend/log.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from triage.base.lazy_re import lazy_re
from triage.collect.processes import PROC, Target, parent

_OPEN = lazy_re(r"\.(?:log|out|err|txt)(?:\.\d+)?$")
_MOST_OPEN, _MOST_HCCL, _ANCESTORS = 16, 16, 4
_CANN = ("*/plog/*-{pid}_*.log", "*/device-*/*-{pid}_*.log", "*-{pid}_*.log")


class Log(NamedTuple):
    """A log by the name that its process has for it, and where it can be opened here. `owner`: only a file of this user
    may be read.
    """

    name: str
    place: Path
    owner: int | None = None


Found = Log | tuple[str, str]
"""A log, or what was looked for and why it is not there."""


def of(target: Target) -> Iterator[Found]:
    """The logs of a process."""
    try:
        owner = PROC.joinpath(str(target.pid)).stat().st_uid
        os.listdir(PROC / str(target.pid) / "fd")
    except OSError as error:
        yield "logs", f"which files it writes cannot be seen: {error.strerror}"
        return
    yield from _outputs(target.pid)
    yield from _opened(target.pid)
    told = target.environ or {}
    if pattern := told.get("NCCL_DEBUG_FILE"):
        yield from _nccl(target, pattern, owner)
    yield from _hccl(target, told, owner)


def _outputs(pid: int) -> Iterator[Found]:
    """Standard output and error; where they go to a pipe, the output of the nearest ancestor that has a file."""
    lost: set[str] = set()
    for number in ("1", "2"):
        link, reader = _link(pid, number), pid
        for _ in range(_ANCESTORS):
            above = parent(reader) if link.startswith("pipe:") else None
            if not above:
                break
            reader, link = above, _link(above, number)
        if _is_file(place := PROC / str(reader) / "fd" / number):
            yield Log(link, place)
        elif link:
            lost.add("a pipe" if link.startswith("pipe:") else "a socket" if link.startswith("socket:") else link)
    if lost:
        yield (
            "output",
            f"its standard output or error goes to {' and '.join(sorted(lost))}, not to a file; add what the launcher kept of it",
        )


def _opened(pid: int) -> Iterator[Found]:
    """Other files that are open for writing and called like logs."""
    count = 0
    for entry in _entries(PROC / str(pid) / "fdinfo"):
        link = _link(pid, entry.name)
        if (
            int(entry.name) < 3
            or count == _MOST_OPEN
            or not _OPEN.search(link)
            or not _is_file(PROC / str(pid) / "fd" / entry.name)
        ):
            continue
        flags = re.search(r"^flags:\s*([0-7]+)", _text(entry), re.MULTILINE)
        if flags is not None and int(flags[1], 8) & os.O_ACCMODE != os.O_RDONLY:
            count += 1
            yield Log(link, PROC / str(pid) / "fd" / entry.name)


def _nccl(target: Target, pattern: str, owner: int) -> Iterator[Found]:
    where = _link(target.pid, "cwd", "") or "/"
    pids = dict.fromkeys((inner_pid(PROC / str(target.pid)), str(target.pid)))
    hosts = dict.fromkeys(
        name.partition(".")[0] for name in ((target.environ or {}).get("HOSTNAME", ""), os.uname().nodename) if name
    )
    for host in hosts:
        for pid in pids:
            parts = {"%%": "%", "%h": host, "%p": pid}
            name = os.path.join(where, re.sub("%[%hp]", lambda found: parts[found[0]], pattern))  # noqa: B023
            if name.startswith("/dev/"):
                return
            if (place := _inside(target.pid, name)) is not None:
                yield Log(name, place, owner)
                return
    yield (
        "nccl-log",
        f"NCCL_DEBUG_FILE={pattern} leads to {name}, which is not there; NCCL writes it only where NCCL_DEBUG is set",
    )


def _hccl(target: Target, told: dict[str, str], owner: int) -> Iterator[Found]:
    chosen = told.get("ASCEND_PROCESS_LOG_PATH") or (
        f"{told['ASCEND_WORK_PATH']}/log" if told.get("ASCEND_WORK_PATH") else ""
    )
    root = os.path.join(_link(target.pid, "cwd", "") or "/", chosen or f"{told.get('HOME', '')}/ascend/log")
    pids = dict.fromkeys((inner_pid(PROC / str(target.pid)), str(target.pid)))
    found: dict[str, Path] = {}
    for base in (PROC / str(target.pid) / "root", Path("/")):
        top = base / root.lstrip("/")
        for form in _CANN:
            for pid in pids:
                for place in _globbed(top, form.format(pid=pid)):
                    found.setdefault("/" + str(place.relative_to(base)), place)
        if found:
            break
    for name in sorted(found, key=lambda name: (_changed(found[name]), name))[-_MOST_HCCL:]:
        yield Log(name, found[name], owner)
    if chosen and not found:
        yield (
            "hccl-log",
            f"no log of this process lies below {root}, where ASCEND_PROCESS_LOG_PATH or ASCEND_WORK_PATH puts them",
        )


def _inside(pid: int, name: str) -> Path | None:
    """A regular file by the name that a process has for it: its root may be another than ours."""
    places = (PROC / str(pid) / "root" / name.lstrip("/"), Path(name))
    return next((place for place in places if _is_file(place)), None)


def inner_pid(place: Path) -> str:
    """The pid by which a process (or thread) knows itself, in its container; `place` is its directory in /proc."""
    found = re.search(r"^NSpid:.*?(\d+)$", _text(place / "status"), re.MULTILINE)
    return found[1] if found else place.name


def _link(pid: int, name: str, folder: str = "fd") -> str:
    try:
        return os.readlink(PROC / str(pid) / folder / name)
    except OSError:
        return ""


def _is_file(place: Path) -> bool:
    try:
        return stat.S_ISREG(place.stat().st_mode)
    except (OSError, ValueError):
        return False


def _changed(place: Path) -> float:
    try:
        return place.stat().st_mtime
    except OSError:
        return 0.0


def _globbed(top: Path, form: str) -> list[Path]:
    try:
        return [place for place in top.glob(form) if _is_file(place)]
    except OSError:
        return []


def _entries(place: Path) -> list[Path]:
    try:
        return sorted((entry for entry in place.iterdir() if entry.name.isdigit()), key=lambda entry: int(entry.name))
    except OSError:
        return []


def _text(place: Path) -> str:
    try:
        return place.read_text(errors="replace")
    except OSError:
        return ""
