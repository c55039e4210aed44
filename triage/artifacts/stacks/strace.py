"""strace of a live process (`strace -f -tt -T -y -p PID`): the call that each thread is in, on which file, since when.

    [pid 4711] 11:19:08.186152 write(11</mnt/ckpt.pt>, "xx"..., 65536 <unfinished ...>
    4711  1700000000.186152 futex(0x55, FUTEX_WAIT_PRIVATE, 2, NULL) = -1 EAGAIN (Resource temporarily unavailable)
    <0.000010>

A thread whose last line is an unfinished call is still in it. Times are optional, and those without a date may pass
midnight.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.stacks.live.model import Call, Process, Thread

_LINE = lazy_re(
    r"(?:\[pid +(?P<pid>\d{1,9})\] |(?P<tid>\d{1,9}) +)?(?:(?P<time>\d\d:\d\d:\d\d(?:\.\d+)?|\d{9,11}\.\d+|\d+\.\d{6})\s+)?"
    r"(?:<\.\.\. (?P<resumed>[a-z_0-9]+) resumed>|(?P<name>[a-z_][a-z_0-9]*)\()(?P<rest>.*)"
)
_ATTACHED = lazy_re(r"(?:strace: )?Process (\d{1,9}) attached")
_FD = lazy_re(r"(\d{1,7})(?:<([^>]*)>)?(?=[,)\s]|$)")
_PATH = lazy_re(r"(?:AT_FDCWD(?:<[^>]*>)?, |\d{1,7}(?:<[^>]*>)?, )?\"((?:[^\"\\]|\\.)*)\"")
_PEER = lazy_re(r"sin6?_port=htons\((\d+)\).*?inet_(?:addr\(\"|pton\(AF_INET6, \")([^\"]+)")
_INTERRUPTED = lazy_re(r"resuming interrupted ([a-z_0-9]+)")
_LEADING = frozenset(
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
_MOST = 4096


@dataclass
class _Last:
    """The last call of a thread."""

    name: str = ""
    rest: str = ""
    stamp: str = ""
    ended: bool = True


def of_text(text: str, source: str) -> list[Process]:
    """The process that was traced; [] where no line is strace's."""
    last: dict[int | None, _Last] = {}
    named: int | None = None
    newest = ""
    for line in text.splitlines():
        attached = _ATTACHED.match(line)
        if attached is not None:
            named = named or int(attached[1])
            continue
        match = _LINE.match(line[:4096])
        if match is None or (len(last) >= _MOST and _tid(match) not in last):
            continue
        newest = match["time"] or newest
        _take(last.setdefault(_tid(match), _Last()), match)
    if not any(each.name for each in last.values()):
        return []
    known = sorted(tid for tid in last if tid is not None)
    pid = named if named is not None else known[0] if known else None
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


def _take(last: _Last, match: re.Match[str]) -> None:
    rest = match["rest"]
    if match["resumed"] is None:
        last.name, last.rest, last.stamp = match["name"], rest, match["time"] or ""
    last.ended = not rest.rstrip().endswith(("<unfinished ...>", "<detached ...>")) and " = " in rest
    if match["resumed"] is not None and not last.name:
        last.name = match["resumed"]


def _call(last: _Last, newest: str) -> Call:
    name = last.name
    if name == "restart_syscall" and (interrupted := _INTERRUPTED.search(last.rest)) is not None:
        name = interrupted[1]
    peer = _PEER.search(last.rest)
    fd = _FD.match(last.rest)
    path = _PATH.match(last.rest) if name in _LEADING else None
    return Call(
        name,
        fd=int(fd[1]) if fd is not None and path is None and name not in ("futex", "restart_syscall") else None,
        path=path[1]
        if path is not None
        else f"{peer[2]}:{peer[1]}"
        if peer is not None
        else (fd[2] or "")
        if fd is not None
        else "",
        since=last.stamp,
        seconds=_between(last.stamp, newest),
        ended=last.ended,
    )


def _between(first: str, last: str) -> float | None:
    """Seconds from one stamp to another; None where one is missing. Stamps of `-r` are differences, which cannot be
    added up here.
    """
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
