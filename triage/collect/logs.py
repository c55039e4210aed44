"""Find the log files of a process: its output, other open logs, and the logs of NCCL and HCCL.

NCCL_DEBUG_FILE may contain `%h` (host name up to the first dot), `%p` (pid) and `%%`. CANN writes
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
from triage.collect.processes import PROC, Target, find_parent

_LOG_NAME = lazy_re(r"\.(?:log|out|err|txt)(?:\.\d+)?$")
_MAX_OPEN, _MAX_HCCL, _MAX_ANCESTORS = 16, 16, 4
_CANN_PATTERNS = ("*/plog/*-{pid}_*.log", "*/device-*/*-{pid}_*.log", "*-{pid}_*.log")


class Log(NamedTuple):
    """A log: its name for the process, and the path to open it here. Only a file of `owner` may be read."""

    name: str
    path: Path
    owner: int | None = None


LogOrReason = Log | tuple[str, str]
"""A log, or the kind of a missing log and the reason."""


def find_logs(target: Target) -> Iterator[LogOrReason]:
    """Yield the logs of a process."""
    try:
        owner = PROC.joinpath(str(target.pid)).stat().st_uid
        os.listdir(PROC / str(target.pid) / "fd")
    except OSError as error:
        yield "logs", f"its open files cannot be listed: {error.strerror}"
        return
    yield from _outputs(target.pid)
    yield from _opened(target.pid)
    environ = target.environ or {}
    if pattern := environ.get("NCCL_DEBUG_FILE"):
        yield from _find_nccl_log(target, pattern, owner)
    yield from _find_hccl_logs(target, environ, owner)


def _outputs(pid: int) -> Iterator[LogOrReason]:
    """Yield standard output and error; for a pipe, the output of the nearest ancestor that writes to a file."""
    others: set[str] = set()
    for number in ("1", "2"):
        link, reader = _link(pid, number), pid
        for _ in range(_MAX_ANCESTORS):
            ancestor = find_parent(reader) if link.startswith("pipe:") else None
            if not ancestor:
                break
            reader, link = ancestor, _link(ancestor, number)
        if _is_file(path := PROC / str(reader) / "fd" / number):
            yield Log(link, path)
        elif link:
            others.add("a pipe" if link.startswith("pipe:") else "a socket" if link.startswith("socket:") else link)
    if others:
        targets = " and ".join(sorted(others))
        yield "output", f"its standard output or error goes to {targets}, not to a file; add the log of the launcher"


def _opened(pid: int) -> Iterator[LogOrReason]:
    """Yield other files that are open for writing and have the name of a log."""
    count = 0
    for entry in _list_numbered(PROC / str(pid) / "fdinfo"):
        link = _link(pid, entry.name)
        if (
            int(entry.name) < 3
            or count == _MAX_OPEN
            or not _LOG_NAME.search(link)
            or not _is_file(PROC / str(pid) / "fd" / entry.name)
        ):
            continue
        flags = re.search(r"^flags:\s*([0-7]+)", _read_text(entry), re.MULTILINE)
        if flags is not None and int(flags[1], 8) & os.O_ACCMODE != os.O_RDONLY:
            count += 1
            yield Log(link, PROC / str(pid) / "fd" / entry.name)


def _find_nccl_log(target: Target, pattern: str, owner: int) -> Iterator[LogOrReason]:
    directory = _link(target.pid, "cwd", "") or "/"
    pids = dict.fromkeys((inner_pid(PROC / str(target.pid)), str(target.pid)))
    hosts = dict.fromkeys(
        name.partition(".")[0] for name in ((target.environ or {}).get("HOSTNAME", ""), os.uname().nodename) if name
    )
    for host in hosts:
        for pid in pids:
            parts = {"%%": "%", "%h": host, "%p": pid}
            name = os.path.join(directory, re.sub("%[%hp]", lambda match: parts[match[0]], pattern))  # noqa: B023
            if name.startswith("/dev/"):
                return
            if (path := _resolve(target.pid, name)) is not None:
                yield Log(name, path, owner)
                return
    reason = f"NCCL_DEBUG_FILE={pattern} names {name}, which does not exist; NCCL writes it only if NCCL_DEBUG is set"
    yield "nccl-log", reason


def _find_hccl_logs(target: Target, environ: dict[str, str], owner: int) -> Iterator[LogOrReason]:
    work = environ.get("ASCEND_WORK_PATH")
    configured = environ.get("ASCEND_PROCESS_LOG_PATH") or (f"{work}/log" if work else "")
    root = os.path.join(_link(target.pid, "cwd", "") or "/", configured or f"{environ.get('HOME', '')}/ascend/log")
    pids = dict.fromkeys((inner_pid(PROC / str(target.pid)), str(target.pid)))
    paths: dict[str, Path] = {}
    for base in (PROC / str(target.pid) / "root", Path("/")):
        top = base / root.lstrip("/")
        for pattern in _CANN_PATTERNS:
            for pid in pids:
                for path in _glob_files(top, pattern.format(pid=pid)):
                    paths.setdefault("/" + str(path.relative_to(base)), path)
        if paths:
            break
    for name in sorted(paths, key=lambda name: (_modified_at(paths[name]), name))[-_MAX_HCCL:]:
        yield Log(name, paths[name], owner)
    if configured and not paths:
        variable = "ASCEND_PROCESS_LOG_PATH" if environ.get("ASCEND_PROCESS_LOG_PATH") else "ASCEND_WORK_PATH"
        yield "hccl-log", f"{variable} names {root}, which has no log of this process"


def _resolve(pid: int, name: str) -> Path | None:
    """Return a regular file by its name for a process, whose root directory may differ."""
    return next((path for path in ((PROC / str(pid) / "root" / name.lstrip("/"), Path(name))) if _is_file(path)), None)


def inner_pid(directory: Path) -> str:
    """Return the pid of a process or thread inside its container; `directory` is its directory in /proc."""
    match = re.search(r"^NSpid:.*?(\d+)$", _read_text(directory / "status"), re.MULTILINE)
    return match[1] if match else directory.name


def _link(pid: int, name: str, folder: str = "fd") -> str:
    try:
        return os.readlink(PROC / str(pid) / folder / name)
    except OSError:
        return ""


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _glob_files(top: Path, pattern: str) -> list[Path]:
    try:
        return [path for path in top.glob(pattern) if _is_file(path)]
    except OSError:
        return []


def _list_numbered(path: Path) -> list[Path]:
    try:
        return sorted((entry for entry in path.iterdir() if entry.name.isdigit()), key=lambda entry: int(entry.name))
    except OSError:
        return []


def _read_text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
