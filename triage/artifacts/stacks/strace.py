"""strace of a live process (`strace -f -tt -T -y -p PID`): the call of each thread, its file, and since when.

    [pid 4711] 11:19:08.186152 write(11</mnt/ckpt.pt>, "xx"..., 65536 <unfinished ...>
    4711  1700000000.186152 futex(0x55, FUTEX_WAIT_PRIVATE, 2, NULL) = -1 EAGAIN (Resource temporarily unavailable)
    <0.000010>

A thread whose last line is an unfinished call is still in it. Times are optional; those without a date may pass
midnight.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.stacks.live.model import Call, Process, Thread

_LINE = lazy_re(
    r"(?:\[pid +(?P<pid>\d{1,9})\] |(?P<tid>\d{1,9}) +)?"
    r"(?:(?P<time>\d\d:\d\d:\d\d(?:\.\d+)?|\d{9,11}\.\d+|\d+\.\d{6})\s+)?"
    r"(?:<\.\.\. (?P<resumed>[a-z_0-9]+) resumed>|(?P<name>[a-z_][a-z_0-9]*)\()(?P<rest>.*)"
)
_ATTACHED = lazy_re(r"(?:strace: )?Process (\d{1,9}) attached")
_FD = lazy_re(r"(\d{1,7})(?:<([^>]*)>)?(?=[,)\s]|$)")
_PATH = lazy_re(r"(?:AT_FDCWD(?:<[^>]*>)?, |\d{1,7}(?:<[^>]*>)?, )?\"((?:[^\"\\]|\\.)*)\"")
_PEER = lazy_re(r"sin6?_port=htons\((\d+)\).*?inet_(?:addr\(\"|pton\(AF_INET6, \")([^\"]+)")
_INTERRUPTED = lazy_re(r"resuming interrupted ([a-z_0-9]+)")
_PATH_FIRST = frozenset(
    (
        "openat",
        "open",
        "unlink",
        "unlinkat",
        "rename",
        "renameat",
        "renameat2",
        "stat",
        "lstat",
        "newfstatat",
        "statx",
        "mkdir",
        "mkdirat",
        "rmdir",
        "access",
        "faccessat",
        "statfs",
        "readlink",
        "truncate",
        "execve",
    )
)
_MAX_THREADS = 4096


@dataclass
class _LastCall:
    """The last call of a thread; `rest` is the text after its opening parenthesis."""

    name: str = ""
    rest: str = ""
    stamp: str = ""
    ended: bool = True


def parse_text(text: str, source: str) -> list[Process]:
    """Return the traced process; [] without a line of strace."""
    last: dict[int | None, _LastCall] = {}
    attached_pid: int | None = None
    newest = ""
    for line in text.splitlines():
        attached = _ATTACHED.match(line)
        if attached is not None:
            attached_pid = attached_pid or int(attached[1])
            continue
        match = _LINE.match(line[:4096])
        if match is None or (len(last) >= _MAX_THREADS and _tid(match) not in last):
            continue
        newest = match["time"] or newest
        _update(last.setdefault(_tid(match), _LastCall()), match)
    if not any(each.name for each in last.values()):
        return []
    pid = attached_pid if attached_pid is not None else min((tid for tid in last if tid is not None), default=None)
    threads = tuple(
        Thread(
            "MainThread" if tid == pid or len(last) == 1 else "",
            tid if tid is not None else pid,
            call=_call(each, newest),
        )
        for tid, each in sorted(last.items(), key=lambda item: (item[0] is not None and item[0] != pid, item[0] or 0))
    )
    return [Process(source, "strace", pid, threads)]


def _tid(match: re.Match[str]) -> int | None:
    digits = match["pid"] or match["tid"]
    return int(digits) if digits else None


def _update(last: _LastCall, match: re.Match[str]) -> None:
    rest = match["rest"]
    if match["resumed"] is None:
        last.name, last.rest, last.stamp = match["name"], rest, match["time"] or ""
    last.ended = not rest.rstrip().endswith(("<unfinished ...>", "<detached ...>")) and " = " in rest
    if match["resumed"] is not None and not last.name:
        last.name = match["resumed"]


def _call(last: _LastCall, newest: str) -> Call:
    """The call as a thread's state; `newest` is the last stamp of the trace."""
    name = last.name
    if name == "restart_syscall" and (interrupted := _INTERRUPTED.search(last.rest)) is not None:
        name = interrupted[1]
    peer = _PEER.search(last.rest)
    fd = _FD.match(last.rest)
    path = _PATH.match(last.rest) if name in _PATH_FIRST else None
    return Call(
        name,
        fd=int(fd[1]) if fd is not None and path is None and name not in ("futex", "restart_syscall") else None,
        path=path[1] if path else f"{peer[2]}:{peer[1]}" if peer else (fd[2] or "") if fd else "",
        since=last.stamp,
        seconds=_between(last.stamp, newest),
        ended=last.ended,
    )


def _between(first: str, last: str) -> float | None:
    """Seconds from one stamp to another, None where one is missing or a difference (strace -r)."""
    one, other = _seconds(first), _seconds(last)
    if one is None or other is None:
        return None
    return other - one if other >= one else other - one + 86400 if ":" in first else None


def _seconds(stamp: str) -> float | None:
    if not stamp:
        return None
    if ":" not in stamp:
        return float(stamp) if float(stamp) > 1e8 else None
    hours, minutes, seconds = stamp.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
