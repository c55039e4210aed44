"""What is gathered of a process and of the node, each piece by one function. A piece that cannot be had raises Missing
with the reason.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from triage.artifacts.cores import engine
from triage.base.lazy_re import lazy_re
from triage.collect.logs import Log, inner_pid
from triage.collect.processes import PROC, Target
from triage.evidence.redact import redact

_SECRET = lazy_re(r"(?i)key|token|secret|passw|credential|auth|cookie|session|_pat$|dsn|webhook")
TAIL = 1 << 20
OUTPUT = 1 << 22
# What the tools are started with: nothing of ours, no download of symbols, no terminal.
_PUBLIC = {"PATH": os.defpath, "LC_ALL": "C", "HOME": "/nonexistent", "DEBUGINFOD_URLS": ""}
_GDB = (
    *(
        "gdb",
        "-q",
        "--nx",
        "--nh",
        "-batch",
        "-iex",
        "set auto-load off",
        "-iex",
        "set auto-load safe-path /nonexistent",
    ),
    *(
        "-iex",
        "set debuginfod enabled off",
        "-iex",
        "set pagination off",
        "-iex",
        "set width 0",
        "-iex",
        "set print frame-arguments none",
    ),
    *("-iex", "set backtrace limit 128"),
)

# Numbers of the calls in which processes stay (asm/unistd_64.h, asm-generic/unistd.h).
_CALLS: dict[str, dict[int, str]] = {
    "x86_64": {
        0: "read", 1: "write", 7: "poll", 16: "ioctl", 17: "pread64", 18: "pwrite64", 19: "readv", 20: "writev", 23: "select", 35: "nanosleep",
        42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg", 47: "recvmsg", 61: "wait4", 73: "flock", 74: "fsync",
        75: "fdatasync", 202: "futex", 230: "clock_nanosleep", 232: "epoll_wait", 247: "waitid", 270: "pselect6", 271: "ppoll",
        281: "epoll_pwait", 295: "preadv", 296: "pwritev",
    },
    "aarch64": {
        22: "epoll_pwait", 29: "ioctl", 32: "flock", 63: "read", 64: "write", 65: "readv", 66: "writev", 67: "pread64", 68: "pwrite64",
        69: "preadv", 70: "pwritev", 72: "pselect6", 73: "ppoll", 82: "fsync", 83: "fdatasync", 95: "waitid", 98: "futex", 101: "nanosleep",
        115: "clock_nanosleep", 202: "accept", 203: "connect", 206: "sendto", 207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 260: "wait4",
    },
}  # fmt: skip
_ON_FILES = frozenset(
    ("read", "write", "ioctl", "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev", "flock", "fsync", "fdatasync", "connect", "accept",
     "sendto", "recvfrom", "sendmsg", "recvmsg")
)  # fmt: skip


class Missing(Exception):
    """A piece cannot be had; the text says why."""


def py_spy(target: Target, seconds: float) -> str:
    """The Python stacks with native frames, or without where these cannot be had."""
    try:
        return run(("py-spy", "dump", "--native", "--pid", str(target.pid)), seconds)
    except Missing as reason:
        if "Failed to find python version" in str(reason):
            raise Missing("it is no Python process, as far as py-spy can tell") from reason
        if "No such file" in str(reason) and (root := _link(PROC / str(target.pid) / "root")) not in ("", "/"):
            raise Missing(
                f"py-spy finds no program of a process whose root directory is {root}; run it inside of that"
            ) from reason
        return run(("py-spy", "dump", "--pid", str(target.pid)), seconds)


def gdb(target: Target, seconds: float) -> str:
    """Backtraces of all threads."""
    return run((*_GDB, "-p", str(target.pid), "-ex", "thread apply all bt"), seconds)


def status(target: Target, seconds: float) -> str:
    """State, wait channel, system call with its file and (where it may be read) the kernel's stack of every thread,
    since when it runs, and
    /proc/PID/status. `seconds` is not needed.
    """
    place = PROC / str(target.pid)
    lines = []
    for task in sorted(_listed(place / "task"), key=lambda path: int(path.name))[:4096]:
        parts = [_read(task / name) for name in ("comm", "wchan", "syscall")]
        state = re.search(r"^State:\s*(.*)", _read(task / "status"), re.MULTILINE)
        lines.append(
            f"tid {task.name} comm {parts[0]} state {state[1] if state else '?'} wchan {parts[1] or '?'} syscall {parts[2] or '?'}"
            + _call(place, parts[2])
        )
        lines += _read(task / "stack").splitlines()[:64]
    age = max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - _begun(target.pid))
    return "\n".join([*lines, "", f"began {age:.0f} s before this was taken", _read(place / "status")]) + "\n"


def _call(place: Path, syscall: str) -> str:
    """` call write 11 /mnt/ckpt.pt`: the name of the system call by its number (proc(5): /proc/PID/syscall), and what
    its descriptor leads to.
    """
    number, _, rest = syscall.partition(" ")
    name = _CALLS.get(os.uname().machine, {}).get(int(number), "") if number.isdecimal() else ""
    if not name:
        return ""
    if name == "futex":
        owner = _owner(place, rest.split())
        return f" call futex owner {owner}" if owner else " call futex"
    try:
        descriptor = int(rest.partition(" ")[0], 16)
        return (
            f" call {name} {descriptor} {redact(os.readlink(place / 'fd' / str(descriptor)))}"
            if name in _ON_FILES
            else f" call {name}"
        )
    except (OSError, ValueError):
        return f" call {name}"


def _owner(place: Path, given: Sequence[str]) -> int | None:
    """The thread that holds the mutex for which a thread waits: a FUTEX_WAIT for a lock with waiters (2), and glibc's
    `__owner` behind it.

    The mutex lies in the memory of the process: int __lock, unsigned __count, int __owner (glibc's struct_mutex.h,
    x86-64 and aarch64).
    """
    try:
        address, operation, value = (int(part, 16) for part in given[:3])
        if operation & 0x7F or value != 2:
            return None
        with (place / "mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            lock, _, owner = struct.unpack("<iIi", memory.read(12))
        tasks = {inner_pid(task): int(task.name) for task in _listed(place / "task")}
    except (OSError, OverflowError, ValueError, struct.error, Missing):
        return None
    return tasks.get(str(owner)) if lock == 2 else None


def files(target: Target, seconds: float) -> str:
    """Where the file descriptors lead."""
    lines = []
    for entry in sorted(_listed(PROC / str(target.pid) / "fd"), key=lambda path: int(path.name))[:4096]:
        try:
            lines.append(f"{entry.name} {redact(os.readlink(entry))}")
        except OSError as error:
            lines.append(f"{entry.name} ? ({error.strerror})")
    return "\n".join(lines) + "\n"


def environ(target: Target, seconds: float) -> str:
    """The environment, the values of secrets taken out."""
    if target.environ is None:
        raise Missing("its environment may not be read (another user's process)")
    return "".join(
        f"{name}={'[redacted]' if _SECRET.search(name) else redact(f'{name}={value}').partition('=')[2]}\n".replace(
            "\n", " "
        ).rstrip()
        + "\n"
        for name, value in sorted(target.environ.items())
    )


NODE: dict[str, tuple[str, ...]] = {"nvidia-smi.txt": ("nvidia-smi",), "npu-smi.txt": ("npu-smi", "info")}
"""Commands about the node by the name of their file."""


def kernel(chosen: Sequence[Target], seconds: float) -> str:
    """The kernel's messages since the first of the processes began; older ones are about other jobs."""
    begun = min((_begun(target.pid) for target in chosen), default=0.0)
    lines = run(("dmesg",), seconds).splitlines(keepends=True)
    kept = [
        line
        for line in lines
        if (stamp := re.match(r"\[ *(\d+\.\d+)\]", line)) is not None and float(stamp[1]) >= begun - 1
    ]
    if not kept:
        raise Missing("the kernel has said nothing since the processes began")
    return "".join(kept)[-TAIL:]


