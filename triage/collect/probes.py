"""Collect one piece of information about a process or the node per function; each raises Unavailable with a reason."""

from __future__ import annotations

import os
import re
import shutil
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from triage.artifacts.cores import limited_process
from triage.base.lazy_re import lazy_re
from triage.collect.logs import Log, inner_pid
from triage.collect.processes import PROC, Target
from triage.evidence.redact import redact

_SECRET = lazy_re(r"(?i)key|token|secret|passw|credential|auth|cookie|session|_pat$|dsn|webhook")
TAIL = 1 << 20
OUTPUT = 1 << 22
# Environment of the tools: nothing of this process, no download of symbols, no terminal.
_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "HOME": "/nonexistent", "DEBUGINFOD_URLS": ""}
_GDB = (
    *("gdb", "-q", "--nx", "--nh", "-batch", "-iex", "set auto-load off"),
    *("-iex", "set auto-load safe-path /nonexistent", "-iex", "set debuginfod enabled off"),
    *("-iex", "set pagination off", "-iex", "set width 0", "-iex", "set print frame-arguments none"),
    *("-iex", "set backtrace limit 128"),
)

# Numbers of the system calls in which processes wait (asm/unistd_64.h, asm-generic/unistd.h).
_CALLS: dict[str, dict[int, str]] = {
    "x86_64": {
        0: "read", 1: "write", 7: "poll", 16: "ioctl", 17: "pread64", 18: "pwrite64", 19: "readv", 20: "writev",
        23: "select", 35: "nanosleep", 42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg",
        47: "recvmsg", 61: "wait4", 73: "flock", 74: "fsync", 75: "fdatasync", 202: "futex", 230: "clock_nanosleep",
        232: "epoll_wait", 247: "waitid", 270: "pselect6", 271: "ppoll", 281: "epoll_pwait", 295: "preadv",
        296: "pwritev",
    },
    "aarch64": {
        22: "epoll_pwait", 29: "ioctl", 32: "flock", 63: "read", 64: "write", 65: "readv", 66: "writev",
        67: "pread64", 68: "pwrite64", 69: "preadv", 70: "pwritev", 72: "pselect6", 73: "ppoll", 82: "fsync",
        83: "fdatasync", 95: "waitid", 98: "futex", 101: "nanosleep", 115: "clock_nanosleep", 202: "accept",
        203: "connect", 206: "sendto", 207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 260: "wait4",
    },
}  # fmt: skip
_FILE_CALLS = frozenset(
    (
        *("read", "write", "ioctl", "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev", "flock", "fsync"),
        *("fdatasync", "connect", "accept", "sendto", "recvfrom", "sendmsg", "recvmsg"),
    )
)


class Unavailable(Exception):
    """A piece of information is not available; the text is the reason."""


def py_spy(target: Target, seconds: float) -> str:
    """Return the Python stacks, with native frames if possible."""
    try:
        return run_tool(("py-spy", "dump", "--native", "--pid", str(target.pid)), seconds)
    except Unavailable as reason:
        if "Failed to find python version" in str(reason):
            raise Unavailable("py-spy finds no Python in this process") from reason
        if "No such file" in str(reason) and (root := _link(PROC / str(target.pid) / "root")) not in ("", "/"):
            message = (
                f"py-spy cannot find the program, because the root directory of the process is {root}; run it there"
            )
            raise Unavailable(message) from reason
        return run_tool(("py-spy", "dump", "--pid", str(target.pid)), seconds)


def gdb(target: Target, seconds: float) -> str:
    """Return the backtraces of all threads."""
    return run_tool((*_GDB, "-p", str(target.pid), "-ex", "thread apply all bt"), seconds)


def status(target: Target, seconds: float) -> str:
    """Return the state of every thread, the age of the process, and /proc/PID/status.

    The state of a thread is its wait channel, its system call with the file, and the kernel's stack if it may be read.
    `seconds` is not used.
    """
    directory = PROC / str(target.pid)
    lines = []
    for task in sorted(_list_numbered(directory / "task"), key=lambda path: int(path.name))[:4096]:
        command, channel, syscall = (_read(task / name) for name in ("comm", "wchan", "syscall"))
        state = re.search(r"^State:\s*(.*)", _read(task / "status"), re.MULTILINE)
        lines.append(
            f"tid {task.name} comm {redact(command)} state {state[1] if state else '?'} wchan {channel or '?'} "
            f"syscall {syscall or '?'}{_describe_call(directory, syscall)}"
        )
        lines += _read(task / "stack").splitlines()[:64]
    age = max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - _start_time(target.pid))
    return "\n".join([*lines, "", f"began {age:.0f} s before this was taken", _read(directory / "status")]) + "\n"


def _describe_call(directory: Path, syscall: str) -> str:
    """Return ` call write 11 /mnt/ckpt.pt`: name and file of a system call (proc(5): /proc/PID/syscall)."""
    number, _, rest = syscall.partition(" ")
    name = _CALLS.get(os.uname().machine, {}).get(int(number), "") if number.isdecimal() else ""
    if not name:
        return ""
    if name == "futex":
        owner = _find_mutex_owner(directory, rest.split())
        return f" call futex owner {owner}" if owner else " call futex"
    if name not in _FILE_CALLS:
        return f" call {name}"
    try:
        descriptor = int(rest.partition(" ")[0], 16)
        return f" call {name} {descriptor} {redact(os.readlink(directory / 'fd' / str(descriptor)))}"
    except (OSError, ValueError):
        return f" call {name}"


def _find_mutex_owner(directory: Path, arguments: Sequence[str]) -> int | None:
    """Return the thread that holds the mutex of a FUTEX_WAIT on a lock with waiters (2).

    The mutex lies in the memory of the process: int __lock, unsigned __count, int __owner (glibc's struct_mutex.h,
    x86-64 and aarch64).
    """
    try:
        address, operation, value = (int(part, 16) for part in arguments[:3])
        if operation & 0x7F or value != 2:
            return None
        with (directory / "mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            lock, _, owner = struct.unpack("<iIi", memory.read(12))
        tasks = {inner_pid(task): int(task.name) for task in _list_numbered(directory / "task")}
    except (OSError, OverflowError, ValueError, struct.error, Unavailable):
        return None
    return tasks.get(str(owner)) if lock == 2 else None


def files(target: Target, seconds: float) -> str:
    """Return the targets of the file descriptors."""
    lines = []
    for entry in sorted(_list_numbered(PROC / str(target.pid) / "fd"), key=lambda path: int(path.name))[:4096]:
        try:
            lines.append(f"{entry.name} {redact(os.readlink(entry))}")
        except OSError as error:
            lines.append(f"{entry.name} ? ({error.strerror})")
    return "\n".join(lines) + "\n"


def environ(target: Target, seconds: float) -> str:
    """Return the environment without the values of secrets."""
    if target.environ is None:
        raise Unavailable("its environment may not be read (a process of another user)")
    lines = []
    for name, value in sorted(target.environ.items()):
        shown = "[redacted]" if _SECRET.search(name) else redact(f"{name}={value}").partition("=")[2]
        lines.append(f"{name}={shown}\n".replace("\n", " ").rstrip() + "\n")
    return "".join(lines)


NODE: dict[str, tuple[str, ...]] = {"nvidia-smi.txt": ("nvidia-smi",), "npu-smi.txt": ("npu-smi", "info")}
"""Commands about the node, by file name."""


def node(command: Sequence[str], seconds: float) -> str:
    """Return the end of the output of a command about the node."""
    return run_tool(command, seconds)[-TAIL:]


def kernel(targets: Sequence[Target], seconds: float) -> str:
    """Return the kernel messages since the first process started; older ones belong to other jobs."""
    start = min((_start_time(target.pid) for target in targets), default=0.0)
    lines = [
        line
        for line in run_tool(("dmesg",), seconds).splitlines(keepends=True)
        if (stamp := re.match(r"\[ *(\d+\.\d+)\]", line)) is not None and float(stamp[1]) >= start - 1
    ]
    if not lines:
        raise Unavailable("the kernel wrote no messages since the processes began")
    return "".join(lines)[-TAIL:]


def _start_time(pid: int) -> float:
    """Return seconds after boot (proc(5): field 22 of stat, in clock ticks)."""
    fields = _read(PROC / str(pid) / "stat").rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK") if len(fields) > 19 else 0.0


def tail(log: Log) -> str:
    """Return the last MiB of a log from the start of a line, without secrets."""
    try:
        with log.path.open("rb") as file:
            status = os.fstat(file.fileno())
            if log.owner not in (None, 0, status.st_uid) and not status.st_mode & 0o004:
                raise Unavailable("it belongs to another user, and the user of the process may not read it")
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL))
            data = file.read(TAIL)
    except OSError as error:
        raise Unavailable(error.strerror or str(error)) from error
    text = data.decode("utf-8", "replace")
    return redact(text if size <= TAIL else text.partition("\n")[2])


def run_tool(command: Sequence[str], seconds: float) -> str:
    """Return the output of a tool. At the deadline it and its children are killed."""
    program = shutil.which(command[0]) or shutil.which(command[0], path=str(Path(sys.executable).parent))
    if program is None:
        raise Unavailable(f"{command[0]} is not installed")
    if seconds < 0.5:
        raise Unavailable("no time was left; allow more with --seconds")
    limits = limited_process.Limits(seconds, OUTPUT)
    try:
        result = limited_process.run_limited([program, *command[1:]], "", limits, "/", _ENVIRONMENT)
    except OSError as error:
        raise Unavailable(f"{command[0]} cannot be started: {error.strerror}") from error
    if result.stopped_by == "deadline":
        raise Unavailable(f"{command[0]} did not end within {seconds:.0f} s")
    if not result.text.strip() or (result.status and not result.stopped_by):
        last = result.errors.strip().splitlines()[-1:] or [f"exit status {result.status}"]
        raise Unavailable(f"{command[0]}: {redact(last[0][:300])}")
    return redact(result.text)


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _link(place: Path) -> str:
    try:
        return os.readlink(place)
    except OSError:
        return ""


def _list_numbered(place: Path) -> list[Path]:
    try:
        return [entry for entry in place.iterdir() if entry.name.isdigit()]
    except OSError as error:
        raise Unavailable(f"{error.strerror}") from error