def _begun(pid: int) -> float:
    """Seconds after boot (proc(5): field 22 of stat, in clock ticks)."""
    fields = _read(PROC / str(pid) / "stat").rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK") if len(fields) > 19 else 0.0


def tail(log: Log) -> str:
    """The last MiB of a file, from a line's beginning on, without secrets."""
    try:
        with log.place.open("rb") as file:
            status = os.fstat(file.fileno())
            if log.owner not in (None, 0, status.st_uid) and not status.st_mode & 0o004:
                raise Missing("it belongs to another user than the process, who could not read it either")
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL))
            data = file.read(TAIL)
    except OSError as error:
        raise Missing(error.strerror or str(error)) from error
    text = data.decode("utf-8", "replace")
    return redact(text if size <= TAIL else text.partition("\n")[2])


def run(command: Sequence[str], seconds: float) -> str:
    """What a tool prints, run in the cage of the debuggers: at its deadline it and its children are ended."""
    program = shutil.which(command[0]) or shutil.which(command[0], path=str(Path(sys.executable).parent))
    if program is None:
        raise Missing(f"{command[0]} is not installed")
    if seconds < 0.5:
        raise Missing("the time was up; --seconds gives it more")
    try:
        said = engine.run([program, *command[1:]], "", engine.Limits(seconds, OUTPUT), "/", _PUBLIC)
    except OSError as error:
        raise Missing(f"{command[0]} cannot be started: {error.strerror}") from error
    if said.ended == "deadline":
        raise Missing(f"{command[0]} did not end within {seconds:.0f} s")
    if not said.text.strip() or (said.status and not said.ended):
        last = said.errors.strip().splitlines()[-1:] or [f"exit status {said.status}"]
        raise Missing(f"{command[0]}: {redact(last[0][:300])}")
    return redact(said.text)


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


def _listed(place: Path) -> list[Path]:
    try:
        return [entry for entry in place.iterdir() if entry.name.isdigit()]
    except OSError as error:
        raise Missing(f"{error.strerror}") from error
